#!/usr/bin/env python3
"""Multiplies bf16 matrices of 4096² in a loop for as many seconds as each line on standard input says, and answers with
how many products a second that were. Needs PyTorch."""
import sys
import time

import torch

BATCH = 50

a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
b = torch.randn_like(a)
c = torch.empty_like(a)


def multiply(seconds):
    done, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        for _ in range(BATCH):
            torch.mm(a, b, out=c)
        torch.cuda.synchronize()
        done += BATCH
    return done / (time.perf_counter() - begin)


multiply(0.5)
print("ready", flush=True)
for line in sys.stdin:
    print(f"{multiply(float(line)):.3f}", flush=True)
