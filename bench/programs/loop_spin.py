#!/usr/bin/env python3
"""Long kernels back to back, 20 ms each unless told; needs no framework."""
import beat
import driver

options = beat.arguments(kernel_us=20000)
card = driver.Card()


def queue():
    card.launch(1000 * options.kernel_us)
    return 1, card.mark()


beat.run(queue, options.seconds)
