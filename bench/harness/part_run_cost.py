"""run-cost: what being governed costs a program that no limit holds back: launches, allocations, speed, starting.

Always two processes, one as it is and one under `loadline run`, that take short turns, their launching threads on the
same processor; several such pairs, because where its code and data lie makes a process faster or slower than the next
one by more than what is to be seen. A figure comes with the interval in which its median lies (paired.py), and is not
judged where that is wider than the limit and reaches it.

What launches pay is also taken within one process, past the library that stands before the driver and through it in
turn, blocks of 100: that is free of how processes differ, and tells the way through from all else that being governed
brings (events in the stream, a thread beside). The same under a cap that is not in the way is said and not judged: there
each launch is counted, of one kernel over and over and of as many as a training step has."""
import re
import time

from . import figures, in_turn, paired
from .frameworks import command
from .governed import Program, need_run, wrapped
from .lab import Missing, Trouble

LAUNCH_NS, SPEED_PERCENT, START_RATIO = 30, 99.5, 1.1
ALLOC_US = {1: 1.0, 64: 5.0}  # threads: what may be added
LAUNCH_PAIRS, LAUNCH_ROUNDS, LAUNCH_BLOCKS = 6, 60, 80
PAST_ROUNDS, PAST_BLOCKS = 20, 200
CARDS_FIGURE = "cost: cuLaunchKernel of a process on several cards, through the library"
FAR_CAP, KINDS, SPEND_NS = "95%", (1, 90), 8000
ALLOC_ROUNDS, ALLOC_CALLS = 20, 2500
CALLS_EACH = 200  # by each thread at least, or they hardly meet
MEMORY = "64G"
SPEED_PAIRS, SPEED_ROUNDS, SPEED_S = 12, 125, 0.04
PROCESSES, STARTS = 20, 3
WITHIN_S = 60
BENCH_LINE = re.compile(r"^(\d+) threads?, a pair: +median +(\d+) ns", re.MULTILINE)


def pair_of(lab, name, words, rounds, measure, limits=()):
    return in_turn.measure(Program(lab, f"{name}-native", words), Program(lab, f"{name}-run", words, limits), rounds, measure)


def launch_words(lab, mode):
    return [lab.program("bench/c/cost"), "--mode", mode, "--cpu", str(in_turn.last_cpu())]


def report_launch(lab):
    """Blocks with a mark in them are few and count in the mean alone."""
    blocks, rounds = lab.times(LAUNCH_BLOCKS, 20), []

    def measure(program):
        rounds.append(program.ask(blocks, "round", WITHIN_S))
        return rounds[-1]["median_ns"]

    runs = [pair_of(lab, f"cost-launch-{at}", launch_words(lab, "launch"), lab.times(LAUNCH_ROUNDS, 4), measure)
            for at in range(lab.times(LAUNCH_PAIRS, 2))]
    lab.report.keep("cost: launch, rounds", rounds)
    in_turn.report_between(lab, "cost: cuLaunchKernel, added", runs, paired.difference, LAUNCH_NS, LAUNCH_NS, "ns", True,
                           f" on top of {in_turn.native_middle(runs):.0f}")


def measure_past(lab, name, words, limits=()):
    """Through the library against past it: ([a pair for each round], the mean)."""
    blocks, rounds = lab.times(PAST_BLOCKS, 20), lab.times(PAST_ROUNDS, 4)
    program = Program(lab, name, [*launch_words(lab, "past"), *words], limits)
    program.wait_ready()
    told = [program.ask(blocks, "round", WITHIN_S) for _ in range(rounds)]
    program.end()
    lab.report.keep(f"{name}: launches past the library and through it", told)
    return [(0, each["median_ns"]) for each in told], figures.percentile([each["mean_ns"] for each in told], 50)


def report_past(lab):
    pairs, mean = measure_past(lab, "cost-past", [])
    in_turn.report_between(lab, "cost: cuLaunchKernel, through the library", [pairs], paired.difference, LAUNCH_NS, LAUNCH_NS,
                           "ns", True, f"; mean {mean:.2f}")


def report_cards(lab):
    """A process that works on all cards of the machine, on one after the other."""
    count = len(lab.cards)
    if count < 2:
        lab.report.skip(CARDS_FIGURE, "one card")
        return
    pairs, mean = measure_past(lab, "cost-cards", ["--cards", str(count)])
    in_turn.report_between(lab, CARDS_FIGURE, [pairs], paired.difference, LAUNCH_NS, LAUNCH_NS, "ns", True,
                           f"; mean {mean:.2f}; {count} cards")


