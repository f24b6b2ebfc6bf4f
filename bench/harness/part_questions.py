"""share-questions: what the rules of sharing rest on, asked of the card by programs of bench/c/pace.c, natively:

  spans    Is a timing event before a kernel stamped in the visit in which the kernel runs, beside a program that floods the card?
           Then its span is the kernel's own time, and beside others too kernels can be timed one by one.
  depths   What does a queue that is held to two kernels, or to 20 ms of work, cost its program, and what does it give to others?
  services Under MPS: what do a low program's depth of one kernel, and a part of the time in which it is held, give to three services?

Each answer is a row of which nothing is required."""
from .governed import Program
from .lab import Missing
from .private_mps import PrivateMps

WINDOW_S, LEAST_S = 2.0, 0.05
SAME, NOTHING = 1.25, 0.95  # a span, of its kernel's time; a speed, of the same without a bound


class Group:
    """Programs that have started, each (kind, options of pace)."""

    def __init__(self, lab, wanted, env=None):
        self.seconds = lab.seconds(WINDOW_S, LEAST_S)
        pace = lab.program("bench/c/pace")
        self.programs = [Program(lab, f"questions-{at}-{words[0]}", [pace, *map(str, words)], env=env) for at, words in enumerate(wanted)]

    def __enter__(self):
        for program in self.programs:
            program.wait_ready()
        return self

    def __exit__(self, *_):
        for program in self.programs:
            program.end()

    def window(self, *numbers):
        """What those programs tell of a window together; without numbers all."""
        chosen = [self.programs[at] for at in numbers] if numbers else self.programs
        marks = [program.go(self.seconds) for program in chosen]
        return [program.wait_done(mark, self.seconds + 60) for program, mark in zip(chosen, marks)]


# ---- spans ----

SPANS = [(kernel_us, depth) for kernel_us in (50, 200, 1000) for depth in (1, 8)]
FLOOD = ("flood",)


def spans_say(own, beside):
    """own: a kernel's time alone; beside: what done tells of its spans beside the flood."""
    times = [beside[f"p{part}_us"] / own for part in (10, 50, 90)]
    said = ", ".join(f"p{part} {value:.2f}" for part, value in zip((10, 50, 90), times))
    answer = "yes" if times[2] <= SAME else "mostly" if times[1] <= SAME else "now and then" if times[0] <= SAME else "no"
    return f"{answer} ({said} of its {own:.0f} us alone)"


def run_spans(lab):
    for kernel_us, depth in SPANS:
        with Group(lab, [("spans", "--kernel-us", kernel_us, "--depth", depth), FLOOD]) as group:
            (alone,), (beside, _) = group.window(0), group.window()
        lab.report.info(f"questions: start event in its kernel's visit beside a flood, {depth} x {kernel_us} us", spans_say(alone["p50_us"], beside))


# ---- depths ----

UNBOUNDED = 1000  # the driver itself holds no more
DEPTHS = [("flood", 20, (2,)), ("flood", 200, (2, 100)), ("flood", 2000, (2, 10)), ("eager", 4, (2,))]
OTHERS = [("flood",), ("eager",), ("sync",)]


def depth_words(kind, kernel_us, depth):
    return (kind, "--kernel-us", kernel_us, "--depth", depth)


def depths_say(held, free):
    """What a bound costs the program alone, and at most beside one of OTHERS. Each: (speed alone, [(own, the other's) beside each of
    OTHERS]), of its own alone without a bound."""
    def words(told):
        pairs = [f"{own:.2f} + {its:.2f} {other[0]}" for (own, its), other in zip(told[1], OTHERS)]
        return "; ".join([f"alone {told[0]:.2f}", *pairs])
    kept, beside = min((own / free_own, other[0]) for (own, _), (free_own, _), other in zip(held[1], free[1], OTHERS))
    cost = f"costs {100 * (1 - held[0]):.0f} % alone, {100 * (1 - kept):.0f} % beside {beside}" if min(held[0], kept) < NOTHING else "costs nothing"
    return f"{cost} ({words(held)}; without {words(free)})"


