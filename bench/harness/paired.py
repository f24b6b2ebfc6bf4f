"""Two ways of doing the same, measured in turn, so that a drift of the machine falls on both. Pure but for `measure`.

Where several pairs of processes are measured, each for several rounds, there is one list of pairs for each: processes
differ among themselves (where their code and data lie), so rounds of one are no substitute for more of them."""
import random

from . import figures

RESAMPLES = 500


def order(pairs):
    """True for the second way: first, second, second, first, and so on."""
    return [at % 4 in (1, 2) for at in range(2 * pairs)]


def measure(pairs, first, second):
    """[(first's value, second's)] in the order above; both are functions."""
    taken = ([], [])
    for is_second in order(pairs):
        taken[is_second].append((second if is_second else first)())
    return list(zip(*taken))


def added(pairs):
    """Median of what the second way takes more."""
    return figures.percentile(every([pairs], difference), 50)


def ratio_percent(pairs):
    """Median of the second as a percentage of the first."""
    return figures.percentile(every([pairs], percent), 50)


def every(runs, value_of):
    """Of all rounds of all pairs of processes."""
    return [value_of(first, second) for pairs in runs for first, second in pairs]


def difference(first, second):
    return second - first


def percent(first, second):
    return 100 * second / first


def interval(runs, value_of):
    """The median of all, and between what it lies by 95 %: processes are drawn again from those there were, and of
    each its rounds."""
    drawing = random.Random(len(runs))
    groups = [[value_of(first, second) for first, second in pairs] for pairs in runs]
    medians = []
    for _ in range(RESAMPLES):
        drawn = []
        for group in drawing.choices(groups, k=len(groups)):
            drawn += drawing.choices(group, k=len(group))
        medians.append(figures.percentile(drawn, 50))
    return (figures.percentile([value for group in groups for value in group], 50),
            figures.percentile(medians, 2.5), figures.percentile(medians, 97.5))


def can_judge(low, high, bar, width):
    """Whether an interval tells on which side of the bar the truth is: it does not reach it, or is not wider than what
    is to be told apart."""
    return high - low <= width or not low <= bar <= high


def middle(pairs, way):
    return figures.percentile([pair[way] for pair in pairs], 50)


def is_drowned(pairs, limit):
    """Whether the differences scatter so widely that a limit of that size cannot be judged by them: half of them lie
    in a span wider than it."""
    differences = every([pairs], difference)
    return figures.percentile(differences, 75) - figures.percentile(differences, 25) > limit
