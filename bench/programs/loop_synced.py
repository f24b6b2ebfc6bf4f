#!/usr/bin/env python3
"""A kernel of 0.2 ms, wait for it, the next one: the card idles for a moment after each. Needs no framework."""
import beat
import driver

options = beat.arguments(kernel_us=200)
card = driver.Card()


def queue():
    card.launch(1000 * options.kernel_us)
    return 1, card.wait


beat.run(queue, options.seconds, ahead=1)
