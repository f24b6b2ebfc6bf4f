"""probe-*: how processes share the card, by the probe's own words; slice, switch and preemption twice; the whole matrix."""
import json
import os
import time
import xml.etree.ElementTree as tree

from .lab import Missing, Trouble, reason

RUNS = 100
OVERLAP_PERCENT = 95
STABLE_PERCENT = 10
MATRIX_S = 480
CELLS = 126  # 3 unders, 3 numbers of connections, 2 grids, 2 priorities for 3 kinds of parties and 1 for per-thread
TWO_KERNELS = ("--parallel", "processes", "--grid", "tiny", "--priority", "equal", "--connections", "8", "--kernel", "1ms")
DEFAULT_MODE = 0


def probe(lab, name, *words, timeout=480):
    status, out, err = lab.run(name, lab.loadline("probe", "--json", *words), timeout=timeout)
    if status:
        raise Trouble(f"{name}: {reason(err)}")
    events = [json.loads(line) for line in out.splitlines()]
    lab.report.keep(name, [{key: value for key, value in event.items() if key != "kernels"} for event in events])
    return events


def of_kind(events, kind):
    return [event for event in events if event["event"] == kind]


def need_default_mode(lab):
    if lab.card.compute_mode() != DEFAULT_MODE:
        raise Missing("the card's compute mode is not default")


def check_word(lab, figure, cell, wanted):
    word = cell["word"] or f"not measured: {cell['not_measured']}"
    more = f", {cell['agreeing']} of {cell['runs']} runs" if cell["word"] else ""
    lab.report.check(figure, wanted, f"{word}{more}"[:90], word == wanted)


def report_two(lab, name, more=()):
    """One cell without MPS, one with it."""
    cells = {cell["under"]: cell for cell in of_kind(probe(lab, name, "--under", "default,mps", *TWO_KERNELS, *more), "cell")}
    check_word(lab, f"{name}: two processes, default", cells["default"], "time-sliced")
    if cells["mps"]["word"] is None:
        lab.report.skip(f"{name}: two processes, MPS", cells["mps"]["not_measured"][:90])
        return
    check_word(lab, f"{name}: two processes, MPS", cells["mps"], "concurrent")
    overlap = cells["mps"]["overlap_percent"] or {"median": None, "min": 0}
    lab.report.at_least(f"{name}: overlap under MPS", overlap["median"], OVERLAP_PERCENT, "%", 1,
                        f"; least {overlap['min']:.1f}")


def run_words(lab):
    need_default_mode(lab)
    report_two(lab, "probe-words")
    report_two(lab, "probe-words-one", ("--each", "1", "--runs", "20"))  # the words from one kernel each, too


def text(spread):
    if not spread:
        return "none"
    return f"{spread['median']:.1f} us, {spread['p5']:.1f} to {spread['p95']:.1f}, {spread['runs']} runs"


def compare(lab, figure, first, second, key):
    a, b = first[key], second[key]
    lab.report.info(figure, f"{text(a)}; again {text(b)}")
    if not a or not b:
        lab.report.fault(f"{figure}: stated", "nothing was measured")
        return
    change = 100 * (b["median"] / a["median"] - 1) if a["median"] else 0.0
    lab.report.near(f"{figure}: the second time", change, 0, STABLE_PERCENT, "%", 2)


def run_times(lab):
    need_default_mode(lab)
    runs = str(lab.times(RUNS, 5))
    both = [probe(lab, f"probe-times-{at}", "--experiment", "slice,preemption,idle", "--runs", runs) for at in (1, 2)]
    slices = [of_kind(events, "slice")[0] for events in both]
    arrivals = [of_kind(events, "preemption")[0] for events in both]
    idle = [of_kind(events, "idle")[0] for events in both]
    for events in both:
        for event in events:
            if event.get("not_measured"):
                raise Trouble(f"{event['event']}: {event['not_measured']}")
    compare(lab, "probe-times: time slice", *slices, "slice_us")
    compare(lab, "probe-times: switch between contexts", *slices, "switch_us")
    compare(lab, "probe-times: highest priority arrives, waits", *arrivals, "high_wait_us")
    lab.report.info("probe-times: equal priority arrives, waits", text(arrivals[0]["equal_wait_us"]))
    lab.report.info("probe-times: the running blocks had to go", text(arrivals[0]["blocks_left_us"]))
    change = 100 * (idle[0]["beside_us"]["median"] / idle[0]["alone_us"]["median"] - 1)
    lab.report.info("probe-times: beside an idle context", f"{change:+.2f} %, {idle[0]['memory_bytes'] or 0} bytes of memory")


def run_matrix(lab):
    need_default_mode(lab)
    picture = lab.log("probe-matrix.svg")
    begin = time.monotonic()
    events = probe(lab, "probe-matrix", "--runs", str(lab.times(RUNS, 5)), "--svg", picture, timeout=600)
    seconds = time.monotonic() - begin
    cells = of_kind(events, "cell")
    lab.report.at_most("probe-matrix: the whole matrix", seconds, MATRIX_S, "s", 0)
    measured = [cell for cell in cells if cell["word"]]
    lab.report.check("probe-matrix: cells with a word", f"{CELLS} of {CELLS}", f"{len(measured)} of {len(cells)}",
                     len(cells) == CELLS and len(measured) == CELLS)
    unsure = [cell for cell in measured if cell["agreeing"] < cell["runs"]]
    lab.report.info("probe-matrix: cells whose runs disagree", str(len(unsure)))
    words = {}
    for cell in measured:
        words.setdefault((cell["parallel"], cell["under"], cell["grid"]), []).append(cell["word"])
    for key, found in sorted(words.items()):
        counts = ", ".join(f"{word} {found.count(word)}" for word in sorted(set(found)))
        lab.report.note("probe-matrix: " + ", ".join(key), counts)
    for event in of_kind(events, "statement"):
        print(f"{event['about']}: {event['text']}", flush=True)
    steps = {cell["clock_step_ns"] for cell in measured}
    lab.report.info("probe-matrix: smallest step of the card's clock", f"{min(steps)} ns" if steps else "none")
    tree.parse(picture)
    lab.report.check("probe-matrix: the picture", "well-formed", f"{os.path.getsize(picture)} bytes", True, is_figure=False)
    lab.report.check("probe-matrix: compute mode afterwards", "default", str(lab.card.compute_mode()),
                     lab.card.compute_mode() == DEFAULT_MODE)


def run_first(lab):
    first = of_kind(probe(lab, "probe-first", "--experiment", "first"), "first")[0]
    is_right = first["written"] == 256 and first["in_order"] and first["enough_written"] == 512
    lab.report.check("probe-first: 2 blocks of 128 threads write", "256 of 512, the first", f"{first['written']}; with "
                     f"{first['enough_blocks']} blocks {first['enough_written']}", is_right)
