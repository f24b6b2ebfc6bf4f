"""Two ways of doing the same, measured in turn, so that a drift of the machine falls on both. Pure but for `measure`."""
from . import figures


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
    return figures.percentile([second - first for first, second in pairs], 50)


def ratio_percent(pairs):
    """Median of the second as a percentage of the first."""
    return figures.percentile([100 * second / first for first, second in pairs], 50)


def middle(pairs, way):
    return figures.percentile([pair[way] for pair in pairs], 50)


def is_drowned(pairs, limit):
    """Whether the differences scatter so widely that a limit of that size cannot be judged by them: half of them lie
    in a span wider than it."""
    differences = [second - first for first, second in pairs]
    return figures.percentile(differences, 75) - figures.percentile(differences, 25) > limit