def measure_depth(lab, words, alone_of, own_per_s=None):
    """(rate alone, (speed alone, [(speed, the other's) beside each of OTHERS])). own_per_s: rate for which a speed is 1."""
    rate, beside = None, []
    for other in OTHERS:
        with Group(lab, [words, other]) as group:
            rate = rate or group.window(0)[0]["rate_per_s"]
            if other not in alone_of:
                alone_of[other] = group.window(1)[0]["rate_per_s"]
            own, its = group.window()
        beside.append((own["rate_per_s"] / (own_per_s or rate), its["rate_per_s"] / alone_of[other]))
    return rate, (rate / (own_per_s or rate), beside)


def run_depths(lab):
    alone_of = {}
    for kind, kernel_us, depths in DEPTHS:
        rate, free = measure_depth(lab, depth_words(kind, kernel_us, UNBOUNDED), alone_of)
        for depth in depths:
            _, held = measure_depth(lab, depth_words(kind, kernel_us, depth), alone_of, rate)
            lab.report.info(f"questions: a queue held to {depth} kernels of {kernel_us} us, {kind}", depths_say(held, free))


# ---- services under MPS ----

SERVICE = ("sync", "--kernel-us", 1000, "--pause-us", 4000, "--blocks", 128)
SERVICES = 3
LOW = ("flood", "--kernel-us", 200, "--blocks", 4224)  # as many blocks as 132 SMs hold at once
HELD = [(10, 0), (2, 0), (1, 0), (2, 25), (2, 50), (2, 75)]  # depth, percent of each 20 ms
TARGET = 1.3


def services_say(told):
    """told: {(depth, held percent): (p50 and p99 of the services, of theirs without the low one; the low one's speed)}"""
    good = {key: low for key, (p50, _, low) in told.items() if p50 <= TARGET}
    if not good:
        depth, percent = min(told, key=lambda key: told[key][0])
        return f"none keeps p50 within {TARGET:g}; the best is depth {depth}, held {percent} %"
    depth, percent = max(good, key=good.get)
    return f"depth {depth}, held {percent} %: the low one has {good[depth, percent]:.2f} with p50 within {TARGET:g}"


def part_of(lines, quiet, name):
    """The mean over the services."""
    return sum(line[name] / base[name] for line, base in zip(lines, quiet)) / len(quiet)


def run_services(lab):
    told, numbers = {}, range(SERVICES)
    with PrivateMps(lab) as mps:
        for depth, percent in HELD:
            low = (*LOW, "--depth", depth, "--held-percent", percent)
            with Group(lab, [SERVICE] * SERVICES + [low], mps.env) as group:
                quiet, (alone,), lines = group.window(*numbers), group.window(SERVICES), group.window()
            if not told:
                whole = alone["rate_per_s"]
            told[depth, percent] = (part_of(lines, quiet, "p50_us"), part_of(lines, quiet, "p99_us"), lines[SERVICES]["rate_per_s"] / whole)
            p50, p99, speed = told[depth, percent]
            lab.report.info(f"questions: three services beside a flood by MPS, its depth {depth}, held {percent} %",
                            f"p50 {p50:.2f}, p99 {p99:.2f} of theirs without it, low {speed:.2f} of its own")
    lab.report.info("questions: three services beside a flood by MPS: what serves best", services_say(told))


def run(lab):
    questions, answered = {"spans": run_spans, "depths": run_depths, "services": run_services}, []
    for name, question in questions.items():
        try:
            question(lab)
            answered.append(name)
        except Missing as why:
            lab.report.skip(f"questions: {name}", str(why))
    lab.report.check("questions: answered", ", ".join(questions), ", ".join(answered), answered == list(questions))
