"""run-passes: what loadline leaves alone of the driver takes nothing of the card that an account should have, and answers a
governed program as it answers any. Each step of programs/passes.py runs as it is, where what the card has less of is
measured, and under a limit, where the charge is."""
from . import claims
from .frameworks import command
from .governed import Program, need_run, wrapped
from .lab import Trouble

LIMIT_BYTES = 8 << 30
MIB = 1 << 20
# What a driver says that has a function's name and nothing else; a simulated one, mostly.
NOT_SUPPORTED = 801
REFUSALS = (201, NOT_SUPPORTED)  # CUDA_ERROR_INVALID_CONTEXT
STEPS_WITH_STRANGER = {"utilisation"}


def lines_of(lab, step, limits, words):
    name = f"passes-{step}-" + ("native" if limits is None else "run")
    status, out, _ = lab.run(name, wrapped(lab, command(lab, None, "passes.py", step, *words), limits), timeout=120)
    lines = claims.parse(out)
    if status:
        lines.append({"event": "stopped", "why": f"status {status} after {lab.tail(name + '.err', 1) or 'nothing'}"[-100:]})
    return lines


def key_of(line):
    return line["event"], line.get("function"), line.get("where")


def mib(count):
    return f"{count / MIB:.2f} MiB"


def judge_passes(report, figure, native, governed):
    """The card has no more than some bytes less, the account has what was said, and both programs were answered the same."""
    status, same = native["status"], governed.get("status") == native["status"]
    if status in (None, NOT_SUPPORTED) and same:
        report.skip(figure, "not in this driver")
        return
    if status and same and not native.get("may_refuse"):
        report.skip(figure, f"native: error {status}; the same under a limit")
        return
    most, taken, charged = native.get("most_bytes"), native.get("taken_bytes", 0), governed.get("taken_bytes")
    expected = 0 if status else native.get("charged_bytes", 0)
    need = f"charged {expected // MIB}" + ("" if most is None else f", <= {most / MIB:g} MiB")
    measured = f"charged {'nothing said' if charged is None else mib(charged)}; the card {mib(taken)} less"
    answer = "" if status == 0 and same else f"; error {status}, governed {governed.get('status')}"
    report.check(figure, need, f"{measured}, {native.get('times', 0)} calls{answer}",
                 same and charged == expected and (most is None or taken <= most))


def judge_refused(report, figure, native, governed):
    """It must be the context that the driver refuses: an error about the address would come of a call that is taken."""
    status = native["status"]
    if status is None:
        report.skip(figure, "not in this driver")
        return
    report.check(figure, "error 201 or 801", f"error {status}, governed {governed.get('status')}",
                 status in REFUSALS and governed.get("status") == status)


def judge_answer(report, figure, native, governed):
    status = native["status"]
    if status is None and governed.get("status") is None:
        report.skip(figure, "not in this driver")
        return
    same = (governed.get("status"), governed.get("value")) == (status, native["value"])
    report.check(figure, "the same", f"status {status} {native['value']}, governed {governed.get('status')} {governed.get('value')}",
                 same)


JUDGES = {"passes": judge_passes, "refused": judge_refused, "answer": judge_answer}


def judge(report, step, native, governed):
    told = {key_of(line): line for line in governed}
    for line in native:
        if line["event"] in JUDGES:
            figure = f"passes: {line['function']}" + (f", {line['where']}" if "where" in line else "")
            JUDGES[line["event"]](report, f"{figure} ({step})", line, told.get(key_of(line), {}))
    for line in native:
        if line["event"] == "oldest":
            report.info("passes: a context of the oldest function", f"error {line['status']}" if line["status"] else "made")
    judge_end(report, f"passes: the rest of {step}", *(next((line["why"] for line in lines if line["event"] == "stopped"), None)
                                                       for lines in (native, governed)))


def judge_end(report, figure, native, governed):
    """A step that lacks what it needs lacks it in both programs; one that ends without a word was ended by the driver."""
    if native is not None and native == governed and native.startswith("RuntimeError"):
        report.skip(figure, f"native: {native.partition(': ')[2]}; the same under a limit")
    elif native is not None or governed is not None:
        report.check(figure, "runs to its end", f"native: {native or 'it does'}; governed: {governed or 'it does'}", False)


def run_both(lab, step, *words):
    native, governed = (lines_of(lab, step, limits, words) for limits in (None, ["--mem", LIMIT_BYTES]))
    lab.report.keep(f"passes: {step}", {"native": native, "run": governed})
    judge(lab.report, step, native, governed)


def run_beside_stranger(lab, step):
    """Its number is the step's to look for."""
    busy = Program(lab, "passes-stranger", command(lab, None, "loop_spin.py", "--seconds", 120)).wait_ready()
    try:
        run_both(lab, step, busy.pid)
    finally:
        busy.process.kill()
        busy.process.wait()


def run(lab):
    need_run(lab)
    status, out, err = lab.run("passes-steps", command(lab, None, "passes.py"))
    if status:
        raise Trouble(f"passes.py: {err.strip()[-60:]}")
    with lab.report.group("passes: what is left alone takes nothing of the card, and answers the same under a limit"):
        for step in out.split():
            (run_beside_stranger if step in STEPS_WITH_STRANGER else run_both)(lab, step)
