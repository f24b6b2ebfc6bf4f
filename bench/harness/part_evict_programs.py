"""evict-training, evict-frameworks, evict-rounding, evict-soak, evict-attributes: programs of the usual frameworks leave the card
while they work, and what they compute has the bits that it has without loadline."""
import random
import threading
import time

from . import claims, evicting, figures
from .evicting import EVICTABLE, GIB, MIB, Evictee, move
from .frameworks import command
from .governed import Program, need_run, wrapped
from .lab import Missing, Trouble
from .part_run_programs import torch_with

FRAMEWORKS = ("torch", "jax", "cupy")
ON_DEMAND = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


# ---- evict-training ----

TRAINING_GIB, STEPS, EVICT_AT = 16, 60, (10, 25, 40)
OUT_S, BACK_S, MEASURED_GIB = 0.36, 0.42, 16
ASYNC_GIB, LEAVES = 4, 0.95
KEPT_PART = 12 / 16  # parameters and moments; the gradients are freed in each step


def evict_at(lab, program, event_of, places, within_s=60):
    """[(out, back)]: the program leaves and returns when it has come so far."""
    found, mark = [], program.mark()
    for place in places:
        if not program.wait_for(lambda line, place=place: event_of(line) >= place, within_s, mark):
            program.fail(f"does not come to step {place}")
        found.append((move(lab, "evict", program.name), move(lab, "resume", program.name)))
    return found


def step_of(line):
    return line["step"] if line["event"] == "step" else -1


def report_training_way(lab, figure, moves, limit_s):
    """Of the size that is wanted: a training's is what its allocator makes of it."""
    seconds = [each.seconds * MEASURED_GIB * GIB / each.bytes for each in moves]
    lab.report.keep(figure, [each._asdict() for each in moves])
    lab.report.at_most(figure, figures.percentile(seconds, 50), limit_s, "s", 3,
                       f" ({', '.join(f'{each:.3f}' for each in seconds)}; it has {moves[-1].bytes / GIB:.1f} GiB)")


def report_same(lab, figure, natives, evicted, more=""):
    """natives: the sums of two runs without loadline. If those differ, the program itself is not the same in each run."""
    if len(set(natives)) > 1:
        lab.report.info(figure, f"the program alone has another sum in each run{more}")
    else:
        is_same = evicted == natives[0]
        lab.report.check(figure, "that of the run alone", f"{'the same' if is_same else 'another'}{more}", is_same)


def train(lab, name, gib, env=None):
    """What two runs without loadline say, what an evictable one says, its moves, and bytes of the host that were ready."""
    words, told = command(lab, "torch", "train_same.py"), []
    native = Program(lab, f"{name}-native", words, None, env)
    program = Program(lab, name, words, EVICTABLE, env)
    native.wait_ready()
    for _ in range(2):
        native.ask(f"make {gib}", "made", 60)
        told.append(native.ask(f"train {STEPS}", "trained", 60))
    native.end()
    size = program.wait_ready().ask(f"make {gib}", "made", 60)["card_bytes"]
    ready = evicting.wait_ready_bytes(lab, program.name, size)
    mark = program.mark()
    program.tell(f"train {STEPS}")
    moves = evict_at(lab, program, step_of, EVICT_AT)
    ours = program.wait_done(mark, 60, "trained")
    program.end()
    return told, ours, moves, ready


def report_training(lab, figure, told, ours, moves, more):
    moved_s = sum(out.seconds + back.seconds for out, back in moves)
    more = f"; {ours['seconds']:.2f} s, {moved_s:.2f} of them moves; {told[-1]['seconds']:.2f} s alone{more}"
    report_same(lab, f"{figure}: sum of all parameters after {len(EVICT_AT)} evictions", [one["sum"] for one in told],
                ours["sum"], more)


