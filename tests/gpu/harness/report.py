"""The rows 'figure | must reach | measured | result', and all numbers behind them."""
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

    def row(self, figure, need, measured, result):
        self.rows.append({"figure": figure, "must_reach": need, "measured": measured, "result": result})
        self.say(f"{figure:<52} | {need:<18} | {measured:<44} | {result}")

    def keep(self, name, value):
        """A number, or a set of them, for --json."""
        self.numbers[name] = value

    def check(self, figure, need, measured, is_ok):
        self.row(figure, need, measured, OK if is_ok else FAILED)

    def near(self, figure, value, target, tolerance, unit, digits=2, more=""):
        is_ok = value is not None and abs(value - target) <= tolerance + 1e-9
        self.check(figure, f"{number(target, 0) if target == int(target) else target} ± {tolerance:g} {unit}",
                   f"{number(value, digits)} {unit}{more}", is_ok)

    def at_most(self, figure, value, limit, unit, digits=2, more=""):
        is_ok = value is not None and value <= limit + 1e-9
        self.check(figure, f"<= {limit:g} {unit}", f"{number(value, digits)} {unit}{more}", is_ok)

    def at_least(self, figure, value, limit, unit, digits=2, more=""):
        is_ok = value is not None and value >= limit - 1e-9
        self.check(figure, f">= {limit:g} {unit}", f"{number(value, digits)} {unit}{more}", is_ok)

    def info(self, figure, measured):
        self.row(figure, "", measured, INFO)

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
