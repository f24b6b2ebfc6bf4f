"""share-…: what sharing costs programs that do not fill the card, and those that do, beside the card's own slices and MPS."""
from . import figures
from .governed import need_run
from .lab import Missing
from .mixes import AGAIN, MPS, NATIVE, RUN, SPACE, Member, measure, members

KEPT_OF_NATIVE = 0.97
PAIR_ROUNDS, PAIR_WINDOW_S = 5, 2.0

PAIRS = [("decode", "decode"), ("small", "small"), ("resnet", "resnet"), ("graph", "graph"), ("decode", "matmul"),
         ("decode", "small"), ("graph", "resnet"), ("eager", "eager"), ("eager", "flood"), ("flood", "flood")]
FOURS = [("small",) * 4, ("decode",) * 4, ("graph",) * 4, ("eager",) * 4]
WAITING = [("sync", "sync"), ("sync", "flood"), ("sync", "eager"), ("sync", "matmul"), ("sync", "decode")]


def told_of(found, mode):
    return " + ".join(f"{member.kind} {speed:.3f}" for member, speed in
                      zip([member for member in found.mix if member.kind != "serve"], found.speeds(mode)))


def report_sum(lab, figure, found, mode, beside="native", called=None):
    """The sum of the speeds, each of its own alone, against the same beside. What the scatter hides is not judged: how far
    apart the rounds of that mode are, and those of AGAIN where it was measured. called: what the figure names instead,
    where the measurement says which mode that is."""
    figure = f"{figure}: sum of speeds, of {called or beside}"
    ours, theirs = sum(found.speeds(mode)), sum(found.speeds(beside))
    sums = found.sums(beside)
    scatter = (max(sums) - min(sums)) / theirs
    ratio = ours / theirs
    text = f"{ratio:.3f} ({told_of(found, mode)}; {beside} {told_of(found, beside)}; scatter {scatter:.3f}"
    if AGAIN.name in found.told:
        again = sum(found.speeds(AGAIN.name)) / theirs
        scatter = max(scatter, abs(again - 1))
        text += f", other native processes {again:.3f}"
    text += ")"
    lab.report.keep(figure, {"told": found.told, "alone": found.alone})
    if ratio >= KEPT_OF_NATIVE or ratio < KEPT_OF_NATIVE - scatter:
        lab.report.check(figure, f">= {KEPT_OF_NATIVE:g}", text, ratio >= KEPT_OF_NATIVE)
    else:
        lab.report.info(figure, f"{text}; inside the scatter")


def run_mix(lab, name, kinds, modes, reports, **windows):
    figure = f"{name}: {' + '.join(kinds)}"
    try:
        found = measure(lab, f"{name}-{'-'.join(kinds)}", members(*kinds), modes, **windows)
    except Missing as why:
        lab.report.skip(figure, str(why))
        return
    for report in reports:
        report(lab, figure, found)


ACCOUNT_OFF = 5.0  # percent


def report_accounts(lab, figure, found):
    """What the programs' accounts tell, against what their speeds say: their work takes as much GPU time as it does alone."""
    pairs = [(found.account_percent(at), found.owed_percent(at)) for at in range(len(found.mix))]
    if any(None in pair for pair in pairs):
        lab.report.info(f"{figure}: accounts", "the card has no GPM, or there is no account")
        return
    text = ", ".join(f"{member.kind} {told:.1f} of {owed:.1f} %" for member, (told, owed) in zip(found.mix, pairs))
    told, owed = (sum(values) for values in zip(*pairs))
    lab.report.check(f"{figure}: accounts, of what the speeds say", f"± {ACCOUNT_OFF:g} %", f"{100 * (told / owed - 1):+.1f} % ({text})",
                     abs(told / owed - 1) <= ACCOUNT_OFF / 100)


def of_native(lab, figure, found):
    report_sum(lab, figure, found, RUN.name)
    report_accounts(lab, figure, found)


