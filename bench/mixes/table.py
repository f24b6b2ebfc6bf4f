"""The table of regret: what several calls of regret.py have found, as rows of Markdown for doc/share.md, and as numbers. Pure."""
import judge
from draw import CLASSES, Member, half_of, has_classes, has_weights, program_of

SLICED = ("native", "open", "visits")    # what run is compared with
HELD = ("held-0", "held-0.5", "held-1")  # where classes differ
NEED_MIXES, NEED_MEDIAN, NEED_LIMIT, NEED_SURE, NEED_FEW = 24, 0.04, 0.06, 0.08, 2
NEED_SPACE, TARGET, NEAR_TARGET, NEED_LOW = 0.97, 1.3, 1.1, 0.95
SCATTER, SCATTERING_KINDS = 0.2, 3


def words_of(members):
    asked = has_weights(members), has_classes(members)
    return " + ".join(program_of(member) + (f" ({member.weight})" if asked[0] else "") + (f" ({member.level})" if asked[1] else "")
                      for member in members)


def percent(value):
    return f"{100 * value:.1f} %"


def limits(found, say=percent):
    return f"{say(found.value)} ({say(found.low)} to {say(found.high)})"


class Mix:
    """One mix that was measured whole."""

    def __init__(self, call, told):
        self.machine, self.members = call["machine"], [Member(**member) for member in told["members"]]
        self.rounds = [{way: [each["rate"] for each in figures] for way, figures in one.items()} for one in told["rounds"]]
        self.weights = [member.weight for member in self.members]
        self.half, self.kinds = half_of(self.members), [member.kind for member in self.members]
        self.others = [way for way in HELD if self.has(way)] or [way for way in SLICED if self.has(way)]
        self.regret = self.against(self.others) if self.has("run") and self.others else None

    def has(self, *ways):
        return all(way in self.rounds[0] for way in ways)

    def against(self, others, way="run"):
        return judge.regrets(self.rounds, self.weights, way, others)

    def ratio(self, way, other):
        return judge.ratios(self.rounds, self.weights, way, other)

    def speed(self, way, at):
        return judge.quantile([judge.speeds(each, way)[at] for each in self.rounds], 0.5)

    def scatters(self):
        """{kind: how far its rates alone lie apart}"""
        return {kind: judge.scatter([each["alone"][at] for each in self.rounds]) for at, kind in enumerate(self.kinds)}

    def are_on_top(self):
        """Of each member: nobody is of a higher class."""
        top = max(CLASSES.index(member.level) for member in self.members)
        return [CLASSES.index(member.level) == top for member in self.members]

    def by_class(self):
        """(speed of the highest class, of the others) by way: geometric means of medians."""
        parts = [[at for at, is_on_top in enumerate(self.are_on_top()) if is_on_top == wanted] for wanted in (True, False)]
        return {way: tuple(geometric([self.speed(way, at) for at in part]) for part in parts) for way in self.rounds[0] if way != "alone"}


def geometric(values):
    product = 1
    for value in values:
        product *= value
    return product ** (1 / len(values))


def result(is_good, is_enough=True):
    return "-" if not is_enough else "ok" if is_good else "FAIL"


def scattering(mixes):
    by_kind = {}
    for mix in mixes:
        for kind, value in mix.scatters().items():
            by_kind.setdefault(kind, []).append(value)
    return sorted(kind for kind, values in by_kind.items() if judge.quantile(values, 0.5) > SCATTER)


# ---- rows: (figure, must reach, measured, result) ----

def regret_rows(name, mixes, is_judged):
    mixes = [mix for mix in mixes if mix.regret]
    if not mixes:
        return [(f"{name}: run against the best of slices", "", "not measured", "-")]
    middle = judge.middle([mix.regret for mix in mixes])
    sure = [mix for mix in mixes if judge.found(*mix.regret).low > NEED_SURE]
    is_enough = is_judged and len(mixes) >= NEED_MIXES
    return [(f"{name}, {len(mixes)} mixes: `run` against the best of native, open, visits (classes: of held 0, 0.5, 1): median of the loss",
             f"<= {percent(NEED_MEDIAN)}, 90 % limit <= {percent(NEED_LIMIT)}", limits(middle),
             result(middle.value <= NEED_MEDIAN and middle.high <= NEED_LIMIT, is_enough)),
            (f"{name}: mixes that surely lose more than {percent(NEED_SURE)}", f"<= {NEED_FEW}",
             f"{len(sure)}" + "".join(f"; {words_of(mix.members)}" for mix in sure), result(len(sure) <= NEED_FEW, is_enough))]


def owed_row(mixes, way="run"):
    """Tenants that surely have less than what they are owed. A tenant beneath a higher class is owed nothing."""
    judged = [(mix, kind, found) for mix in mixes if mix.has(way, "native") for kind, is_on_top, found in
              zip(mix.kinds, mix.are_on_top(), judge.owed(mix.rounds, mix.weights, way)) if is_on_top]
    listed = [f"{kind} in {words_of(mix.members)}: {limits(found, '{:.2f}'.format)}" for mix, kind, found in judged
              if found.high < judge.KEEPS]
    return (f"tenants that surely have less than {judge.KEEPS:g} of min(native, w/W) by `{way}`", "none",
            "; ".join([f"{len(listed)} of {len(judged)}", *listed]), result(not listed))


