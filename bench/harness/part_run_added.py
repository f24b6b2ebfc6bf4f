"""run-added: what few programs do, under limits: copies of arrays and in batches, and kernels that kernels launch, under a
cap; and what green contexts and pools of managed memory really take of what they are charged."""
import os

from . import claims, figures, toolkit
from .frameworks import PROGRAMS, command
from .governed import Program, need_run
from .lab import Missing, Trouble

KINDS = {"device": "cuMemcpyDtoDAsync", "array": "cuMemcpyAtoA", "batch": "cuMemcpyBatchAsync",
         "blocks": "cuMemcpy3DBatchAsync"}
CAP_PERCENT, TOLERANCE = 25, 2
SECONDS = 6
MIB = 1 << 20
GREEN_CHARGE_MIB = 10
MISSING = 77
CHILDREN = ("-shared", "-Xcompiler", "-fPIC", "-rdc=true", "-arch=native", "-lcudadevrt")


def rate(lab, kind, words, limits):
    """Iterations a second; None: this driver has no such call."""
    program = Program(lab, f"added-{kind}-" + ("native" if limits is None else "run"), words, limits)
    try:
        program.wait_ready()
    except Trouble:
        if program.process.wait(10) == MISSING:
            return None
        raise
    found = program.rate_for(lab.seconds(SECONDS))
    program.end()
    return found


def report_cap(lab, kind, what, words):
    figure = f"added: {what}, cap {CAP_PERCENT} %"
    native = rate(lab, kind, words, None)
    if native is None:
        lab.report.skip(figure, "not in this driver")
        return
    capped = rate(lab, kind, words, ["--compute", f"{CAP_PERCENT}%"])
    lab.report.keep(figure, {"native_per_s": native, "capped_per_s": capped})
    lab.report.near(figure, 100 * capped / native, CAP_PERCENT, TOLERANCE, "% of its speed", 2, f"; {native:.1f}/s alone")


def report_copies(lab):
    for kind, call in KINDS.items():
        report_cap(lab, kind, call, command(lab, None, "loop_copies.py", "--kind", kind))


def report_children(lab):
    """Launched on the card by a kernel: no host sees them, and they are charged to the kernel that did it."""
    what = "kernels launched by kernels"
    try:
        library = toolkit.build(lab, os.path.join(PROGRAMS, "children.cu"), "libchildren.so", *CHILDREN)
    except (Missing, Trouble) as why:
        lab.report.skip(f"added: {what}", str(why))
        return
    report_cap(lab, "children", what, command(lab, None, "loop_children.py", "--library", library))


def green_mib(taken):
    """Of each beyond the one before."""
    return [(after - before) / MIB for before, after in zip([0, *taken], taken)]


def report_memory(lab):
    status, out, err = lab.run("added-green", command(lab, None, "green.py"))
    told = {line["event"]: line for line in claims.parse(out)}
    lab.report.keep("added: memory", told)
    if status:
        lab.report.fault("added: green contexts and managed pools", err.strip()[-60:])
    if "refused" in told:
        lab.report.skip(f"added: {told['refused']['step']}", told["refused"]["why"])
    if "green" in told:
        each = green_mib(told["green"]["bytes"])
        lab.report.at_most("added: a green context beside the primary one", figures.percentile(each, 50), GREEN_CHARGE_MIB,
                           "MiB", 2, f"; each {', '.join(f'{mib:.1f}' for mib in each)}")
    if "managed" in told:
        line = told["managed"]
        lab.report.check("added: a pool of managed memory, what it says it has reserved",
                         f">= {line['asked_bytes'] / MIB:.0f} MiB",
                         f"{line['reserved_bytes'] / MIB:.0f} MiB; the card {line['untouched_bytes'] / MIB:.0f} MiB less, "
                         f"{line['touched_bytes'] / MIB:.0f} once touched", line["reserved_bytes"] >= line["asked_bytes"])


def run(lab):
    need_run(lab)
    report_copies(lab)
    report_children(lab)
    report_memory(lab)
