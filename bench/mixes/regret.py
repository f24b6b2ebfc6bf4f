#!/usr/bin/env python3
"""regret.py --machine NAME --json FILE : mixes drawn by a seed, each in several ways to share the card, window after window.
regret.py --report FILE...           : the table of regret of such files (table.py), as Markdown; --json FILE has its numbers too.

A call starts a pool of kinds once for each way of starting, then draws mixes of it until no more fits in --minutes. A mix is whole
in one call. FILE is written anew before and after each mix, so nothing is lost when the call is ended from outside."""
import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections import namedtuple

import draw
import judge
import play
import programs
import table

# start: the way of starting (play.py). sharing: what `loadline set --sharing` says while programs work this way. among: the mixes
# in which it is measured.
Way = namedtuple("Way", "start sharing among", defaults=("measured", "all"))
WAYS = {
    "native": Way("native"),
    "open": Way("run", "slices", "no classes"),
    "visits": Way("run", "visits", "no classes"),
    "run": Way("run"),
    "mps": Way("mps"),
    "space": Way("space", among="plain"),  # what is fixed when a program starts cannot be asked for later
    "auto": Way("auto", among="plain"),
    "held-0": Way("run", "held-0", "classes"),
    "held-0.5": Way("run", "held-0.5", "classes"),
    "held-1": Way("run", "held-1", "classes"),
}
DEFAULT_WAYS = [way for way in WAYS if way != "auto"]
LEAD_S, CLASS_LEAD_S, AGAIN_S = 6.0, 15.0, 2.5
ENDING_S = 15  # until all programs have ended
AT_ONCE = 5    # kinds that start together
SPARE_MIB = 4096


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", nargs="+", metavar="FILE", help="make the table of what earlier calls have written")
    parser.add_argument("--machine", help="a word for the machine, of your own; the table tells machines apart by it")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--half", choices=draw.HALVES, default="both", help="kinds for tuning, kinds held out of it, or both")
    parser.add_argument("--pool", type=int, default=10, help="kinds to start")
    parser.add_argument("--minutes", type=float, default=9.0, help="for all, the start of the pool included")
    parser.add_argument("--mixes", type=int, default=1000, help="at most so many")
    parser.add_argument("--ways", default=DEFAULT_WAYS, type=lambda text: text.split(","))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.8, help="of a window")
    parser.add_argument("--rest", type=float, default=0.3, help="seconds between windows")
    parser.add_argument("--lead", type=float, default=None,
                        help=f"seconds in which run measures a mix before its rounds ({LEAD_S:g}; {CLASS_LEAD_S:g} with classes)")
    parser.add_argument("--again", type=float, default=AGAIN_S, help="the same before each window of run")
    parser.add_argument("--programs", metavar="FILE", help="other kinds; programs.py tells how it is written")
    parser.add_argument("--logs", default="/tmp/mixes")
    options = parser.parse_args()
    if not options.report and not (options.machine and options.json):
        parser.error("--machine and --json are needed")
    if options.rounds < 2:
        parser.error("--rounds: at least 2, odd and even ones")
    unknown = set(options.ways) - set(WAYS)
    if unknown:
        parser.error(f"no way {', '.join(sorted(unknown))}; ways: {', '.join(WAYS)}")
    return options


# ---- the card ----

