"""run-cards: two tenants whose kernels wait for each other across two cards (collectives), by weight: both go on, each gets its
share, and what is lost to sharing. A tenant that had its turn on one card alone would wait on that one for the other.
Then two of equal weights that leave the cards idle most of the time: what sharing costs them, of what they have without it."""
from . import figures, shares, together
from .frameworks import command
from .governed import Program, need_run
from .lab import Missing

WEIGHTS = (30, 70)
SECONDS, ALONE_S = 12, 4
TOLERANCE, KEPT = 2, 0.95  # points; of the cards' work
LIGHT = ("--numbers", 1 << 18, "--pause-us", 300)
LIGHT_ROUNDS, LIGHT_S, KEPT_OF_NATIVE = 3, 3.0, 0.97


def native_pair(lab, words):
    """Iterations a second of two at once, as they are: the cards run them in slices, each by itself."""
    programs = [Program(lab, f"cards-native-{at}", words) for at in range(2)]
    for program in programs:
        program.wait_ready()
    seconds = lab.seconds(ALONE_S)
    marks = [program.go(seconds) for program in programs]
    rates = [program.wait_done(mark, 60)["rate_per_s"] for program, mark in zip(programs, marks)]
    for program in programs:
        program.end()
    return rates


def share(lab, words):
    """[(percent of the time by its accounts of both cards, iterations a second)] of each."""
    programs = [Program(lab, f"cards-{weight}", words, ["--weight", weight]) for weight in WEIGHTS]
    for program in programs:
        program.wait_ready()
    return together.watch(lab, "cards", programs, lab.seconds(SECONDS))[0]


def report_light(lab):
    words = command(lab, "torch", "loop_allreduce.py", *LIGHT)
    modes = {"native": None, "run": []}
    running = {mode: [Program(lab, f"light-{mode}-{at}", words, limits) for at in range(2)] for mode, limits in modes.items()}
    rates = {mode: [] for mode in modes}
    for program in (each for pair in running.values() for each in pair):
        program.wait_ready()
    seconds = lab.seconds(LIGHT_S, 1.0)
    alone = [program.rate_for(seconds) for program in running["native"]]
    for _ in range(LIGHT_ROUNDS):
        for mode, pair in running.items():
            marks = [program.go(seconds) for program in pair]
            rates[mode].append([program.wait_done(mark, 60)["rate_per_s"] / one
                                for program, mark, one in zip(pair, marks, alone)])
    for program in (each for pair in running.values() for each in pair):
        program.end()
    sums = {mode: figures.percentile([sum(each) for each in rounds], 50) for mode, rounds in rates.items()}
    told = {mode: " ".join("+".join(f"{speed:.3f}" for speed in each) for each in rounds) for mode, rounds in rates.items()}
    lab.report.at_least("cards: two tenants that do not fill them: sum of speeds", sums["run"] / sums["native"], KEPT_OF_NATIVE,
                        "of native", 3, f" ({told['run']}; native {told['native']})")


def run(lab):
    need_run(lab)
    if len(lab.cards) < 2:
        raise Missing("one card")
    words, figure = command(lab, "torch", "loop_allreduce.py"), f"cards: sums of two tenants {'/'.join(map(str, WEIGHTS))}"
    native, pair = together.alone_rate(lab, "cards-native", words, lab.seconds(ALONE_S)), native_pair(lab, words)
    percents, rates = zip(*share(lab, words))
    speeds = [0 if rate is None else rate / native for rate in rates]
    lab.report.keep(figure, {"percents": percents, "rates": rates, "native_per_s": native, "native_pair_per_s": pair})
    if None in percents:
        lab.report.check(f"{figure}: shares of GPU time", f"± {TOLERANCE} points", "no account", False)
    else:
        got = shares.percentages(percents)
        lab.report.check(f"{figure}: shares of GPU time", f"± {TOLERANCE} points",
                         f"{got[0]:.1f}, {got[1]:.1f}; accounts {sum(percents):.1f} % of two cards' time",
                         shares.largest_gap(got, WEIGHTS) <= TOLERANCE)
    lab.report.at_least(f"{figure}: sum of speeds, each of its own alone", sum(speeds), KEPT, "", 3,
                        f"({', '.join(f'{speed:.3f}' for speed in speeds)}); {native:.0f} sums/s alone; two at once "
                        f"as they are {sum(pair) / native:.3f}")
    report_light(lab)
