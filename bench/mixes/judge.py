"""What rounds of a mix say, and how surely. Pure.

A round is {way: [rate of each program]}, with the way "alone" for each of them by itself in that round. A speed is a rate, of the
same program's alone in the same round. A score is the mean of the logarithms of speeds, by weight.

The best of several ways is chosen on some rounds and judged on others, because the best of several noisy readings is better than
any of them is: a rule without a fault would show 2 to 5 % of regret. Odd rounds choose and even ones judge, then the reverse.

Intervals are by bootstrap over rounds: N - 1 of N rounds are drawn, with replacement. (N of N would make intervals of so few rounds
too narrow by sqrt((N - 1) / N).)"""
import math
import random
from collections import namedtuple

CONFIDENCE = 0.9
DRAWS = 1000
KEEPS = 0.93  # of what is owed; a tenant that surely has less is listed

Found = namedtuple("Found", "value low high")


def mean(values):
    return sum(values) / len(values)


def quantile(values, part):
    """Between two values by where the part lies."""
    ordered = sorted(values)
    at = part * (len(ordered) - 1)
    low = math.floor(at)
    return ordered[low] + (at - low) * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low])


def found(value, drawn):
    tail = (1 - CONFIDENCE) / 2
    return Found(value, quantile(drawn, tail), quantile(drawn, 1 - tail))


def speeds(each, way):
    return [rate / alone for rate, alone in zip(each[way], each["alone"])]


def score(each, way, weights):
    logs = [weight * math.log(speed) for weight, speed in zip(weights, speeds(each, way))]
    return sum(logs) / sum(weights)


def draw(dice, numbers):
    return dice.choices(numbers, k=max(1, len(numbers) - 1))


def loss(scores, way, others, choosing, judging):
    """What way lacks of the best of others: of scores, in the rounds `judging`."""
    best = max(others, key=lambda other: mean([scores[other][at] for at in choosing]))
    return mean([scores[best][at] - scores[way][at] for at in judging])


def regrets(rounds, weights, way, others):
    """(regret, [regret of each draw of rounds]): the part of the geometric mean of the speeds that the best of others has more."""
    scores = {each: [score(one, each, weights) for one in rounds] for each in {way, *others}}
    odd, even, dice = range(0, len(rounds), 2), range(1, len(rounds), 2), random.Random(1)

    def regret(odd, even):
        both = loss(scores, way, others, odd, even) + loss(scores, way, others, even, odd)
        return 1 - math.exp(-both / 2)
    return regret(odd, even), [regret(draw(dice, odd), draw(dice, even)) for _ in range(DRAWS)]


def ratios(rounds, weights, way, other):
    """(score of way over score of other, [the same of each draw of rounds])"""
    logs, dice = [score(each, way, weights) - score(each, other, weights) for each in rounds], random.Random(1)
    return math.exp(mean(logs)), [math.exp(mean(draw(dice, logs))) for _ in range(DRAWS)]


def middle(values):
    """The median of several mixes, values as regrets and ratios have them: mixes are drawn too."""
    dice = random.Random(1)
    drawn = [quantile([each[at] for _, each in dice.choices(values, k=len(values))], 0.5) for at in range(DRAWS)]
    return found(quantile([value for value, _ in values], 0.5), drawn)


def owed(rounds, weights, way):
    """[Found] of each program: its speed, of what it is owed: its native speed, or its share by weight, whichever is less."""
    dice, drawn = random.Random(1), []

    def of_owed(chosen):
        logs = {each: [[math.log(speed) for speed in speeds(one, each)] for one in chosen] for each in (way, "native")}
        means = {each: [math.exp(mean(column)) for column in zip(*rows)] for each, rows in logs.items()}
        return [ours / min(native, weight / sum(weights))
                for ours, native, weight in zip(means[way], means["native"], weights)]
    for _ in range(DRAWS):
        drawn.append(of_owed(draw(dice, rounds)))
    return [found(value, list(column)) for value, column in zip(of_owed(rounds), zip(*drawn))]


def scatter(values):
    """How far rates alone lie apart, of their median."""
    return (max(values) - min(values)) / quantile(values, 0.5)


def frontier(points, high):
    """What low ones can have at best where the high ones have at least that much: points are (high, low) of each part held."""
    ordered = sorted(points)
    reached = [low for each, low in ordered if each >= high]
    for (x0, y0), (x1, y1) in zip(ordered, ordered[1:]):
        if x0 < high < x1:
            reached.append(y0 + (high - x0) / (x1 - x0) * (y1 - y0))
    return max(reached, default=ordered[-1][1])


def figure_of(told, seconds):
    """What a program told of a window: its steps a second, or what it would answer one after the other. A program that got nowhere
    in the whole window counts as if it had done half a step."""
    latencies = told.get("latencies_ms")
    if latencies is None:
        return {"rate": told["rate_per_s"] or 0.5 / seconds}
    if not latencies:
        return {"rate": 0.5 / seconds}
    return {"rate": 1000 / quantile(latencies, 0.5), "p50_ms": quantile(latencies, 0.5),
            "p99_ms": quantile(latencies, 0.99)}