def ask_card(fields):
    """What nvidia-smi says of the first card; None: it says nothing."""
    words = ["nvidia-smi", "--id=0", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    try:
        return [word.strip() for word in subprocess.run(words, capture_output=True, text=True, check=True).stdout.split(",")]
    except (OSError, subprocess.CalledProcessError):
        return None


def room_for(started, before_mib):
    """Of how many more kinds the card has the memory, if they take what those that have started take; None: it is not known."""
    told = ask_card("memory.used,memory.total")
    if not told or before_mib is None:
        return None
    used, total = map(float, told)
    each = (used - before_mib) / max(1, started)
    return int((total - used - SPARE_MIB) / each) if each > 0 else None


def start_pool(options, ways, kinds, words):
    """A pool in which each kind works in each way. Kinds that do not start, or have no room, are left out."""
    told = ask_card("memory.used")
    before_mib = float(told[0]) if told else None
    pool = play.Pool([], ways, options.logs, words=words)
    waiting = list(kinds)
    while waiting:
        room = room_for(len(pool.kinds), before_mib) if pool.kinds else None
        count = AT_ONCE if room is None else min(AT_ONCE, room)
        if count < 1:
            print(f"the card has no room for: {', '.join(waiting)}")
            break
        pool.add(waiting[:count])
        waiting = waiting[count:]
        for kind in {kind for _, kind in pool.broken} & set(pool.kinds):
            print("does not start:", "; ".join(why for (_, each), why in pool.broken.items() if each == kind), flush=True)
            pool.drop(kind)
    return pool


# ---- what loadlined is told ----

class Arbiter:
    """Tells loadlined, while the governed programs of the pool work, how to share the card and what each program is owed."""

    def __init__(self, pool):
        self.pool = pool

    def take_way(self, way):
        """What one job says of it holds for the card, so one says it."""
        play.set_program(self.pool.kinds[0], "--sharing", WAYS[way].sharing)

    @contextlib.contextmanager
    def owes(self, members):
        for member in members:
            play.set_program(member.kind, "--weight", str(member.weight), "--class", member.level)
        try:
            yield
        finally:
            for kind, words in [(self.pool.kinds[0], ("--sharing", "measured")),
                                *[(member.kind, ("--weight", "1", "--class", "normal")) for member in members]]:
                with contextlib.suppress(play.Broken):  # it has ended
                    play.set_program(kind, *words)


# ---- a mix ----

def ways_of(members, ways):
    """Those of the ways that are measured for this mix."""
    has_classes, is_asked = draw.has_classes(members), draw.has_weights(members) or draw.has_classes(members)
    fits = {"all": True, "plain": not is_asked, "classes": has_classes, "no classes": not has_classes}
    return [way for way in ways if fits[WAYS[way].among]]


def lead_of(members, options):
    return options.lead if options.lead is not None else CLASS_LEAD_S if draw.has_classes(members) else LEAD_S


def seconds_of(members, options, ways):
    ways = ways_of(members, ways)
    again = options.again + options.rest if "run" in ways else 0
    return lead_of(members, options) + options.rounds * ((len(members) + len(ways)) * (options.seconds + options.rest) + again)


class Bench:
    """The pool, the arbiter and what was asked of this call. drawn: {kind: its options}, of the pool's programs in all ways."""

    def __init__(self, pool, options, drawn):
        self.pool, self.options, self.drawn, self.arbiter = pool, options, drawn, Arbiter(pool)
        self.dice = random.Random(f"order {options.seed}")

    def measure_window(self, way, kinds):
        self.arbiter.take_way(way)
        if way == "run":
            self.pool.window("run", kinds, self.options.again)
            time.sleep(self.options.rest)
        told = self.pool.window(WAYS[way].start, kinds, self.options.seconds)
        time.sleep(self.options.rest)
        return [judge.figure_of(told[kind], self.options.seconds) for kind in kinds]

    def measure_round(self, kinds, ways):
        """{"alone": [figure of each kind], way: the same}, in random order."""
        tasks = [("alone", kind) for kind in kinds] + [(way, None) for way in ways]
        self.dice.shuffle(tasks)
        found, alone = {}, {}
        for way, kind in tasks:
            if kind:
                alone[kind] = self.measure_window("native", [kind])[0]
            else:
                found[way] = self.measure_window(way, kinds)
        return {"alone": [alone[kind] for kind in kinds], **found}

    def measure_mix(self, members):
        """People do not change mixes each second: run has some seconds to measure a mix, and again before each of its windows,
        where its further measurements of the mix fall. They take 2 % of the time at most, which is not in the table."""
        kinds = [member.kind for member in members]
        with self.arbiter.owes(members):
            self.arbiter.take_way("run")
            self.pool.window("run", kinds, lead_of(members, self.options))
            return [self.measure_round(kinds, ways_of(members, self.options.ways)) for _ in range(self.options.rounds)]

    def longest_s(self):
        """Of the mixes that may be drawn."""
        kinds = self.pool.kinds[:max(draw.SIZES)]
        levels = ["high"] + ["low"] * len(kinds)
        mixes = [draw.Member(kind) for kind in kinds], [draw.Member(kind, level=level) for kind, level in zip(kinds, levels)]
        return max(seconds_of(members, self.options, self.options.ways) for members in mixes)


# ---- a call ----

class Call:
    """What a call has found so far, and where it is written."""

    def __init__(self, bench):
        options, card = bench.options, ask_card("name,driver_version") or ["none", "none"]
        version = subprocess.run([os.environ.get("LOADLINE", "loadline"), "--version"], capture_output=True, text=True, check=True)
        self.path = options.json
        self.found = {"machine": options.machine, "card": card[0], "driver": card[1], "version": version.stdout.strip(),
                      "seed": options.seed, "half": options.half, "kinds": list(bench.pool.kinds), "options": bench.drawn,
                      "not_started": sorted({kind for _, kind in bench.pool.broken}), "ways": options.ways, "mixes": []}
        self.write()

    def write(self):
        with open(self.path + ".new", "w", encoding="utf-8") as out:
            json.dump(self.found, out)
        os.replace(self.path + ".new", self.path)

    def add(self, members, measure):
        """measure(): the rounds. A mix that was drawn is in the file, whatever becomes of it."""
        mix = {"members": [member._asdict() for member in members], "rounds": [], "fault": "unfinished"}
        self.found["mixes"].append(mix)
        self.write()
        try:
            mix["rounds"] = measure()
            mix["fault"] = None
        except play.Broken as why:
            mix["fault"] = str(why)
            return why.programs
        finally:
            self.write()
        return {}


def run_mixes(bench, end_s):
    call, pool, dice = Call(bench), bench.pool, random.Random(f"mixes {bench.options.seed}")
    longest_s = bench.longest_s()
    fit = max(0, int((end_s - time.monotonic()) / longest_s))
    print(f"{len(pool.kinds)} kinds; a mix takes up to {longest_s:.0f} s; {min(fit, bench.options.mixes)} such mixes fit", flush=True)
    # Whether a mix still fits is asked before it is drawn: else large ones would be drawn less often.
    while len(pool.kinds) > 1 and len(call.found["mixes"]) < bench.options.mixes and time.monotonic() + longest_s < end_s:
        members, begin = draw.mix(dice, pool.kinds, bench.drawn), time.monotonic()
        broken = call.add(members, lambda members=members: bench.measure_mix(members))
        for kind in broken:
            pool.drop(kind)
        print(f"{table.words_of(members)}: {time.monotonic() - begin:.0f} s {'; '.join(broken.values())}", flush=True)


def run(options):
    begin = time.monotonic()
    if options.programs:
        known = programs.read(options.programs)
    else:
        known = {kind: programs.kind_of(kind) for kind in draw.HALVES[options.half]}
    kinds = draw.pool(options.seed, known, options.pool)
    drawn = {kind: draw.options(options.seed, kind, known[kind].choices) for kind in kinds}
    starts = sorted({"native", "run"} | {WAYS[way].start for way in options.ways})
    pool = start_pool(options, starts, kinds, lambda kind: programs.words_of(known[kind], drawn[kind]))
    try:
        play.say_time("started", begin)
        if len(pool.kinds) < 2:
            raise SystemExit("regret.py: fewer than two kinds have started")
        run_mixes(Bench(pool, options, drawn), begin + 60 * options.minutes - ENDING_S)
    finally:
        pool.end()
    play.say_time("ended", begin)


def report(options):
    calls = []
    for path in options.report:
        with open(path, encoding="utf-8") as text:
            calls.append(json.load(text))
    lines, numbers = table.make(calls)
    print("\n".join(lines))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(numbers, out, indent=1)


def main():
    options = arguments()
    return report(options) if options.report else run(options)


if __name__ == "__main__":
    sys.exit(main())
