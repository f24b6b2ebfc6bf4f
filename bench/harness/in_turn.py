"""Two processes that do the same, one as it is and one under something, in short turns on one processor; several such
pairs, because where its code and data lie makes a process faster or slower than the next one by more than what is to be
seen. What comes out has the interval in which its median lies (paired.py)."""
import os

from . import figures, paired


def last_cpu():
    """Where the launching threads of both stay."""
    return max(os.sched_getaffinity(0))


def measure(native, under, rounds, value_of):
    """[(native's value, the other's)]; both are programs that were started, and have ended afterwards."""
    native.wait_ready()
    under.wait_ready()
    pairs = paired.measure(rounds, lambda: value_of(native), lambda: value_of(under))
    native.end()
    under.end()
    return pairs


def native_middle(runs):
    return figures.percentile(paired.every(runs, lambda first, second: first), 50)


def report_between(lab, figure, runs, value_of, bar, width, unit, is_most, more=""):
    """A median over pairs of processes against a bar, where its interval allows."""
    value, low, high = paired.interval(runs, value_of)
    more = f" ({low:.2f} to {high:.2f}){more}"
    lab.report.keep(figure, {"value": value, "interval": [low, high], "all": runs})
    if not paired.can_judge(low, high, bar, width):
        lab.report.info(figure, f"{value:.2f} {unit}{more}; scatters too widely to judge")
    elif is_most:
        lab.report.at_most(figure, value, bar, unit, 2, more)
    else:
        lab.report.at_least(figure, value, bar, unit, 2, more)
