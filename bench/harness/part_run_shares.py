"""run-shares: several programs on one card, by weight: what each gets, and what is lost to sharing."""
import time
from collections import namedtuple
from functools import partial

from . import figures, shares, together
from .card import GpmWatch, NvmlError
from .frameworks import command
from .governed import Program, need_run
from .lab import Missing

SECONDS, ALONE_S = 12, 4
TOLERANCE = 2  # points
KEPT = 0.95  # of the card's work

# name: (framework, program and its options)
PROGRAMS = {
    "torch": ("torch", "loop_matmul.py"),
    "cupy": ("cupy", "loop_cupy.py"),
    "jax": ("jax", "loop_jax.py"),
    "synced": (None, "loop_synced.py"),
    "spin": (None, "loop_spin.py", "--kernel-us", 1000),
}
# (program, weight) of each party
SETS = (
    (("torch", 30), ("cupy", 70)),
    (("torch", 10), ("cupy", 30), ("jax", 60)),
    (("torch", 30), ("synced", 70)),
    (("torch", 70), ("synced", 30)),
    (("spin", 30), ("synced", 70)),  # needs no framework
)
ENV = {"jax": {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}}

Party = namedtuple("Party", "name weight percent rate")  # percent of the time by its own account, iterations a second


class Alone:
    """The speed of each program by itself, measured once."""

    def __init__(self, lab):
        self.lab = lab
        self.rates = {}

    def rate(self, name):
        if name not in self.rates:
            self.rates[name] = together.alone_rate(self.lab, f"shares-{name}-native", command(self.lab, *PROGRAMS[name]),
                                                   self.lab.seconds(ALONE_S), ENV.get(name))
        return self.rates[name]


def start(lab, figure, parties):
    programs = [Program(lab, f"{figure}-{name}", command(lab, *PROGRAMS[name]), ["--weight", weight], ENV.get(name))
                for name, weight in parties]
    for program in programs:
        program.wait_ready()
    return programs


def card_percent(lab, seconds):
    """Of the time, by GPM; None where the card has none."""
    try:
        gpm = GpmWatch(lab.card)
    except NvmlError:
        time.sleep(seconds)
        return None
    with gpm:
        time.sleep(seconds)
    return shares.level(shares.windows_of_ends([(end, values["graphics"]) for end, values in gpm.values]))


def share(lab, figure, parties):
    """All of them at once: ([Party], busy percent of the card)."""
    programs = start(lab, figure, parties)
    found, busy = together.watch(lab, "shares", programs, lab.seconds(SECONDS), partial(card_percent, lab))
    return [Party(*party, *each) for party, each in zip(parties, found)], busy


def report_shares(lab, figure, parties, rates, busy):
    """rates: of each alone."""
    report = lab.report
    wanted = shares.percentages([party.weight for party in parties])
    speeds = [party.rate / rate if party.rate is not None else 0.0 for party, rate in zip(parties, rates)]
    report.keep(figure, {"parties": [party._asdict() for party in parties], "alone_per_s": rates, "speeds": speeds,
                         "card_percent": busy})
    if any(party.percent is None for party in parties):
        report.check(f"{figure}: shares of GPU time", f"± {TOLERANCE} points", "no account", False)
    else:
        got = shares.percentages([party.percent for party in parties])
        text = ", ".join(f"{name} {percent:.1f}" for (name, *_), percent in zip(parties, got))
        total = sum(party.percent for party in parties)
        report.check(f"{figure}: shares of GPU time", f"± {TOLERANCE} points",
                     f"{text}; accounts {total:.1f} % of the time, card {'?' if busy is None else f'{busy:.1f}'}",
                     shares.largest_gap(got, wanted) <= TOLERANCE)
    report.at_least(f"{figure}: sum of speeds, each of its own alone", sum(speeds), KEPT, "", 3,
                    "(" + ", ".join(f"{name} {speed:.3f}" for (name, *_), speed in zip(parties, speeds)) + ")")


def run_set(lab, alone, parties):
    names, weights = zip(*parties)
    figure = f"shares: {' + '.join(names)} {'/'.join(map(str, weights))}"
    try:
        rates = [alone.rate(name) for name in names]
    except Missing as why:
        lab.report.skip(figure, str(why))
        return
    found, busy = share(lab, "shares-" + "-".join(f"{name}-{weight}" for name, weight in parties), parties)
    report_shares(lab, figure, found, rates, busy)


def run(lab):
    need_run(lab)
    alone = Alone(lab)
    for parties in SETS:
        run_set(lab, alone, parties)
    lab.report.keep("shares: alone", {name: figures.spread([rate]) for name, rate in alone.rates.items()})
