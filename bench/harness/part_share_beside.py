"""share-…: who comes beside others, kernels that nobody can interrupt, a class that never pauses, `--by auto`, a hold that
fills up, and what sharing costs the host."""
import time

from . import figures, processes
from .card import UtilWatch
from .governed import Program, need_run
from .hold import Hold
from .lab import Missing
from .mixes import MPS, NATIVE, RUN, Member, Mode, measure, members, words_of
from .part_share import FOURS, report_sum, told_of

# ---- a newcomer has its share at once ----

NEWCOMERS = [("matmul", "matmul"), ("matmul", "decode"), ("flood", "sync"), ("decode", "small")]
FIRST_S, LATER_S, SOON = 0.5, 2.0, 0.9


def run_newcomer(lab):
    """The second program's speed in its first half second, of its speed after that. Both are loaded and idle before."""
    need_run(lab)
    for resident, newcomer in NEWCOMERS:
        figure = f"newcomer: {newcomer} beside {resident}: its speed in the first {FIRST_S:g} s"
        try:
            first, second = [Program(lab, f"newcomer-{resident}-{newcomer}-{at}", words_of(lab, kind), []).wait_ready()
                             for at, kind in enumerate((resident, newcomer))]
        except Missing as why:
            lab.report.skip(figure, str(why))
            continue
        ratios = []
        for _ in range(lab.times(5, 3)):
            mark = first.go(1 + FIRST_S + LATER_S + 0.5)
            time.sleep(1)
            soon, later = second.rate_for(FIRST_S), second.rate_for(LATER_S)
            first.wait_done(mark, 30)
            ratios.append(soon / later)
        first.end()
        second.end()
        lab.report.at_least(figure, figures.percentile(ratios, 50), SOON, "of its speed after that", 2,
                            f" ({', '.join(f'{each:.2f}' for each in ratios)})")


# ---- kernels that nobody can interrupt ----

LONG = (("graph30", 30), ("spin1s", 1000))
BEYOND_MS = 5


def run_long(lab):
    need_run(lab)
    for kind, kernel_ms in LONG:
        figure = f"classes: serve high beside low {kind}: p99"
        mix = [Member("serve", ("--class", "high")), Member(kind, ("--class", "low"))]
        try:
            found = measure(lab, f"long-{kind}", mix, [NATIVE, RUN], 3, 10.0)
        except Missing as why:
            lab.report.skip(figure, str(why))
            continue
        alone, ours, plain = found.alone_latencies_ms("serve"), found.latencies_ms("run", 0), found.latencies_ms("native", 0)
        p99, native = figures.percentile(ours, 99), figures.percentile(plain, 99)
        lab.report.at_most(figure, p99, kernel_ms + BEYOND_MS, "ms", 1,
                           f" (alone {figures.percentile(alone, 99):.1f}, native {native:.1f}; {len(ours)} requests)")
    figure = "weights: spin1s + flood 30/70, 30 s: GPU time of the flood"
    mix = [Member("spin1s", ("--weight", "30")), Member("flood", ("--weight", "70"))]
    found = measure(lab, "long-shares", mix, [NATIVE, RUN], 1, 30.0)
    # A kernel of the other one lasts 1 s by the clock, whatever part of that second it has the card.
    part = 100 * found.speed(RUN.name, 1)
    lab.report.check(figure, "70 ± 3 %", f"{part:.1f} % (native {100 * found.speed(NATIVE.name, 1):.1f} %)", abs(part - 70) <= 3)


# ---- a class above that never pauses ----

LEAST_PERCENT, MOST_PERCENT = 0.8, 10.0


def run_flooding(lab):
    need_run(lab)
    for low in ("decode", "small"):
        mix = [Member("flood", ("--class", "high")), Member(low, ("--class", "low"))]
        figure = f"classes: flood high beside low {low}"
        try:
            found = measure(lab, f"flooding-{low}", mix, [NATIVE, RUN])
        except Missing as why:
            lab.report.skip(figure, str(why))
            continue
        lab.report.at_least(f"{figure}: its speed", found.speed(RUN.name, 0), 0.97, "of alone", 3,
                            f" (native {found.speed(NATIVE.name, 0):.3f})")
        percent = found.account_percent(1)
        lab.report.check(f"{figure}: GPU time of {low}", "1 to 10 %", "no account" if percent is None else f"{percent:.2f} %",
                         percent is not None and LEAST_PERCENT <= percent <= MOST_PERCENT)


# ---- --by auto ----

AUTO = Mode("auto", lambda member: ["--by", "auto", *member.limits], needs_mps=True)
AUTO_MIXES = [*FOURS[:3], ("decode", "matmul"), ("sync", "sync")]


