#!/usr/bin/env python3
"""Multiplies matrices in a loop, with PyTorch, bf16 unless told (--type float32). --size 4096: kernels of 0.2 ms; 512: of
some µs, and more host work. --cpu: the processor on which the launching thread stays."""
import torch

import beat
import torch_beat

BATCH_FLOP = 3.5e12  # some 5 ms of a large product
MOST = 500

options = beat.arguments(size=4096, type="bfloat16", cpu=-1)
a = torch.randn(options.size, options.size, device="cuda", dtype=getattr(torch, options.type))
b = torch.randn_like(a)
c = torch.empty_like(a)
count = min(MOST, max(1, int(BATCH_FLOP / (2 * options.size ** 3))))
beat.run(torch_beat.batch(lambda: torch.mm(a, b, out=c), count), options.seconds, cpu=options.cpu)
