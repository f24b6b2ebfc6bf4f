#!/usr/bin/env python3
"""Multiplies bf16 matrices in a loop, with JAX."""
import jax
import jax.numpy as jnp

import beat

BATCH = 20

options = beat.arguments(size=4096)
a = jax.random.normal(jax.random.key(1), (options.size, options.size), dtype=jnp.bfloat16)
multiply = jax.jit(jnp.matmul)


def queue():
    for _ in range(BATCH):
        c = multiply(a, a)
    return BATCH, c.block_until_ready


beat.run(queue, options.seconds)
