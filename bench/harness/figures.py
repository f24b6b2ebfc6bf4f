"""From readings to figures: no clock, no card, no file, so that selftest.py can check it on made-up data.

Levels are percent or watts, times seconds; what the card's clock stamped is whole nanoseconds."""
import bisect
import math
from collections import namedtuple

Sample = namedtuple("Sample", "time_s level target state")  # time_s: the end of its window
Step = namedtuple("Step", "at_s low_to_high settle_s late_error")  # settle_s: None when it never settled
Kernels = namedtuple("Kernels", "starts ends")  # of one stream, in order
Burst = namedtuple("Burst", "first_ns last_ns")  # its first kernel's start, its last one's end
Arrival = namedtuple("Arrival", "is_counted latency_ns is_missed")

WINDOW_S = 0.2  # NVML's
HELD_WITHIN_NS = 100_000_000  # a hold that ran a kernel so short a time before an arrival was holding
QUIET_NS = 150_000_000  # own kernels this far apart: it had stopped in between
GRACE_NS = 50_000_000  # a stop this long after a burst's end was no answer to it


def percentile(values, percent):
    """Nearest rank: the smallest value that percent of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def mean(values):
    return math.fsum(values) / len(values)


def spread(values):
    """What is kept of a set of readings."""
    values = list(values)
    if not values:
        return {"n": 0}
    middle = mean(values)
    out = {"n": len(values), "mean": middle, "min": min(values), "max": max(values)}
    out["stdev"] = math.sqrt(math.fsum((v - middle) ** 2 for v in values) / len(values))
    for percent in (1, 5, 50, 95, 99):
        out[f"p{percent}"] = percentile(values, percent)
    return {key: round(value, 6) if isinstance(value, float) else value for key, value in out.items()}


def largest_error(levels, target):
    return max(abs(level - target) for level in levels)


def between(samples, from_s, until_s=math.inf):
    """Samples whose window ends within from_s..until_s."""
    return [s for s in samples if from_s <= s.time_s <= until_s]


def holding(samples):
    return [s for s in samples if s.state == "holding" and s.level is not None]


def window_of(samples, at):
    length = samples[at].time_s - samples[at - 1].time_s if at else WINDOW_S
    return length if 0 < length < 2 * WINDOW_S else WINDOW_S


def find_steps(samples, low, high):
    """(time, is from low to high) of each step of a square curve, from the targets of the samples: a sample's target is
    the mean over its window, so where the step fell inside the window its share tells when."""
    steps = []
    before = None
    for at, sample in enumerate(samples):
        share_high = (sample.target - low) / (high - low)
        if before is None:
            before = round(share_high)
        rises = before == 0
        share_after = share_high if rises else 1 - share_high
        if share_after > 0.001:
            steps.append((sample.time_s - share_after * window_of(samples, at), rises))
            before = 1 - before
    return steps


def judge_step(samples, step, until_s, band=1.0, within_s=0.6):
    """How one step went, by the windows that lie wholly after it and before the next."""
    at_s, rises = step
    after = [(s.time_s, abs(s.level - s.target)) for i, s in enumerate(samples)
             if at_s - 1e-4 <= s.time_s - window_of(samples, i) and s.time_s <= until_s]
    settle_s = None
    for time_s, error in after:
        if error > band:
            settle_s = None
        elif settle_s is None:
            settle_s = time_s - at_s
    late = [error for time_s, error in after if time_s >= at_s + within_s]
    return Step(at_s, rises, settle_s, max(late) if late else None)


def judge_steps(samples, low, high, band=1.0, within_s=0.6):
    samples = holding(samples)
    steps = find_steps(samples, low, high)
    ends = [at_s for at_s, _ in steps[1:]] + [samples[-1].time_s if samples else 0]
    return [judge_step(samples, step, end, band, within_s) for step, end in zip(steps, ends)
            if end - step[0] >= within_s + 2 * WINDOW_S]


def kernels(rows):
    """From (start, end) pairs."""
    rows = sorted(rows)
    return Kernels([start for start, _ in rows], [end for _, end in rows])


def was_holding(own, at, first_ns):
    is_running = at < len(own.starts) and own.starts[at] <= first_ns
    return is_running or (at > 0 and first_ns - own.ends[at - 1] <= HELD_WITHIN_NS)


def judge_arrival(own, burst, next_first_ns=math.inf):
    """From the burst's first kernel's start to the end of our last kernel before we stopped; 0 when none ended later.
    Missed: we stopped only long after the burst, or not before the next one."""
    at = bisect.bisect_left(own.ends, burst.first_ns)
    if not was_holding(own, at, burst.first_ns):
        return Arrival(False, 0, False)
    end_ns = burst.first_ns
    has_stopped = True
    while at < len(own.starts) and own.starts[at] - end_ns <= QUIET_NS:
        if own.starts[at] >= next_first_ns:
            has_stopped = False
            break
        end_ns = max(end_ns, own.ends[at])
        at += 1
    is_missed = not has_stopped or end_ns > burst.last_ns + GRACE_NS
    return Arrival(True, end_ns - burst.first_ns, is_missed)


def judge_arrivals(own, bursts):
    """All arrivals during which we were holding, in order."""
    bursts = sorted(bursts)
    nexts = [b.first_ns for b in bursts[1:]] + [math.inf]
    judged = [judge_arrival(own, burst, following) for burst, following in zip(bursts, nexts)]
    return [a for a in judged if a.is_counted]


def bursts_of(rows):
    """From (burst number, start, end) rows."""
    found = {}
    for number, start_ns, end_ns in rows:
        first, last = found.get(number, (start_ns, end_ns))
        found[number] = (min(first, start_ns), max(last, end_ns))
    return [Burst(first, last) for _, (first, last) in sorted(found.items())]


def cpu_percent(before_s, after_s, seconds):
    return 100 * (after_s - before_s) / seconds
