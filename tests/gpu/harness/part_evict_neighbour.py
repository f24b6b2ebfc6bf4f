"""evict-neighbour: how fast a program's memory goes to a card of the same host that nobody uses, and returns; and that it makes
way there when somebody comes."""
import re
import time

from . import evicting, figures
from .evicting import MIB, Evictee, Holder, move
from .governed import need_run
from .lab import Missing, Trouble
from .part_evict import BUSY_S, report_words, there_and_back

SIZE_GIB, ROUNDS, WAY_S = 16, 7, 0.08
WANTED_S, WANTED_WITHIN_S = 1.5, 30  # 16 GiB take 0.31 s to the host, and a look each 0.1 s
STRANGER = 256 * MIB


def went_beside(mover, tenant):
    """How many of its moves ended on another card."""
    text = mover.lab.read(mover.name + ".err")
    return len(re.findall(rf"tenant {re.escape(tenant)}: away: .* s, on card \d+", text))


def report_way(lab, figure, moves):
    seconds = [each.seconds for each in moves]
    middle = figures.percentile(seconds, 50)
    lab.report.keep(figure, [each._asdict() for each in moves])
    lab.report.at_most(figure, middle, WAY_S, "s", 3, f" ({min(seconds):.3f} to {max(seconds):.3f} in {len(seconds)} rounds; "
                       f"{moves[-1].bytes / middle / 1e9:.0f} GB/s)")


def wait_moved_on(lab, mover, tenant):
    """Seconds until the mover says so."""
    begin = time.monotonic()
    while f"tenant {tenant}: all its memory is on the host now" not in lab.read(mover.name + ".err"):
        if time.monotonic() - begin > WANTED_WITHIN_S:
            raise Trouble(f"the memory stays on the neighbour for {WANTED_WITHIN_S} s")
        time.sleep(0.005)
    return time.monotonic() - begin


def measure_wanted(lab, mover, program):
    """A stranger takes memory of the neighbour while the program's memory is there."""
    move(lab, "evict", program.name)
    stranger = Holder(lab, "evict-neighbour-stranger", STRANGER, None, env={"CUDA_VISIBLE_DEVICES": "1"})
    seconds = wait_moved_on(lab, mover, program.name)
    stranger.wait_ready()
    lab.report.at_most(f"evict {SIZE_GIB} GiB to a neighbour: off it again, from the start of a program there", seconds, WANTED_S, "s", 2, "")
    move(lab, "resume", program.name)
    stranger.end()


@evicting.limited(110)
def run(lab):
    need_run(lab)
    if len(lab.cards) < 2:
        raise Missing("one card")
    mover, count = evicting.mover(lab, is_fresh=True, uses_neighbours=True), evicting.sized(lab, SIZE_GIB)
    program = Evictee(lab, "evict-neighbour", count).wait_ready()
    mover.wait_pinned(count)
    time.sleep(lab.random.uniform(*BUSY_S))
    rounds = 1 + lab.times(ROUNDS, 2)
    moves, _ = there_and_back(lab, program, rounds)
    beside = went_beside(mover, program.name)
    lab.report.check(f"evict {SIZE_GIB} GiB to a neighbour: moves that went there", f"{rounds}", f"{beside}", beside == rounds)
    report_way(lab, f"evict {SIZE_GIB} GiB to a neighbour: out", [out for out, _ in moves[1:]])
    report_way(lab, f"evict {SIZE_GIB} GiB to a neighbour: back", [back for _, back in moves[1:]])
    lab.report.info(f"evict {SIZE_GIB} GiB to a neighbour: the first time", f"out {moves[0][0].seconds:.3f} s, back {moves[0][1].seconds:.3f} s")
    measure_wanted(lab, mover, program)
    report_words(lab, f"evict {SIZE_GIB} GiB to a neighbour: wrong words", [program])
