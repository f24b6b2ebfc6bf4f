"""lend, lend-ranks: an owner comes back to memory and time that a borrower has, by the system's loadlined, as two users.

The owner is guaranteed all but 10 GiB of each card and 60 % of its time, the guest nothing. So the guest's job of 16 GiB borrows, and
sleeps when a job of the owner's whole guarantee comes. The owner's start is compared with its starts while nobody borrows."""
import os
import statistics
import subprocess
import time

from . import claims, evicting, figures
from .evicting import sized
from .frameworks import PROGRAMS, SIGNS, interpreters
from .governed import Program, need_run, wrapped
from .lab import Missing
from .part_evict_programs import report_same
from .system import System, need_root
from .talker import Talker

OWNER, GUEST = 61234, 61235
LEFT_GIB, BORROWED_GIB, FILLED_GIB, TRAINING_GIB = 10, 16, 14, 10
STARTS, WORK_S, SETTLE_S, WITHIN_S = 3, 2, 1, 90
RESERVED = 1 << 30  # of a card, at least, that no job can have
MORE_S, LATENCY_MS, STOP_MS, LEAST_PART, SHARE = 0.8, 5, 5, 0.97, 0.6
LONG_US, TINY_US, REST_MS = 10_000_000, 20, 300
STEPS = {"train_same.py": 120, "exact_ranks.py": 300}
CONFIG = """\
version: 1
host-memory: {{for-eviction: {pool}M}}
cards:
  - {{name: parts, cards: "{cards}", give: memory}}
tenants:
  - name: owner
    members: {{users: ["{owner}"]}}
    guarantee: [{{of: parts, memory: {guarantee}M, compute: 60%}}]
  - name: guest
    members: {{users: ["{guest}"]}}
defaults: {{memory: 2G, time: 1h}}
reclaim: {{steps: [compute, evict-idle, evict]}}
"""


def mib(count):
    return count >> 20


class Lender(System):
    def __init__(self, lab, cards):
        self.cards = cards
        left = max(sized(lab, LEFT_GIB), RESERVED)
        self.guarantee, self.borrowed = lab.card.memory().total - left, left + sized(lab, BORROWED_GIB - LEFT_GIB)  # bytes of each card
        super().__init__(lab, CONFIG.format(pool=mib(2 * cards * self.borrowed), cards=f"0-{cards - 1}" if cards > 1 else "0",
                                            owner=OWNER, guest=GUEST, guarantee=mib(cards * self.guarantee)), "nobody")
        self.start("loadline-sensor", "src/sensor/loadline-sensor", "--every", "1")
        self.wait_for("the sensor's cards", lambda: len([line for line in self.told("status") if "uuid" in line]) >= cards)

    def told(self, *words):
        return claims.parse(self.lab.run(f"lend-{words[0]}", self.lab.loadline(*words, "--json"))[1])

    def wait_state(self, name, state):
        """Of the last job of that name."""
        end = time.monotonic() + WITHIN_S
        while True:
            jobs = [line["queued"] for line in self.told("queue", "list") if line.get("queued", {}).get("name") == name]
            if jobs and jobs[-1]["state"] == state:
                return
            if time.monotonic() > end:
                raise evicting.Refused(f"{name} is {jobs[-1]['state'] if jobs else 'gone'}, not {state}")
            time.sleep(0.05)


class Job(Program):
    """A job of that user with so much memory of each card."""
    tenant = None  # what `status` calls a guest's

    def __init__(self, service, user, name, count, words):
        cards = ["--cards", service.cards] if service.cards > 1 else []
        words = wrapped(service.lab, words, ["--name", name, "--mem", f"{mib(count)}M", *cards])
        Talker.__init__(self, service.lab, name, words, {"HOME": "/tmp", "LOGNAME": "guest"}, stdin=subprocess.PIPE, cwd="/tmp", user=user, group=user, extra_groups=[])

    def ready_s(self):
        """From the start of its command on."""
        self.wait_ready()
        return next(at_s for at_s, line in self.lines if line["event"] == "ready") - self.started_s


