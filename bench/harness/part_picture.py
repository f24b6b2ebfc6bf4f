"""picture: a minute of a card for the READMEs' first picture, which tools/make_run_picture draws: a hold at 50 %, a training that
comes and goes, and two trainings of weights 1 and 3."""
import json
import time

from . import figures, shares
from .card import UtilWatch
from .claims import StatusWatch
from .frameworks import command
from .governed import Program, need_run
from .hold import Hold
from .lab import Missing, Trouble

SECONDS = 60
TARGET = 50
FIRST = (8, 19)  # when the first training works
BOTH = (31, 51)  # when both work
WEIGHTS = (1, 3)
MEASURED_S = 8  # loadlined measures for so long how two programs share; weights are judged from then on
RESUME_S = 5
STEADY_S = 2
STEPS = 40  # steps with stamps
INSET_MS = 20  # what is kept of the card's clock on both sides of the first step
YIELD_MS = 10
PART_OFF = 5  # points
LATE_S = 0.3
WINDOW_S = 0.2
LOOK = 49  # when the whole status is kept, to see how the two share
MS, S = 1e6, 1e9
TRAINING = ("torch", "loop_train.py", "--width", 1024, "--batch", 128, "--stamps", STEPS)
KERNELS = (None, "loop_spin.py", "--kernel-us", 5000, "--stamps", STEPS)


class OftenStatus(StatusWatch):
    every_s = 0.4


class OftenUtil(UtilWatch):
    every_s = 0.5


def find_training(lab):
    """(what it is, its command): a training where PyTorch is, else kernels that do not end on a training's account."""
    try:
        return "training", command(lab, *TRAINING)
    except Missing:
        return "kernels", command(lab, *KERNELS)


class Recording:
    """The run, and what was read of it. Times are seconds of the axis, unless they say otherwise."""

    def __init__(self, lab):
        self.lab = lab
        self.length = lab.quick
        self.work, words = find_training(lab)
        self.programs = [Program(lab, f"picture-weight-{weight}", words, ["--weight", weight]) for weight in WEIGHTS]
        for program in self.programs:
            program.wait_ready()
        self.hold = Hold(lab, "picture-hold", "--target", f"{TARGET}%", "--resume-after", f"{1000 * RESUME_S / self.length:.0f}ms",
                         has_kernel_log=True)
        self.hold.wait_holding()
        time.sleep(STEADY_S)

    def at(self, second):
        """The wall clock at a second of the axis."""
        return self.zero_s + second / self.length

    def sleep_until(self, second):
        time.sleep(max(0.0, self.at(second) - time.time()))

    def record(self):
        self.zero_s = time.time()
        with OftenUtil(self.lab.card) as self.util, OftenStatus(self.lab, "picture-status") as self.status:
            self.sleep_until(FIRST[0])
            came = self.hold.mark()
            marks = [(self.programs[0], self.programs[0].go((FIRST[1] - FIRST[0]) / self.length))]
            self.sleep_until(BOTH[0])
            marks += [(program, program.go((BOTH[1] - BOTH[0]) / self.length)) for program in self.programs]
            self.sleep_until(LOOK)
            self.lab.run("picture-long", self.lab.loadline("status", "--long"))
            self.sleep_until(SECONDS)
        for program, mark in marks:
            program.wait_done(mark, 30)
        if not self.hold.wait_event("yield", 0.1, came):
            raise Trouble("the hold did not yield")
        for program in self.programs:
            program.end()
        self.hold.end()

    # ---- what it found ----

    def seconds_of(self, wall_s):
        return round(wall_s - self.zero_s, 3)

    def within(self, rows):
        return [row for row in rows if 0 <= row[0] <= SECONDS / self.length]

    def batches_ns(self):
        """[start, end] of the first training's first steps, on the card's clock."""
        return next(line for _, line in self.programs[0].lines if line["event"] == "stamps")["batches_ns"]

    def hold_rows(self):
        """[time, seconds of the hold's kernels up to then], by its log of kernels. The training queued its first step right after it
        told its first count: that is where the card's clock and the wall clock meet."""
        zero_ns = self.batches_ns()[0][0] - (self.programs[0].counts()[0][0] - self.zero_s) * S
        kernels, rows, sum_ns, at = self.hold.kernels(), [], 0, 0
        for window in range(round(SECONDS / self.length / WINDOW_S) + 1):
            while at < len(kernels.ends) and kernels.ends[at] <= zero_ns + window * WINDOW_S * S:
                sum_ns += kernels.ends[at] - kernels.starts[at] if kernels.starts[at] >= zero_ns else 0
                at += 1
            rows.append([round(window * WINDOW_S, 3), round(sum_ns / S, 4)])
        return rows

    def event_rows(self):
        zero_s = self.hold.wall_zero_s()
        return self.within([[self.seconds_of(zero_s + line["time_s"]), name] for name in ("yield", "resume")
                            for line in self.hold.events(name)])

    def program_rows(self, program):
        counts = [[self.seconds_of(time_s), count] for time_s, count in program.counts()]
        accounts = [[self.seconds_of(wall_s), round(gpu_s, 4)] for wall_s, gpu_s in self.status.points(program.name)]
        return {"gpu_seconds": self.within(accounts), "steps": self.within(counts)}

    def arrival(self):
        """The first training's first steps and the hold's kernels around them, in ms after the first step's start, by the stamps
        of both on the card's clock."""
        steps, kernels = self.batches_ns(), self.hold.kernels()
        first_ns, last_ns = steps[0][0], steps[-1][1]
        judged = figures.judge_arrival(kernels, figures.Burst(first_ns, last_ns))
        if not judged.is_counted or judged.is_missed:
            raise Trouble("the hold was not holding when the training came" if not judged.is_counted else "the hold did not stop")

        def near(rows):
            return [[round((start - first_ns) / MS, 4), round((end - first_ns) / MS, 4)] for start, end in rows
                    if end >= first_ns - INSET_MS * MS and start <= first_ns + INSET_MS * MS]

        return {"latency_ms": round(judged.latency_ns / MS, 4), "hold_ms": near(zip(kernels.starts, kernels.ends)), "steps_ms": near(steps)}

    def rows(self):
        return {"made": self.lab.report.facts, "work": self.work, "seconds": SECONDS / self.length, "target_percent": TARGET,
                "weights": WEIGHTS, "first": [second / self.length for second in FIRST], "both": [second / self.length for second in BOTH],
                "arrival": self.arrival(), "events": self.event_rows(), "hold": self.hold_rows(),
                "util": self.within([[self.seconds_of(time_s), percent] for time_s, percent in self.util.values]),
                "programs": [self.program_rows(program) for program in self.programs]}


