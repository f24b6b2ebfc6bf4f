"""util: the level of each target. alone: eight minutes without a false yield. step: from one target to another."""
import time

from . import figures
from .hold import Hold
from .level import hold_level, judged, report_util

TARGETS = (5, 13, 30, 50, 60, 80, 95)
MEMORY_MIB = {"vulkan": 56, "cuda": 268}
CPU_PERCENT = 3
RSS_ANON_MIB = 64
STEP_S = 5


def worst(runs, name):
    return max(getattr(level, name) for _, level in runs)


def report_costs(lab, figure, runs):
    """runs: (target, Level)."""
    report = lab.report
    payload = runs[0][1].hold.summary()["payload"]
    costs = [{"target": target, **{name: round(getattr(level, name), 3) for name in (
        "cpu_percent", "rss_anon_mib", "rss_mib", "memory_mib")}, "watts": level.watts} for target, level in runs]
    report.keep(f"{figure}: costs", {"payload": payload, "runs": costs})
    each = ", ".join(f"{target}: {level.cpu_percent:.2f}" for target, level in runs)
    report.at_most(f"{figure}: host CPU, % of a core", worst(runs, "cpu_percent"), CPU_PERCENT, "%", more=f" ({each})")
    report.at_most(f"{figure}: anonymous RSS", worst(runs, "rss_anon_mib"), RSS_ANON_MIB, "MiB", 1,
                   f"; total {worst(runs, 'rss_mib'):.1f}")
    report.at_most(f"{figure}: GPU memory, settled ({payload})", worst(runs, "memory_mib"), MEMORY_MIB.get(payload, 0),
                   "MiB", 1)
    known = [f"{target}: {level.watts:.0f}" for target, level in runs if level.watts is not None]
    report.info(f"{figure}: card's power, by its energy counter", ", ".join(known) + " W" if known else "unknown")


def report_yields(lab, figure, runs, full_minutes):
    minutes = full_minutes / lab.quick
    yields = sum(level.hold.summary()["yields"] for _, level in runs)
    held_s = sum(level.hold.summary()["seconds"] for _, level in runs)
    faults = [line["text"] for _, level in runs for line in level.hold.events("fault")]
    lab.report.keep(f"{figure}: false yields", {"yields": yields, "seconds": held_s, "faults": faults})
    lab.report.check(f"{figure}: false yields", f"0 in {minutes:.3g} min", f"{yields} in {held_s / 60:.2f} min",
                     yields == 0 and held_s >= 60 * minutes)
    if faults:
        lab.report.note(f"{figure}: faults told", f"{len(faults)}: {faults[0][:80]}")


def run(lab):
    runs = []
    for target in TARGETS:
        level = hold_level(lab, f"util-{target}", lab.seconds(60), "--target", f"{target}%")
        report_util(lab, f"util {target} %", judged(level), target)
        runs.append((target, level))
    report_costs(lab, "util", runs)
    report_yields(lab, "util", runs, 7)


def run_alone(lab):
    level = hold_level(lab, "alone", lab.seconds(480), "--target", "50%")
    report_util(lab, "alone 8 min, 50 %", judged(level), 50)
    report_yields(lab, "alone", [(50, level)], 8)


def report_direction(lab, steps, rises):
    name = "step 20 -> 80 %" if rises else "step 80 -> 20 %"
    mine = [step for step in steps if step.low_to_high == rises]
    settled = [step.settle_s for step in mine if step.settle_s is not None]
    late = [step.late_error for step in mine if step.late_error is not None]
    lab.report.keep(name, {"steps": [step._asdict() for step in mine], "settle_s": figures.spread(settled)})
    is_ok = bool(mine) and len(settled) == len(late) == len(mine) and max(late) <= 1 and max(settled) <= 0.6
    text = f"{len(settled)} of {len(mine)} steps"
    if settled and late:
        text += f", median {figures.percentile(settled, 50):.2f} s, max {max(settled):.2f}; {max(late):.0f} off later"
    lab.report.check(f"{name}: inside ±1", "within 0.6 s", text, is_ok)


def run_step(lab):
    hold = Hold(lab, "step", "--curve", f"square:20-80@{2 * STEP_S}s")
    hold.wait_holding()
    time.sleep(lab.seconds(62, 2.5 * STEP_S))
    hold.end()
    steps = figures.judge_steps(hold.samples(), 20, 80)
    for rises in (True, False):
        report_direction(lab, steps, rises)
    yields = hold.summary()["yields"]
    lab.report.check("step: false yields", "0", str(yields), yields == 0)
