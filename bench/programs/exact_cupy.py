#!/usr/bin/env python3
"""An exact computation with CuPy: see exact.py. With EXACT_CUPY_POOL=async its memory is of cudaMallocAsync."""
import os

import cupy

import exact


class Cupy:
    def start(self, size, count):
        places = cupy.arange(size * size, dtype=cupy.int64)
        self.weights = (places * 2654435761 % exact.MODULUS).reshape(size, size).astype(cupy.float32)
        first = (places % exact.MODULUS).reshape(size, size).astype(cupy.float32)
        return [(first + at) % exact.MODULUS for at in range(count)]

    def step(self, matrices):
        return [cupy.mod(matrix @ self.weights, exact.MODULUS) for matrix in matrices]

    def wait(self, matrices):
        cupy.cuda.Device().synchronize()

    def sums(self, matrix):
        return cupy.asnumpy(matrix.sum(0)), cupy.asnumpy(matrix.sum(1))


if os.environ.get("EXACT_CUPY_POOL") == "async":
    cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
exact.run(Cupy())
