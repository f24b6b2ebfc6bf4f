"""run-added: calls that newer drivers have, and older ones that are rarely used, under limits: copies of arrays and in
batches under a cap, and what green contexts and pools of managed memory really take of what they are charged."""
from . import claims, figures
from .frameworks import command
from .governed import Program, need_run
from .lab import Trouble

KINDS = {"device": "cuMemcpyDtoDAsync", "array": "cuMemcpyAtoA", "batch": "cuMemcpyBatchAsync",
         "blocks": "cuMemcpy3DBatchAsync"}
CAP_PERCENT, TOLERANCE = 25, 2
SECONDS = 6
MIB = 1 << 20
GREEN_CHARGE_MIB = 10
MISSING = 77


def rate(lab, kind, limits):
    """Batches of copies a second; None: this driver has no such call."""
    name = f"added-{kind}-" + ("native" if limits is None else "run")
    program = Program(lab, name, command(lab, None, "loop_copies.py", "--kind", kind), limits)
    try:
        program.wait_ready()
    except Trouble:
        if program.process.wait(10) == MISSING:
            return None
        raise
    found = program.rate_for(lab.seconds(SECONDS))
    program.end()
    return found


def report_copies(lab):
    for kind, call in KINDS.items():
        figure = f"added: {call}, cap {CAP_PERCENT} %"
        native = rate(lab, kind, None)
        if native is None:
            lab.report.skip(figure, "not in this driver")
            continue
        capped = rate(lab, kind, ["--compute", f"{CAP_PERCENT}%"])
        lab.report.keep(figure, {"native_per_s": native, "capped_per_s": capped})
        lab.report.near(figure, 100 * capped / native, CAP_PERCENT, TOLERANCE, "% of its speed", 2,
                        f"; {native:.1f}/s alone")


def green_mib(taken):
    """Of each beyond the one before."""
    return [(after - before) / MIB for before, after in zip([0, *taken], taken)]


def report_memory(lab):
    status, out, err = lab.run("added-green", command(lab, None, "green.py"))
    told = {line["event"]: line for line in claims.parse(out)}
    lab.report.keep("added: memory", told)
    if status:
        lab.report.check("added: green contexts and managed pools", "answers", err.strip()[-60:], False)
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
    report_memory(lab)
