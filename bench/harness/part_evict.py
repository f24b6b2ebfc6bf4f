"""evict-speed, evict-beside, evict-exchange, evict-fit: how fast a program's memory leaves the card and returns, what a program
beside it loses meanwhile, how fast two programs change places, and that programs which fit together are left alone."""
import time

from . import evicting, figures
from .evicting import GIB, Evictee, Holder, Refused, move
from .frameworks import command
from .governed import Program, need_run

# GiB: (rounds, seconds out, seconds back)
SPEEDS = {16: (5, 0.36, 0.42), 45: (3, 1.0, 1.1)}
FIRST_TIMES = 1.2
TRIES = 20  # of a move that is refused
BUSY_S = (0.1, 0.4)  # between two rounds the program works so long
BESIDE_GIB, BESIDE_ROUNDS, BESIDE_S, BESIDE_PART, BEGIN_S = 16, 7, 1.0, 0.92, 0.2
EXCHANGE_GIB, EXCHANGE_ROUNDS, EXCHANGE_PART = 40, 3, 0.65
FIT_GIB, FIT_ROUNDS, FIT_S, FIT_PART = 8, 3, 2.0, 0.99


# ---- evict-speed ----


def there_and_back(lab, program, rounds):
    """[(out, back)], and MiB of the card that are in use while the program is away."""
    found, used_mib = [], 0
    for at in range(rounds):
        time.sleep(lab.random.uniform(*BUSY_S))
        out = move(lab, "evict", program.name)
        if at == rounds - 1:
            used_mib = lab.card.used_mib()
        found.append((out, move(lab, "resume", program.name)))
    return found, used_mib


def report_way(lab, figure, gib, moves, limit_s):
    """moves: the first one apart."""
    first, later = moves[0], [each.seconds for each in moves[1:]]
    middle = figures.percentile(later, 50)
    lab.report.keep(figure, [each._asdict() for each in moves])
    lab.report.at_most(figure, middle, limit_s, "s", 3, f" ({min(later):.3f} to {max(later):.3f} in {len(later)} rounds; "
                       f"{moves[-1].bytes / middle / 1e9:.1f} GB/s)")
    if gib == min(SPEEDS):
        lab.report.at_most(f"{figure}: the first time, with memory of the host ready", first.seconds / middle, FIRST_TIMES,
                           "times the median", 2, f" ({first.seconds:.3f} s)")


def report_words(lab, figure, programs):
    """Ends them; each compares all its words."""
    told = [program.finish() for program in programs]
    wrong, rounds = (sum(line[key] for line in told) for key in ("wrong", "rounds"))
    lab.report.check(figure, "0", f"{wrong} in {len(told)} programs; {rounds} rounds", wrong == 0)


def measure_speed(lab, gib, empty_mib):
    rounds, out_s, back_s = SPEEDS[gib]
    figure, count = f"evict {gib} GiB of a program that works", evicting.sized(lab, gib)
    program = Evictee(lab, f"evict-speed-{gib}", count).wait_ready()
    ready = evicting.wait_ready_bytes(lab, program.name, count)
    lab.report.note(f"evict {gib} GiB: ready ahead in the host", f"{ready / GIB:.2f} GiB")
    moves, used_mib = there_and_back(lab, program, 1 + lab.times(rounds, 2))
    report_way(lab, f"{figure}: out", gib, [out for out, _ in moves], out_s)
    report_way(lab, f"{figure}: back", gib, [back for _, back in moves], back_s)
    lab.report.info(f"evict {gib} GiB: card memory that the program keeps while it is away", f"{used_mib - empty_mib:.0f} MiB")
    report_words(lab, f"evict {gib} GiB: wrong words", [program])


def move_at_last(lab, word, tenant):
    """The move, and why it was refused before that."""
    refused = []
    while True:
        try:
            return move(lab, word, tenant), refused
        except Refused as why:
            refused.append(str(why))
            if len(refused) == TRIES:
                raise
            time.sleep(0.2)


def measure_cold(lab):
    """The first time while memory of the host is still being made ready."""
    gib = min(SPEEDS)
    count = evicting.sized(lab, gib)
    program = Evictee(lab, "evict-speed-cold", count).wait_ready()
    ready = evicting.ready_bytes(lab, program.name)
    begin = time.time()
    out, refused = move_at_last(lab, "evict", program.name)
    back = move(lab, "resume", program.name)
    lab.report.info(f"evict {gib} GiB: the first time at once: out",
                    f"{out.ended_s - begin:.2f} s; {ready / GIB:.2f} GiB of the host were ready when it began; back {back.seconds:.3f} s"
                    + (f"; refused {len(refused)} times before: {refused[0]}" if refused else ""))
    report_words(lab, f"evict {gib} GiB: wrong words, evicted at once", [program])


@evicting.limited(110)
def run_speed(lab):
    need_run(lab)
    for at, gib in enumerate(SPEEDS):
        if at == 1:
            measure_cold(lab)
        measure_speed(lab, gib, lab.card.settled_mib())


# ---- evict-beside ----


def rate_over(lab, loop, word, tenant):
    """The loop's speed over a second, in which the program is moved if there is a word."""
    mark = loop.go(BESIDE_S)
    if word:
        time.sleep(BEGIN_S)
        move(lab, word, tenant)
    return loop.wait_done(mark, 60)["rate_per_s"]


