"""matmul: a matrix product in a loop beside a default hold. fill: topping up beside a closed loop."""
import os
import subprocess
import time

from . import figures
from .card import UtilWatch
from .frameworks import find_torch
from .hold import Hold
from .lab import Trouble
from .stranger import Stranger

PAIRS = 8
PRODUCT_S = 12
WARM_UP_S = 15
PAUSE_S = 4.0  # before each measurement: idle, or the hold starting and holding
MATMUL = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "programs", "matmul.py")


class Products:
    """A process with its tensors on the card that multiplies for as long as it is told."""

    def __init__(self, lab, python):
        self.lab = lab
        self.child = lab.spawn("matmul", [python, MATMUL], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.answer() != "ready":
            raise Trouble(f"matmul: {lab.tail('matmul.err')}")

    def answer(self):
        return self.child.stdout.readline().decode().strip()

    def rate(self, seconds):
        try:
            self.child.stdin.write(f"{seconds}\n".encode())
            self.child.stdin.flush()
            return float(self.answer())
        except (OSError, ValueError):
            raise Trouble(f"matmul: {self.lab.tail('matmul.err')}") from None

    def end(self):
        self.child.stdin.close()
        self.child.wait(30)


def product_beside(lab, products, at, seconds):
    begin = time.monotonic()
    hold = Hold(lab, f"matmul-{at}")
    hold.wait_holding()
    time.sleep(max(1.0, PAUSE_S - (time.monotonic() - begin)))
    rate = products.rate(seconds)
    hold.end()
    return rate, hold.summary()["yields"]


def run_matmul(lab):
    products = Products(lab, find_torch(lab))
    seconds, pairs = lab.seconds(PRODUCT_S), lab.times(PAIRS, 2)
    products.rate(lab.seconds(WARM_UP_S))
    alone, beside, yields = [], [], []
    for at in range(2 * pairs):
        time.sleep(1)  # NVML still shows the work before; a hold that starts now would wait
        if at % 4 in (0, 3):  # alone, beside, beside, alone: a drift of the card's speed falls on both
            time.sleep(PAUSE_S)
            alone.append(products.rate(seconds))
        else:
            rate, count = product_beside(lab, products, at, seconds)
            beside.append(rate)
            yields.append(count)
    products.end()
    ratio = 100 * figures.percentile(beside, 50) / figures.percentile(alone, 50)
    pair_ratios = [100 * b / a for a, b in zip(alone, beside)]
    lab.report.keep("matmul", {"alone_per_s": alone, "beside_per_s": beside, "alone": figures.spread(alone),
                               "beside": figures.spread(beside), "pair_percent": pair_ratios, "yields": yields})
    lab.report.at_least("matmul: bf16 4096³ beside a default hold", ratio, 99, "%", 2,
                        f" of {figures.percentile(alone, 50):.0f}/s; pairs {min(pair_ratios):.2f} to "
                        f"{max(pair_ratios):.2f}")
    lab.report.check("matmul: the hold yielded each time", "1 or more", f"{min(yields)} to {max(yields)}",
                     min(yields) >= 1)


LOOP = ("--kernel-us", 2000, "--sleep-ms", 8)
FILL_FROM_S = 3.0  # the level loop has found its place


def loop_rate(lab, name, seconds):
    stranger = Stranger(lab, name, "loop", *LOOP, "--seconds", round(seconds))
    time.sleep(1)
    with UtilWatch(lab.card) as watch:
        begin_s = time.time()
        stranger.go()
        stranger.finish(seconds + 30)
        end_s = time.time()
    return stranger.rate(), watch.between(begin_s + 0.5, end_s - 0.5)


def loop_beside_fill(lab, seconds):
    stranger = Stranger(lab, "fill-foreign", "loop", *LOOP, "--seconds", round(seconds))
    with UtilWatch(lab.card) as watch:
        hold = Hold(lab, "fill", "--mode", "fill", "--target", "50%")
        hold.wait_holding()
        time.sleep(2)
        begin_s = time.time()
        stranger.go()
        stranger.finish(seconds + 30)
        end_s = time.time()
        hold.end()
    levels = [s.level for s in figures.between(hold.samples(), begin_s + FILL_FROM_S - hold.wall_zero_s(),
                                               end_s - 0.5 - hold.wall_zero_s()) if s.level is not None]
    return stranger.rate(), levels, watch.between(begin_s + FILL_FROM_S, end_s - 0.5)


def run_fill(lab):
    seconds = lab.seconds(40, 8)
    before, busy = loop_rate(lab, "fill-alone-1", seconds / 2)
    rate, levels, readings = loop_beside_fill(lab, seconds)
    after, _ = loop_rate(lab, "fill-alone-2", seconds / 2)
    alone = (before + after) / 2
    lab.report.keep("fill", {"alone_per_s": [before, after], "beside_per_s": rate, "alone_util": figures.spread(busy),
                             "total": figures.spread(levels), "total_read_by_harness": figures.spread(readings)})
    lab.report.info("fill: the foreign loop alone", f"{before:.2f} and {after:.2f} rounds/s, "
                    f"{figures.mean(busy) if busy else 0:.1f} % in NVML")
    if not levels or not readings:
        lab.report.check("fill: total, mean", "50 ± 2", "no samples", False)
        return
    middle, middle_read = figures.mean(levels), figures.mean(readings)
    lab.report.check("fill: total, mean", "50 ± 2 %", f"{middle:.2f}; read apart {middle_read:.2f}, "
                     f"p5 {figures.percentile(readings, 5)}, p95 {figures.percentile(readings, 95)}",
                     abs(middle - 50) <= 2 and abs(middle_read - 50) <= 2)
    lab.report.at_least("fill: speed of the foreign loop", 100 * rate / alone, 95, "%", 2, f" ({rate:.2f} rounds/s)")
