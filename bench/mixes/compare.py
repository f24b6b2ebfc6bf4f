#!/usr/bin/env python3
"""compare.py MIX... : each mix, as PROGRAM+PROGRAM... (programs.py), in several ways that take turns, beside each kind alone in every round.

PROGRAM@CLASS has that class (high, normal or low) in the way run; elsewhere there are no classes. Prints for each way the speed of
each kind, of itself alone in the same rounds: the median of the rounds, and the quartiles. The speed of a program that answers
requests is its median latency alone over its median latency."""
import argparse
import json
import random
import time

import judge
import play
import programs

AT_ONCE = 5  # so many kinds start at once


def read_mix(text):
    """{kind: class}"""
    mix = {}
    for part in text.split("+"):
        kind, _, level = part.partition("@")
        if level not in ("", "high", "normal", "low") or kind in mix:
            raise argparse.ArgumentTypeError(f"{text}: {part}: a class is high, normal or low, and each program is named once")
        mix[kind] = level or "normal"
    return mix


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mix", nargs="+", type=read_mix)
    parser.add_argument("--ways", default="native,open,run", type=lambda text: text.split(","))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.8)
    parser.add_argument("--rest", type=float, default=0.3)
    parser.add_argument("--lead", type=float, default=6, help="seconds in which run measures a mix before its rounds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json")
    parser.add_argument("--programs", help="a file of other kinds of programs (programs.read)")
    parser.add_argument("--logs", default="/tmp/mixes")
    return parser.parse_args()


def set_classes(mix):
    for kind, level in mix.items():
        play.set_program(kind, "--class", level)


def measure_round(pool, mix, options, dice):
    """{"alone": {kind: figure}, way: {kind: figure}}, in random order."""
    tasks = [("alone", [kind]) for kind in mix] + [(way, list(mix)) for way in options.ways]
    dice.shuffle(tasks)
    found = {"alone": {}}
    for way, kinds in tasks:
        told = pool.window("native" if way == "alone" else way, kinds, options.seconds)
        found.setdefault(way, {}).update({kind: judge.figure_of(told[kind], options.seconds) for kind in kinds})
        time.sleep(options.rest)
    return found


def measure(pool, mix, options, dice):
    """One mix after the other: `run` measures each for some seconds, which has its price, and people do not change mixes each second."""
    if "run" in options.ways:
        set_classes(mix)
    for way in set(options.ways) & {"run", "space"}:
        pool.window(way, list(mix), options.lead)
    rounds = [measure_round(pool, mix, options, dice) for _ in range(options.rounds)]
    if "run" in options.ways:
        set_classes(dict.fromkeys(mix, "normal"))
    return rounds


def ratios(rounds, way, kind):
    return [each[way][kind]["rate"] / each["alone"][kind]["rate"] for each in rounds]


def quartiles(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4]


def show(rounds, mix, ways):
    names = [kind if level == "normal" else f"{kind}@{level}" for kind, level in mix.items()]
    print("+".join(names), " alone/s: " + ", ".join(
        f"{play.median([each['alone'][kind]['rate'] for each in rounds]):.1f}" for kind in mix))
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
    ways = options.ways if "native" in options.ways else ["native", *options.ways]
    told = programs.read(options.programs) if options.programs else {}
    pool = play.Pool([], ways, options.logs, words=lambda kind: told[kind].words if kind in told else programs.parse(kind))
    for at in range(0, len(kinds), AT_ONCE):
        pool.add(kinds[at:at + AT_ONCE])
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
