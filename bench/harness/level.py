"""A hold for a given time, with everything around it that the figures of holding need."""
import time
from collections import namedtuple

from . import figures
from .card import NvmlError, UtilWatch
from .hold import Hold, Use
from .processes import rss_mib

STEADY_S = 3.0  # what starting costs is over by then
FROM_S = 1.0  # samples count from here on after the first kernel

Level = namedtuple("Level", "hold samples readings cpu_percent rss_anon_mib rss_mib memory_mib watts seconds")
CardLevel = namedtuple("CardLevel", "levels readings summary")


def energy(card):
    try:
        return card.joules()
    except NvmlError:
        return None


def hold_level(lab, name, seconds, *options, env=None, metric="util", has_kernel_log=False):
    """Holds until `seconds` of samples can be judged. Card 0."""
    card = lab.card
    before_mib = card.settled_mib()
    with UtilWatch(card) as watch:
        hold = Hold(lab, name, *options, env=env, has_kernel_log=has_kernel_log)
        hold.wait_holding()
        begin = time.monotonic()
        time.sleep(min(STEADY_S, seconds / 2))
        use, joules, steady = Use(hold), energy(card), time.monotonic()
        time.sleep(max(0.0, begin + FROM_S + seconds - time.monotonic()))
        cpu_percent = use.cpu_percent()
        anon_mib, total_mib = rss_mib(hold.pid)
        memory_mib = card.used_mib() - before_mib
        watts = (energy(card) - joules) / (time.monotonic() - steady) if joules is not None else None
        hold.end()
    return Level(hold, hold.samples(metric), watch, cpu_percent, anon_mib, total_mib, memory_mib, watts,
                 time.monotonic() - begin)


def judged(level, metric="util", card=0, from_s=FROM_S):
    """The levels that count: the hold's own samples, and NVML's as the harness read them."""
    hold = level.hold
    first_s = hold.first_kernel_s(card)
    zero_s = hold.wall_zero_s()
    until_s = hold.end_sent_s - zero_s
    samples = figures.between(hold.samples(metric, card), first_s + from_s, until_s)
    levels = [s.level for s in samples if s.level is not None]
    readings = level.readings.between(zero_s + first_s + from_s, hold.end_sent_s) if level.readings else []
    return CardLevel(levels, readings, hold.summary(card))


def report_util(lab, figure, judged_level, target):
    """The two rows of a held utilisation; both readings must keep to them."""
    report = lab.report
    levels, readings, summary = judged_level
    report.keep(figure, {"target_percent": target, "samples": figures.spread(levels),
                         "read_by_harness": figures.spread(readings), "summary": summary})
    if not levels or not readings:
        report.check(f"{figure}: every NVML sample", "± 1 point", f"{len(levels)} samples, {len(readings)} read by the harness", False)
        return
    worst, worst_read = figures.largest_error(levels, target), figures.largest_error(readings, target)
    report.check(f"{figure}: every NVML sample", "± 1 point",
                 f"{worst:.0f} off at most in {len(levels)}; read apart {worst_read:.0f} in {len(readings)}",
                 max(worst, worst_read) <= 1)
    middle, middle_read = figures.mean(levels), figures.mean(readings)
    report.check(f"{figure}: mean", f"{target} ± 0.3", f"{middle:.2f}; read apart {middle_read:.2f}",
                 abs(middle - target) <= 0.3 and abs(middle_read - target) <= 0.3)
    settle_s = summary["settle_seconds"]
    report.info(f"{figure}: settled after", "never" if settle_s is None else f"{settle_s:.2f} s")