@evicting.limited(90)
def run_beside(lab):
    """The program that moves is idle, so that the loop has the card before, meanwhile and after."""
    need_run(lab)
    program = Holder(lab, "evict-beside", evicting.sized(lab, BESIDE_GIB)).wait_ready()
    loop = Program(lab, "evict-beside-loop", command(lab, "torch", "loop_matmul.py"), ()).wait_ready()
    evicting.wait_ready_bytes(lab, program.name, program.count)
    move(lab, "evict", program.name)
    move(lab, "resume", program.name)
    rates = {"none": [], "evict": [], "resume": []}
    for _ in range(lab.times(BESIDE_ROUNDS, 3)):
        rates["none"].append(rate_over(lab, loop, None, program.name))
        for word in ("evict", "resume"):
            rates[word].append(rate_over(lab, loop, word, program.name))
    middle = {word: figures.percentile(each, 50) for word, each in rates.items()}
    for word, way in (("evict", "leave"), ("resume", "return")):
        figure = f"evict: a matrix loop over the second in which {BESIDE_GIB} GiB {way}"
        lab.report.keep(figure, rates)
        lab.report.at_least(figure, middle[word] / middle["none"], BESIDE_PART, "of its speed", 3,
                            f" ({min(rates[word]):.0f} to {max(rates[word]):.0f}/s; alone {min(rates['none']):.0f} to {max(rates['none']):.0f}/s)")
    wrong = program.check()
    lab.report.check("evict: beside a matrix loop: wrong parts of its memory", "0", f"{wrong}", wrong == 0)
    loop.end()
    program.end()


# ---- evict-exchange ----


def in_turn(lab, leaver, comer):
    """Seconds of one after the other, by loadlined's clock: no command's start is in them."""
    return move(lab, "evict", leaver).seconds + move(lab, "resume", comer).seconds


def at_once(lab, leaver, comer):
    moves = [evicting.Move(lab, "evict", leaver), evicting.Move(lab, "resume", comer)]
    return evicting.together_s([each.wait() for each in moves])


def measure_exchange(lab, figure, here, away, rounds, more):
    """[(one after the other, at once)]; the first exchange, which makes memory of the host ready, is left out."""
    at_once(lab, here, away)
    here, away, pairs = away, here, []
    for _ in range(rounds):
        pairs.append((in_turn(lab, here, away), at_once(lab, away, here)))
        time.sleep(lab.random.uniform(*BUSY_S))
    ratio = figures.percentile([second / first for first, second in pairs], 50)
    lab.report.keep(figure, pairs)
    lab.report.at_most(figure, ratio, EXCHANGE_PART, "of one after the other", 2, " (" + ", ".join(
        f"{second:.2f} of {first:.2f} s" for first, second in pairs) + f"){more}")
    return here, away


@evicting.limited(120)
def run_exchange(lab):
    need_run(lab)
    gib = evicting.fitting_gib(lab, EXCHANGE_GIB, 2)
    count, more = evicting.sized(lab, gib), evicting.scaled_note(gib, EXCHANGE_GIB)
    first = Evictee(lab, "evict-exchange-1", count).wait_ready()
    move(lab, "evict", first.name)
    second = Evictee(lab, "evict-exchange-2", count).wait_ready()
    rounds, names = lab.times(EXCHANGE_ROUNDS, 1), (second.name, first.name)
    with evicting.ballast(lab, "evict-exchange-ballast", evicting.room_bytes(lab)):
        names = measure_exchange(lab, f"evict: exchange of two of {EXCHANGE_GIB} GiB, the card full", *names, rounds, more)
    here, away = measure_exchange(lab, f"evict: exchange of two of {EXCHANGE_GIB} GiB, the card with room for both", *names, rounds, more)
    move(lab, "resume", away)
    report_words(lab, "evict: exchange: wrong words", [first, second])


# ---- evict-fit ----


def pair_rates(pair, seconds):
    marks = [program.go(seconds) for program in pair]
    return sum(program.wait_done(mark, 60)["rate_per_s"] for program, mark in zip(pair, marks))


@evicting.limited(90)
def run_fit(lab):
    need_run(lab)
    count = evicting.sized(lab, FIT_GIB)
    modes = {"native": None, "run": (), "evictable": evicting.EVICTABLE}
    pairs = {mode: [Holder(lab, f"evict-fit-{mode}-{at}", count, limits) for at in range(2)] for mode, limits in modes.items()}
    for program in (each for pair in pairs.values() for each in pair):
        program.wait_ready()
    rates = {mode: [] for mode in modes}
    for at in range(lab.times(FIT_ROUNDS, 2)):
        for mode in list(modes)[::1 if at % 2 else -1]:
            rates[mode].append(pair_rates(pairs[mode], lab.seconds(FIT_S, 0.5)))
    middle = {mode: figures.percentile(each, 50) for mode, each in rates.items()}
    lab.report.keep("evict: two that fit together", rates)
    lab.report.at_least("evict: two that fit together: sum of their speeds", middle["evictable"] / middle["run"], FIT_PART,
                        "of plain run", 3, f" (native {middle['run'] / middle['native']:.3f} under plain run; "
                        f"{min(rates['evictable']):.0f} to {max(rates['evictable']):.0f}/s)")
    wrong = sum(program.check() for program in pairs["evictable"])
    moves = evicting.moves_of(lab, *(program.name for program in pairs["evictable"]))
    for program in (each for pair in pairs.values() for each in pair):
        program.end()
    lab.report.check("evict: two that fit together: moves", "0", f"{moves}", not moves)
    lab.report.check("evict: two that fit together: wrong parts of their memory", "0", f"{wrong}", wrong == 0)
