"""evict-cost, evict-start: what it costs a program that it can be evicted, while nobody evicts it, beside plain `loadline run`."""
import time

from . import evicting, figures, in_turn, paired
from .evicting import EVICTABLE
from .frameworks import command, find_torch
from .governed import Program, need_run, wrapped
from .lab import Trouble
from .part_run_cost import launch_words

MODES = {"run": (), "evictable": EVICTABLE}
SPEED_PERCENT = 99
PAIRS, ROUNDS, WINDOW_S = 2, 12, 0.25
STARTS, START_RATIO, START_WITHIN_S = 5, 1.05, 60
START = ("import time, torch; begin = time.perf_counter(); a = torch.ones(1000, 1000, device='cuda'); (a @ a).sum().item(); "
         "print(time.perf_counter() - begin)")
ALLOC_ROUNDS, ALLOC_CALLS, ALLOC_SIZES = 6, 1000, ("512", "1M", "64M")
LAUNCH_ROUNDS, LAUNCH_BLOCKS = 12, 250  # blocks of 100 launches


def workloads():
    """name: program and its options"""
    return {"matmul 512³": ("loop_matmul.py", "--size", 512, "--cpu", in_turn.last_cpu()), "decode": ("loop_decode.py",),
            "small training": ("loop_images.py",), "churn of allocations": ("loop_images.py", "--churn", 1)}


def start_pairs(lab, name, words):
    """[(plain, evictable)], all at once: they wait for their turn."""
    return [[Program(lab, f"evict-cost-{name.split()[0]}-{at}-{mode}", words, limits) for mode, limits in MODES.items()]
            for at in range(PAIRS)]


def call_pairs(lab, name, words, rounds, count):
    """[(plain, evictable)] ns of one call, by the program `cost`."""
    plain, ours = (Program(lab, f"evict-cost-{name}-{mode}", words, limits) for mode, limits in MODES.items())
    return in_turn.measure(plain, ours, rounds, lambda program: program.ask(count, "round", START_WITHIN_S)["median_ns"])


def report_calls(lab):
    """Of the driver's own calls, without a framework's cache."""
    pairs = call_pairs(lab, "launch", launch_words(lab, "launch"), lab.times(LAUNCH_ROUNDS, 2), lab.times(LAUNCH_BLOCKS, 10))
    added = sorted(ours - plain for plain, ours in pairs)
    lab.report.keep("evictable, nobody evicts: cuLaunchKernel", pairs)
    lab.report.info("evictable, nobody evicts: cuLaunchKernel, added",
                    f"{figures.percentile(added, 50):.0f} ns ({added[0]:.0f} to {added[-1]:.0f}) on top of "
                    f"{paired.middle(pairs, 0):.0f} under plain run")
    for size in ALLOC_SIZES:
        words = [lab.program("bench/c/cost"), "--mode", "alloc", "--threads", "1", "--bytes", size]
        pairs = call_pairs(lab, f"alloc-{size}", words, lab.times(ALLOC_ROUNDS, 2), ALLOC_CALLS)
        lab.report.info(f"evictable, nobody evicts: cuMemAlloc and cuMemFree of {size}",
                        f"{paired.middle(pairs, 1) / 1000:.1f} us; plain run {paired.middle(pairs, 0) / 1000:.1f} us")


@evicting.limited(150)
def run_cost(lab):
    need_run(lab)
    started = {name: start_pairs(lab, name, command(lab, "torch", *words)) for name, words in workloads().items()}
    for program in (each for pairs in started.values() for pair in pairs for each in pair):
        program.wait_ready()
    seconds = lab.seconds(WINDOW_S, 0.1)
    for name, pairs in started.items():
        runs = [in_turn.measure(plain, ours, lab.times(ROUNDS, 2), lambda program: program.rate_for(seconds)) for plain, ours in pairs]
        in_turn.report_between(lab, f"evictable, nobody evicts: {name}, speed", runs, paired.percent, SPEED_PERCENT,
                               100 - SPEED_PERCENT, "%", False, f" of {in_turn.native_middle(runs):.0f}/s under plain run")
    report_calls(lab)


def start_seconds(lab, name, words):
    """(until it has ended, from the end of its import until its first result)"""
    begin = time.monotonic()
    status, out, err = lab.run(name, words, timeout=START_WITHIN_S)
    if status:
        raise Trouble(f"{name}: ended with {status}: {err.strip()[-80:]}")
    return time.monotonic() - begin, float(out.split()[-1])


def longer_start(pairs):
    """What comes after the import, and takes longer, as a part of the whole start: 1.01 is one percent longer."""
    later = [ours[1] - plain[1] for plain, ours in pairs]
    whole_s = figures.percentile([plain[0] for plain, _ in pairs], 50)
    return [1 + each / whole_s for each in later], whole_s


@evicting.limited(120)
def run_start(lab):
    """The import reads some thousand files. It takes most of the time, scatters by more than the limit, and does not use the
    card, so only what comes after it is compared."""
    need_run(lab)
    words = [find_torch(lab), "-c", START]
    start_seconds(lab, "evict-start-first", words)
    pairs = paired.measure(lab.times(STARTS, 1), lambda: start_seconds(lab, "evict-start-run", wrapped(lab, words, ())),
                           lambda: start_seconds(lab, "evict-start-evictable", wrapped(lab, words, EVICTABLE)))
    figure = "evictable, nobody evicts: PyTorch's start"
    lab.report.keep(figure, pairs)
    ratios, whole_s = longer_start(pairs)
    after_ms = [1000 * plain[1] for plain, _ in pairs]
    lab.report.at_most(f"{figure}, by what comes after its import", figures.percentile(ratios, 50), START_RATIO, "times", 3,
                       f" of {whole_s:.2f} s under plain run; {min(ratios):.3f} to {max(ratios):.3f}; "
                       f"after the import {min(after_ms):.0f} to {max(after_ms):.0f} ms")
    whole = [ours[0] / plain[0] for plain, ours in pairs]
    lab.report.info(f"{figure}, with its import", f"{figures.percentile(whole, 50):.3f} times; {min(whole):.3f} to {max(whole):.3f}")
