"""Evictable programs: the mover of the card, the commands that move a program, and how much memory the host has for that.

All parts of a run share one mover, because pinning its pool takes long (4 GB/s): it ends with the run, or by itself when
there has been no evictable program for some time. Its budget is what the host can give. It pins only what is needed."""
import contextlib
import functools
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections import namedtuple

from . import processes
from .frameworks import PROGRAMS
from .governed import Program
from .lab import Trouble, reason
from .store import SIMULATED
from .talker import Talker

GIB, MIB = 1 << 30, 1 << 20
EVICTABLE = ("--evictable",)
POOL_GIB, POOL_STEP = 104, 1 << 29
SPARE_GIB = 12        # of the host, for the programs beside the pool
FEW_GIB = 40          # pinned at most where a part starts many programs of frameworks
SIMULATED_PART = 64   # a size on the simulated driver is so much smaller
LINGER = "120s"
START_WITHIN_S, MOVE_WITHIN_S, CHECK_WITHIN_S = 30, 60, 90
ROOM_GIB, ROOM_LEAST = 1.0, 320 * MIB  # of the card, that a ballast leaves: more than the mover leaves free beside a program that returns
LOG_LINE = re.compile(r"claim \d+, tenant ([^:]+): (away|back on the card|stopped): (\d+) MiB in ([\d.]+) s")

Moved = namedtuple("Moved", "bytes seconds begun_s ended_s")  # seconds: the mover's; begun_s, ended_s: the wall clock


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


def pool_bytes(wanted, available, spare):
    """The pool's budget: whole steps, at least one."""
    return max(1, min(wanted, available - spare) // POOL_STEP) * POOL_STEP


# ---- the mover ----


class Mover(Talker):
    def __init__(self, lab, budget, uses_neighbours):
        self.budget, self.uses_neighbours = budget, uses_neighbours
        ready_fd, child_fd = os.pipe()
        os.set_inheritable(child_fd, True)
        words = ["--log-level", "debug" if uses_neighbours else "info", "mover", "-i", "0", "--pool", budget, "--linger", LINGER, "--ready-fd", child_fd]
        words += [] if uses_neighbours else ["--no-neighbour"]
        super().__init__(lab, f"evict-mover-{len(lab.kept)}", lab.loadline(*map(str, words)), pass_fds=[child_fd])
        os.close(child_fd)
        lab.keep(self.process)
        try:
            is_ready = select.select([ready_fd], [], [], START_WITHIN_S)[0] and os.read(ready_fd, 1)
        finally:
            os.close(ready_fd)
        if not is_ready:
            raise Trouble(f"the mover does not start: {reason(self.complaint())}")
        self.empty_kib = processes.status_kib(self.pid, "RssShmem")

    def pinned(self):
        """Bytes: the pool's pages that there are."""
        return (processes.status_kib(self.pid, "RssShmem") - self.empty_kib) * 1024

    def wait_pinned(self, count, within_s=60):
        """Until so much is pinned, or no more comes. What is."""
        last, since, end = self.pinned(), time.monotonic(), time.monotonic() + within_s
        while last < count and time.monotonic() < end and time.monotonic() - since < 2:
            time.sleep(0.05)
            now = self.pinned()
            if now > last:
                last, since = now, time.monotonic()
        time.sleep(0.2)  # the last step's pages are there before they are pinned
        return last

    def moves(self):
        """[(tenant, what, MiB, seconds)] so far."""
        return [(tenant, what, int(mib), float(seconds))
                for tenant, what, mib, seconds in LOG_LINE.findall(self.lab.read(self.name + ".err"))]

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def mover(lab, is_fresh=False, most_gib=POOL_GIB, uses_neighbours=False):
    """That of this run, which moves memory to the host alone unless uses_neighbours. is_fresh: a new one, with nothing pinned; also if more is pinned than most_gib: a part that starts many
    programs needs the host's memory for them."""
    known = lab.shared.get("mover")
    is_running = known is not None and known.process.poll() is None
    is_alike = is_running and known.uses_neighbours == uses_neighbours
    if is_alike and not is_fresh and known.pinned() <= sized(lab, most_gib):
        return known
    if is_running:
        known.end()
    wanted, spare = sized(lab, POOL_GIB), sized(lab, SPARE_GIB)
    available = available_bytes()
    started = lab.shared["mover"] = Mover(lab, pool_bytes(wanted, available, spare), uses_neighbours)
    lab.report.note("evict: the pool's budget", f"{started.budget / GIB:.1f} GiB of {available / GIB:.1f} GiB that the host has left")
    return started


def fitting_gib(lab, gib, programs_away):
    """The size of a program, as wanted or so small that the pool has room for so many of them."""
    return min(gib, int(2 * (gib_of(lab, mover(lab).budget) - 1) / programs_away) / 2)


def scaled_note(gib, wanted):
    """What a row says if a size is not the wanted one."""
    return "" if gib == wanted else f"; {gib:g} GiB instead of {wanted:g}: the host's memory"


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
        super().__init__(lab, name, [lab.program("tests/gpu/evictee"), "--bytes", str(count), "--until-eof", *options], limits)

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

