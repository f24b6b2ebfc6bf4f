#!/usr/bin/env python3
"""A service: a forward pass of a batch of 16, some 40 kernels, for each request. Requests come at random, --every-ms apart on
average (Poisson), and wait for those before. How long each takes, from its arrival to its answer on the host.

Each line on standard input is a number of seconds; the answer is a JSON object a line:

    {"event":"ticks","seconds":4.0,"latencies_ms":[2.4,2.5]}
"""
import gc
import random
import sys
import time

import torch
from torch import nn

import beat

WIDTH, LAYERS, BATCH, LENGTH = 768, 4, 16, 64

options = beat.arguments(every_ms=50.0, seed=1)
torch.manual_seed(1)
dice = random.Random(options.seed)
layer = nn.TransformerEncoderLayer(WIDTH, 12, 4 * WIDTH, dropout=0.0, batch_first=True)
model = nn.TransformerEncoder(layer, LAYERS).cuda().bfloat16().eval()
asked = torch.randn(BATCH, LENGTH, WIDTH).pin_memory()


@torch.no_grad()
def answer():
    model(asked.cuda(non_blocking=True).bfloat16())[:, 0].float().cpu()


def work(seconds):
    latencies_ms, begin = [], time.perf_counter()
    due_s = begin + dice.expovariate(1000 / options.every_ms)
    while due_s - begin < seconds:
        time.sleep(max(0.0, due_s - time.perf_counter()))
        answer()
        latencies_ms.append(round(1000 * (time.perf_counter() - due_s), 4))
        due_s += dice.expovariate(1000 / options.every_ms)
    beat.say("ticks", seconds=time.perf_counter() - begin, latencies_ms=latencies_ms)


for _ in range(50):
    answer()
gc.disable()
beat.say("ready")
for stretch in [options.seconds] if options.seconds else map(float, sys.stdin):
    work(stretch)