def each_waiting(lab, figure, found):
    """Programs that wait for each kernel get near to half of what they have alone; natively one gets a hundredth."""
    lab.report.keep(figure, {"told": found.told, "alone": found.alone})
    lab.report.at_least(f"{figure}: the slower one's speed", min(found.speeds(RUN.name)), 0.40 if "eager" in figure or "decode" in figure else 0.45,
                        "of alone", 3, f" ({told_of(found, RUN.name)}; native {told_of(found, NATIVE.name)})")


def run_mixes(lab, name, mixes, modes, reports, **windows):
    need_run(lab)
    for kinds in mixes:
        run_mix(lab, name, kinds, modes, reports, **windows)


def run_pairs(lab):
    run_mixes(lab, "share", PAIRS, [NATIVE, RUN, AGAIN], [of_native], rounds=PAIR_ROUNDS, seconds=PAIR_WINDOW_S)


def run_fours(lab):
    run_mixes(lab, "share", FOURS, [NATIVE, RUN], [of_native])


def run_waiting(lab):
    run_mixes(lab, "share", WAITING, [NATIVE, RUN], [each_waiting])


# kinds, weights, what each must have of its speed alone, the sum (None: any); the card's own slices know no weights
WEIGHTS = [
    (("decode", "matmul"), (30, 70), (0.78, 0), 1.30),
    (("decode", "matmul"), (50, 50), (0.78, 0), 1.30),
    (("decode", "matmul"), (70, 30), (0.78, 0), 1.30),
    (("decode", "matmul"), (10, 90), (0.35, 0.82), None),
    (("eager", "flood"), (30, 70), (0, 0), None),
    (("flood", "flood"), (30, 70), (0.28, 0.66), 0.95),
]


def report_weights(lab, figure, found, least, least_sum):
    speeds = found.speeds(RUN.name)
    lab.report.keep(figure, {"told": found.told, "alone": found.alone})
    text = f"{told_of(found, RUN.name)}, sum {sum(speeds):.3f}; native {told_of(found, NATIVE.name)}, sum {sum(found.speeds(NATIVE.name)):.3f}"
    wanted = [f"{member.kind} >= {part:g}" for member, part in zip(found.mix, least) if part]
    wanted += [f"sum >= {least_sum:g}"] if least_sum else []
    if not wanted:
        lab.report.info(f"{figure}: speeds, each of its own alone", text)
        return
    is_good = all(speed >= part for speed, part in zip(speeds, least)) and sum(speeds) >= (least_sum or 0)
    lab.report.check(f"{figure}: speeds, each of its own alone", ", ".join(wanted), text, is_good)


def run_weights(lab):
    need_run(lab)
    for kinds, weights, least, least_sum in WEIGHTS:
        figure = f"weights: {' + '.join(kinds)} {'/'.join(map(str, weights))}"
        mix = [Member(kind, ("--weight", str(weight))) for kind, weight in zip(kinds, weights)]
        try:
            found = measure(lab, f"weights-{'-'.join(kinds)}-{weights[0]}", mix, [NATIVE, RUN])
        except Missing as why:
            lab.report.skip(figure, str(why))
            continue
        report_weights(lab, figure, found, least, least_sum)


def of_plain_mps(lab, figure, found):
    report_sum(lab, figure, found, SPACE.name, MPS.name)


def run_space(lab):
    run_mixes(lab, "space", FOURS[:3], [NATIVE, MPS, SPACE], [of_plain_mps])


PROCESSES_OFF = 3.0  # points


