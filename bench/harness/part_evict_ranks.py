"""evict-ranks: a program of two ranks, whose kernels on two cards wait for each other by NCCL, leaves both cards while it works, and
returns; what it computes has the bits that it has without loadline."""
import json

from . import evicting
from .evicting import EVICTABLE
from .frameworks import command
from .governed import Program, need_run
from .lab import Missing
from .part_evict_programs import report_same, step_of

FIGURE = "evict: two ranks that talk by NCCL"
RANKS, STEPS, EVICT_AT = 2, 300, (50, 100, 150, 200, 250)


def moves_of(text):
    """The moves that a command told of, a JSON line each."""
    return [line for line in map(json.loads, text.splitlines()) if "seconds" in line]


def evict_all(lab, name, place):
    """All ranks leave and return: the longest move out and the longest back; None, if not all of them could leave."""
    longest = []
    for word in ("evict", "resume"):
        status, out, err = lab.run(f"{word}-{name}-{place}", lab.loadline(word, name, "--json"), timeout=evicting.MOVE_WITHIN_S)
        moves = moves_of(out)
        if status or len(moves) != RANKS:
            lab.report.note(f"{FIGURE}: {word} at step {place}", err.strip() or f"{len(moves)} moves")
        else:
            longest.append(max(move["seconds"] for move in moves))
    return longest if len(longest) == 2 else None


def spans(pairs):
    """The shortest and the longest way out and back."""
    told = (f"{min(ways):.3f} to {max(ways):.3f} s" for ways in zip(*pairs))
    return "".join(f"; {word} {span}" for word, span in zip(("out", "back"), told))


@evicting.limited(110)
def run(lab):
    need_run(lab)
    if len(lab.cards) < RANKS:
        raise Missing("one card")
    words = command(lab, "torch", "exact_ranks.py", "--matrices", 8)
    native = Program(lab, "evict-ranks-native", words).wait_ready()
    natives = [native.ask(str(STEPS), "finished", 60)["sum"] for _ in range(2)]
    native.end()
    program = Program(lab, "evict-ranks", words, EVICTABLE).wait_ready()
    mark, done = program.mark(), []
    program.tell(str(STEPS))
    for place in EVICT_AT:
        if not program.wait_for(lambda line, place=place: step_of(line) >= place, 60, mark):
            program.fail(f"does not come to step {place}")
        done.append(evict_all(lab, program.name, place))
    ours = program.wait_done(mark, 60, "finished")
    program.end()
    whole = [each for each in done if each]
    lab.report.keep(FIGURE, done)
    lab.report.check(f"{FIGURE}: evictions of both together", str(len(EVICT_AT)),
                     f"{len(whole)}{spans(whole)}", len(whole) == len(EVICT_AT))
    report_same(lab, f"{FIGURE}: sum of the results after {len(EVICT_AT)} evictions", natives, ours["sum"])
