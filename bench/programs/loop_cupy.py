#!/usr/bin/env python3
"""Multiplies float32 matrices in a loop, with CuPy."""
import cupy

import beat

BATCH = 10

options = beat.arguments(size=4096)
a = cupy.random.standard_normal((options.size, options.size), dtype=cupy.float32)
b = a.copy()
c = cupy.empty_like(a)


def queue():
    for _ in range(BATCH):
        cupy.matmul(a, b, out=c)
    event = cupy.cuda.Event(disable_timing=True)
    event.record()
    return BATCH, event.synchronize


beat.run(queue, options.seconds)
