"""original: the 2018 original's algorithm and ours, one after the other, drawn in one picture."""
import csv
import os
import sys
import time

from . import figures
from .hold import Hold
from .lab import Trouble, reason

PLOT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "plot.py")
TARGET = 50


def settled_after(rows, target=TARGET, band=1):
    """(time, level) rows: the end of the first from which on all stay within the band."""
    since = None
    for time_s, level in rows:
        if abs(level - target) > band:
            since = None
        elif since is None:
            since = time_s
    return since


def read_rows(path, level_key):
    with open(path, encoding="utf-8", newline="") as rows:
        return [(float(row["time_s"]), float(row[level_key])) for row in csv.DictReader(rows) if row[level_key]]


def text_of(rows, settled_s):
    late = [level for time_s, level in rows if time_s >= 0.5 * rows[-1][0]]
    settled = "never within ±1" if settled_s is None else f"within ±1 from {settled_s:.1f} s on"
    return f"{settled}; second half {figures.mean(late):.1f} ({min(late):.0f} to {max(late):.0f})"


def run(lab):
    original, ours = lab.log("original.csv"), lab.log("hold.csv")
    seconds = round(lab.seconds(170, 20))
    status, out, err = lab.run("forge-load", [lab.program("bench/c/forge_load"), "--target", str(TARGET), "--seconds",
                                              str(seconds)], timeout=seconds + 30)
    if status:
        raise Trouble(reason(err))
    with open(original, "w", encoding="utf-8") as rows:
        rows.write(out)
    time.sleep(1)
    hold = Hold(lab, "hold-beside-original", "--target", f"{TARGET}%", "--record", ours)
    hold.wait_holding()
    time.sleep(lab.seconds(30, 5))
    hold.end()
    theirs = read_rows(original, "util_percent")
    mine = [row for row in read_rows(ours, "level") if row[0] >= hold.first_kernel_s()]
    theirs_s, mine_s = settled_after(theirs), settled_after(mine)
    lab.report.keep("original", {"original_settled_s": theirs_s, "hold_settled_s": mine_s,
                                 "original": figures.spread(v for _, v in theirs),
                                 "hold": figures.spread(v for _, v in mine)})
    lab.report.info("original: the algorithm of 2018", text_of(theirs, theirs_s))
    lab.report.info("original: loadline hold", text_of(mine, mine_s))
    for words, name in (([original, ours], "hold-vs-original.svg"), ([ours], "hold.svg")):
        status, _, err = lab.run("plot-" + name, [sys.executable, PLOT, *words, lab.log(name)])
        lab.report.check(f"original: picture {name}", "drawn", reason(err) if status else lab.log(name),
                         status == 0, is_figure=False)
