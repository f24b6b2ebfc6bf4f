"""run-class: a program that needs the card for 1 ms every 20 ms, beside a loop of the class low and beside a hold."""
import time

from . import figures
from .frameworks import command
from .governed import Program, need_run
from .hold import Hold
from .lab import Missing, Trouble

ALONE_S, BESIDE_S = 10, 15
BESIDE_LOW, BESIDE_HOLD = 2.5, 1.1  # times its p99 alone
FIRST_MS = 10
LOOP_KEEPS = 0.85  # of what the ticks leave it
ARRIVALS, ARRIVAL_S = 6, 3.0
YIELDED_S = 0.5  # from the first tick on; the hold has stopped by then
RESUME_WITHIN_S = 12
HELD_S = 0.5
LOOPS = {"matmul": ("torch", "loop_matmul.py"), "spin": (None, "loop_spin.py", "--kernel-us", 1000)}


def ticks(lab, name, limits):
    return Program(lab, name, command(lab, None, "ticks.py"), limits).wait_ready()


def tick_for(program, seconds):
    return program.ask(f"{seconds:g}", "ticks", 3 * seconds + 30)


def p99(latencies_ms):
    return figures.percentile(latencies_ms, 99)


def find_loop(lab):
    """A matrix product where PyTorch is, else kernels of the same kind as the ticks'."""
    try:
        return "matmul", command(lab, *LOOPS["matmul"])
    except Missing:
        return "spin", command(lab, *LOOPS["spin"])


def report_alone(lab):
    """p99 as it is, and by itself under `run`: all that follows is measured by the first."""
    found = {}
    for kind, limits in (("native", None), ("run", ["--class", "high"])):
        program = ticks(lab, f"class-alone-{kind}", limits)
        tick_for(program, 1)
        found[kind] = tick_for(program, lab.seconds(ALONE_S))["latencies_ms"]
        program.end()
    lab.report.keep("class: alone", {kind: figures.spread(values) for kind, values in found.items()})
    lab.report.info("class: 1 ms every 20 ms, alone", ", ".join(
        f"{kind} p50 {figures.percentile(values, 50):.3f}, p99 {p99(values):.3f} ms" for kind, values in found.items()))
    return p99(found["native"])


def loop_keeps(beside, alone, busy_s, seconds):
    """The loop's speed as a share of what the ticks leave it of its speed alone."""
    return beside / (alone * (1 - busy_s / seconds))


def report_low(lab, alone_ms):
    name, words = find_loop(lab)
    figure, seconds = f"class: beside a low {name} loop", lab.seconds(BESIDE_S)
    native = Program(lab, "class-loop-native", words).wait_ready()
    native.rate_for(1)
    alone = native.rate_for(lab.seconds(5))
    native.end()
    loop = Program(lab, "class-loop-low", words, ["--class", "low"]).wait_ready()
    program = ticks(lab, "class-high", ["--class", "high"])
    mark = loop.go(seconds + 3)
    time.sleep(1)
    from_s = time.time()
    told = tick_for(program, seconds)
    until_s = time.time()
    loop.wait_done(mark, 30)
    program.end()
    loop.end()
    values, rate = told["latencies_ms"], loop.rate(from_s, until_s)
    keeps = loop_keeps(rate, alone, told["busy_s"], until_s - from_s)
    lab.report.keep(figure, {"latency_ms": figures.spread(values), "all_ms": values, "loop_per_s": rate,
                             "loop_alone_per_s": alone, "keeps": keeps})
    lab.report.at_most(f"{figure}: p99, times alone", p99(values) / alone_ms, BESIDE_LOW, "times", 2,
                       f" ({p99(values):.3f} ms; p50 {figures.percentile(values, 50):.3f}, max {max(values):.3f})")
    lab.report.at_least(f"{figure}: the loop's speed, of what is left", 100 * keeps, 100 * LOOP_KEEPS, "%", 1,
                        f" of {alone:.1f}/s")


def report_hold(lab, alone_ms):
    """The program is there before the hold begins; each stretch of ticks meets a hold that holds."""
    firsts, later = [], []
    program = ticks(lab, "class-beside-hold", ["--class", "high"])
    hold = Hold(lab, "class-hold")
    hold.wait_holding()
    for _ in range(lab.times(ARRIVALS, 2)):
        time.sleep(HELD_S + lab.random.random() / 10)
        mark = hold.mark()
        told = tick_for(program, ARRIVAL_S)
        firsts.append(told["latencies_ms"][0])
        later += after(told["latencies_ms"], ARRIVAL_S, YIELDED_S)
        if not hold.wait_event("yield", 2, mark):
            raise Trouble("the hold did not yield")
        if not hold.wait_event("resume", RESUME_WITHIN_S, mark):
            raise Trouble("the hold did not resume")
    program.end()
    hold.end()
    lab.report.keep("class: beside a default hold", {"first_ms": firsts, "later_ms": figures.spread(later)})
    lab.report.at_most("class: beside a default hold, first arrival", max(firsts), FIRST_MS, "ms", 3,
                       f" at most of {len(firsts)}; p50 {figures.percentile(firsts, 50):.3f}")
    lab.report.at_most("class: beside a yielded hold, p99, times alone", p99(later) / alone_ms, BESIDE_HOLD, "times",
                       3, f" ({p99(later):.3f} ms; p50 {figures.percentile(later, 50):.3f}, max {max(later):.3f})")


def after(latencies_ms, length_s, from_s):
    """Those of ticks at even distances over length_s that came at from_s or later."""
    return latencies_ms[round(len(latencies_ms) * from_s / length_s):]


def run(lab):
    need_run(lab)
    alone_ms = report_alone(lab)
    report_low(lab, alone_ms)
    report_hold(lab, alone_ms)
