"""Programs that share a card, in several modes that take turns: natively, under `loadline run`, under MPS.

Each program of a mix starts once per mode and then works for windows of some seconds on command, all programs of a mode at
once, the modes one after the other, several rounds. A figure is the median over the rounds. So what a machine does slowly
or in another way at another time meets all modes alike, and two windows of one mode tell how far figures scatter."""
import contextlib
import os
import sys
import time
from collections import namedtuple
from functools import partial

from . import claims, figures, shares
from .card import GpmMeter, NvmlError
from .frameworks import PROGRAMS, command
from .governed import Program
from .private_mps import PrivateMps

WINDOW_S, ROUNDS = 4.0, 3
LEAD_S = 6.0  # in which loadlined measures how to share (doc/share.md)
EDGE_S = 0.2
DONE_WITHIN_S = 60

# kind: (framework, program and its options); no framework: one that needs none, without .py a program of the build folder
KINDS = {
    "decode": ("torch", "loop_decode.py"),
    "graph": ("torch", "loop_decode.py", "--graph", 1),
    "small": ("torch", "loop_images.py"),
    "resnet": ("torch", "loop_images.py", "--batch", 64),
    "churn": ("torch", "loop_images.py", "--churn", 1),
    "matmul": ("torch", "loop_matmul.py"),
    "serve": ("torch", "serve.py"),
    "graph30": ("torch", "loop_graph.py", "--size", 4096, "--layers", 130, "--replays", 1),
    "spin1s": (None, "loop_spin.py", "--kernel-us", 1000000),
    "crowd": ("torch", "crowd.py", 4, "loop_matmul.py"),
    "sync": (None, "pace", "sync"),
    "eager": (None, "pace", "eager"),
    "flood": (None, "pace", "flood"),
}

# limits: words for `loadline run`, as they are in the modes that govern
Member = namedtuple("Member", "kind limits", defaults=((),))


def members(*kinds):
    return [Member(kind) for kind in kinds]


def words_of(lab, kind):
    framework, script, *options = KINDS[kind]
    if framework is None and script.endswith(".py"):
        return [sys.executable, os.path.join(PROGRAMS, script), *map(str, options)]
    if framework is None:
        return [lab.program("bench/c/" + script), *map(str, options)]
    return command(lab, framework, script, *options)


class Mode:
    """How the programs of a mix are started. limits_of(member): words for `loadline run`, None: without it."""

    def __init__(self, name, limits_of, env=None, needs_mps=False):
        self.name, self.limits_of, self.env, self.needs_mps = name, limits_of, env or {}, needs_mps


NATIVE = Mode("native", lambda member: None)
AGAIN = Mode("again", lambda member: None)  # natively too, in processes of its own: how far equal modes differ
RUN = Mode("run", lambda member: list(member.limits))
MPS = Mode("mps", lambda member: None, needs_mps=True)
SPACE = Mode("space", lambda member: ["--by", "space", *member.limits], needs_mps=True)


def hami(limits_env):
    """HAMi-core beside it, where LOADLINE_HAMI_CORE names its library; None: it is not there."""
    library = os.environ.get("LOADLINE_HAMI_CORE")
    return Mode("hami", lambda member: None, {"LD_PRELOAD": library, **limits_env}) if library else None


class Running:
    """The programs of one mix in one mode."""

    def __init__(self, lab, name, mode, mix, mps_env):
        env = {**mode.env, **(mps_env if mode.needs_mps else {})}
        self.programs = [Program(lab, f"{name}-{mode.name}-{at}-{member.kind}", words_of(lab, member.kind), mode.limits_of(member), env)
                         for at, member in enumerate(mix)]

    def wait_ready(self):
        for program in self.programs:
            program.wait_ready()

    def window(self, seconds, only=None, accounts=None):
        """What each program told of a window in which all of them worked, or the one numbered `only`. accounts: read a
        little after its beginning, and a little before its end."""
        chosen = self.programs if only is None else [self.programs[only]]
        marks = [program.go(seconds) for program in chosen]
        if accounts:
            time.sleep(EDGE_S)
            accounts.read()
            time.sleep(max(0.0, seconds - 3 * EDGE_S))
            accounts.read()
        return [program.wait_for(lambda line: line["event"] in ("done", "ticks"), DONE_WITHIN_S + seconds, mark)
                or program.fail("not done") for program, mark in zip(chosen, marks)]

    def end(self):
        for program in self.programs:
            program.end()


