#!/usr/bin/env python3
"""Long kernels back to back, 20 ms each unless told; needs no framework. --stamps: how many of them have stamps (stamps.py)."""
import beat
import driver
import stamps

options = beat.arguments(kernel_us=20000, stamps=0)
card = driver.Card()


def queue():
    card.launch(1000 * options.kernel_us)
    return 1, card.mark()


beat.run(queue, options.seconds, stamps=stamps.Stamps(options.stamps, lambda: card.stream) if options.stamps else None)