def text_of(rows):
    """JSON with a line for each key, so that a file of it can be looked at."""
    lines = [f" {json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in rows.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def heavier_percent(programs, from_s, until_s):
    """The part of the program of the larger weight in both programs' steps."""
    done = [shares.rate(program["steps"], from_s, until_s) for program in programs]
    return None if None in done or not sum(done) else 100 * done[1] / sum(done)


def charged_late_s(programs, until_s):
    """What the accounts grew by once the work had ended."""
    points = [program["gpu_seconds"] for program in programs]
    return sum(point[-1][1] - shares.value_at(point, until_s) for point in points) if all(points) else None


def report(lab, rows):
    """None of it is for the store: other parts measure the same more often."""
    ms, until_s = rows["arrival"]["latency_ms"], rows["both"][1]
    lab.report.check("picture: the hold's last kernel after the training's first", f"<= {YIELD_MS} ms", f"{ms:.3f} ms", ms <= YIELD_MS, is_figure=False)
    names = [name for _, name in sorted(rows["events"])]
    lab.report.check("picture: the hold", "yields and comes back, twice", ", ".join(names), names == ["yield", "resume"] * 2, is_figure=False)
    part, wanted = heavier_percent(rows["programs"], until_s - (BOTH[1] - BOTH[0] - MEASURED_S) / lab.quick, until_s), 100 * WEIGHTS[1] / sum(WEIGHTS)
    told = "no counts" if part is None else f"{part:.1f} %"
    lab.report.at_most("picture: GPU time charged after the end of both trainings", charged_late_s(rows["programs"], until_s + LATE_S), LATE_S, "s",
                       is_figure=False)
    if lab.quick == 1:
        lab.report.check("picture: part of the training of weight 3, of both", f"{wanted:g} ± {PART_OFF} points", told,
                         part is not None and abs(part - wanted) <= PART_OFF, is_figure=False)
    else:
        lab.report.note("picture: part of the training of weight 3, of both", f"{told}; a short run does not reach it")


def run(lab):
    need_run(lab)
    recording = Recording(lab)
    recording.record()
    rows = recording.rows()
    path = lab.log("picture.json")
    with open(path, "w", encoding="utf-8") as out:
        out.write(text_of(rows))
    report(lab, rows)
    lab.report.note("picture: recording", path)