def command(framework, script, *words):
    """By an interpreter that these users may start: root's own may be in root's folder."""
    for path in interpreters():
        try:
            tried = subprocess.run([path, "-c", SIGNS.get(framework, "")], user=GUEST, group=GUEST, extra_groups=[], cwd="/tmp",
                                   env={**os.environ, "HOME": "/tmp"}, capture_output=True, timeout=120, check=False)
        except OSError:
            continue
        if tried.returncode == 0:
            return [path, "-B", os.path.join(PROGRAMS, script), *map(str, words)]
    raise Missing(f"no {framework} for user {GUEST} (LOADLINE_TORCH_PYTHON names an interpreter)")


def python(script, *words):
    return command("python", script, *words)


def owner_comes(service, at):
    """(seconds until its first kernel has ended, its kernels a second)"""
    job = Job(service, OWNER, f"lend-owner-{at}", service.guarantee, python("holder.py"))
    first_s = job.ready_s()
    rate = job.rate_for(WORK_S)
    job.end()
    return first_s, rate


def measure_alone(service):
    found = [owner_comes(service, f"alone-{at}") for at in range(STARTS)]
    return tuple(statistics.median(values) for values in zip(*found))


def take_back(service, what, guest, alone):
    """The owner comes while that job of the guest works, again and again."""
    lab, figure, found = service.lab, f"lend: {what}", []
    for at in range(STARTS):
        service.wait_state(guest.name, "borrowed")
        time.sleep(SETTLE_S)
        found.append(owner_comes(service, f"{guest.name}-{at}"))
    service.wait_state(guest.name, "borrowed")
    more = [first_s - alone[0] for first_s, _ in found]
    lab.report.keep(figure, {"alone": alone, "found": found})
    lab.report.at_most(f"{figure}: the owner's first kernel, later than beside nobody", max(more), MORE_S, "s", 2,
                       f" ({', '.join(f'{one:.2f}' for one in more)})")
    lab.report.at_least(f"{figure}: the owner's speed then, of that beside nobody", min(rate for _, rate in found) / alone[1], LEAST_PART, "")


def begin_guest(service, name, words, prepare=None):
    """It works once memory of the host is ready for it: before, its way out takes longer (doc/evict.md)."""
    guest = Job(service, GUEST, name, service.borrowed, words).wait_ready()
    size = prepare(guest) if prepare else sized(service.lab, FILLED_GIB)
    guest.tenant = next(line["tenant"] for line in service.told("status") if line.get("configured_tenant") == "guest")
    evicting.wait_ready_bytes(service.lab, guest.tenant, service.cards * size)
    return guest


def lend_words(service, alone):
    """A program that knows each word of its memory."""
    guest = begin_guest(service, "lend-words", python("holder.py", "--bytes", sized(service.lab, FILLED_GIB)))
    mark = guest.go(WITHIN_S / 2)
    take_back(service, "a program with 14 GiB", guest, alone)
    guest.wait_done(mark, 2 * WITHIN_S)
    wrong = guest.ask("check", "checked", WITHIN_S)["wrong_parts"]
    guest.end()
    service.lab.report.check("lend: a program with 14 GiB: wrong words after", "0", str(wrong), wrong == 0)


def natives_of(lab, name, words, ask):
    program = Program(lab, name, words).wait_ready()
    found = [ask(program) for _ in range(2)]
    program.end()
    return found


def lend_training(service, what, alone):
    """Two processes make its batches."""
    lab, steps = service.lab, STEPS["train_same.py"]
    words = command("torch", "train_same.py", "--loaders", 2)

    def make(program):
        return program.ask(f"make {TRAINING_GIB}", "made", WITHIN_S)["card_bytes"]

    def train(program):
        make(program)
        return program.ask(f"train {steps}", "trained", WITHIN_S)["sum"]

    natives = natives_of(lab, "lend-training-native", words, train)
    guest = begin_guest(service, "lend-training", words, prepare=make)
    mark = guest.mark()
    guest.tell(f"train {steps}")
    take_back(service, what, guest, alone)
    ours = guest.wait_done(mark, WITHIN_S, "trained")["sum"]
    guest.end()
    report_same(lab, f"lend: {what}: sum of all parameters after", natives, ours)


