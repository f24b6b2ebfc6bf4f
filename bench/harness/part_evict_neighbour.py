"""evict-neighbour: how fast a program's memory goes to a card of the same host that nobody uses, and returns; and how soon it makes
way there when somebody comes."""
import time

from . import evicting, figures
from .evicting import MIB, Evictee, Holder, move
from .governed import need_run
from .lab import Missing, Trouble
from .part_evict import BUSY_S, report_words

LIMITS = ("--evictable",)
SIZE_GIB, ROUNDS, WAY_S = 16, 7, 0.08
WANTED_S, WANTED_WITHIN_S = 1.5, 30  # 16 GiB take 0.31 s to the host, and the neighbour is looked at each 0.1 s
COMER = 256 * MIB
FIGURE = f"evict {SIZE_GIB} GiB to a neighbour"


def neighbour_bytes(lab, tenant):
    """What of it is on another card, as status says."""
    return sum(line.get("neighbour_bytes") or 0 for line in evicting.claims_now(lab, tenant))


def there_and_back(lab, program, rounds):
    """[(out, back)], and how many of the moves went to the neighbour."""
    found, beside = [], 0
    for _ in range(rounds):
        time.sleep(lab.random.uniform(*BUSY_S))
        out = move(lab, "evict", program.name)
        beside += neighbour_bytes(lab, program.name) > 0
        found.append((out, move(lab, "resume", program.name)))
    return found, beside


def report_way(lab, figure, moves):
    seconds = [each.seconds for each in moves]
    middle = figures.percentile(seconds, 50)
    lab.report.keep(figure, [each._asdict() for each in moves])
    lab.report.at_most(figure, middle, WAY_S, "s", 3, f" ({min(seconds):.3f} to {max(seconds):.3f} in {len(seconds)} rounds; "
                       f"{moves[-1].bytes / middle / 1e9:.0f} GB/s)")


def seconds_until_gone(lab, tenant):
    begin = time.monotonic()
    while neighbour_bytes(lab, tenant):
        if time.monotonic() - begin > WANTED_WITHIN_S:
            raise Trouble(f"the memory stays on the neighbour for {WANTED_WITHIN_S} s")
    return time.monotonic() - begin


def measure_comer(lab, program, what, limits):
    """Somebody starts on the neighbour while the program's memory is there."""
    move(lab, "evict", program.name)
    if not neighbour_bytes(lab, program.name):
        raise Trouble("the memory went to the host")
    comer = Holder(lab, f"evict-neighbour-{what.split()[-1]}", COMER, limits, env={"CUDA_VISIBLE_DEVICES": "1"})
    seconds = seconds_until_gone(lab, program.name)
    comer.wait_ready()
    lab.report.at_most(f"{FIGURE}: off it again, from the start of {what} there", seconds, WANTED_S, "s", 2, "")
    comer.end()
    move(lab, "resume", program.name)


@evicting.limited(110)
def run(lab):
    need_run(lab)
    if len(lab.cards) < 2:
        raise Missing("one card")
    count = evicting.sized(lab, SIZE_GIB)
    program = Evictee(lab, "evict-neighbour", count, LIMITS).wait_ready()
    evicting.wait_ready_bytes(lab, program.name, count)
    rounds = 1 + lab.times(ROUNDS, 2)
    moves, beside = there_and_back(lab, program, rounds)
    lab.report.check(f"{FIGURE}: moves that went there", f"{rounds}", f"{beside}", beside == rounds)
    report_way(lab, f"{FIGURE}: out", [out for out, _ in moves[1:]])
    report_way(lab, f"{FIGURE}: back", [back for _, back in moves[1:]])
    lab.report.note(f"{FIGURE}: the first time", f"out {moves[0][0].seconds:.3f} s, back {moves[0][1].seconds:.3f} s")
    measure_comer(lab, program, "a stranger", None)
    measure_comer(lab, program, "a program", ())
    report_words(lab, f"{FIGURE}: wrong words", [program])
