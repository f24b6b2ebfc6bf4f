"""trace: a data-parallel program of four processes on one card, and what tracing costs a loop of small products.

That every kernel is there is checked twice: by marks, of which each process launches a known number, and by PyTorch's own
profiler, which counts what lies between them in a run of its own (two profilers do not work in one process).

The cost is that of two processes in short turns on one processor, several such pairs (in_turn.py). What of it is
CUPTI's own is measured alike, with a library in place of ours that asks for the least (cupti_floor.c): records of kernels
that nobody reads."""
import csv
import glob
import json
import os

from . import figures, in_turn, paired
from .frameworks import command
from .governed import Program
from .lab import Missing, Trouble, reason

RANKS, STEPS = 4, 30
COST_PERCENT = 5
ABOVE_FLOOR_PERCENT = 2
WIDTH_PERCENT = 3  # an interval of the cost that is wider, and holds the bar, says nothing
ROUND_S = 0.15
WITHIN_S = 200
MARK = "spin_kernel"
WAYS = ("cupti", "events")
# Pairs of processes, rounds of each. Rounds of a host that others share scatter by 4 %: those of bf16 by CUPTI, which is
# the figure, are enough to know it to 1.5 % (selftest.py).
COUNTS = {("cupti", "bfloat16"): (5, 60), ("cupti", "float32"): (2, 30),
          ("events", "bfloat16"): (2, 30), ("events", "float32"): (2, 20)}
LEAST_COUNTS = {"bfloat16": (4, 40), "float32": (2, 30)}
FLOOR_EVENTS, FLOOR_BLOCKS, FLOOR_ROUNDS = 256, 200, 20


def read_table(path):
    """Rows of a process's table; numbers as numbers, in ns."""
    with open(path, encoding="utf-8", newline="") as text:
        return [{"kind": row["kind"], "name": row["name"], "start": int(row["start_ns"]),
                 "end": int(row["start_ns"]) + int(row["duration_ns"]), "stream": (row["context"], row["stream"]),
                 "correlation": int(row["correlation_id"] or 0)} for row in csv.DictReader(text)]


def kernels(rows):
    return [row for row in rows if row["kind"] == "kernel"]


def marks(rows):
    return [row for row in kernels(rows) if MARK in row["name"]]


def between_marks(rows):
    """Kernels from the first mark to the last one, both included."""
    ends = marks(rows)
    if not ends:
        return []
    first, last = ends[0]["start"], ends[-1]["start"]
    return [row for row in kernels(rows) if first <= row["start"] <= last]


def overlaps_ns(rows):
    """By how much kernels of a stream begin before the one that was launched before them has ended."""
    found, last = [], {}
    for row in sorted(kernels(rows), key=lambda row: row["correlation"]):
        before = last.get(row["stream"])
        if before is not None and row["start"] < before["end"]:
            found.append(before["end"] - row["start"])
        last[row["stream"]] = row
    return found


def ranks_of(text):
    """{pid: what the process said}."""
    found = {}
    for line in text.splitlines():
        if line.startswith('{"event": "rank"'):
            said = json.loads(line)
            found[said["pid"]] = said
    return found


def profiled(lab, words):
    """{rank: kernels between the marks} by PyTorch's profiler; empty where that does not work here."""
    status, out, _ = lab.run("trace-profiled", [*words, "--profile"], timeout=WITHIN_S)
    return {} if status else {said["rank"]: said["kernels"] for said in ranks_of(out).values()}


def traced(lab, way, words):
    """(what the processes said, {pid: rows}, the picture, the summary's lines) of a run under trace."""
    folder = lab.log(f"trace-{way}")
    os.makedirs(folder, exist_ok=True)
    for path in glob.glob(os.path.join(folder, "*")):
        os.unlink(path)
    status, out, err = lab.run(f"trace-{way}", lab.loadline(
        "trace", "--by", way, "--json", "-o", os.path.join(folder, "table_%p.csv"), "-o",
        os.path.join(folder, "all.json"), "--", *words), timeout=WITHIN_S)
    if status:
        raise Missing(f"trace --by {way}: {reason(err, 80)}") if status == 125 else Trouble(f"trace: {reason(err)}")
    tables = {int(path.rsplit("_", 1)[1][:-4]): read_table(path)
              for path in glob.glob(os.path.join(folder, "table_*.csv"))}
    with open(os.path.join(folder, "all.json"), encoding="utf-8") as text:
        picture = json.load(text)["traceEvents"]
    lines = [json.loads(line) for line in out.splitlines() if line.startswith('{"event":"')]
    return ranks_of(out), tables, picture, lines


