"""run-cap: a program under a limit of the card's time, alone on the card, for a program of each kind.

The program as it is, and one under `loadline run --compute` for each cap, are all started at first and wait, so that
starting falls into no window and costs its time once; then one after the other works, and ends."""
import time
from collections import namedtuple

from . import figures, shares
from .card import GpmWatch, NvmlError
from .claims import StatusWatch
from .frameworks import command
from .governed import Program, need_run
from .lab import Missing

CAPS = (10, 25, 50, 75)
SECONDS, ALONE_S = 10, 6
SETTLE_S = 2.0
LEVEL, WORST, ACCOUNT = 2, 5, 1  # points
# name: (framework, program and its options)
WORKLOADS = {
    "matmul-4096": ("torch", "loop_matmul.py", "--size", 4096),
    "matmul-512": ("torch", "loop_matmul.py", "--size", 512),
    "graph": ("torch", "loop_graph.py"),
    "train": ("torch", "loop_train.py"),
    "spin-20ms": (None, "loop_spin.py"),
    "bursts": (None, "loop_bursts.py"),
}

Measured = namedtuple("Measured", "card account rate")  # windows by GPM, windows by its own account, iterations a second


def need_gpm(card):
    try:
        GpmWatch(card)
    except NvmlError as why:
        raise Missing(f"GPM: {why}") from None


def measure(lab, program, seconds):
    """A stretch of it, from when it has settled."""
    mark = program.go(SETTLE_S + seconds + 1.5)
    time.sleep(SETTLE_S)
    from_s = time.time()
    with GpmWatch(lab.card) as gpm, StatusWatch(lab, "status-cap") as status:
        time.sleep(seconds + 0.5)
    until_s = time.time()
    program.wait_done(mark, 30)
    ends = [(end_s, values["graphics"]) for end_s, values in gpm.values]
    return Measured(shares.windows_of_ends([(from_s, 0)] + ends), status.windows(program.name),
                    program.rate(from_s, until_s))


def report_alone(lab, figure, alone):
    percents = [w.percent for w in alone.card]
    lab.report.keep(f"{figure}: alone, not governed", {"gpm_percent": figures.spread(percents), "per_s": alone.rate})
    lab.report.info(f"{figure}: alone, not governed", f"{shares.level(alone.card) or 0:.1f} % of the time, "
                    f"{alone.rate or 0:.1f} iterations/s")


def report_cap(lab, figure, cap, alone, measured):
    """Three rows: the level, the worst second, and whether its account tells the truth."""
    report, name = lab.report, f"{figure}, {cap} %"
    owed = shares.owed(cap, shares.level(alone.card))
    level, account = shares.level(measured.card), shares.level(measured.account)
    worst = shares.worst(measured.card, owed)
    speed = 100 * measured.rate / alone.rate if measured.rate is not None and alone.rate else None
    report.keep(name, {"owed_percent": owed, "gpm_percent": figures.spread(w.percent for w in measured.card),
                       "account_percent": figures.spread(w.percent for w in measured.account),
                       "level_percent": level, "account_level_percent": account,
                       "speed_percent": speed, "per_s": measured.rate, "alone_per_s": alone.rate})
    report.near(f"{name}: GPU time", level, round(owed, 1), LEVEL, "%",
                more="; speed unknown" if speed is None else f"; speed {speed:.1f} % of native")
    report.near(f"{name}: worst second", worst, round(owed, 1), WORST, "%")
    if level is None or account is None:
        report.check(f"{name}: own account", f"GPM ± {ACCOUNT}", "no account", False)
    else:
        report.check(f"{name}: own account", f"{level:.2f} ± {ACCOUNT} %", f"{account:.2f} %",
                     abs(account - level) <= ACCOUNT)


def run(lab, workload):
    need_run(lab)
    need_gpm(lab.card)
    words, figure = command(lab, *WORKLOADS[workload]), f"cap: {workload}"
    native = Program(lab, f"cap-{workload}-native", words)
    capped = [(cap, Program(lab, f"cap-{workload}-{cap}", words, ["--compute", f"{cap}%"])) for cap in CAPS]
    for program in [native, *(program for _, program in capped)]:
        program.wait_ready()
    alone = measure(lab, native, lab.seconds(ALONE_S))
    native.end()
    report_alone(lab, figure, alone)
    if not alone.card or not alone.rate:
        raise Missing("nothing was measured of the program as it is")
    for cap, program in capped:
        measured = measure(lab, program, lab.seconds(SECONDS))
        program.end()
        report_cap(lab, figure, cap, alone, measured)
