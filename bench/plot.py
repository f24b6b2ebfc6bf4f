#!/usr/bin/env python3
"""Draws a hold as SVG, with nothing but Python's own library.

    bench/plot.py HOLD.csv OUT.svg                  level and target of `loadline hold --record HOLD.csv`, yields shaded
    bench/plot.py ORIGINAL.csv HOLD.csv OUT.svg     beside the output of bench/c/forge_load
"""
import csv
import math
import sys
from collections import namedtuple
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 960, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 48, 52
INK, FAINT, GRID = "#222222", "#666666", "#e4e4e4"
OURS, THEIRS, AIM, SHADE = "#0b6e99", "#c4512d", "#777777", "#f6e3c5"

Series = namedtuple("Series", "label colour points dashed")
Band = namedtuple("Band", "from_s until_s")
Axis = namedtuple("Axis", "low high step label")


def nice_step(span, about):
    raw = span / about
    power = 10 ** math.floor(math.log10(raw))
    return next(power * m for m in (1, 2, 5, 10) if power * m >= raw)


def axis(low, high, label, about=8):
    return Axis(low, high, nice_step(max(high - low, 1e-9), about), label)


def ticks(scale):
    count = math.floor((scale.high - scale.low) / scale.step + 1e-9)
    return [scale.low + i * scale.step for i in range(count + 1)]