def run_processes(lab):
    """A tenant of four processes has the part of one: all of them run the same kernels."""
    need_run(lab)
    figure = "share: crowd + matmul: part of the tenant of four processes"
    try:
        found = measure(lab, "processes", members("crowd", "matmul"), [NATIVE, RUN])
    except Missing as why:
        lab.report.skip(figure, str(why))
        return
    parts = {mode: 100 * found.rate(mode, 0) / (found.rate(mode, 0) + found.rate(mode, 1)) for mode in (NATIVE.name, RUN.name)}
    lab.report.check(figure, f"50 ± {PROCESSES_OFF:g} %", f"{parts['run']:.1f} %; native {parts['native']:.1f} %",
                     abs(parts["run"] - 50) <= PROCESSES_OFF)
    lab.report.at_least("share: crowd + matmul: sum of speeds, each of its own alone", sum(found.speeds(RUN.name)), 0.95, "", 3,
                        f" ({told_of(found, RUN.name)}; native {told_of(found, NATIVE.name)})")


LOW = ("matmul", "resnet", "small", "graph")
CLASS_BARS = ((50, 1.15), (95, 1.25), (99, 1.3))
NEIGHBOUR_KEEPS = 0.93
CLASS_ROUNDS, CLASS_WINDOW_S = 3, 10.0  # 600 requests each


def report_class(lab, figure, found, mode="run", beside="native", bars=CLASS_BARS, keeps=NEIGHBOUR_KEEPS):
    """The latency of a service of class high beside a program of class low, and what the neighbour keeps."""
    alone, ours, plain = found.alone_latencies_ms("serve"), found.latencies_ms(mode, 0), found.latencies_ms(beside, 0)
    lab.report.keep(figure, {"alone": figures.spread(alone), mode: figures.spread(ours), beside: figures.spread(plain)})
    for percent, bar in bars:
        one, other, without = (figures.percentile(values, percent) for values in (alone, ours, plain))
        lab.report.at_most(f"{figure}: p{percent}", other / one, bar, "times alone", 2,
                           f" ({other:.2f} ms; alone {one:.2f}, {beside} {without:.2f}; {len(ours)} requests)")
    lab.report.at_least(f"{figure}: the neighbour's speed", found.rate(mode, 1) / found.rate(beside, 1), keeps,
                        f"of {beside} beside it", 3)


def run_classes(lab):
    need_run(lab)
    for low in LOW:
        figure = f"classes: serve high beside low {low}"
        mix = [Member("serve", ("--class", "high")), Member(low, ("--class", "low"))]
        try:
            found = measure(lab, f"classes-{low}", mix, [NATIVE, RUN], CLASS_ROUNDS, CLASS_WINDOW_S)
        except Missing as why:
            lab.report.skip(figure, str(why))
            continue
        report_class(lab, figure, found)


SPACE_BARS = ((50, 1.3), (99, 1.6))
SPACE_KEEPS = 0.90
SPACE_RATIO, SPACE_RATIO_OFF = 30 / 70, 0.04


def run_space_classes(lab):
    """Clients of MPS: a service of class high, and two that fill the card, of unequal weights."""
    need_run(lab)
    modes = [NATIVE, MPS, SPACE]
    figure = "space: serve high beside low matmul"
    mix = [Member("serve", ("--class", "high")), Member("matmul", ("--class", "low"))]
    report_class(lab, figure, measure(lab, "space-classes", mix, modes, CLASS_ROUNDS, CLASS_WINDOW_S), SPACE.name, MPS.name,
                 SPACE_BARS, SPACE_KEEPS)
    figure = "space: matmul + matmul 30/70"
    found = measure(lab, "space-weights", [Member("matmul", ("--weight", str(weight))) for weight in (30, 70)], modes)
    ratio = found.rate(SPACE.name, 0) / found.rate(SPACE.name, 1)
    lab.report.check(f"{figure}: speeds, to each other", f"{SPACE_RATIO:.2f} ± {SPACE_RATIO_OFF:g}", f"{ratio:.3f}",
                     abs(ratio - SPACE_RATIO) <= SPACE_RATIO_OFF)
    lab.report.at_least(f"{figure}: sum of speeds, each of its own alone", sum(found.speeds(SPACE.name)), 0.95, "", 3,
                        f" ({told_of(found, SPACE.name)}; mps {told_of(found, MPS.name)})")
