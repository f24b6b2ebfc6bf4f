"""The rows 'figure | must reach | measured | result', and all numbers behind them.

store.py keeps rows under their part and their figure, so a figure's text is the same in each run: no measured value, no
process number, no path stands in it."""
import contextlib
import json

OK, FAILED, SKIPPED, INFO = "ok", "FAIL", "skip", "-"


def number(value, digits=2):
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    return str(value)


class Report:
    def __init__(self, say=print):
        self.say = say
        self.rows = []
        self.numbers = {}
        self.facts = {}
        self.part = ""  # whose rows come now
        self.group_name = None

    def row(self, figure, need, measured, result, is_figure=True):
        """is_figure: store.py keeps the row. False: it is of interest in this run alone."""
        self.rows.append({"figure": figure, "must_reach": need, "measured": measured, "result": result, "part": self.part,
                          "group": self.group_name, "is_figure": is_figure})
        self.say(f"{figure:<52} | {need:<18} | {measured:<44} | {result}")

    @contextlib.contextmanager
    def group(self, name):
        """store.py keeps the rows that come in this block as one row of that name, which says how many of them hold."""
        self.group_name = name
        try:
            yield
        finally:
            self.group_name = None

    def keep(self, name, value):
        """A number, or a set of them, for --json."""
        self.numbers[name] = value

    def check(self, figure, need, measured, is_ok, is_figure=True):
        self.row(figure, need, measured, OK if is_ok else FAILED, is_figure)

    def near(self, figure, value, target, tolerance, unit, digits=2, more=""):
        is_ok = value is not None and abs(value - target) <= tolerance + 1e-9
        self.check(figure, f"{number(target, 0) if target == int(target) else target} ± {tolerance:g} {unit}",
                   f"{number(value, digits)} {unit}{more}", is_ok)

    def at_most(self, figure, value, limit, unit, digits=2, more="", is_figure=True):
        is_ok = value is not None and value <= limit + 1e-9
        self.check(figure, f"<= {limit:g} {unit}", f"{number(value, digits)} {unit}{more}", is_ok, is_figure)

    def at_least(self, figure, value, limit, unit, digits=2, more=""):
        is_ok = value is not None and value >= limit - 1e-9
        self.check(figure, f">= {limit:g} {unit}", f"{number(value, digits)} {unit}{more}", is_ok)

    def info(self, figure, measured):
        self.row(figure, "", measured, INFO)

    def note(self, figure, measured):
        """As info, for this run alone."""
        self.row(figure, "", measured, INFO, is_figure=False)

    def fault(self, figure, why):
        """A figure could not be measured; what the store has of it stays."""
        self.row(figure, "", why, FAILED, is_figure=False)

    def skip(self, figure, why):
        self.row(figure, "", why, SKIPPED)

    def count(self, result):
        return sum(row["result"] == result for row in self.rows)

    def exit_code(self):
        if self.count(FAILED):
            return 1
        return 0 if self.count(OK) else 77

    def table(self):
        titles = {"figure": "figure", "must_reach": "must reach", "measured": "measured", "result": "result"}
        widths = {key: max(len(row[key]) for row in [titles] + self.rows) for key in titles}
        lines = [" | ".join(row[key].ljust(widths[key]) for key in titles).rstrip() for row in [titles] + self.rows]
        return "\n".join([lines[0], "-|-".join("-" * width for width in widths.values())] + lines[1:])

    def totals(self):
        return f"{self.count(OK)} passed, {self.count(FAILED)} failed, {self.count(SKIPPED)} skipped"

    def write(self, path):
        with open(path, "w", encoding="utf-8") as out:
            json.dump({"facts": self.facts, "rows": self.rows, "numbers": self.numbers}, out, indent=1)
            out.write("\n")