@evicting.limited(160)
def run_training(lab):
    need_run(lab)
    figure = "evict: a PyTorch training that works"
    told, ours, moves, ready = train(lab, "evict-train", TRAINING_GIB)
    report_training(lab, figure, told, ours, moves, f"; {ready / GIB:.1f} GiB of the host ready before")
    report_training_way(lab, f"{figure}: out, for {MEASURED_GIB} GiB", [out for out, _ in moves], OUT_S)
    report_training_way(lab, f"{figure}: back, for {MEASURED_GIB} GiB", [back for _, back in moves], BACK_S)
    figure = "evict: a PyTorch training by cudaMallocAsync"
    told, ours, moves, _ = train(lab, "evict-train-async", ASYNC_GIB, torch_with("backend:cudaMallocAsync"))
    report_training(lab, figure, told, ours, moves, "")
    lab.report.at_least(f"{figure}: what leaves of its parameters and moments", moves[-1][0].bytes / (KEPT_PART * ASYNC_GIB * GIB), LEAVES,
                        "", 2, f" ({moves[-1][0].bytes / GIB:.1f} GiB)")


# ---- evict-frameworks ----

# steps; those after which it is evicted; its environment
EXACT = {"jax": (400, (100, 200, 300), ON_DEMAND), "cupy": (40, (10, 20, 30), {}),
         "cupy, MemoryAsyncPool": (40, (10, 20, 30), {"EXACT_CUPY_POOL": "async"})}


def start_exact(lab, name):
    """(the program natively, and evictable)"""
    framework, label, env = name.split(",")[0], name.replace(", ", "-"), EXACT[name][2]
    words = command(lab, framework, f"exact_{framework}.py")
    return (Program(lab, f"evict-exact-{label}-native", words, None, env),
            Program(lab, f"evict-exact-{label}", words, EVICTABLE, env))


@evicting.limited(100)
def run_frameworks(lab):
    need_run(lab)
    started = {}
    for framework in EXACT:
        try:
            started[framework] = start_exact(lab, framework)
        except Missing as why:
            lab.report.skip(f"evict: {framework}: sum of its results", str(why))
    for framework, (native, program) in started.items():
        steps, places, _ = EXACT[framework]
        native.wait_ready()
        natives = [native.ask(str(steps), "finished", 60)["sum"] for _ in range(2)]
        native.end()
        program.wait_ready()
        mark = program.mark()
        program.tell(str(steps))
        moves = evict_at(lab, program, step_of, places)
        ours = program.wait_done(mark, 60, "finished")
        program.end()
        report_same(lab, f"evict: {framework}: sum of its results after {len(places)} evictions", natives, ours["sum"],
                    f"; {moves[-1][0].bytes / GIB:.1f} GiB, out {moves[-1][0].seconds:.2f} s, back {moves[-1][1].seconds:.2f} s")


# ---- evict-rounding ----

ARRAYS_GIB, ROUNDING_PERCENT = 6, 2


def used_by(lab, program):
    """MiB of the card that it takes when it makes its arrays, and their bytes."""
    before = lab.card.settled_mib()
    told = program.ask("go", "made", 60)
    used = lab.card.settled_mib() - before
    program.end()
    return used, told["bytes"] / MIB


@evicting.limited(100)
def run_rounding(lab):
    need_run(lab)
    modes, programs = {"native": None, "evictable": EVICTABLE}, {}
    for framework in FRAMEWORKS:
        figure = f"evict: card memory of a {framework} program that is evictable"
        try:
            words = command(lab, framework, "arrays.py", "--framework", framework, "--gib", ARRAYS_GIB)
        except Missing as why:
            lab.report.skip(figure, str(why))
            continue
        programs[figure] = [Program(lab, f"evict-arrays-{framework}-{mode}", words, limits, ON_DEMAND)
                            for mode, limits in modes.items()]
    for figure, pair in programs.items():
        (native, arrays), (ours, _) = (used_by(lab, program.wait_ready()) for program in pair)
        lab.report.at_most(figure, 100 * ours / native - 100, ROUNDING_PERCENT, "% more", 2,
                           f" ({ours:.0f} MiB; native {native:.0f}, of which arrays {arrays:.0f})")


# ---- evict-soak ----

EVICTIONS, SOAK_S = 200, 75
SOAK_GIB = {"evict-soak-works": (2, ()), "evict-soak-pauses": (1, ("--idle", "20ms")), "evict-soak-small": (0.1, ())}