def report_kernels(lab, way, said, tables, by_profiler):
    tables = {pid: rows for pid, rows in tables.items() if pid in said}
    known = sum(one["marks"] for one in said.values())
    found = sum(len(marks(rows)) for rows in tables.values())
    lab.report.check(f"trace by {way}: known kernels of {RANKS} processes", f"{known}", f"{found}",
                     found == known and len(tables) == RANKS and all(
                         len(marks(tables[pid])) == one["marks"] for pid, one in said.items()))
    wanted = {one["rank"]: by_profiler.get(one["rank"]) for one in said.values()}
    counted = {said[pid]["rank"]: len(between_marks(rows)) for pid, rows in tables.items()}
    lab.report.keep(f"trace by {way}: kernels", {"wanted": wanted, "found": counted})
    figure = f"trace by {way}: kernels between the marks"
    if not by_profiler:
        lab.report.skip(figure, "PyTorch's profiler does not count here")
    else:
        lab.report.check(figure, f"{sum(wanted.values())}", f"{sum(counted.values())}", counted == wanted)


def report_picture(lab, way, tables, picture):
    spans = [event for event in picture if event["ph"] == "X"]
    in_tables = sum(row["kind"] not in ("allocation", "free") for rows in tables.values() for row in rows)
    lab.report.check(f"trace by {way}: spans in the one picture", f"{in_tables}", f"{len(spans)}", len(spans) == in_tables)
    overlaps = [overlap for rows in tables.values() for overlap in overlaps_ns(rows)]
    lab.report.check(f"trace by {way}: kernels out of their stream's order", "0",
                     f"{len(overlaps)}; largest overlap {max(overlaps, default=0) / 1000:.1f} us", not overlaps)


def report_summary(lab, way, lines):
    for line in lines:
        if line["event"] == "card":
            lab.report.info(f"trace by {way}: busy, idle mostly for",
                            f"{line['busy_percent']:.1f} %, {line['main_idle_cause']}; overlap {line['overlap_seconds']:.2f} s")
    dropped = sum(line.get("dropped_events", 0) for line in lines if line["event"] == "process")
    lab.report.at_most(f"trace by {way}: events dropped", dropped, 0, "events", 0)


def report_program(lab):
    words = command(lab, "torch", "train_parallel.py", "--ranks", RANKS, "--steps", lab.times(STEPS, 5))
    by_profiler = profiled(lab, words)
    for way in WAYS:
        try:
            said, tables, picture, lines = traced(lab, way, words)
        except Missing as why:
            lab.report.skip(f"trace by {way}: {RANKS} processes", str(why))
            continue
        report_kernels(lab, way, said, tables, by_profiler)
        report_picture(lab, way, tables, picture)
        report_summary(lab, way, lines)


def cost_pairs(lab, name, words, way, rounds, env=None):
    under = lab.loadline("trace", "--by", way, "--max-events", "8000000", "--", *words)
    seconds = lab.seconds(ROUND_S, ROUND_S)
    return in_turn.measure(Program(lab, f"{name}-native", words), Program(lab, f"{name}-trace", under, env=env),
                           rounds, lambda program: program.rate_for(seconds))


def need_way(lab, way):
    status, _, err = lab.run(f"try-trace-{way}", lab.loadline("trace", "--by", way, "--", *command(
        lab, "torch", "loop_matmul.py", "--size", 512, "--seconds", 0.1)), timeout=WITHIN_S)
    if status == 125:
        raise Missing(reason(err, 80))


def cost_percent(native, under):
    return 100 - 100 * under / native


def added_us(native, under):
    return 1e6 / under - 1e6 / native


