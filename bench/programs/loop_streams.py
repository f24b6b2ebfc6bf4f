#!/usr/bin/env python3
"""Long kernels back to back in one stream, 20 ms each unless told, and short ones of the same kind beside them in another,
one at a time, with a pause after each; needs no framework. An iteration is a long one."""
import time

import beat
import driver

SHORT_NS, PAUSE_S = 50000, 0.001
SHORT_PART = 0.5  # of the time that the long one takes

options = beat.arguments(kernel_us=20000)
card = driver.Card()
side = card.new_stream()
shorts = int(SHORT_PART * options.kernel_us / 1e6 / (PAUSE_S + SHORT_NS / 1e9))


def queue():
    card.launch(1000 * options.kernel_us)
    wait = card.mark()
    for _ in range(shorts):
        card.launch(SHORT_NS, side)
        card.wait(side)
        time.sleep(PAUSE_S)
    return 1, wait


beat.run(queue, options.seconds)
