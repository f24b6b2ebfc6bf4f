#!/usr/bin/env python3
"""An exact computation with JAX: see exact.py."""
import jax
import jax.numpy as jnp
import numpy

import exact


@jax.jit
def next_of(matrix, weights):
    return jnp.mod(jnp.matmul(matrix, weights), exact.MODULUS)


class Jax:
    def start(self, size, count):
        places = numpy.arange(size * size, dtype=numpy.int64)
        self.weights = jax.device_put((places * 2654435761 % exact.MODULUS).reshape(size, size).astype(numpy.float32))
        first = jax.device_put((places % exact.MODULUS).reshape(size, size).astype(numpy.float32))
        return [jnp.mod(first + at, exact.MODULUS) for at in range(count)]

    def step(self, matrices):
        return [next_of(matrix, self.weights) for matrix in matrices]

    def wait(self, matrices):
        jax.block_until_ready(matrices)

    def sums(self, matrix):
        return numpy.asarray(matrix.sum(0)), numpy.asarray(matrix.sum(1))


exact.run(Jax())
