"""evict-cost, evict-start: what it costs a program that it can be evicted, while nobody evicts it, beside plain `loadline run`."""
import time

from . import evicting, figures, in_turn, paired
from .evicting import EVICTABLE
from .frameworks import command, find_torch
from .governed import Program, need_run, wrapped
from .lab import Trouble

MODES = {"run": (), "evictable": EVICTABLE}
SPEED_PERCENT = 99
PAIRS, ROUNDS, WINDOW_S = 2, 12, 0.25
STARTS, START_RATIO, START_WITHIN_S = 3, 1.05, 60
START = "import torch; a = torch.ones(1000, 1000, device='cuda'); print((a @ a).sum().item())"
ALLOC_ROUNDS, ALLOC_CALLS, ALLOC_SIZES = 6, 1000, ("512", "1M", "64M")


def workloads():
    """name: program and its options"""
    return {"matmul 512³": ("loop_matmul.py", "--size", 512, "--cpu", in_turn.last_cpu()), "decode": ("loop_decode.py",),
            "small training": ("loop_images.py",), "churn of allocations": ("loop_images.py", "--churn", 1)}


def start_pairs(lab, name, words):
    """[(plain, evictable)], all at once: they wait for their turn."""
    return [[Program(lab, f"evict-cost-{name.split()[0]}-{at}-{mode}", words, limits) for mode, limits in MODES.items()]
            for at in range(PAIRS)]


def report_allocations(lab):
    """Of the driver's own calls, without a framework's cache."""
    for size in ALLOC_SIZES:
        words = [lab.program("tests/gpu/cost"), "--mode", "alloc", "--threads", "1", "--bytes", size]
        plain, ours = (Program(lab, f"evict-cost-alloc-{size}-{mode}", words, limits) for mode, limits in MODES.items())
        pairs = in_turn.measure(plain, ours, lab.times(ALLOC_ROUNDS, 2),
                                lambda program: program.ask(ALLOC_CALLS, "round", START_WITHIN_S)["median_ns"])
        lab.report.info(f"evictable, nobody evicts: cuMemAlloc and cuMemFree of {size}",
                        f"{paired.middle(pairs, 1) / 1000:.1f} us; plain run {paired.middle(pairs, 0) / 1000:.1f} us")


@evicting.limited(150)
def run_cost(lab):
    need_run(lab)
    evicting.mover(lab, most_gib=evicting.FEW_GIB)
    started = {name: start_pairs(lab, name, command(lab, "torch", *words)) for name, words in workloads().items()}
    for program in (each for pairs in started.values() for pair in pairs for each in pair):
        program.wait_ready()
    seconds = lab.seconds(WINDOW_S, 0.1)
    for name, pairs in started.items():
        runs = [in_turn.measure(plain, ours, lab.times(ROUNDS, 2), lambda program: program.rate_for(seconds)) for plain, ours in pairs]
        in_turn.report_between(lab, f"evictable, nobody evicts: {name}, speed", runs, paired.percent, SPEED_PERCENT,
                               100 - SPEED_PERCENT, "%", False, f" of {in_turn.native_middle(runs):.0f}/s under plain run")
    report_allocations(lab)


def start_seconds(lab, name, words):
    begin = time.monotonic()
    status, _, err = lab.run(name, words, timeout=START_WITHIN_S)
    if status:
        raise Trouble(f"{name}: ended with {status}: {err.strip()[-80:]}")
    return time.monotonic() - begin


@evicting.limited(100)
def run_start(lab):
    need_run(lab)
    evicting.mover(lab, most_gib=evicting.FEW_GIB)
    words = [find_torch(lab), "-c", START]
    start_seconds(lab, "evict-start-first", words)
    pairs = paired.measure(lab.times(STARTS, 1), lambda: start_seconds(lab, "evict-start-run", wrapped(lab, words, ())),
                           lambda: start_seconds(lab, "evict-start-evictable", wrapped(lab, words, EVICTABLE)))
    ratios = [ours / plain for plain, ours in pairs]
    lab.report.keep("evictable, nobody evicts: PyTorch's start", pairs)
    lab.report.at_most("evictable, nobody evicts: PyTorch's start", figures.percentile(ratios, 50), START_RATIO, "times", 3,
                       f" of {paired.middle(pairs, 0):.2f} s under plain run; {min(ratios):.3f} to {max(ratios):.3f}")
