"""run-cost: what being governed costs a program that no limit holds back: launches, allocations, speed, starting.

Always two processes, one as it is and one under `loadline run`, that take turns; several such pairs, because where its
code and data lie makes a process faster or slower than the next one by more than what is to be seen."""
import os
import re
import time

from . import figures, paired
from .frameworks import command
from .governed import Program, need_run, wrapped
from .lab import Missing, Trouble

LAUNCH_NS, SPEED_PERCENT, START_RATIO = 30, 99.5, 1.1
ALLOC_US = {1: 1.0, 64: 5.0}  # threads: what may be added
LAUNCH_PAIRS, LAUNCH_ROUNDS, LAUNCH_BLOCKS = 5, 40, 250
ALLOC_ROUNDS, ALLOC_CALLS = 20, 2500
MEMORY = "64G"
SPEED_PAIRS, SPEED_ROUNDS, SPEED_S = 2, 10, 2.0
PROCESSES, STARTS = 20, 4
WITHIN_S = 60
BENCH_LINE = re.compile(r"^(\d+) threads?, a pair: +median +(\d+) ns", re.MULTILINE)


def in_turn(lab, name, words, rounds, measure, limits=()):
    native, governed = Program(lab, f"{name}-native", words), Program(lab, f"{name}-run", words, limits)
    native.wait_ready()
    governed.wait_ready()
    pairs = paired.measure(rounds, lambda: measure(native), lambda: measure(governed))
    native.end()
    governed.end()
    return pairs


def report_launch(lab):
    words = [lab.program("tests/gpu/cost"), "--mode", "launch", "--cpu", str(max(os.sched_getaffinity(0)))]
    blocks = lab.times(LAUNCH_BLOCKS, 20)
    runs = [in_turn(lab, f"cost-launch-{at}", words, lab.times(LAUNCH_ROUNDS, 4),
                    lambda program: program.ask(blocks, "round", WITHIN_S)["median_ns"])
            for at in range(lab.times(LAUNCH_PAIRS, 2))]
    added = [paired.added(pairs) for pairs in runs]
    native = [paired.middle(pairs, 0) for pairs in runs]
    lab.report.keep("cost: launch", {"added_ns": added, "native_ns": native, "all_ns": runs})
    lab.report.at_most("cost: cuLaunchKernel, added", figures.percentile(added, 50), LAUNCH_NS, "ns", 1,
                       f" on top of {figures.percentile(native, 50):.0f}; pairs {min(added):.1f} to {max(added):.1f}")


def report_speed(lab):
    words = command(lab, "torch", "loop_matmul.py", "--size", 512)
    seconds = lab.seconds(SPEED_S, 1)
    runs = [in_turn(lab, f"cost-speed-{at}", words, lab.times(SPEED_ROUNDS, 2),
                    lambda program: program.rate_for(seconds)) for at in range(lab.times(SPEED_PAIRS, 1))]
    ratios = [paired.ratio_percent(pairs) for pairs in runs]
    every = [100 * governed / native for pairs in runs for native, governed in pairs]
    lab.report.keep("cost: speed", {"per_s": runs, "percent": figures.spread(every)})
    lab.report.at_least("cost: bf16 512³ products, speed", figures.percentile(every, 50), SPEED_PERCENT, "%", 2,
                        f" of {paired.middle(runs[0], 0):.0f}/s; pairs {min(ratios):.2f} to {max(ratios):.2f}")


def ledger_bench(lab):
    """{threads: ns for a reservation and its release}, of the ledger by itself."""
    try:
        program = lab.program("bench/ledger_bench")
    except Missing:
        return {}
    _, out, _ = lab.run("ledger-bench", [program], timeout=120)
    return {int(threads): float(ns) for threads, ns in BENCH_LINE.findall(out)}


def report_pair(lab, figure, pairs, limit_us, is_judged):
    """By the driver's calls; without judgement where their own scatter is wider than the limit."""
    added_us = paired.added(pairs) / 1000
    more = f" on top of {paired.middle(pairs, 0) / 1000:.2f}"
    lab.report.keep(figure, {"added_us": added_us, "all_ns": pairs})
    if not is_judged:
        lab.report.info(figure, f"{added_us:.3f} us{more}")
    elif paired.is_drowned(pairs, 1000 * limit_us):
        lab.report.info(figure, f"{added_us:.3f} us{more}; scatters too widely to judge")
    else:
        lab.report.at_most(figure, added_us, limit_us, "us", 3, more)


def report_alloc(lab):
    """Under a memory limit, which is never reached: without one there would be nothing to keep to."""
    bench = ledger_bench(lab)
    for threads, limit_us in ALLOC_US.items():
        for size in ("512", "1M"):
            words = [lab.program("tests/gpu/cost"), "--mode", "alloc", "--threads", str(threads), "--bytes", size]
            pairs = in_turn(lab, f"cost-alloc-{threads}-{size}", words, lab.times(ALLOC_ROUNDS, 4),
                            lambda program: program.ask(ALLOC_CALLS, "round", WITHIN_S)["median_ns"],
                            ["--mem", MEMORY])
            report_pair(lab, f"cost: cuMemAlloc and cuMemFree of {size}, threads: {threads}, added", pairs, limit_us,
                        size == "512")
        figure = f"cost: reserve and release, threads: {threads}"
        if threads in bench:
            lab.report.at_most(f"{figure} (ledger alone)", bench[threads] / 1000, limit_us, "us", 3)
        else:
            lab.report.skip(f"{figure} (ledger alone)", "no bench/ledger_bench")


def start_together(lab, name, words):
    """Seconds from the first one's start to the last one's end."""
    begin = time.monotonic()
    children = [lab.spawn(f"{name}-{at}", words) for at in range(PROCESSES)]
    for at, child in enumerate(children):
        child.wait(WITHIN_S)
        if child.returncode:
            raise Trouble(f"{name}-{at}: {lab.tail(f'{name}-{at}.err')}")
    return time.monotonic() - begin


def report_start(lab):
    words = [lab.program("tests/gpu/cost"), "--mode", "start"]
    pairs = paired.measure(lab.times(STARTS, 1), lambda: start_together(lab, "cost-start-native", words),
                           lambda: start_together(lab, "cost-start-run", wrapped(lab, words, [])))
    native_s, run_s = paired.middle(pairs, 0), paired.middle(pairs, 1)
    ratios = [run / native for native, run in pairs]
    lab.report.keep("cost: starts", {"seconds": pairs})
    lab.report.at_most(f"cost: {PROCESSES} processes starting at once", run_s / native_s, START_RATIO, "times", 3,
                       f" of {native_s:.2f} s; {min(ratios):.3f} to {max(ratios):.3f}")


def run(lab):
    need_run(lab)
    report_launch(lab)
    report_alloc(lab)
    report_start(lab)
    try:
        report_speed(lab)
    except Missing as why:
        lab.report.skip("cost: bf16 512³ products, speed", str(why))
