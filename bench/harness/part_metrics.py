"""metrics: SM utilisation, occupancy, tensor pipes and memory bandwidth, by GPM. power: watts."""
import re
import time

from . import figures
from .card import GpmWatch, NvmlError, PowerWatch
from .hold import Hold
from .lab import Missing, reason

WATTS = (150, 200, 300)
REACH_S = 20
LEVELS = (("sm", 25, 1), ("sm", 50, 1), ("occupancy", 25, 1), ("occupancy", 50, 1), ("tensor", 30, 2), ("dram", 40, 2))
SETTLE_S = {"sm": 2.0, "occupancy": 2.0, "tensor": 2.0, "dram": 2.0, "power": 8.0}


def hold_metric(lab, name, metric, target, seconds, watch):
    """Means over the same seconds: by the hold's samples and by the harness's own readings."""
    with watch:
        hold = Hold(lab, name, "--metric", metric, "--target", target)
        hold.wait_holding()
        time.sleep(SETTLE_S[metric] + seconds)
        hold.end()
    from_s = hold.first_kernel_s() + SETTLE_S[metric]
    until_s = hold.end_sent_s - hold.wall_zero_s()
    levels = [s.level for s in figures.between(hold.samples(metric), from_s, until_s) if s.level is not None]
    readings = [value for time_s, value in watch.values if hold.wall_zero_s() + from_s <= time_s <= hold.end_sent_s]
    return hold, levels, readings


def check_gpm(lab, metric):
    status, _, err = lab.run(f"try-{metric}", lab.loadline("hold", "--metric", metric, "--target", "25%", "--dry-run"))
    if status:
        raise Missing(reason(err))


def report_metric(lab, metric, target, band):
    figure = f"{metric} {target} %"
    hold, levels, windows = hold_metric(lab, f"{metric}-{target}", metric, f"{target}%", lab.seconds(60),
                                        GpmWatch(lab.card))
    readings = [values[metric] for values in windows]
    lab.report.keep(figure, {"samples": figures.spread(levels), "read_by_harness": figures.spread(readings),
                             "summary": hold.summary()})
    if not levels or not readings:
        lab.report.check(f"{figure}: mean", f"{target} ± {band}", "no samples", False)
        return
    middle, middle_read = figures.mean(levels), figures.mean(readings)
    lab.report.check(f"{figure}: mean", f"{target} ± {band}", f"{middle:.2f}; read apart {middle_read:.2f}",
                     abs(middle - target) <= band and abs(middle_read - target) <= band)


def report_reach(lab, metric):
    """What its kernel reaches when it runs all the time."""
    hold = Hold(lab, f"{metric}-reach", "--metric", metric, "--target", "99%")
    hold.wait_holding()
    time.sleep(REACH_S)
    hold.end()
    levels = [s.level for s in hold.samples(metric) if s.level is not None]
    lab.report.info(f"{metric}: reached at most", f"{figures.mean(levels[-20:]):.1f} %")


def run(lab):
    for metric in dict.fromkeys(metric for metric, _, _ in LEVELS):
        try:
            check_gpm(lab, metric)
            GpmWatch(lab.card)
        except (Missing, NvmlError) as why:
            lab.report.skip(metric, str(why))
            continue
        for _, target, band in (level for level in LEVELS if level[0] == metric):
            report_metric(lab, metric, target, band)
        if metric in ("tensor", "dram"):
            report_reach(lab, metric)


def find_ceiling(lab):
    """What a target far out of reach gives: (reached, stated by the hold or None)."""
    hold = Hold(lab, "power-ceiling", "--metric", "power", "--target", "2000W")
    hold.wait_holding()
    told = hold.wait_for(lambda line: line["event"] == "fault" and "above" in (line["text"] or ""), 40)
    time.sleep(5)
    hold.end()
    stated = re.search(r"about (\d+) W", told[1]["text"]) if told else None
    levels = [s.level for s in hold.samples("power") if s.level is not None]
    return figures.mean(levels[-20:]), float(stated.group(1)) if stated else None


def report_power(lab, figure, target):
    hold, levels, readings = hold_metric(lab, f"power-{target:.0f}", "power", f"{target:.0f}W", lab.seconds(60),
                                         PowerWatch(lab.card))
    lab.report.keep(figure, {"samples": figures.spread(levels), "read_by_harness": figures.spread(readings),
                             "summary": hold.summary()})
    if not levels or not readings:
        lab.report.check(f"{figure}: mean", f"{target:.0f} ± 2 %", "no samples", False)
        return
    middle, middle_read = figures.mean(levels), figures.mean(readings)
    inside = sum(abs(level - target) <= 0.02 * target for level in levels) / len(levels)
    lab.report.check(f"{figure}: mean", f"{target:.0f} ± 2 %",
                     f"{middle:.1f} W; read apart {middle_read:.1f}; {100 * inside:.0f} % of samples within",
                     abs(middle - target) <= 0.02 * target and abs(middle_read - target) <= 0.02 * target)


def run_power(lab):
    try:
        lab.card.watts()
    except NvmlError as why:
        raise Missing(str(why)) from None
    reached, stated = find_ceiling(lab)
    lab.report.keep("power: ceiling", {"reached_watts": reached, "stated_watts": stated})
    lab.report.check("power: ceiling, stated by the hold", "stated",
                     f"{'nothing' if stated is None else f'{stated:.0f} W'}; reached {reached:.0f} W", stated is not None)
    ceiling = reached if stated is None else min(stated, reached)
    top = round(0.95 * ceiling)
    for target in WATTS:
        if target < top:
            report_power(lab, f"power {target} W", float(target))
        else:
            lab.report.skip(f"power {target} W", "above the payload's ceiling")
    report_power(lab, "power, 95 % of the ceiling", float(top))