def beside_rows(mixes):
    """What is reported beside, and MPS."""
    rows = []
    for way in ("auto", "run"):
        every = [mix for mix in mixes if mix.has(way, "mps")]
        if every:
            ways = [[other for other in (*mix.others, "mps", "run", "space") if mix.has(other) and other != way] for mix in every]
            middle = judge.middle([mix.against(others, way) for mix, others in zip(every, ways)])
            rows.append((f"`{'--by auto' if way == 'auto' else 'run'}` against the best of all, MPS included, {len(every)} mixes: median",
                         "", limits(middle), "-"))
        else:
            rows.append((f"`{'--by auto' if way == 'auto' else 'run'}` against the best of all, MPS included", "", "not measured", "-"))
    every = [mix.ratio("space", "mps") for mix in mixes if mix.has("space", "mps")]
    middle = judge.middle(every) if every else None
    rows.append((f"`run --by space` of plain MPS, nothing asked, {len(every)} mixes: median", f">= {NEED_SPACE}",
                 limits(middle, "{:.3f}".format) if middle else "not measured",
                 result(middle.value >= NEED_SPACE, len(mixes) >= NEED_MIXES) if middle else "-"))
    return rows


def class_rows(mixes):
    """For each mix of classes: what the highest class and the others have by run, and at best of the parts held."""
    rows = []
    for mix in mixes:
        if not has_classes(mix.members) or not mix.has("run"):
            continue
        by_way = mix.by_class()
        held = [by_way[way] for way in HELD if way in by_way]
        high, low = by_way["run"]
        name, said = f"classes: {words_of(mix.members)}", f"high {high:.2f}, low {low:.2f}"
        if not held:
            rows.append((name, "", f"{said}; no parts held were measured", "-"))
            continue
        best, is_reachable = judge.frontier(held, high), max(each for each, _ in held) >= 1 / TARGET
        is_good = low >= NEED_LOW * best and (not is_reachable or high >= 1 / (TARGET * NEAR_TARGET))
        said += f" ({low / best:.2f} of {best:.2f})" + ("" if is_reachable else f"; {TARGET:g} is out of reach")
        rows.append((name, f"high >= {1 / (TARGET * NEAR_TARGET):.2f} where reachable, low >= {NEED_LOW:g} of the best part held", said,
                     result(is_good)))
    return rows


def rows_of(mixes):
    scatter = scattering(mixes)
    rows = regret_rows("all", mixes, True)
    rows.append((f"kinds that scatter by more than {percent(SCATTER)} alone", f"<= {SCATTERING_KINDS}", ", ".join(scatter) or "none",
                 result(len(scatter) <= SCATTERING_KINDS)))
    for name, keeps in (("without these kinds", lambda mix: not set(scatter) & set(mix.kinds)),
                        ("without classes", lambda mix: not has_classes(mix.members)),
                        ("kinds for tuning", lambda mix: mix.half == "tuning"),
                        ("kinds held out", lambda mix: mix.half == "held-out"),
                        ("both kinds", lambda mix: mix.half == "both")):
        rows += regret_rows(name, [mix for mix in mixes if keeps(mix)], False)
    return rows + [owed_row(mixes)] + beside_rows(mixes) + class_rows(mixes)


# ---- text ----

def markdown(titles, rows):
    return ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles), *["| " + " | ".join(row) + " |" for row in rows], ""]


def mix_row(mix, ways):
    def told(way):
        return " + ".join(f"{mix.speed(way, at):.2f}" for at in range(len(mix.kinds))) if mix.has(way) else ""
    return (words_of(mix.members), mix.half, mix.machine, *[told(way) for way in ways],
            limits(judge.found(*mix.regret)) if mix.regret else "")


def numbers_of(mix):
    ways = [way for way in mix.rounds[0] if way != "alone"]
    return {"mix": words_of(mix.members), "machine": mix.machine, "half": mix.half, "scatter_alone": mix.scatters(),
            "speeds": {way: [mix.speed(way, at) for at in range(len(mix.kinds))] for way in ways},
            "loss": judge.found(*mix.regret)._asdict() if mix.regret else None,
            "of_owed": [each._asdict() for each in judge.owed(mix.rounds, mix.weights, "run")] if mix.has("run", "native") else None}


def make(calls):
    """(lines of Markdown, numbers for JSON) of what calls of regret.py have written."""
    mixes = [Mix(call, told) for call in calls for told in call["mixes"] if not told["fault"]]
    faults = [(call, told) for call in calls for told in call["mixes"] if told["fault"]]
    machines = sorted({f"{call['machine']}: {call['card']}, driver {call['driver']}, loadline {call['version'].split()[-1]}" for call in calls})
    rows = rows_of(mixes) if mixes else []
    ways = [way for way in (*SLICED, *HELD, "run", "mps", "space", "auto") if any(mix.has(way) for mix in mixes)]
    lines = [f"{len(mixes)} of {len(mixes) + len(faults)} mixes that were drawn were measured. {'. '.join(machines)}. "
             "Speeds are of each program's own alone, medians; the loss has its 90 % limits.", "",
             *markdown(("figure", "must reach", "measured", "result"), rows),
             *markdown(("mix", "kinds", "machine", *ways, "loss of run"), [mix_row(mix, ways) for mix in mixes])]
    lines += [f"Not measured: {words_of([Member(**each) for each in told['members']])} ({call['machine']}): {told['fault']}"
              for call, told in faults]
    lines += [f"Not started ({call['machine']}): {', '.join(call['not_started'])}" for call in calls if call["not_started"]]
    numbers = {"machines": machines, "rows": [dict(zip(("figure", "must_reach", "measured", "result"), row)) for row in rows],
               "mixes": [numbers_of(mix) for mix in mixes]}
    return lines, numbers