def run_auto(lab):
    """Beside an MPS daemon auto takes part in it; without one it shares the time, as `run` does."""
    need_run(lab)
    for kinds in AUTO_MIXES:
        figure = f"auto: {' + '.join(kinds)}"
        try:
            found = measure(lab, f"auto-{'-'.join(kinds)}", members(*kinds), [NATIVE, RUN, MPS, AUTO])
        except Missing as why:
            lab.report.skip(figure, str(why))
            continue
        better = max((RUN.name, MPS.name), key=lambda mode: sum(found.speeds(mode)))
        report_sum(lab, figure, found, AUTO.name, better, "the better of time and space")


# ---- what the host pays ----

HOST_MIXES = [(("flood", "flood"), (30, 70)), (("sync", "sync"), (1, 1)), (("decode", "matmul"), (30, 70)), (("small",) * 4, (1,) * 4)]
WATCH_PERCENT = 5.0  # of a core, all tenants together


def agent_seconds(programs):
    return sum(seconds for program in programs
               for name, seconds, _ in processes.threads(program.process.pid).values() if name == "ll-agent")


def run_host(lab):
    """CPU time of the library's own threads, which watch the visits, while the programs of a mix work."""
    need_run(lab)
    seconds = lab.seconds(10.0)
    for kinds, weights in HOST_MIXES:
        figure = f"host: {' + '.join(kinds)} {'/'.join(map(str, weights))}: the library's threads, all tenants together"
        try:
            programs = [Program(lab, f"host-{at}-{kind}", words_of(lab, kind), ["--weight", weight]).wait_ready()
                        for at, (kind, weight) in enumerate(zip(kinds, weights))]
        except Missing as why:
            lab.report.skip(figure, str(why))
            continue
        marks = [program.go(seconds + 1) for program in programs]
        time.sleep(0.5)
        before, begin = agent_seconds(programs), time.monotonic()
        time.sleep(seconds - 0.5)
        used, took = agent_seconds(programs) - before, time.monotonic() - begin
        for program, mark in zip(programs, marks):
            program.wait_done(mark, 60)
            program.end()
        lab.report.at_most(figure, 100 * used / took, WATCH_PERCENT, "% of a core", 2)


# ---- a hold that fills up beside programs ----

FILL_TO, FILL_OFF, SETTLED_S = 60, 4, 3.0


def means_by_second(watch, from_s, until_s):
    return [figures.mean(values) for at in range(int(until_s - from_s))
            if (values := watch.between(from_s + at, from_s + at + 1))]


def run_fill_beside(lab):
    need_run(lab)
    for kind in ("small", "decode", "resnet"):
        figure = f"fill: to {FILL_TO} % beside {kind}"
        try:
            program = Program(lab, f"fill-{kind}", words_of(lab, kind)).wait_ready()
        except Missing as why:
            lab.report.skip(figure, str(why))
            continue
        seconds = lab.seconds(12.0, 6.0)
        beside, alone, levels, needs = [], [], [], []
        for _ in range(lab.times(3, 2)):
            with UtilWatch(lab.card) as watch:
                begin = time.time()
                alone.append(program.rate_for(seconds / 2))
                time.sleep(0.5)
            needs += means_by_second(watch, begin + 1, begin + seconds / 2)
            with UtilWatch(lab.card) as watch:
                mark = program.go(SETTLED_S + seconds)
                time.sleep(1)
                hold = Hold(lab, f"fill-{kind}-hold", "--mode", "fill", "--target", f"{FILL_TO}%")
                begin = time.time() + SETTLED_S
                beside.append(program.wait_done(mark, 60)["rate_per_s"])
                end = time.time() - 0.2
                hold.end()
            levels += means_by_second(watch, begin, end)
        program.end()
        wanted = max(FILL_TO, figures.percentile(needs, 50))
        text = f"{min(levels):.1f} to {max(levels):.1f} %, mean {figures.mean(levels):.1f}; alone {figures.percentile(needs, 50):.1f}"
        lab.report.keep(figure, {"levels": levels, "alone_percent": needs, "alone_per_s": alone, "beside_per_s": beside})
        lab.report.check(f"{figure}: each second", f"{wanted:.0f} ± {FILL_OFF} %" if wanted > FILL_TO else f"{FILL_TO} ± {FILL_OFF} %",
                         text, all(abs(level - wanted) <= FILL_OFF for level in levels))
        lab.report.at_least(f"{figure}: the program's speed", figures.percentile(beside, 50) / figures.percentile(alone, 50), 0.97,
                            "of alone", 3)
