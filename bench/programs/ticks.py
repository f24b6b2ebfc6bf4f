#!/usr/bin/env python3
"""1 ms of work every 20 ms, as a service that answers requests: how long each takes from launch to completion.

Each line on standard input is a number of seconds; it is answered with a JSON object a line:

    {"event":"ticks","start_s":1700000000.1,"busy_s":0.5,"latencies_ms":[1.02,1.01]}
"""
import gc
import sys
import time

import beat
import driver

options = beat.arguments(work_us=1000, every_ms=20)
card = driver.Card()


def tick():
    begin = time.perf_counter()
    card.launch(1000 * options.work_us)
    card.wait()
    return round(1000 * (time.perf_counter() - begin), 4)


def work(seconds):
    start_s, latencies_ms = time.time(), []
    begin = due_s = time.perf_counter()
    while due_s - begin < seconds:
        time.sleep(max(0.0, due_s - time.perf_counter()))
        latencies_ms.append(tick())
        due_s = max(due_s + options.every_ms / 1000, time.perf_counter())
    beat.say("ticks", start_s=start_s, seconds=time.perf_counter() - begin,
             busy_s=len(latencies_ms) * options.work_us / 1e6, latencies_ms=latencies_ms)


for _ in range(10):
    tick()
gc.disable()
beat.say("ready")
for stretch in [options.seconds] if options.seconds else map(float, sys.stdin):
    work(stretch)
