"""run-cap: a program under a limit of the card's time, alone on the card, for a program of each kind.

The program as it is, and one under `loadline run --compute` for each cap, are all started at first and wait, so that
starting falls into no window and costs its time once; then one after the other works.

What a program uses that its host holds up depends on the host, which others share: the same one is 15 % faster or slower
from one stretch to the next, and by a third on one processor than on another, where the scheduler leaves it. So the
launching threads of both are kept on one processor, and the program as it is works again before and after each cap that may
exceed what it uses, and what is owed under that cap lies between what these two say; of one whose host is the slower one
there are several short stretches, each with neighbours of its own. Under a cap above what such a program uses the two take
turns of a quarter of a second, of which four make one of its seconds, and what is owed is the mean of the program as it is.
A single second is judged by the single seconds of the neighbours: the host is faster or slower in one than in the next by
half. Its account is read in a stretch without turns then: GPM reads each 0.1 s, so of a turn it tells a level, no amount.
GPU time for each iteration is free of that."""
import time
from collections import namedtuple

from . import figures, in_turn, shares
from .card import GpmMeter, GpmWatch, NvmlError
from .claims import StatusWatch
from .frameworks import command
from .governed import Program, need_run
from .lab import Missing

CAPS = (10, 25, 50, 75)
SECONDS, ALONE_S = 10, 3
STRETCHES = 3  # where the host is the slower one
TURNS, TURN_S, TURNS_A_SECOND = 48, 0.25, 4  # and the cap is not reached
TURN_BEGIN_S, TURN_END_S = 0.1, 0.05
SETTLE_S, ALONE_SETTLE_S = 2.0, 0.7
LATE_S = 1.2  # the last look at its account is over by then, and all that has ended is charged
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
    "streams": (None, "loop_streams.py"),
}
SLOW_HOSTS = ("matmul-512", "train")

Measured = namedtuple("Measured", "card account rate")  # windows by GPM, windows by its own account, iterations a second
# Of the program as it is beside it, and of the governed program: its level, and its account; (least, most) owed in the
# mean, and in a second.
Stretch = namedtuple("Stretch", "beside measured told owed owed_second")


def minutes(workload):
    return 4.5 if workload in SLOW_HOSTS else 2.5


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
    end_s = program.counts()[-1][0]
    account = shares.within(status.windows(program.name), 0, end_s)  # of a late look it was idle for a part
    card, account = shares.common(windows_of(from_s, gpm), account)
    if card:
        from_s, until_s = card[0].from_s, card[-1].until_s
    return Measured(card, account, program.rate(from_s, until_s))


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


def levels_of(measured):
    return [shares.level(one.card) for one in measured]


def seconds_of(measured):
    return [window.percent for one in measured for window in one.card]


def measure_turn(lab, meter, program):
    """(Window, iterations a second)"""
    mark = program.go(TURN_BEGIN_S + TURN_S + TURN_END_S)
    time.sleep(TURN_BEGIN_S)
    meter.begin()
    from_s = time.time()
    time.sleep(TURN_S)
    percent, until_s = meter.end()["graphics"], time.time()
    return shares.Window(from_s, until_s, percent), program.wait_done(mark, 30)["rate_per_s"]


def seconds_of_turns(turns):
    """[Measured] of a second each: so many turns one after the other are one."""
    found = []
    for at in range(0, len(turns), TURNS_A_SECOND):
        windows, rates = zip(*turns[at:at + TURNS_A_SECOND])
        length_s = sum(window.until_s - window.from_s for window in windows)
        found.append(Measured([shares.Window(windows[0].from_s, windows[0].from_s + length_s, shares.level(windows))], [],
                              figures.mean(rates)))
    return found


def report_alone(lab, figure, alone):
    """alone: stretches of it, in order."""
    levels = levels_of(alone)
    rates = [one.rate for one in alone]
    lab.report.keep(f"{figure}: alone, not governed", {"gpm_percent": levels, "per_s": rates})
    lab.report.info(f"{figure}: alone, not governed", f"{', '.join(f'{level:.1f}' for level in levels)} % of the time, "
                    f"{min(rates):.1f} to {max(rates):.1f} iterations/s")


def owed_range(cap, percents):
    """What is owed under a cap, by what the program uses beside it: in stretches, or in single seconds."""
    owed = [shares.owed(cap, percent) for percent in percents]
    return min(owed), max(owed)


def stretch_of(cap, beside, measured):
    """What is owed lies between its neighbours."""
    return Stretch(beside, measured, measured, owed_range(cap, levels_of(beside)), owed_range(cap, seconds_of(beside)))


def stretch_of_turns(cap, beside, turns, told):
    """Seconds of the governed program, and those of the program as it is in between, count as one stretch each."""
    mean = figures.mean(levels_of(beside))
    measured = Measured([window for turn in turns for window in turn.card], [], mean_rate(turns))
    return Stretch(beside, measured, told, owed_range(cap, [mean]), owed_range(cap, seconds_of(beside)))


def mean_range(ranges):
    return figures.mean([low for low, _ in ranges]), figures.mean([high for _, high in ranges])


def worst_of(stretches):
    """The second that is farthest outside what is owed in its stretch, and how far; None where there is none."""
    found = [(shares.worst_outside(one.measured.card, *one.owed_second), one.owed_second) for one in stretches]
    judged = [(percent, shares.outside(percent, *owed)) for percent, owed in found if percent is not None]
    return max(judged, key=lambda each: each[1], default=(None, 0))


def mean_level(windows):
    """Of a list for each stretch."""
    return shares.level([window for few in windows for window in few])


def mean_rate(measured):
    rates = [one.rate for one in measured]
    return None if None in rates else figures.mean(rates)


