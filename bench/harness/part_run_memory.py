"""run-memory: 64 processes of one tenant that allocate and free at random against its memory limit, a third of them killed:
never a byte over the limit, and nothing left on the account."""
import os
import signal
import time

from . import claims, figures
from .card import MIB, MemoryWatch
from .claims import StatusWatch
from .frameworks import command
from .governed import Program, need_run, wrapped
from .lab import Trouble
from .talker import Talker

PROCESSES, SECONDS = 64, 60
KILLED = 1 / 3
GIB = 1 << 30
# --count-context: the limit. A context takes half a GiB; some 10 GiB are left to contend for, of 64 that are wanted.
LIMITS_GIB = {"yes": 44, "no": 10}
CONTENDED = 0.9  # of the limit must have been in use, or the test has tested nothing
START_WITHIN_S, EMPTY_WITHIN_S = 120, 10


class QuickStatus(StatusWatch):
    every_s = 0.1


class Hoard(Talker):
    def __init__(self, lab, name, answer, seconds):
        self.tenant = name
        words = [lab.program("bench/c/hoard"), "--processes", str(PROCESSES), "--seconds", str(round(seconds))]
        limits = ["--tenant", name, "--mem", f"{LIMITS_GIB[answer]}G", f"--count-context={answer}"]
        super().__init__(lab, name, wrapped(lab, words, limits))

    def wait_go(self):
        if not self.wait_for(lambda line: line["event"] == "go", START_WITHIN_S):
            raise Trouble(f"{self.name}: {self.complaint() or 'does not begin'}")

    def events(self, name):
        return [line for _, line in self.lines if line["event"] == name]

    def kill_some(self, seconds):
        """A third of the children, one after the other, spread over that time. How many."""
        pids = [line["pid"] for line in self.events("child")]
        chosen = self.lab.random.sample(pids, round(KILLED * len(pids)))
        for pid in chosen:
            time.sleep(seconds / len(chosen))
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return len(chosen)

    def wait_end(self, seconds):
        found = self.wait_for(lambda line: line["event"] == "end", seconds)
        if not found:
            raise Trouble(f"{self.name}: {self.complaint() or 'does not end'}")
        self.process.wait(30)
        return found[1]


def charged(status, tenant):
    return [claims.memory_of(lines, tenant) for _, lines in status.values if lines]


def wait_empty(lab, tenant):
    """Bytes and claims that are left once nothing changes any more, or time is up."""
    deadline = time.monotonic() + EMPTY_WITHIN_S
    while True:
        _, out, _ = lab.run("status-memory-after", lab.loadline("status", "--json"))
        lines = claims.parse(out)
        left = claims.memory_of(lines, tenant), len(claims.claims_of(lines, tenant))
        if left == (0, 0) or time.monotonic() > deadline:
            return left
        time.sleep(0.2)


def report(lab, figure, answer, readings, card_mib, told, hoards):
    """readings: bytes charged, at each look."""
    limit = LIMITS_GIB[answer] * GIB
    refusals, made = (sum(line[key] for line in hoards) for key in ("refusals", "allocations"))
    most = max(readings, default=0)
    lab.report.keep(figure, {"limit_bytes": limit, "charged_bytes": figures.spread(readings), "card_mib": card_mib,
                             "allocations": made, "refusals": refusals, "ended": told})
    lab.report.check(f"{figure}: charged, never over", f"<= {limit / GIB:.0f} GiB",
                     f"{most / GIB:.4f} GiB at most in {len(readings)} looks; NVML {card_mib / 1024:.2f} GiB more than before",
                     bool(readings) and most <= limit)
    lab.report.check(f"{figure}: contended for", f">= {CONTENDED * limit / GIB:.1f} GiB, refusals",
                     f"{most / GIB:.2f} GiB; {refusals} refusals, {made} allocations by those that ended",
                     most >= CONTENDED * limit and refusals > 0)


def measure(lab, answer):
    figure, seconds = f"memory limit, contexts counted: {answer}", lab.seconds(SECONDS, 8)
    before_mib = lab.card.settled_mib()
    hoard = Hoard(lab, f"memory-{answer}", answer, seconds)
    hoard.wait_go()
    with QuickStatus(lab, "status-memory") as status, MemoryWatch(lab.card) as memory:
        killed = hoard.kill_some(0.8 * seconds)
        told = hoard.wait_end(seconds + 60)
    card_mib = max(mib for _, mib in memory.values) - before_mib
    report(lab, figure, answer, charged(status, hoard.tenant), card_mib, told, hoard.events("hoard"))
    lab.report.check(f"{figure}: those not killed", f"{PROCESSES - killed} end, 0 fail",
                     f"{told['ended']} ended, {told['killed']} killed, {told['failed']} failed",
                     told["failed"] == 0 and told["ended"] == PROCESSES - killed)
    left_bytes, left_claims = wait_empty(lab, hoard.tenant)
    left_mib = lab.card.settled_mib() - before_mib
    lab.report.check(f"{figure}: account afterwards", "0 bytes, 0 claims",
                     f"{left_bytes} bytes, {left_claims} claims; NVML {left_mib * MIB / GIB:.3f} GiB more than before",
                     (left_bytes, left_claims) == (0, 0))


def report_card_figure(lab):
    """What status says that the card counts for a process, beside what NVML tells this process."""
    figure, tenant = "memory: the card's own figure in status", "memory-figure"
    program = Program(lab, tenant, command(lab, None, "loop_spin.py"), [])
    program.wait_ready()
    _, out, _ = lab.run("status-memory-figure", lab.loadline("status", "--json"))
    told = [(claim["pid"], claim["card_memory_bytes"], claim["memory_bytes"])
            for claim in claims.claims_of(claims.parse(out), tenant)]
    own = lab.card.processes()
    program.end()
    text = "; ".join(f"{(counted or 0) / MIB:.0f} MiB, charged {charged / MIB:.0f}" for _, counted, charged in told)
    lab.report.check(figure, "NVML's", f"{text or 'no claim'}; NVML " + ", ".join(
        f"{own.get(pid, 0) / MIB:.0f} MiB" for pid, *_ in told), bool(told) and all(
            counted and counted == own.get(pid) for pid, counted, _ in told))


def run(lab):
    need_run(lab)
    report_card_figure(lab)
    for answer in LIMITS_GIB:
        measure(lab, answer)