def report_far_cap(lab):
    """The host is the slower one, and launches go into the default stream, as in PyTorch."""
    for kinds in KINDS:
        words = ["--kinds", str(kinds), "--spend", str(SPEND_NS), "--default-stream"]
        pairs, mean = measure_past(lab, f"cost-cap-{kinds}", words, ["--compute", FAR_CAP])
        value, low, high = paired.interval([pairs], paired.difference)
        lab.report.info(f"cost: cuLaunchKernel under a cap of {FAR_CAP}, kernels in turn: {kinds}",
                        f"{value:.0f} ns ({low:.0f} to {high:.0f}); mean {mean:.0f}")


def report_speed(lab):
    words = command(lab, "torch", "loop_matmul.py", "--size", 512, "--cpu", in_turn.last_cpu())
    seconds = lab.seconds(SPEED_S, SPEED_S)
    runs = [pair_of(lab, f"cost-speed-{at}", words, lab.times(SPEED_ROUNDS, 2),
                    lambda program: program.rate_for(seconds)) for at in range(lab.times(SPEED_PAIRS, 2))]
    in_turn.report_between(lab, "cost: bf16 512³ products, speed", runs, paired.percent, SPEED_PERCENT, 100 - SPEED_PERCENT,
                           "%", False, f" of {in_turn.native_middle(runs):.0f}/s")


def port_bench(lab):
    """{threads: ns for a reservation and its release}, of the port to loadlined by itself."""
    try:
        program = lab.program("bench/c/port_bench")
    except Missing:
        return {}
    _, out, _ = lab.run("port-bench", wrapped(lab, [program], ["--mem", MEMORY]), timeout=120)
    return {int(threads): float(ns) for threads, ns in BENCH_LINE.findall(out)}


def report_pair(lab, figure, pairs, limit_us, is_judged):
    """By the driver's calls; without judgement where their own scatter is wider than the limit. Whether it was judged."""
    added_us = paired.added(pairs) / 1000
    more = f" on top of {paired.middle(pairs, 0) / 1000:.2f}"
    lab.report.keep(figure, {"added_us": added_us, "all_ns": pairs})
    is_drowned = is_judged and paired.is_drowned(pairs, 1000 * limit_us)
    if is_judged and not is_drowned:
        lab.report.at_most(figure, added_us, limit_us, "us", 3, more)
        return True
    lab.report.info(figure, f"{added_us:.3f} us{more}{'; scatters too widely to judge' if is_drowned else ''}")
    return False


def report_alloc(lab):
    """Under a memory limit, which is never reached: without one there would be nothing to keep to. The port alone, by
    threads that do nothing else, takes longer than what it adds to calls: it is judged where that cannot be told."""
    bench = port_bench(lab)
    for threads, limit_us in ALLOC_US.items():
        is_told = False
        calls = max(ALLOC_CALLS, CALLS_EACH * threads)
        for size in ("512", "1M"):
            words = [lab.program("bench/c/cost"), "--mode", "alloc", "--threads", str(threads), "--bytes", size]
            pairs = pair_of(lab, f"cost-alloc-{threads}-{size}", words, lab.times(ALLOC_ROUNDS, 4),
                            lambda program, calls=calls: program.ask(calls, "round", WITHIN_S)["median_ns"],
                            ["--mem", MEMORY])
            is_told |= report_pair(lab, f"cost: cuMemAlloc and cuMemFree of {size}, threads: {threads}, added", pairs,
                                   limit_us, size == "512")
        figure = f"cost: reserve and release, threads: {threads}"
        if threads in bench and is_told:
            lab.report.info(f"{figure} (port alone)", f"{bench[threads] / 1000:.3f} us")
        elif threads in bench:
            lab.report.at_most(f"{figure} (port alone)", bench[threads] / 1000, limit_us, "us", 3)
        else:
            lab.report.skip(f"{figure} (port alone)", "no bench/c/port_bench")


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
    words = [lab.program("bench/c/cost"), "--mode", "start"]
    pairs = paired.measure(lab.times(STARTS, 1), lambda: start_together(lab, "cost-start-native", words),
                           lambda: start_together(lab, "cost-start-run", wrapped(lab, words, [])))
    native_s, run_s = paired.middle(pairs, 0), paired.middle(pairs, 1)
    ratios = [run / native for native, run in pairs]
    lab.report.keep("cost: starts", {"seconds": pairs})
    lab.report.at_most(f"cost: {PROCESSES} processes starting at once", run_s / native_s, START_RATIO, "times", 3,
                       f" of {native_s:.2f} s; {min(ratios):.3f} to {max(ratios):.3f}")


def run(lab):
    need_run(lab)
    report_past(lab)
    report_cards(lab)
    report_far_cap(lab)
    report_launch(lab)
    report_alloc(lab)
    report_start(lab)
    try:
        report_speed(lab)
    except Missing as why:
        lab.report.skip("cost: bf16 512³ products, speed", str(why))