class Soak:
    """Programs that leave and return at random, each by a thread of its own, until there were enough evictions."""

    def __init__(self, lab, names, evictions, seconds):
        self.lab, self.left, self.end_s = lab, evictions, time.monotonic() + seconds
        self.lock, self.moves, self.refused = threading.Lock(), [], []
        self.threads = [threading.Thread(target=self.move_often, args=(name, random.Random(at)), daemon=True)
                        for at, name in enumerate(names)]

    def run(self):
        for thread in self.threads:
            thread.start()
        for thread in self.threads:
            thread.join()
        return self

    def take_one(self):
        with self.lock:
            self.left -= 1
            return self.left >= 0 and time.monotonic() < self.end_s

    def move_often(self, name, dice):
        while self.take_one():
            time.sleep(dice.uniform(0.0, 0.15))
            try:
                pair = [move(self.lab, "evict", name)]
                time.sleep(dice.uniform(0.0, 0.1))
                pair.append(move(self.lab, "resume", name))
            except Trouble as why:
                with self.lock:
                    self.left += 1
                    self.refused.append(str(why))
                    if len(self.refused) > EVICTIONS / 10:
                        return
                continue
            with self.lock:
                self.moves.append(pair)


def soak_programs(lab):
    programs = [Evictee(lab, name, evicting.sized(lab, gib), EVICTABLE, *options) for name, (gib, options) in SOAK_GIB.items()]
    try:
        programs.append(Program(lab, "evict-soak-serves", command(lab, "torch", "serve_same.py"), EVICTABLE))
    except Missing as why:
        lab.report.skip("evict: soak: the service with CUDA graphs", str(why))
    for program in programs:
        program.wait_ready()
    return programs


@evicting.limited(160)
def run_soak(lab):
    need_run(lab)
    programs = soak_programs(lab)
    soak = Soak(lab, [program.name for program in programs], lab.times(EVICTIONS, 4), SOAK_S).run()
    told = {program.name: evicting.close(program, "end", evicting.CHECK_WITHIN_S) for program in programs}
    outs = [out.seconds for out, _ in soak.moves]
    lab.report.keep("evict: soak", {"moves": [[each._asdict() for each in pair] for pair in soak.moves],
                                    "refused": soak.refused, "told": told})
    text = f"{len(soak.moves)}; {len(soak.refused)} refused" + (f": {soak.refused[0]}" if soak.refused else "")
    if outs:
        text += f"; out {figures.percentile(outs, 50):.3f} s, {max(outs):.3f} at most"
    lab.report.check("evict: soak: random evictions of a mixed load", f"{lab.times(EVICTIONS, 4)}, none refused", text,
                     len(soak.moves) >= lab.times(EVICTIONS, 4) and not soak.refused)
    for name, line in told.items():
        lab.report.check(f"evict: soak: wrong in {name}", "0", f"{line['wrong']}; {line['rounds']} rounds", line["wrong"] == 0)


# ---- evict-attributes ----


@evicting.limited(60)
def run_attributes(lab):
    """Each line of the program says what the driver answers about a pointer, without the pointer."""
    need_run(lab)
    figure, words = "evict: what the driver says of pointers", [lab.program("bench/c/attributes")]
    native, ours = (lab.run(f"evict-attributes-{name}", command_line) for name, command_line in (
        ("native", words), ("evictable", wrapped(lab, words, EVICTABLE))))
    if native[0]:
        raise Trouble(f"attributes: ended with {native[0]}: {native[2].strip()[-80:]}")
    # Evictable programs have no legacy IPC: doc/evict.md says so.
    lines = [out.splitlines() for _, out, _ in (native, ours)]
    others = [f"{one} / {other}" for one, other in zip(*lines) if one != other]
    lab.report.keep(figure, {"native": claims.parse(native[1]) or lines[0], "evictable": claims.parse(ours[1]) or lines[1]})
    lab.report.check(figure, "the same", f"{len(others)} of {len(lines[0])} lines differ" + (f": {others[0][:150]}" if others else ""),
                     ours[0] == 0 and not others and len(lines[0]) == len(lines[1]))