class Picture:
    def __init__(self, title, x, y):
        self.x, self.y = x, y
        self.parts = []
        self.text(LEFT, 22, title, INK, 15, weight="600")

    def place_x(self, value):
        return LEFT + (value - self.x.low) / (self.x.high - self.x.low) * (WIDTH - LEFT - RIGHT)

    def place_y(self, value):
        return HEIGHT - BOTTOM - (value - self.y.low) / (self.y.high - self.y.low) * (HEIGHT - TOP - BOTTOM)

    def text(self, x, y, words, colour, size=12, anchor="start", weight="400", turn=""):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size}" text-anchor="{anchor}" '
                          f'font-weight="{weight}"{turn}>{escape(words)}</text>')

    def line(self, x1, y1, x2, y2, colour, width=1.0, dashes=""):
        more = f' stroke-dasharray="{dashes}"' if dashes else ""
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
                          f'stroke-width="{width}"{more}/>')

    def shade(self, band):
        left, right = self.place_x(band.from_s), self.place_x(band.until_s)
        top = self.place_y(self.y.high)
        self.parts.append(f'<rect x="{left:.1f}" y="{top:.1f}" width="{max(1, right - left):.1f}" '
                          f'height="{self.place_y(self.y.low) - top:.1f}" fill="{SHADE}"/>')

    def axes(self):
        bottom = self.place_y(self.y.low)
        for value in ticks(self.y):
            at = self.place_y(value)
            self.line(LEFT, at, WIDTH - RIGHT, at, GRID)
            self.text(LEFT - 8, at + 4, f"{value:g}", FAINT, anchor="end")
        for value in ticks(self.x):
            at = self.place_x(value)
            self.line(at, bottom, at, bottom + 5, FAINT)
            self.text(at, bottom + 20, f"{value:g}", FAINT, anchor="middle")
        self.line(LEFT, bottom, WIDTH - RIGHT, bottom, FAINT)
        self.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, self.x.label, INK, anchor="middle")
        middle = (TOP + HEIGHT - BOTTOM) / 2
        self.text(16, middle, self.y.label, INK, anchor="middle", turn=f' transform="rotate(-90 16 {middle:.1f})"')

    def draw(self, series):
        points = " ".join(f"{self.place_x(x):.1f},{self.place_y(min(y, self.y.high)):.1f}" for x, y in series.points)
        dashes = ' stroke-dasharray="5 4"' if series.dashed else ""
        self.parts.append(f'<polyline points="{points}" fill="none" stroke="{series.colour}" stroke-width="1.6" '
                          f'stroke-linejoin="round"{dashes}/>')

    def legend(self, all_series, has_bands):
        at = WIDTH - RIGHT
        entries = [(series.label, series.colour, series.dashed) for series in all_series]
        entries += [("yielded to foreign work", SHADE, None)] if has_bands else []
        for label, colour, dashed in reversed(entries):
            at -= 7 * len(label)
            self.text(at, TOP - 12, label, INK)
            if dashed is None:
                self.parts.append(f'<rect x="{at - 24:.1f}" y="{TOP - 23}" width="18" height="13" fill="{colour}"/>')
            else:
                self.line(at - 26, TOP - 16, at - 6, TOP - 16, colour, 2.4, "5 4" if dashed else "")
            at -= 44

    def svg(self):
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
                f'height="{HEIGHT}" font-family="system-ui, -apple-system, \'Segoe UI\', Helvetica, Arial, sans-serif">')
        return "\n".join([head, f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>', *self.parts, "</svg>", ""])


def draw(title, x, y, all_series, bands=()):
    picture = Picture(title, x, y)
    for band in bands:
        picture.shade(band)
    picture.axes()
    for series in all_series:
        picture.draw(series)
    picture.legend(all_series, bool(bands))
    return picture.svg()


def read_rows(path):
    with open(path, encoding="utf-8", newline="") as rows:
        return list(csv.DictReader(rows))


def points(rows, key):
    return [(float(row["time_s"]), float(row[key])) for row in rows if row[key]]


def first_card(rows):
    return [row for row in rows if row["card"] == rows[0]["card"]]


def yielded(rows):
    """Stretches between samples at which it had stopped."""
    bands, before_s, since = [], 0.0, None
    for row in rows:
        has_stopped = row["state"] in ("yielded", "released")
        if has_stopped and since is None:
            since = before_s
        elif not has_stopped and since is not None:
            bands.append(Band(since, before_s))
            since = None
        before_s = float(row["time_s"])
    return bands + ([Band(since, before_s)] if since is not None else [])


def without_start(bands):
    """A hold that has not begun has not yielded."""
    return [band for band in bands if band.from_s > 0]


def names_of(rows):
    """What was held, for the title and the axis."""
    row = rows[0]
    unit = "W" if row["unit"] == "watts" else "%"
    words = {"util": "utilisation (NVML)", "sm": "SM utilisation", "occupancy": "occupancy", "power": "power"}
    return words.get(row["metric"], row["metric"]), unit


def level_axis(all_series, label, unit):
    if unit == "%":
        return Axis(0, 100, 20, f"{label}, {unit}")
    return axis(0, 1.1 * max(y for series in all_series for _, y in series.points), f"{label}, {unit}", 6)


def draw_hold(path):
    rows = first_card(read_rows(path))
    label, unit = names_of(rows)
    all_series = [Series("target", AIM, points(rows, "target"), True), Series("measured", OURS, points(rows, "level"), False)]
    x = axis(0, float(rows[-1]["time_s"]), "seconds since the start")
    return draw(f"loadline hold: {label}", x, level_axis(all_series, label, unit), all_series,
                without_start(yielded(rows)))


def draw_beside(original_path, hold_path):
    theirs, ours = read_rows(original_path), first_card(read_rows(hold_path))
    label, unit = names_of(ours)
    end_s = max(float(theirs[-1]["time_s"]), float(ours[-1]["time_s"]))
    target, hold_s = float(ours[-1]["target"]), float(ours[-1]["time_s"])
    shown = f" ({hold_s:.0f} s shown)" if hold_s < 0.9 * end_s else ""
    all_series = [Series(f"target {target:g} {unit}", AIM, [(0, target), (end_s, target)], True),
                  Series("forge_load's algorithm (2018)", THEIRS, points(theirs, "util_percent"), False),
                  Series("loadline hold" + shown, OURS, points(ours, "level"), False)]
    return draw(f"Reaching a target of {target:g} {unit}", axis(0, end_s, "seconds since the start"), level_axis(all_series, label, unit),
                all_series)


def main():
    *sources, target = sys.argv[1:] or [""]
    if len(sources) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 2
    picture = draw_hold(*sources) if len(sources) == 1 else draw_beside(*sources)
    with open(target, "w", encoding="utf-8") as out:
        out.write(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
