#!/usr/bin/env python3
"""A burst of 1 ms kernels, 50 ms in all, every 100 ms, then waiting; needs no framework. The bursts keep to a timetable,
as requests would: one that is late begins at once, so the work offered is half of the card's time whatever the limit."""
import time

import beat
import driver

options = beat.arguments(on_ms=50, every_ms=100)
card = driver.Card()
due_s = time.perf_counter()


def queue():
    global due_s
    now_s = time.perf_counter()
    if due_s > now_s:
        time.sleep(due_s - now_s)
    due_s = max(due_s, now_s) + options.every_ms / 1000
    for _ in range(options.on_ms):
        card.launch(1000000)
    return options.on_ms, card.wait


beat.run(queue, options.seconds, ahead=1)
