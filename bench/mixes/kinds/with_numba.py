#!/usr/bin/env python3
"""A stencil by numba: sweeps over a grid, then a copy of one row to the host."""
import numpy
from numba import cuda

import pulse

options = pulse.arguments(size=1024, sweeps=50)
numpy.row_stack = getattr(numpy, "row_stack", numpy.vstack)


@cuda.jit
def sweep(before, after):
    i, j = cuda.grid(2)
    if 0 < i < before.shape[0] - 1 and 0 < j < before.shape[1] - 1:
        after[i, j] = (before[i - 1, j] + before[i + 1, j] + before[i, j - 1] + before[i, j + 1]) / 4


grid = options.size, options.size
a, b = cuda.to_device(numpy.random.rand(*grid)), cuda.to_device(numpy.zeros(grid))
blocks = options.size // 16, options.size // 16


def step():
    for _ in range(options.sweeps // 2):
        sweep[blocks, (16, 16)](a, b)
        sweep[blocks, (16, 16)](b, a)
    a[options.size // 2].copy_to_host()


pulse.warm_up(step)
pulse.run(pulse.Steps(step, pulse.Waited()))
