"""evict-borrower, evict-notebooks, evict-two-trainings: programs that together need more memory than the card has."""
import os
import time

from . import evicting, figures
from .evicting import EVICTABLE, GIB, Holder, move
from .frameworks import command
from .governed import Program, need_run

# ---- a borrower, and the owner who comes back ----

BORROWED_GIB, BORROWER_S = 135, 6.0
TAKES = {10: (2, 0.4), 80: (2, 1.8)}  # GiB: (rounds, seconds until the first kernel has ended)
OWNER_S, OWNER_PART = 1.0, 0.98
SETTLE_S = 0.5


def one_return(lab, borrower, owner, count):
    """The owner takes memory while the borrower works. (seconds until its first kernel's end, its speed then, whether the
    borrower went on afterwards)"""
    mark = borrower.go(SETTLE_S + lab.seconds(BORROWER_S, 2.0))
    time.sleep(SETTLE_S)
    begin_s = time.time()
    taken = owner.take_memory(count)
    rate = owner.rate_for(lab.seconds(OWNER_S, 0.3))
    owner.ask("free", "freed", 10)
    freed_s = time.time()
    done_s, done = borrower.wait_for(lambda line: line["event"] == "done", 90, mark) or borrower.fail("does not go on")
    # It works by its own clock, and says at its end how long it took.
    ends_s = [done_s - done["seconds"] + end for end in done["ends"]]
    return taken["seconds"], rate, sum(end > freed_s for end in ends_s), sum(begin_s + taken["seconds"] < end < freed_s for end in ends_s)


def report_takes(lab, borrower, owner, gib, alone, more):
    rounds, limit_s = TAKES[gib]
    size = min(gib, evicting.gib_of(lab, borrower.count) - 1)
    more += evicting.scaled_note(size, gib)
    count = max(evicting.sized(lab, size), 2 * evicting.room_bytes(lab))
    found = [one_return(lab, borrower, owner, count) for _ in range(lab.times(rounds, 1))]
    seconds, rates, after, meanwhile = zip(*found)
    figure = f"evict: a borrower with {BORROWED_GIB} GiB works; the owner takes {gib} GiB"
    lab.report.keep(figure, {"seconds": seconds, "rates": rates, "alone_per_s": alone})
    lab.report.at_most(f"{figure}: until its first kernel has ended", figures.percentile(seconds, 50), limit_s, "s", 3,
                       f" ({', '.join(f'{each:.3f}' for each in seconds)}){more}")
    lab.report.at_least(f"{figure}: its speed then", figures.percentile(rates, 50) / alone, OWNER_PART, "of alone", 3,
                        f"; the borrower's kernels meanwhile: {sum(meanwhile)}")
    lab.report.check(f"{figure}: the borrower goes on", "in each round", f"{min(after)} to {max(after)} kernels", min(after) > 0)


@evicting.limited(150)
def run_borrower(lab):
    """Where the pool has no room for all of the borrower's memory, a program without loadline holds the rest of it."""
    need_run(lab)
    gib = evicting.fitting_gib(lab, BORROWED_GIB, 1)
    more = f"; {gib:g} GiB of the borrowed memory can be moved, a third program holds the rest" if gib < BORROWED_GIB else ""
    borrower = Holder(lab, "evict-borrower", evicting.sized(lab, gib), ("--class", "low", *EVICTABLE)).wait_ready()
    owner = Holder(lab, "evict-owner", evicting.sized(lab, 0.25), ("--class", "high", *EVICTABLE)).wait_ready()
    evicting.wait_ready_bytes(lab, borrower.name, borrower.count)
    alone = figures.percentile([owner.rate_for(lab.seconds(OWNER_S, 0.3)) for _ in range(3)], 50)
    with evicting.ballast(lab, "evict-borrower-ballast", evicting.room_bytes(lab)):
        for take in TAKES:
            report_takes(lab, borrower, owner, take, alone, more)
    wrong = borrower.check()
    lab.report.check("evict: a borrower with 135 GiB: wrong parts of its memory", "0", f"{wrong} of {gib:g} GiB", wrong == 0)
    owner.end()
    borrower.end()


# ---- notebooks ----

NOTEBOOKS, NOTEBOOK_GIB = 4, 45
NOTEBOOK_EACH_S, NOTEBOOK_WORK_S, NOTEBOOK_CYCLES = 14.0, 3.0, 2
NOTEBOOK_LIMIT_S, FULL, WINDOW_S = 1.5, 0.9, 0.1


def full_speed_after(ends, alone_per_s, window_s=WINDOW_S):
    """Seconds from the first launch until the first kernel's end from which on a window is full of work; None: there is none."""
    for at, first in enumerate(ends):
        if ends[-1] - first < window_s:
            return None
        if sum(first < end <= first + window_s for end in ends[at:]) >= FULL * alone_per_s * window_s:
            return first
    return None


def wake_all(lab, programs, alone, cycles):
    """[(name, seconds until it had its full speed or None)], one after the other works while the others are idle."""
    each_s, work_s = lab.seconds(NOTEBOOK_EACH_S, 4.0) / NOTEBOOKS, lab.seconds(NOTEBOOK_WORK_S, 0.5)
    found = []
    for _ in range(cycles):
        for program in programs:
            begin = time.monotonic()
            mark = program.go(work_s)
            done = program.wait_done(mark, 60)
            found.append((program.name, full_speed_after(done["ends"], alone)))
            time.sleep(max(0.0, each_s - (time.monotonic() - begin)))
    return found