def busy_during(lab, function):
    """(what the function returns, percent of the time that the card was busy meanwhile by GPM; None: the card has no GPM)"""
    try:
        meter = GpmMeter(lab.card)
    except NvmlError:
        return function(), None
    found = function()
    return found, meter.end()["graphics"]


class Accounts:
    """GPU time that `loadline status` tells of programs over a stretch: percent of the time, by tenant."""

    def __init__(self, lab, name):
        self.lab, self.name, self.readings = lab, name, []

    def read(self):
        _, out, _ = self.lab.run(f"status-{self.name}", self.lab.loadline("status", "--json"))
        self.readings.append((time.time(), claims.parse(out)))

    def percent(self, tenant):
        return shares.level(shares.windows_of_points(claims.points_of(self.readings, tenant)))


class Measured:
    """told[mode][member]: what it told in each round; alone[kind]: the same of the program by itself, natively;
    alone_busy[kind]: percent of the time that the card was busy then; accounts[member]: what its own account told of the
    time in mode run."""

    def __init__(self, modes, mix):
        self.mix = mix
        self.alone_busy = {member.kind: [] for member in mix}
        self.accounts = [[] for _ in mix]
        self.told = {mode.name: [[] for _ in mix] for mode in modes}
        self.alone = {member.kind: [] for member in mix}

    def rate(self, mode, at):
        return figures.percentile([line["rate_per_s"] for line in self.told[mode][at]], 50)

    def alone_rate(self, kind):
        return figures.percentile([line["rate_per_s"] for line in self.alone[kind]], 50)

    def speed(self, mode, at):
        """Of its speed alone."""
        return self.rate(mode, at) / self.alone_rate(self.mix[at].kind)

    def speeds(self, mode):
        return [self.speed(mode, at) for at, member in enumerate(self.mix) if member.kind != "serve"]

    def sums(self, mode):
        """The sum of the speeds in each round, for their scatter."""
        rates = [[line["rate_per_s"] for line in rounds] for member, rounds in zip(self.mix, self.told[mode]) if member.kind != "serve"]
        alone = [self.alone_rate(member.kind) for member in self.mix if member.kind != "serve"]
        return [sum(rate / one for rate, one in zip(each, alone)) for each in zip(*rates)]

    def account_percent(self, at):
        return figures.percentile(self.accounts[at], 50) if self.accounts[at] else None

    def owed_percent(self, at):
        """What its account should tell by its speed: a program's work takes as much GPU time as it does alone."""
        busy = self.alone_busy[self.mix[at].kind]
        return self.speed(RUN.name, at) * figures.percentile(busy, 50) if busy else None

    def latencies_ms(self, mode, at):
        return [value for line in self.told[mode][at] for value in line["latencies_ms"]]

    def alone_latencies_ms(self, kind):
        return [value for line in self.alone[kind] for value in line["latencies_ms"]]


def measure(lab, name, mix, modes, rounds=ROUNDS, seconds=WINDOW_S):
    """Starts the mix in each of the modes, the first of which is NATIVE, lets them work in turns, and ends them."""
    found = Measured(modes, mix)
    with contextlib.ExitStack() as stack:
        mps_env = stack.enter_context(PrivateMps(lab)).env if any(mode.needs_mps for mode in modes) else {}
        running = [Running(lab, name, mode, mix, mps_env) for mode in modes]
        for each in running:
            each.wait_ready()
        for mode, each in zip(modes, running):
            if mode.limits_of(mix[0]) is not None:
                each.window(LEAD_S)
        for _ in range(lab.times(rounds, 1)):
            for kind, told in found.alone.items():
                at = next(at for at, member in enumerate(mix) if member.kind == kind)
                lines, busy = busy_during(lab, partial(running[0].window, lab.seconds(seconds, 1.0), at))
                told.append(lines[0][1])
                found.alone_busy[kind] += [] if busy is None else [busy]
            for mode, each in zip(modes, running):
                accounts = Accounts(lab, name) if mode is RUN else None
                lines = each.window(lab.seconds(seconds, 1.0), accounts=accounts)
                for at, (_, line) in enumerate(lines):
                    found.told[mode.name][at].append(line)
                for at, program in enumerate(each.programs if accounts else []):
                    percent = accounts.percent(program.name)
                    found.accounts[at] += [] if percent is None else [percent]
        for each in running:
            each.end()
    return found
