#!/usr/bin/env python3
"""JAX under a memory limit. XLA_PYTHON_CLIENT_PREALLOCATE says whether it takes three quarters of the card at first."""
import jax
import jax.numpy as jnp
import numpy

import trial


class Jax:
    least = 0.55
    total_range = (0.5, 1)  # what it tells is its own part of the card

    def total(self):
        return jax.local_devices()[0].memory_stats()["bytes_limit"]

    def take(self, count):
        return jnp.ones(count, dtype=jnp.uint8).block_until_ready()

    def free(self):
        pass

    def is_own_error(self, error):
        return isinstance(error, jax.errors.JaxRuntimeError) and "RESOURCE_EXHAUSTED" in str(error)

    def compute(self):
        a = (numpy.arange(512 * 512) % 7).reshape(512, 512).astype(numpy.float32)
        product = jax.jit(lambda x: jnp.matmul(x, x, precision="highest"))(a)
        return bool((numpy.asarray(product) == a @ a).all())


trial.run(Jax(), trial.arguments())
