"""Shares of a card's time, from readings of several programs: no clock, no card, so that selftest.py can check it.

A point is (time, something that only grows): seconds of GPU time, iterations. A window is a stretch of time and the
percentage of it that the card was busy."""
import math
from collections import namedtuple

Window = namedtuple("Window", "from_s until_s percent")


def owed(cap_percent, alone_percent):
    """What a program gets under a cap: no more than it allows, and no more than the program uses when it is alone."""
    return alone_percent if cap_percent is None else min(cap_percent, alone_percent)


def windows_of_ends(ends):
    """From (end, percent of the time since the end before). Nobody knows where the first began: it is left out."""
    return [Window(before, end, percent) for (before, _), (end, percent) in zip(ends, ends[1:])]


def windows_of_points(points):
    """From (time, busy seconds so far)."""
    return [Window(t0, t1, 100 * (b1 - b0) / (t1 - t0)) for (t0, b0), (t1, b1) in zip(points, points[1:]) if t1 > t0]


def within(windows, from_s, until_s):
    return [w for w in windows if w.from_s >= from_s and w.until_s <= until_s]


def common(one, other):
    """Both, as far as both reach: what each says is then of the same time. A window that is cut is as busy all through."""
    if not one or not other:
        return one, other
    from_s, until_s = max(one[0].from_s, other[0].from_s), min(one[-1].until_s, other[-1].until_s)
    return tuple([Window(max(w.from_s, from_s), min(w.until_s, until_s), w.percent) for w in windows
                  if w.from_s < until_s and w.until_s > from_s] for windows in (one, other))


def level(windows):
    """Mean over time; None where there is none."""
    length_s = math.fsum(w.until_s - w.from_s for w in windows)
    return math.fsum((w.until_s - w.from_s) * w.percent for w in windows) / length_s if length_s > 0 else None


def worst(windows, target):
    """The window that is farthest off, None where there is none. Windows far shorter than the longest do not count."""
    longest_s = max((w.until_s - w.from_s for w in windows), default=0)
    judged = [w.percent for w in windows if w.until_s - w.from_s >= 0.8 * longest_s]
    return max(judged, key=lambda percent: abs(percent - target), default=None)


def outside(value, low, high):
    """How far it is from a range; 0 within it."""
    return max(low - value, value - high, 0.0)


def worst_outside(windows, low, high):
    """As worst, of a range."""
    middle = worst(windows, low), worst(windows, high)
    return None if None in middle else max(middle, key=lambda percent: outside(percent, low, high))


def value_at(points, time_s):
    """What a growing count was then, on a straight line between the readings; outside them the nearest."""
    if time_s <= points[0][0]:
        return points[0][1]
    for (t0, v0), (t1, v1) in zip(points, points[1:]):
        if time_s <= t1:
            return v0 + (v1 - v0) * (time_s - t0) / (t1 - t0) if t1 > t0 else v1
    return points[-1][1]


def rate(points, from_s, until_s):
    """Growth a second between two times, as far as the readings reach; None where they do not."""
    if len(points) < 2:
        return None
    from_s, until_s = max(from_s, points[0][0]), min(until_s, points[-1][0])
    if until_s <= from_s:
        return None
    return (value_at(points, until_s) - value_at(points, from_s)) / (until_s - from_s)


def percentages(amounts):
    """Of their sum."""
    total = math.fsum(amounts)
    return [100 * amount / total for amount in amounts] if total > 0 else [0.0 for _ in amounts]


def largest_gap(measured, wanted):
    return max(abs(m - w) for m, w in zip(measured, wanted))
