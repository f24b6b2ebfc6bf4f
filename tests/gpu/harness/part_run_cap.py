"""run-cap: a program under a limit of the card's time, alone on the card, for a program of each kind.

The program as it is, and one under `loadline run --compute` for each cap, are all started at first and wait, so that
starting falls into no window and costs its time once; then one after the other works.

What a program uses that its host holds up depends on the host, which others share: the same one is 15 % faster or slower
from one stretch to the next. So the program as it is works again before and after each cap that may exceed what it uses,
and what is owed under that cap lies between what these two say. GPU time for each iteration is free of that."""
import time
from collections import namedtuple

from . import figures, shares
from .card import GpmWatch, NvmlError
from .claims import StatusWatch
from .frameworks import command
from .governed import Program, need_run
from .lab import Missing

CAPS = (10, 25, 50, 75)
SECONDS, ALONE_S = 10, 3
SETTLE_S, ALONE_SETTLE_S = 2.0, 0.7
LATE_S = 1.2  # the last look at its account is over by then
MAY_EXCEED = 1.5  # a cap this many times below what the program uses is all that it is owed, whatever the host does
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


def windows_of(from_s, gpm):
    return shares.windows_of_ends([(from_s, 0)] + [(end_s, values["graphics"]) for end_s, values in gpm.values])


def measure(lab, program, seconds):
    """A stretch of a governed program, from when it has settled."""
    mark = program.go(SETTLE_S + seconds + LATE_S)
    time.sleep(SETTLE_S)
    from_s = time.time()
    with GpmWatch(lab.card) as gpm, StatusWatch(lab, "status-cap") as status:
        time.sleep(seconds + 0.5)
    until_s = time.time()
    program.wait_done(mark, 30)
    return Measured(windows_of(from_s, gpm), status.windows(program.name), program.rate(from_s, until_s))


def measure_card(lab, program, seconds):
    """A stretch of one that is not."""
    mark = program.go(ALONE_SETTLE_S + seconds + 0.6)
    time.sleep(ALONE_SETTLE_S)
    from_s = time.time()
    with GpmWatch(lab.card) as gpm:
        time.sleep(seconds + 0.3)
    until_s = time.time()
    program.wait_done(mark, 30)
    return Measured(windows_of(from_s, gpm), [], program.rate(from_s, until_s))


def report_alone(lab, figure, alone):
    """alone: stretches of it, in order."""
    levels = [shares.level(one.card) for one in alone]
    rates = [one.rate for one in alone]
    lab.report.keep(f"{figure}: alone, not governed", {"gpm_percent": levels, "per_s": rates})
    lab.report.info(f"{figure}: alone, not governed", f"{', '.join(f'{level:.1f}' for level in levels)} % of the time, "
                    f"{min(rates):.1f} to {max(rates):.1f} iterations/s")


def owed_range(cap, alone):
    """What is owed under a cap by what the program uses in the stretches beside it."""
    owed = [shares.owed(cap, shares.level(one.card)) for one in alone]
    return min(owed), max(owed)


def said_range(low, high):
    return f"{low:.1f}" if high - low < 0.05 else f"{low:.1f} to {high:.1f}"


def each_us(level, rate):
    """GPU time for an iteration."""
    return None if level is None or not rate else 1e4 * level / rate


def report_each(lab, name, alone, measured):
    """No limit: a program does the same on the card for each iteration, whatever its host does."""
    native = [each_us(shares.level(one.card), one.rate) for one in alone]
    capped = each_us(shares.level(measured.card), measured.rate)
    account = each_us(shares.level(measured.account), measured.rate)
    lab.report.keep(f"{name}: GPU time for an iteration", {"native_us": native, "capped_us": capped, "account_us": account})
    if capped is None or account is None or None in native:
        return
    lab.report.info(f"{name}: GPU time for an iteration", f"{capped:.2f} us; native {said_range(min(native), max(native))}, "
                    f"by its account {account:.2f}")


def report_cap(lab, figure, cap, alone, measured):
    """Three rows: the level, the worst second, and whether its account tells the truth. alone: the stretches of the
    program as it is, right before and, where the cap may exceed what it uses, right after."""
    report, name = lab.report, f"{figure}, {cap} %"
    low, high = owed_range(cap, alone)
    level, account = shares.level(measured.card), shares.level(measured.account)
    worst = shares.worst_outside(measured.card, low, high)
    alone_rate = figures.mean([one.rate for one in alone])
    uses = [shares.level(one.card) for one in alone]
    speed = 100 * measured.rate / alone_rate if measured.rate is not None else None
    report.keep(name, {"owed_percent": [low, high], "gpm_percent": figures.spread(w.percent for w in measured.card),
                       "account_percent": figures.spread(w.percent for w in measured.account),
                       "level_percent": level, "account_level_percent": account, "native_percent": uses,
                       "speed_percent": speed, "per_s": measured.rate, "alone_per_s": alone_rate})
    more = f"; native {said_range(min(uses), max(uses))} %, spread {max(uses) - min(uses):.1f}; speed "
    more += "unknown" if speed is None else f"{speed:.1f} % of native"
    report.check(f"{name}: GPU time", f"{said_range(low, high)} ± {LEVEL} %",
                 "none" if level is None else f"{level:.2f} %{more}",
                 level is not None and shares.outside(level, low, high) <= LEVEL + 1e-9)
    report.check(f"{name}: worst second", f"{said_range(low, high)} ± {WORST} %",
                 "none" if worst is None else f"{worst:.2f} %",
                 worst is not None and shares.outside(worst, low, high) <= WORST + 1e-9)
    if level is None or account is None:
        report.check(f"{name}: own account", f"GPM ± {ACCOUNT}", "no account", False)
    else:
        report.check(f"{name}: own account", f"{level:.2f} ± {ACCOUNT} %", f"{account:.2f} %",
                     abs(account - level) <= ACCOUNT)
    report_each(lab, name, alone, measured)


class Native:
    """The program as it is, whenever it is wanted."""

    def __init__(self, lab, program):
        self.lab = lab
        self.program = program
        self.stretches = []
        self.is_fresh = False  # nothing else has worked since the last one

    def measure(self):
        if not self.is_fresh:
            found = measure_card(self.lab, self.program, self.lab.seconds(ALONE_S))
            if not found.card or not found.rate:
                raise Missing("nothing was measured of the program as it is")
            self.stretches.append(found)
            self.is_fresh = True
        return self.stretches[-1]

    def may_be_below(self, cap):
        return MAY_EXCEED * cap > min(shares.level(one.card) for one in self.stretches)


def measure_beside(lab, native, program, cap):
    """(stretches of native beside it, its own)"""
    is_near = native.may_be_below(cap)
    beside = [native.measure() if is_near else native.stretches[-1]]
    measured = measure(lab, program, lab.seconds(SECONDS))
    program.end()
    native.is_fresh = False
    return beside + ([native.measure()] if is_near else []), measured


def run(lab, workload):
    need_run(lab)
    need_gpm(lab.card)
    words, figure = command(lab, *WORKLOADS[workload]), f"cap: {workload}"
    native = Program(lab, f"cap-{workload}-native", words)
    capped = [(cap, Program(lab, f"cap-{workload}-{cap}", words, ["--compute", f"{cap}%"])) for cap in CAPS]
    for program in [native, *(program for _, program in capped)]:
        program.wait_ready()
    alone = Native(lab, native)
    alone.measure()
    for cap, program in capped:
        report_cap(lab, figure, cap, *measure_beside(lab, alone, program, cap))
    report_alone(lab, figure, alone.stretches)
    native.end()
