"""Evictable programs, the commands that move them, and how much memory the host has for that.

A program moves its memory into the host itself. It makes memory of the host ready ahead of need, which takes long (4 GB/s)."""
import contextlib
import functools
import os
import re
import signal
import subprocess
import sys
import time
from collections import namedtuple

from . import claims, processes
from .frameworks import PROGRAMS
from .governed import Program
from .lab import Trouble, reason
from .store import SIMULATED
from .talker import Talker

GIB, MIB = 1 << 30, 1 << 20
EVICTABLE = ("--evictable", "--no-neighbour")  # the figures are those of the host, also where there are several cards
SPARE_GIB = 12        # of the host, for the programs beside what leaves the card
KEPT_FREE = 1 / 16    # of the host's memory, that no move takes
SIMULATED_PART = 64   # a size on the simulated driver is so much smaller
START_WITHIN_S, MOVE_WITHIN_S, CHECK_WITHIN_S = 30, 60, 90
ROOM_GIB, ROOM_LEAST = 1.0, 320 * MIB  # of the card, that a ballast leaves: more than is left free beside a program that returns

Moved = namedtuple("Moved", "bytes seconds begun_s ended_s")  # seconds: loadlined's; begun_s, ended_s: the wall clock


class Refused(Trouble):
    """A move that could not be done."""


def limited(seconds):
    """A part that takes longer has failed. What it has measured by then stays."""
    def around(function):
        @functools.wraps(function)
        def run(*args, **kwargs):
            def stop(*_):
                raise Trouble(f"not done within {seconds} s")
            before = signal.signal(signal.SIGALRM, stop)
            signal.setitimer(signal.ITIMER_REAL, seconds)
            try:
                return function(*args, **kwargs)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)
        return run
    return around


# ---- sizes ----


def is_simulated(lab):
    return lab.report.facts.get("driver_is") == SIMULATED


