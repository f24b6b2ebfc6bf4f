"""run-start: what `loadline run` adds to the start of a job, and what a message to loadlined takes."""
import re
import time

from . import figures
from .governed import need_run, wrapped
from .lab import Trouble

ROUNDS = 20
FIRST_MS, LATER_MS = 60, 10
LOOP_US, IDLE_US = 25, 80
LINGER_S = 2.5  # loadlined ends 2 s after its last job
MESSAGE_LINE = re.compile(r"^(memory by a message(?:, after idleness)?): +median +(\d+) ns", re.MULTILINE)


def time_ms(lab, name, words):
    """Without a deadline: with one Python looks for the end each 50 ms."""
    begin = time.monotonic()
    child = lab.spawn(name, words)
    status = child.wait()
    took_ms = 1000 * (time.monotonic() - begin)
    if status:
        raise Trouble(f"{name}: exit status {status}: {lab.tail(f'{name}.err')}")
    return took_ms


def measure(lab, name, rest_s):
    """Milliseconds that each start took on top of the median start without loadline, which takes turns with it."""
    native, run = [], []
    for _ in range(lab.times(ROUNDS, 3)):
        time.sleep(rest_s)
        native.append(time_ms(lab, f"{name}-native", ["true"]))
        run.append(time_ms(lab, f"{name}-run", wrapped(lab, ["true"], ["--mem", "1G"])))
    return [took - figures.percentile(native, 50) for took in run]


def report_start(lab, figure, added, limit_ms):
    median = figures.percentile(added, 50)
    lab.report.keep(figure, {"added_ms": added})
    lab.report.check(figure, f"<= {limit_ms} ms", f"{median:.1f} ms; {min(added):.1f} to {max(added):.1f}", median <= limit_ms)


def report_messages(lab):
    _, out, _ = lab.run("port-bench", wrapped(lab, [lab.program("bench/c/port_bench")], ["--mem", "1G"]), timeout=120)
    for what, ns in MESSAGE_LINE.findall(out):
        limit_us = IDLE_US if "idle" in what else LOOP_US
        lab.report.at_most(f"{what}: median", int(ns) / 1000, limit_us, "us", 1)


def run(lab):
    need_run(lab)
    report_start(lab, "start: a job, where nobody decides yet: added", measure(lab, "start-first", LINGER_S), FIRST_MS)
    other = lab.spawn("start-other", wrapped(lab, ["sleep", "600"], []))
    time.sleep(0.5)
    report_start(lab, "start: a job beside another: added", measure(lab, "start-later", 0), LATER_MS)
    other.terminate()
    other.wait()
    report_messages(lab)