def said_range(low, high):
    return f"{low:.1f}" if high - low < 0.05 else f"{low:.1f} to {high:.1f}"


def each_us(level, rate):
    """GPU time for an iteration."""
    return None if level is None or not rate else 1e4 * level / rate


def report_each(lab, name, beside, told, account):
    """No limit: a program does the same on the card for each iteration, whatever its host does."""
    native = [each_us(shares.level(one.card), one.rate) for one in beside]
    rate = mean_rate(told)
    capped, by_account = each_us(mean_level([one.card for one in told]), rate), each_us(account, rate)
    lab.report.keep(f"{name}: GPU time for an iteration", {"native_us": native, "capped_us": capped, "account_us": by_account})
    if capped is None or by_account is None or None in native:
        return
    lab.report.note(f"{name}: GPU time for an iteration", f"{capped:.2f} us; native {said_range(min(native), max(native))}, "
                    f"by its account {by_account:.2f}")


def report_account(lab, name, stretches):
    told = [one.told for one in stretches]
    level, account = mean_level([one.card for one in told]), mean_level([one.account for one in told])
    lab.report.keep(f"{name}: own account", {"gpm_percent": level, "account_percent": account})
    if level is None or account is None:
        lab.report.check(f"{name}: own account", f"GPM ± {ACCOUNT}", "no account", False)
        return
    lab.report.check(f"{name}: own account", f"{level:.2f} ± {ACCOUNT} %", f"{account:.2f} %", abs(account - level) <= ACCOUNT)
    report_each(lab, name, [one for stretch in stretches for one in stretch.beside], told, account)


def report_cap(lab, figure, cap, stretches):
    """Three rows: the level, the worst second, and whether its account tells the truth."""
    report, name = lab.report, f"{figure}, {cap} %"
    ranges = [one.owed for one in stretches]
    low, high = mean_range(ranges)
    level = mean_level([one.measured.card for one in stretches])
    worst, worst_outside = worst_of(stretches)
    beside = [one for stretch in stretches for one in stretch.beside]
    rate = mean_rate([one.measured for one in stretches])
    alone_rate, uses = figures.mean([one.rate for one in beside]), levels_of(beside)
    speed = None if rate is None else 100 * rate / alone_rate
    report.keep(name, {"owed_percent": ranges, "level_percent": level,
                       "gpm_percent": [seconds_of([one.measured]) for one in stretches],
                       "native_seconds": [seconds_of([one]) for one in beside], "native_percent": uses,
                       "speed_percent": speed, "per_s": rate, "alone_per_s": alone_rate})
    more = f"; native {said_range(min(uses), max(uses))} %, spread {max(uses) - min(uses):.1f}; speed "
    more += "unknown" if speed is None else f"{speed:.1f} % of native"
    report.check(f"{name}: GPU time", f"{said_range(low, high)} ± {LEVEL} %",
                 "none" if level is None else f"{level:.2f} %{more}",
                 level is not None and shares.outside(level, low, high) <= LEVEL + 1e-9)
    report.check(f"{name}: worst second", f"what is owed then ± {WORST} %",
                 "none" if worst is None else f"{worst:.2f} %, {worst_outside:.2f} outside",
                 worst is not None and worst_outside <= WORST + 1e-9)
    report_account(lab, name, stretches)


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
        return MAY_EXCEED * cap > min(levels_of(self.stretches))

    def is_below(self, cap):
        return cap > max(levels_of(self.stretches))


def measure_beside(lab, cap, native, program, count):
    """[Stretch], so many if the cap may exceed what the program uses."""
    is_near, stretches = native.may_be_below(cap), []
    count = count if is_near else 1
    for _ in range(count):
        beside = [native.measure() if is_near else native.stretches[-1]]
        measured = measure(lab, program, lab.seconds(SECONDS / count))
        native.is_fresh = False
        stretches.append(stretch_of(cap, beside + ([native.measure()] if is_near else []), measured))
    return stretches


def measure_in_turn(lab, cap, native, program):
    """A Stretch, of turns."""
    alone, turns, meter = [], [], GpmMeter(lab.card)
    for _ in range(lab.times(TURNS, 2 * TURNS_A_SECOND)):
        alone.append(measure_turn(lab, meter, native.program))
        turns.append(measure_turn(lab, meter, program))
    beside = seconds_of_turns(alone)
    native.is_fresh = False
    native.stretches += beside
    return stretch_of_turns(cap, beside, seconds_of_turns(turns), measure(lab, program, lab.seconds(SECONDS)))


def measure_cap(lab, cap, native, program, is_slow_host):
    if is_slow_host and native.is_below(cap):
        stretches = [measure_in_turn(lab, cap, native, program)]
    else:
        stretches = measure_beside(lab, cap, native, program, STRETCHES if is_slow_host else 1)
    program.end()
    return stretches


def run(lab, workload):
    need_run(lab)
    need_gpm(lab.card)
    pinned = ("--cpu", in_turn.last_cpu()) if workload in SLOW_HOSTS else ()
    words, figure = command(lab, *WORKLOADS[workload], *pinned), f"cap: {workload}"
    native = Program(lab, f"cap-{workload}-native", words)
    capped = [(cap, Program(lab, f"cap-{workload}-{cap}", words, ["--compute", f"{cap}%"])) for cap in CAPS]
    for program in [native, *(program for _, program in capped)]:
        program.wait_ready()
    alone = Native(lab, native)
    alone.measure()
    for cap, program in capped:
        report_cap(lab, figure, cap, measure_cap(lab, cap, alone, program, workload in SLOW_HOSTS))
    report_alone(lab, figure, alone.stretches)
    native.end()