def report_wakes(lab, found, more):
    figure = f"evict: {NOTEBOOKS} notebooks of {NOTEBOOK_GIB} GiB, one works at a time: until full speed"
    never = [name for name, seconds in found if seconds is None]
    told = [seconds for _, seconds in found if seconds is not None]
    lab.report.keep(figure, found)
    lab.report.check(figure, f"<= {NOTEBOOK_LIMIT_S:g} s, each", f"{', '.join(f'{each:.2f}' for each in told)} s"
                     + (f"; never: {', '.join(never)}" if never else "") + more,
                     bool(told) and not never and max(told) <= NOTEBOOK_LIMIT_S)


@evicting.limited(150)
def run_notebooks(lab):
    """If all of them fit because the pool made them small, a program without loadline takes the room of one."""
    need_run(lab)
    gib = evicting.fitting_gib(lab, NOTEBOOK_GIB, 2)
    count = evicting.sized(lab, gib)
    programs = []
    for at in range(NOTEBOOKS - 1):
        programs.append(Holder(lab, f"evict-notebook-{at}", count))
    for program in programs:
        program.wait_ready()
    room = count // 2 + 5 * evicting.room_bytes(lab) // 2  # with a context
    with evicting.ballast(lab, "evict-notebooks-ballast", room):
        programs.append(Holder(lab, f"evict-notebook-{NOTEBOOKS - 1}", count).wait_ready())
        alone = figures.percentile([programs[-1].rate_for(lab.seconds(0.5, 0.3)) for _ in range(3)], 50)
        names = [program.name for program in programs]
        before = evicting.moves_of(lab, *names)
        wake_all(lab, programs[:1], alone, 1)  # makes memory of the host ready
        found = wake_all(lab, programs[1:] + programs[:1], alone, lab.times(NOTEBOOK_CYCLES, 1))
        report_wakes(lab, found, f"; {evicting.moves_of(lab, *names) - before} moves{evicting.scaled_note(gib, NOTEBOOK_GIB)}")
    wrong = sum(program.check() for program in programs)
    lab.report.check("evict: notebooks: wrong parts of their memory", "0", f"{wrong} of {NOTEBOOKS * gib:g} GiB", wrong == 0)
    for program in programs:
        program.end()


# ---- two trainings ----

TRAINING_GIB, TRAINING_PART = 75, 1.12
# What is used of it, unless told: a turn is ten times as long as its moves whatever the size, so smaller ones need less time.
USED_GIB = float(os.environ.get("LOADLINE_EVICT_TRAINING_GIB", "20"))
TRAINING_S, WARM_STEPS = 0.75, 4  # for each GiB: one and a half turns


@evicting.limited(200)
def run_two_trainings(lab):
    """Both are loaded before; one after the other is twice the time of one alone, natively."""
    need_run(lab)
    gib = min(evicting.fitting_gib(lab, TRAINING_GIB, 2.5), USED_GIB)
    words = command(lab, "torch", "train_same.py")
    alone = Program(lab, "evict-training-alone", words)
    pair = [Program(lab, f"evict-training-{at}", words, EVICTABLE) for at in range(2)]
    for program in (alone, *pair):
        program.wait_ready()
    alone.ask(f"make {gib}", "made", 60)
    step_s = alone.ask(f"train {WARM_STEPS}", "trained", 60)["step_s"]
    steps = max(WARM_STEPS, round(lab.seconds(TRAINING_S * gib, 4.0) / step_s))
    alone.ask(f"make {gib}", "made", 60)
    native = alone.ask(f"train {steps}", "trained", 120)
    alone.end()
    used = [pair[0].ask(f"make {gib}", "made", 60)["card_bytes"]]
    move(lab, "evict", pair[0].name)
    used.append(pair[1].ask(f"make {gib}", "made", 60)["card_bytes"])
    with evicting.ballast(lab, "evict-training-ballast", 2 * evicting.room_bytes(lab)):
        names = [program.name for program in pair]
        before = evicting.moves_of(lab, *names)
        move(lab, "resume", pair[0].name)  # the other one is idle, and leaves
        marks = [program.mark() for program in pair]
        for program in pair:
            program.tell(f"train {steps}")
        told = []
        for program, mark in zip(pair, marks):
            told.append(program.wait_done(mark, 150, "trained"))
        moves = evicting.moves_of(lab, *names) - before
        for program in pair:
            program.end()
    took_s = max(one["begun_s"] + one["seconds"] for one in told) - min(one["begun_s"] for one in told)
    figure = f"evict: two trainings of {TRAINING_GIB} GiB each at once"
    lab.report.keep(figure, {"native": native, "told": told, "moves": moves, "card_bytes": used})
    lab.report.at_most(f"{figure}: both have finished", took_s / (2 * native["seconds"]), TRAINING_PART, "of one after the other", 3,
                       f" ({took_s:.1f} of 2 x {native['seconds']:.1f} s, {steps} steps, {moves} moves; each has "
                       f"{max(used) / GIB:.1f} GiB, and the card has room for one of them)")
    same = sum(one["sum"] == native["sum"] for one in told)
    lab.report.check(f"{figure}: sums of all parameters", "those of the run alone", f"{same} of {len(told)} are", same == len(told))
