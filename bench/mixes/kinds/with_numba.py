#!/usr/bin/env python3
"""A stencil by numba: 50 sweeps over a grid, then a copy of one row to the host."""
import numpy
from numba import cuda

import pulse

numpy.row_stack = getattr(numpy, "row_stack", numpy.vstack)


@cuda.jit
def sweep(before, after):
    i, j = cuda.grid(2)
    if 0 < i < before.shape[0] - 1 and 0 < j < before.shape[1] - 1:
        after[i, j] = (before[i - 1, j] + before[i + 1, j] + before[i, j - 1] + before[i, j + 1]) / 4


a, b = cuda.to_device(numpy.random.rand(1024, 1024)), cuda.to_device(numpy.zeros((1024, 1024)))


def step():
    for _ in range(25):
        sweep[(64, 64), (16, 16)](a, b)
        sweep[(64, 64), (16, 16)](b, a)
    a[512].copy_to_host()


pulse.warm_up(step)
pulse.run(pulse.Steps(step, pulse.Waited()))
