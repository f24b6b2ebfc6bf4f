"""share-caps: programs that do not fill the card, under caps near to what they need of it.

Each program runs under `loadline run`, and `loadline set` changes its cap: windows with a cap and without one take turns. So what
the machine does slowly meets both, and both are of one process: two processes of the same program differ by some percent here.
Under a cap above its need the program has its speed, under one below it it has the cap."""
import time

from . import figures
from .card import GpmMeter
from .governed import Program, need_run
from .lab import Missing, Trouble
from .mixes import words_of
from .part_run_cap import need_gpm

KINDS = ("decode", "small", "churn", "resnet")
ABOVE, BELOW, SMALL = (4, 10, 25), 3, 10  # points above and below its need; percent
SPEED, LEVEL = 0.97, 1.5  # of itself without a cap; points
WINDOW_S, SETTLE_S, END_S, ROUNDS = 2.0, 0.5, 0.2, 5
LEVEL_S = 5.0


def measure(lab, program, seconds):
    """(percent of the time that the card was busy, iterations a second), from when it has settled."""
    mark = program.go(SETTLE_S + seconds + END_S)
    time.sleep(SETTLE_S)
    meter = GpmMeter(lab.card)
    time.sleep(seconds)
    percent = meter.end()["graphics"]
    return percent, program.wait_done(mark, 30)["rate_per_s"]


def set_cap(lab, name, percent):
    cap = "none" if percent is None else f"{percent:g}%"
    status, _, err = lab.run(f"set-{name}", lab.loadline("set", name, "--compute", cap))
    if status:
        raise Trouble(f"set --compute {cap}: {err.strip()}")


def measure_under(lab, program, cap, seconds):
    set_cap(lab, program.name, cap)
    return measure(lab, program, seconds)


def report_above(lab, figure, program, cap, seconds):
    """Its speed, of the mean of its speeds without a cap before and after: the median of several such ratios. Where
    single ones lie on both sides of the bar the machine decides, and a miss is not judged."""
    without, ratios, percents = [measure_under(lab, program, None, seconds)[1]], [], []
    for _ in range(lab.times(ROUNDS, 3)):
        percent, rate = measure_under(lab, program, cap, seconds)
        without.append(measure_under(lab, program, None, seconds)[1])
        ratios.append(2 * rate / (without[-2] + without[-1]))
        percents.append(percent)
    ratio = figures.percentile(ratios, 50)
    text = (f"{ratio:.3f} ({min(ratios):.2f} to {max(ratios):.2f}; card {figures.percentile(percents, 50):.1f} % of {cap:.1f} %; "
            f"without a cap {min(without):.0f} to {max(without):.0f}/s)")
    lab.report.keep(figure, {"ratios": ratios, "without_per_s": without, "card_percent": percents})
    if ratio < SPEED <= max(ratios):
        lab.report.info(figure, f"{text}; inside the scatter")
    else:
        lab.report.check(figure, f">= {SPEED:g} of itself without a cap", text, ratio >= SPEED)


def report_at(lab, figure, program, cap, seconds):
    percent, _ = measure_under(lab, program, cap, seconds)
    lab.report.check(figure, f"± {LEVEL:g} points", f"{percent:.1f} % of {cap:.1f} %", abs(percent - cap) <= LEVEL)


def run_kind(lab, kind):
    seconds = lab.seconds(WINDOW_S, 1.0)
    program = Program(lab, f"caps-{kind}", words_of(lab, kind), [])
    program.wait_ready()
    needs = [measure(lab, program, seconds)[0] for _ in range(4)]
    need = max(needs)
    lab.report.info(f"caps: {kind}: needs of the card", ", ".join(f"{each:.1f}" for each in needs) + " %")
    for points in ABOVE:
        if need + points < 100:
            report_above(lab, f"caps: {kind}: speed under its need and {points} points", program, need + points, seconds)
    for what, cap in ((f"its need less {BELOW} points", min(needs) - BELOW), (f"{SMALL} %", SMALL)):
        report_at(lab, f"caps: {kind}: GPU time under {what}", program, cap, lab.seconds(LEVEL_S, 2.0))
    program.end()


def run(lab):
    need_run(lab)
    need_gpm(lab.card)
    for kind in KINDS:
        try:
            run_kind(lab, kind)
        except Missing as why:
            lab.report.skip(f"caps: {kind}", str(why))
