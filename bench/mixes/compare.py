#!/usr/bin/env python3
"""compare.py MIX... : each mix, as PROGRAM+PROGRAM... (programs.py), in several ways that take turns, beside each kind alone in every round.

Prints for each way the speed of each kind, of itself alone in the same rounds: the median of the rounds, and the quartiles."""
import argparse
import json
import random
import time

import play


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("mix", nargs="+", type=lambda text: text.split("+"))
    parser.add_argument("--ways", default="native,open,run", type=lambda text: text.split(","))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.8)
    parser.add_argument("--rest", type=float, default=0.3)
    parser.add_argument("--lead", type=float, default=6, help="seconds in which run measures a mix before its rounds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json")
    parser.add_argument("--logs", default="/tmp/mixes")
    return parser.parse_args()


def measure_round(pool, mix, options, dice):
    """{"alone": {kind: told}, way: {kind: told}}, in random order."""
    tasks = [("alone", [kind]) for kind in mix] + [(way, mix) for way in options.ways]
    dice.shuffle(tasks)
    found = {"alone": {}}
    for way, kinds in tasks:
        told = pool.window("native" if way == "alone" else way, kinds, options.seconds)
        time.sleep(options.rest)
        if way == "alone":
            found["alone"].update(told)
        else:
            found[way] = told
    return found


def measure(pool, mix, options, dice):
    """One mix after the other: `run` measures each for some seconds, which has its price, and people do not change mixes each second."""
    for way in set(options.ways) & {"run", "space"}:
        pool.window(way, mix, options.lead)
    return [measure_round(pool, mix, options, dice) for _ in range(options.rounds)]


def ratios(rounds, way, kind):
    return [each[way][kind]["rate_per_s"] / each["alone"][kind]["rate_per_s"] for each in rounds]


def quartiles(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4]


def show(rounds, mix, ways):
    print("+".join(mix), " alone/s: " + ", ".join(
        f"{play.median([each['alone'][kind]['rate_per_s'] for each in rounds]):.1f}" for kind in mix))
    for way in ways:
        parts = []
        for kind in mix:
            values = ratios(rounds, way, kind)
            low, high = quartiles(values)
            parts.append(f"{play.median(values):.3f} ({low:.2f}-{high:.2f})")
        sums = [sum(ratios([each], way, kind)[0] for kind in mix) for each in rounds]
        print(f"  {way:7} " + " + ".join(parts) + f"  sum {play.median(sums):.3f}", flush=True)


def main():
    options, begin = arguments(), time.monotonic()
    dice = random.Random(options.seed)
    kinds = sorted({kind for mix in options.mix for kind in mix})
    pool = play.Pool(kinds, options.ways if "native" in options.ways else ["native", *options.ways], options.logs)
    for key, why in pool.broken.items():
        print("does not start:", why)
    play.say_time("started", begin)
    broken = {kind for _, kind in pool.broken}
    mixes = [mix for mix in options.mix if not broken & set(mix)]
    found = []
    for mix in mixes:
        found.append(measure(pool, mix, options, dice))
        show(found[-1], mix, options.ways)
    pool.end()
    play.say_time("ended", begin)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump({"mixes": mixes, "rounds": found}, out)


main()
