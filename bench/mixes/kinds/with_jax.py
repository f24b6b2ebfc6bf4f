#!/usr/bin/env python3
"""A training by JAX: a network of four layers, one jitted step, the loss read each 20 steps."""
import jax
import jax.numpy as jnp

import pulse


class Marks:
    def __init__(self, newest):
        self.mark = newest

    @staticmethod
    def is_reached(array):
        return array.is_ready()


options = pulse.arguments(batch=512, width=1024)
keys = jax.random.split(jax.random.PRNGKey(1), 4)
weights = [jax.random.normal(key, (options.width, options.width)) / options.width ** 0.5 for key in keys]
x = jax.random.normal(keys[0], (options.batch, options.width))
count, loss = 0, None


def cost(weights, x):
    for w in weights:
        x = jax.nn.gelu(x @ w)
    return jnp.mean(x * x)


@jax.jit
def update(weights, x):
    loss, slopes = jax.value_and_grad(cost)(weights, x)
    return [w - 0.01 * slope for w, slope in zip(weights, slopes)], loss


def step():
    global weights, count, loss
    weights, loss = update(weights, x)
    count += 1
    if count % 20 == 0:
        float(loss)


pulse.warm_up(step)
pulse.run(pulse.Steps(step, Marks(lambda: loss)))