def sized(lab, gib):
    """Bytes, whole blocks of 2 MiB, at least one."""
    count = int(gib * GIB) // (SIMULATED_PART if is_simulated(lab) else 1)
    return max(1, count // (2 * MIB)) * 2 * MIB


def room_bytes(lab):
    return max(sized(lab, ROOM_GIB), ROOM_LEAST)


def gib_of(lab, count):
    """As it would be on a real card."""
    return count * (SIMULATED_PART if is_simulated(lab) else 1) / GIB


def read_number(path):
    try:
        with open(path, encoding="ascii") as text:
            return int(text.read())
    except (OSError, ValueError):
        return None


def group_left():
    """Bytes that the control groups of this process have left, by each of them that has a limit."""
    for line in processes.read_text("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        root, limit, used = "/sys/fs/cgroup", "memory.max", "memory.current"
        if controllers == "memory":
            root, limit, used = "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        elif controllers:
            continue
        while True:
            most, now = (read_number(f"{root}{path}/{name}") for name in (limit, used))
            if most is not None and most < 1 << 60:
                yield most - (now or 0)
            if not path.strip("/"):
                break
            path = os.path.dirname(path)


def available_bytes():
    found = re.search(r"^MemAvailable:\s+(\d+) kB", processes.read_text("/proc/meminfo"), re.MULTILINE)
    return min([int(found[1]) * 1024 if found else 0, *group_left()])


def budget_bytes(available, spare, total):
    """What the host can hold of programs that are away."""
    return max(0, available - spare - int(KEPT_FREE * total))


def total_bytes():
    found = re.search(r"^MemTotal:\s+(\d+) kB", processes.read_text("/proc/meminfo"), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def fitting_gib(lab, gib, programs_away):
    """The size of a program, as wanted or so small that the host has room for so many of them."""
    budget = budget_bytes(available_bytes(), sized(lab, SPARE_GIB), total_bytes())
    return min(gib, int(2 * gib_of(lab, budget) / programs_away) / 2)


def scaled_note(gib, wanted):
    """What a row says if a size is not the wanted one."""
    return "" if gib == wanted else f"; {gib:g} GiB instead of {wanted:g}: the host's memory"


# ---- what status says ----


def claims_now(lab, tenant):
    _, out, _ = lab.run(f"evict-status-{tenant}", lab.loadline("status", "--json"))
    return claims.claims_of(claims.parse(out), tenant)


def ready_bytes(lab, tenant):
    """Of the host's memory, for a move of it."""
    return sum(line.get("host_bytes") or 0 for line in claims_now(lab, tenant))


def wait_ready_bytes(lab, tenant, count, within_s=60):
    """Until so much is ready, or no more comes. What is."""
    last, since, end = ready_bytes(lab, tenant), time.monotonic(), time.monotonic() + within_s
    while last < count and time.monotonic() < end and time.monotonic() - since < 2:
        time.sleep(0.1)
        now = ready_bytes(lab, tenant)
        if now > last:
            last, since = now, time.monotonic()
    return last


def moves_of(lab, *tenants):
    """How often memory of theirs has left or come back."""
    return sum(line.get("moves") or 0 for tenant in tenants for line in claims_now(lab, tenant))


# ---- moves ----


class Move(Talker):
    """`loadline evict` or `resume` of a tenant that has one program."""

    def __init__(self, lab, word, tenant):
        self.word, self.tenant = word, tenant
        super().__init__(lab, f"{word}-{tenant}", lab.loadline(word, tenant, "--json"))

    def wait(self, within_s=MOVE_WITHIN_S):
        found = self.wait_for(lambda line: "seconds" in line, within_s)
        has_ended = self.is_over
        try:
            self.process.wait(5 if found or has_ended else 0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join(5)
        if not found:
            raise Refused(f"{self.word} {self.tenant}: {reason(self.complaint()) if has_ended else f'no answer in {within_s} s'}")
        return Moved(found[1]["bytes"], found[1]["seconds"], found[0] - found[1]["seconds"], found[0])


def move(lab, word, tenant, within_s=MOVE_WITHIN_S):
    return Move(lab, word, tenant).wait(within_s)


def together_s(moves):
    """From the beginning of the first to the end of the last."""
    return max(each.ended_s for each in moves) - min(each.begun_s for each in moves)


# ---- programs ----


def close(program, event, within_s):
    """Ends its standard input; what it says at its end."""
    if program.process.poll() is None and not program.process.stdin.closed:
        program.process.stdin.close()
    found = program.wait_for(lambda line: line["event"] == event, within_s)
    if not found:
        program.fail("says nothing at its end")
    program.end()
    return found[1]


class Evictee(Program):
    def __init__(self, lab, name, count, limits=EVICTABLE, *options):
        super().__init__(lab, name, [lab.program("bench/c/evictee"), "--bytes", str(count), "--until-eof", *options], limits)

    def finish(self):
        """After the comparison of all words."""
        return close(self, "end", CHECK_WITHIN_S)


class Holder(Program):
    """programs/holder.py. limits: of `loadline run`; None: without it."""

    def __init__(self, lab, name, count, limits=EVICTABLE, *options, env=None):
        self.count = count
        words = [sys.executable, "-B", os.path.join(PROGRAMS, "holder.py"), "--bytes", str(count), *map(str, options)]
        super().__init__(lab, name, words, limits, env)

    def take_memory(self, count, within_s=MOVE_WITHIN_S):
        return self.ask(f"take {count}", "taken", within_s)

    def check(self, within_s=CHECK_WITHIN_S):
        """Parts of its memory that are not as they should be."""
        return self.ask("check", "checked", within_s)["wrong_parts"]


@contextlib.contextmanager
def ballast(lab, name, room):
    """Fills the card natively, but for so many bytes, while the block runs."""
    program = Holder(lab, name, 0, None).wait_ready()
    program.ask(f"fill {room}", "taken", START_WITHIN_S)
    try:
        yield program
    finally:
        program.end()

