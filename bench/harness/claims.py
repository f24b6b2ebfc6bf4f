"""What `loadline status --json` says of the programs on a card: their claims, their accounts."""
import json
import time

from . import shares
from .card import Watch


def parse(text):
    """The objects of it, those that are whole."""
    found = []
    for line in text.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return [line for line in found if isinstance(line, dict)]


def claims_of(lines, tenant):
    return [line for line in lines if "claim" in line and line.get("tenant") == tenant]


def memory_of(lines, tenant):
    """Bytes charged to it: its own line's word where there is one, for claims are read one after the other."""
    own = [line for line in lines if "claim" not in line and line.get("tenant") == tenant and "memory_bytes" in line]
    return sum(line.get("memory_bytes") or 0 for line in own or claims_of(lines, tenant))


def points_of(readings, tenant):
    """(time, GPU seconds of all its claims), one reading each: [(wall clock, lines)]. A claim's age is of the very
    moment at which its account was read, so it is the better clock; the wall clock tells where that one's zero is."""
    points, zero_s = [], None
    for wall_s, lines in readings:
        own = claims_of(lines, tenant)
        if not own or any(line.get("gpu_seconds") is None for line in own):
            continue
        age_s = max(line.get("age_seconds") or 0 for line in own)
        zero_s = wall_s - age_s if zero_s is None else zero_s
        points.append((zero_s + age_s, sum(line["gpu_seconds"] for line in own)))
    return points


class StatusWatch(Watch):
    """(wall clock, lines of status), each second."""

    every_s = 1.0

    def __init__(self, lab, name):
        super().__init__(lab.card)
        self.lab = lab
        self.name = name

    def __enter__(self):
        self.read()
        return super().__enter__()

    def read(self):
        before_s = time.time()
        _, out, _ = self.lab.run(self.name, self.lab.loadline("status", "--json"))
        self.values.append(((before_s + time.time()) / 2, parse(out)))

    def points(self, tenant):
        return points_of(self.values, tenant)

    def windows(self, tenant):
        return shares.windows_of_points(self.points(tenant))