def floor_us(lab):
    """What two timing events around a launch take of the launching thread, as many in turn as a trace uses."""
    program = Program(lab, "trace-floor", [lab.program("bench/c/cost"), "--mode", "events", "--events", str(FLOOR_EVENTS),
                                           "--cpu", str(in_turn.last_cpu())])
    program.wait_ready()
    told = [program.ask(FLOOR_BLOCKS, "round", WITHIN_S) for _ in range(lab.times(FLOOR_ROUNDS, 3))]
    program.end()
    lab.report.keep("trace: two timing events around a launch", told)
    return figures.percentile([each["median_ns"] for each in told], 50) / 1000


def report_floor(lab):
    try:
        floor = floor_us(lab)
    except Missing as why:
        lab.report.skip("trace by events: floor, two timing events around a launch", str(why))
        return None
    lab.report.info("trace by events: floor, two timing events around a launch", f"{floor:.2f} us")
    return floor


def report_events_cost(lab, figure, runs, floor):
    """It has no bar: what it can reach is what the two events take, which is said beside it."""
    value, low, high = paired.interval(runs, cost_percent)
    native = in_turn.native_middle(runs)
    added, _, _ = paired.interval(runs, added_us)
    least = "" if floor is None else f"; floor {floor:.2f} us, {100 * floor / (floor + 1e6 / native):.1f} %"
    lab.report.keep(figure, {"value": value, "interval": [low, high], "added_us": added, "floor_us": floor, "all": runs})
    lab.report.info(figure, f"{value:.2f} % ({low:.2f} to {high:.2f}) of {native:.0f}/s, {added:.2f} us{least}")


def report_cupti_cost(lab, figure, runs, least):
    """least: runs with the least that CUPTI can do; []: not known. Where CUPTI alone costs more than a trace may, a trace
    may cost little more than that."""
    bar, more = COST_PERCENT, ""
    if least:
        value, low, high = paired.interval(least, cost_percent)
        bar = max(bar, round(value, 1) + ABOVE_FLOOR_PERCENT)
        more = f"; CUPTI alone {value:.2f} % ({low:.2f} to {high:.2f})"
        lab.report.keep(f"{figure}: CUPTI alone", {"value": value, "interval": [low, high], "all": least})
    added, _, _ = paired.interval(runs, added_us)
    in_turn.report_between(lab, figure, runs, cost_percent, bar, WIDTH_PERCENT, "%", True,
                           f" of {in_turn.native_middle(runs):.0f}/s, {added:.2f} us{more}")


def least_runs(lab, words, kind):
    """The same loop with the least that CUPTI can do; [] where the library for it was not built."""
    try:
        library = lab.program("bench/c/libcupti_floor.so")
    except Missing:
        return []
    pairs, rounds = LEAST_COUNTS[kind]
    env = {"LOADLINE_TRACE_LIBRARY": library}
    return [cost_pairs(lab, f"trace-least-{kind}-{at}", words, "cupti", lab.times(rounds, 2), env)
            for at in range(lab.times(pairs, 2))]


def report_cost(lab, way, kind, floor):
    pairs, rounds = COUNTS[way, kind]
    words = command(lab, "torch", "loop_matmul.py", "--size", 512, "--type", kind, "--cpu", in_turn.last_cpu())
    runs = [cost_pairs(lab, f"trace-cost-{way}-{kind}-{at}", words, way, lab.times(rounds, 2))
            for at in range(lab.times(pairs, 2))]
    figure = f"trace by {way}: cost, loop of {kind} 512³ products"
    if way == "events":
        report_events_cost(lab, figure, runs, floor)
    else:
        report_cupti_cost(lab, figure, runs, least_runs(lab, words, kind))


def run(lab):
    status, _, err = lab.run("try-trace", lab.loadline("trace", "--", "true"), timeout=60)
    if status:
        raise Missing(f"loadline trace: {reason(err, 80)}")
    report_program(lab)
    floor = report_floor(lab)
    for way in WAYS:
        try:
            need_way(lab, way)
            for _, kind in [key for key in COUNTS if key[0] == way]:
                report_cost(lab, way, kind, floor)
        except Missing as why:
            lab.report.skip(f"trace by {way}: cost", str(why))
