"""run-cases: the programs of tests/cases on a real card: plainly, strictly and evictably, none passes its limit."""
import os
import subprocess
import threading

from . import claims
from .card import MIB, MemoryWatch
from .claims import StatusWatch
from .governed import need_run, wrapped
from .lab import Missing

TENANT = "case"
LIMIT_GIB = 8
CROWD = 24, 20  # processes, GiB: a context takes half a GiB
WITHIN_S = 60
OPTIONS = ("--weight=1", "--strict", "--evictable")
# What the driver takes for itself, once for the machine and for each context, beside what it says that a context takes.
DRIVER_MIB = 64
CASES = (("early",), ("proc",), ("kin", "spawn"), ("kin", "vfork"), ("kin", "orphan"), ("pools",), ("graphs", "child"),
         ("graphs", "update"), ("graphs", "captured"), ("vmm", "twice"), ("vmm", "exported"), ("ipc",), ("mix",),
         ("after_fork",), ("storm",), ("contexts",))


class QuickStatus(StatusWatch):
    every_s = 0.05


def words_of(lab, case):
    if case[0] == "early":
        return ["sh", "-c", f"LD_PRELOAD={lab.program('tests/cases/libcase_early.so')}:$LD_PRELOAD exec true"]
    return [lab.program(f"tests/cases/case_{case[0]}"), *case[1:]]


def charged_mib(status):
    """At most, without what ended processes had and the driver has not given back yet."""
    most = 0
    for _, lines in status.values:
        for line in claims.claims_of(lines or [], TENANT):
            most = max(most, (line.get("tenant_memory_bytes") or 0) - (line.get("tenant_leaving_bytes") or 0))
    return most / MIB


def run_case(lab, name, words, option, limit_gib):
    """(exit status, last line, whether it came to its end)."""
    command = wrapped(lab, words, ["--tenant", TENANT, "--mem", f"{limit_gib}G", option])
    process = lab.spawn(name, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    timer = threading.Timer(WITHIN_S, process.kill)
    timer.start()
    lines = []
    for line in process.stdout:
        lines.append(line.decode(errors="replace").strip())
        if lines[-1].startswith("full"):
            break
    process.stdin.close()
    process.stdout.read()
    status = process.wait()
    timer.cancel()
    return status, lines[-1] if lines else ""


def measure(lab, case, option, limit_gib):
    """What is wrong with it: a word each; and what was seen."""
    name = "-".join(["case", *case, option.strip("-").split("=")[0]])
    before_mib = lab.card.settled_mib()
    with QuickStatus(lab, f"{name}-status") as status, MemoryWatch(lab.card) as memory:
        ended, last = run_case(lab, name, words_of(lab, case), option, limit_gib)
    card_mib = max(mib for _, mib in memory.values) - before_mib
    booked_mib = charged_mib(status)
    wrong = [f"exit status {ended}"] if ended else []
    wrong += ["it did not come to its end"] if case[0] != "early" and not last.startswith("full") else []
    wrong += [f"card {card_mib:.0f} MiB"] if card_mib > limit_gib * 1024 + DRIVER_MIB else []
    wrong += [f"charged {booked_mib:.0f} MiB"] if booked_mib > limit_gib * 1024 else []
    return wrong, {"option": option, "card_mib": card_mib, "charged_mib": booked_mib, "exit": ended, "last": last}


def report(lab, case, limit_gib):
    figure = f"case {' '.join(case)}: never over, no crash"
    wrong, seen = [], []
    for option in OPTIONS:
        faults, one = measure(lab, case, option, limit_gib)
        wrong += [f"{option}: {fault}" for fault in faults]
        seen.append(one)
    lab.report.keep(figure, seen)
    most = max(one["card_mib"] for one in seen)
    text = f"{most / 1024:.2f} GiB on the card, {max(one['charged_mib'] for one in seen) / 1024:.2f} charged"
    lab.report.check(figure, f"<= {limit_gib} GiB", "; ".join(wrong) or text, not wrong)
    return seen


def run(lab):
    need_run(lab)
    if not os.access(lab.program("tests/cases/case_mix"), os.X_OK):
        raise Missing("no tests/cases/case_mix")
    for case in CASES:
        report(lab, case, LIMIT_GIB)
    count, limit_gib = CROWD
    seen = report(lab, ("crowd", str(count)), limit_gib)
    served = [one["last"] for one in seen]
    lab.report.check(f"case crowd: {count} processes of one tenant", f"served {count}", "; ".join(served),
                     all(f"served {count}, refused 0" in line for line in served))
