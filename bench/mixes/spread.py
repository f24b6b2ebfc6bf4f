#!/usr/bin/env python3
"""spread.py GROUP... : how steadily programs get on, alone (PROGRAM, as in programs.py) and together (PROGRAM+PROGRAM),
natively.

Steps are counted each 10 ms. Prints the Allan deviation of the rate over windows of 0.1 to 3 s, in percent of the mean: how much
two windows next to each other differ. It tells what can be learned of a program while it works, and how fast."""
import argparse
import json

import play

BINS = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0)
BIN_S = 0.01


def allan_percent(counts, window_s):
    width = round(window_s / BIN_S)
    rates = [sum(counts[at:at + width]) for at in range(0, len(counts) - width + 1, width)]
    mean = sum(rates) / len(rates)
    if len(rates) < 3 or mean == 0:
        return None
    return 100 * (sum((b - a) ** 2 for a, b in zip(rates, rates[1:])) / (2 * (len(rates) - 1))) ** 0.5 / mean


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("group", nargs="+", type=lambda text: text.split("+"))
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--json")
    parser.add_argument("--logs", default="/tmp/spread")
    options = parser.parse_args()
    pool = play.Pool(sorted({kind for group in options.group for kind in group}), ["native"], options.logs)
    for why in pool.broken.values():
        print("does not start:", why)
    found = []
    print("Allan deviation, % of the mean, over windows of " + ", ".join(f"{each:g} s" for each in BINS))
    for group in options.group:
        if any(("native", kind) in pool.broken for kind in group):
            continue
        told = pool.window("native", group, options.seconds)
        found.append(told)
        for kind in group:
            counts = told[kind].get("steps_by_10ms")
            values = [allan_percent(counts, each) for each in BINS] if counts else []
            print(f"{'+'.join(group):36} {kind:14} {told[kind]['rate_per_s']:9.1f}/s  " + "  ".join(
                "-" if each is None else f"{each:5.1f}" for each in values), flush=True)
    pool.end()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(found, out)


main()