def lend_graphs(service, what, alone):
    """A service whose steps are CUDA graphs."""
    guest = begin_guest(service, "lend-graphs", command("torch", "serve_same.py"))
    take_back(service, what, guest, alone)
    end = evicting.close(guest, "end", WITHIN_S)
    service.lab.report.check(f"lend: {what}: wrong answers", "0", f"{end['wrong']} of {end['rounds']}", end["wrong"] == 0 and end["rounds"] > 0)


def lend_time(service):
    """The owner has memory, and works now and then, while a kernel of the guest runs for 10 s."""
    lab = service.lab
    owner = Job(service, OWNER, "lend-ticks", service.guarantee - 3 * service.borrowed,
                        python("ticks.py", "--work-us", TINY_US, "--every-ms", REST_MS)).wait_ready()
    flood = Job(service, OWNER, "lend-flood", service.borrowed, python("holder.py")).wait_ready()
    alone_ms, alone_rate = owner.ask("3", "ticks", WITHIN_S)["latencies_ms"], flood.rate_for(WORK_S)
    guest = begin_guest(service, "lend-long", python("holder.py", "--kernel-us", LONG_US, "--bytes", sized(lab, FILLED_GIB)))
    guest.go(4 * LONG_US / 1e6)
    time.sleep(SETTLE_S)
    beside_ms = owner.ask("6", "ticks", WITHIN_S)["latencies_ms"]
    rate = flood.rate_for(WORK_S)
    stops = [time_of(lab, word, guest.tenant) for word in ("suspend", "resume") * STARTS]
    lab.report.keep("lend: time", {"alone_ms": alone_ms, "beside_ms": beside_ms, "alone_rate": alone_rate, "rate": rate, "stops_s": stops})
    lab.report.at_most("lend: the owner's kernel beside a borrower's of 10 s", max(beside_ms), LATENCY_MS, "ms", 2,
                       f" (median {figures.percentile(beside_ms, 50):.2f}; beside nobody {max(alone_ms):.2f}, {figures.percentile(alone_ms, 50):.2f})")
    lab.report.at_least("lend: the owner's flood beside a borrower's kernel, of its share of 60 %", rate / alone_rate / SHARE, LEAST_PART, "", 2,
                        f" ({rate / alone_rate:.2f} of that beside nobody)")
    known = [1000 * one for one in stops if one is not None]
    if len(known) == len(stops):
        lab.report.at_most("lend: suspend and resume of a borrower's kernel of 10 s, at loadlined", max(known), STOP_MS, "ms", 2,
                           f" ({', '.join(f'{one:.2f}' for one in known)})")
    for job in (guest, flood, owner):
        job.process.kill()


def time_of(lab, word, tenant):
    """As loadlined measured it; None: it was not done."""
    _, out, err = lab.run(f"lend-{word}", lab.loadline(word, tenant, "--json"))
    found = [line["seconds"] for line in claims.parse(out) if line.get("seconds") is not None]
    if not found:
        lab.report.note(f"lend: {word}", err.strip())
    return found[0] if found else None


def run(lab):
    need_root()
    need_run(lab)
    service = Lender(lab, 1)
    alone = measure_alone(service)
    lend_words(service, alone)
    lend_time(service)
    for what, borrow in (("a training with loaders", lend_training), ("a service with CUDA graphs", lend_graphs)):
        try:
            borrow(service, what, alone)
        except Missing as why:
            lab.report.skip(f"lend: {what}", str(why))


def run_ranks(lab):
    """Two ranks that talk by NCCL, a card each."""
    need_root()
    need_run(lab)
    if len(lab.cards) < 2:
        raise Missing("one card")
    steps = STEPS["exact_ranks.py"]
    words = command("torch", "exact_ranks.py", "--matrices", 8)
    natives = natives_of(lab, "lend-ranks-native", words, lambda program: program.ask(str(steps), "finished", WITHIN_S)["sum"])
    service = Lender(lab, 2)
    alone = measure_alone(service)
    guest = begin_guest(service, "lend-ranks", words)
    mark = guest.mark()
    guest.tell(str(steps))
    take_back(service, "two ranks that talk by NCCL", guest, alone)
    ours = guest.wait_done(mark, WITHIN_S, "finished")["sum"]
    guest.end()
    report_same(lab, "lend: two ranks that talk by NCCL: sum of the results after", natives, ours)
