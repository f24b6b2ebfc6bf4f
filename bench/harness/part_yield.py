"""yield: from a stranger's first kernel to our last, on the card's clock. idlecost: what a yielded hold costs.
two-cards: one process, both at once."""
import time

from . import figures, processes
from .card import UtilWatch
from .hold import Hold, Use
from .lab import Missing
from .level import Level, judged, report_util
from .stranger import Stranger

MEMORY_MIB = {"vulkan": 56, "cuda": 268}
ARRIVALS = 200
LOADS = {"dense": ("--burst-ms", 100), "sparse": ("--per-burst", 2, "--spacing-ms", 100)}
HELD_S = 0.12  # kernels ran for so long at least before an arrival
SPARE_S = (0.05, 0.5)  # and for up to so much longer
TIME_S = 290  # for 200 arrivals, 1.3 s each
YIELD_WITHIN_S, RESUME_WITHIN_S = 2.0, 6.0
MS = 1e6


def spare_s(deadline, left, cycle_s):
    """How much random time the rest of the arrivals can have."""
    free_s = (deadline - time.monotonic()) / left - cycle_s - HELD_S
    return min(SPARE_S[1], max(SPARE_S[0], 2 * free_s))


def make_arrivals(lab, hold, stranger, count, seconds, card=0):
    """Triggers a burst a random time after each resumption, until the hold has yielded `count` times or time is up.
    How many it said it yielded to."""
    deadline = time.monotonic() + seconds
    cycle_s, yields = 0.8, 0
    while yields < count and time.monotonic() < deadline:
        time.sleep(HELD_S + lab.random.random() * spare_s(deadline, count - yields, cycle_s))
        begin, mark = time.monotonic(), hold.mark()
        stranger.trigger()
        if hold.wait_event("yield", YIELD_WITHIN_S, mark, card):
            yields += 1
            hold.wait_event("resume", RESUME_WITHIN_S, mark, card)
        cycle_s += 0.1 * (time.monotonic() - begin - cycle_s)
    return yields


def report_arrivals(lab, figure, hold, stranger, count, limits, card=0):
    """limits: of p50 and p99 in ms, None for no row."""
    arrivals = figures.judge_arrivals(hold.kernels(card), stranger.bursts())
    latencies_ms = [a.latency_ns / MS for a in arrivals]
    missed = sum(a.is_missed for a in arrivals)
    lab.report.keep(figure, {"arrivals": len(arrivals), "missed": missed, "ms": figures.spread(latencies_ms),
                             "all_ms": [round(ms, 4) for ms in latencies_ms]})
    need = count if lab.quick == 1 else 1
    lab.report.check(f"{figure}: arrivals, missed", f">= {need}, 0", f"{len(arrivals)}, {missed}",
                     len(arrivals) >= need and missed == 0)
    if not arrivals:
        return
    text = f"; max {max(latencies_ms):.3f}, {sum(ms == 0 for ms in latencies_ms)} met no kernel of ours"
    for percent, limit_ms in zip((50, 99), limits):
        if limit_ms is not None:
            lab.report.at_most(f"{figure}: p{percent}", figures.percentile(latencies_ms, percent), limit_ms, "ms", 3,
                               text)


def yield_to(lab, payload, load):
    figure, name = f"yield: {payload}, {load}", f"yield-{payload}-{load}"
    count = lab.times(ARRIVALS, 10)
    stranger = Stranger(lab, name + "-foreign", load, *LOADS[load], is_triggered=True)
    hold = Hold(lab, name, "--payload", payload, "--target", "50%", "--resume-after", "300ms", has_kernel_log=True)
    hold.wait_holding()
    stranger.go()
    told = make_arrivals(lab, hold, stranger, count, lab.seconds(TIME_S, 20))
    stranger.finish()
    hold.end()
    report_arrivals(lab, figure, hold, stranger, count, (3, 10))
    yields = hold.summary()["yields"]
    lab.report.check(f"{figure}: yields without an arrival", "0", f"{yields - told}", yields == told)


def run(lab, payload, load):
    why_not = lab.payload_fault(payload)
    if why_not:
        raise Missing(why_not)
    yield_to(lab, payload, load)


def report_threads(lab, parent, threads):
    """Where the time goes; a thread of a thousandth of a percent is left to --json."""
    for row in threads:
        if row["cpu_percent"] >= 0.001:
            whose = "hold" if row["pid"] == parent else "payload process"
            lab.report.note(f"idlecost: {whose}, thread {row['name']}",
                            f"{row['cpu_percent']:.3f} %, sleeps {row['sleeps_per_second']:.1f} times a second")


def goes_on(lab, hold, stranger):
    """The stranger ends: NVML's samples of the hold that comes back, from 1 s on; empty: it does not."""
    stranger.stop()
    with UtilWatch(lab.card) as watch:
        if not hold.wait_event("resume", 10):
            return []
        begin_s = time.time() + 1
        time.sleep(4)
    return watch.between(begin_s + 0.2, begin_s + 3)


def run_idlecost(lab):
    seconds = lab.seconds(30, 6)
    stranger = Stranger(lab, "idlecost-foreign", "dense", "--bursts", 1, "--burst-ms", int(1000 * (seconds + 4)))
    hold = Hold(lab, "idlecost", "--target", "50%")
    hold.wait_holding()
    stranger.go()
    if not hold.wait_event("yield", 5):
        lab.report.fault("idlecost: yielded", "no")
    time.sleep(2)
    use, before, begin = Use(hold), processes.threads(hold.pid), time.monotonic()
    time.sleep(seconds)
    percent, after, took_s = use.cpu_percent(), processes.threads(hold.pid), time.monotonic() - begin
    threads, resumed = processes.thread_uses(before, after, took_s), len(hold.events("resume"))
    samples = goes_on(lab, hold, stranger)
    hold.end()
    lab.report.keep("idlecost", {"cpu_percent": percent, "seconds": seconds, "payload": hold.summary()["payload"],
                                 "threads": threads, "samples_after": samples})
    lab.report.at_most("idlecost: host CPU while yielded, % of a core", percent, 0.5, "%", 3)
    report_threads(lab, hold.pid, threads)
    lab.report.check("idlecost: stays yielded", "no resume", f"{resumed} resumes", resumed == 0)
    lab.report.check("idlecost: holds again afterwards, every sample", "50 ± 1 %",
                     f"{min(samples)} to {max(samples)} %" if samples else "no",
                     bool(samples) and all(49 <= percent <= 51 for percent in samples))


def hold_both(lab):
    before_mib = [card.settled_mib() for card in lab.cards[:2]]
    with UtilWatch(lab.cards[0]) as first, UtilWatch(lab.cards[1]) as second:
        hold = Hold(lab, "two-cards", "-i", "0,1", "--target", "50%")
        hold.wait_holding(0)
        hold.wait_holding(1)
        time.sleep(3)
        use = Use(hold)
        time.sleep(lab.seconds(58))
        percent = use.cpu_percent()
        memory_mib = [card.used_mib() - before for card, before in zip(lab.cards, before_mib)]
        hold.end()
    for card, watch in enumerate((first, second)):
        level = Level(hold, None, watch, None, None, None, None, None, None)
        report_util(lab, f"two cards: card {card}, 50 %", judged(level, card=card), 50)
        yields = hold.summary(card)["yields"]
        lab.report.check(f"two cards: card {card}, false yields", "0", str(yields), yields == 0)
        payload = hold.summary(card)["payload"]
        lab.report.at_most(f"two cards: card {card}, GPU memory ({payload})", memory_mib[card],
                           MEMORY_MIB.get(payload, 0), "MiB", 1)
    lab.report.keep("two cards: host CPU", {"cpu_percent_both": percent})
    lab.report.at_most("two cards: host CPU for each, % of a core", percent / 2, 3, "%")


def yield_on_second(lab):
    count = lab.times(50, 5)
    stranger = Stranger(lab, "two-cards-foreign", "dense", *LOADS["dense"], "--card", 1, is_triggered=True)
    hold = Hold(lab, "two-cards-yield", "-i", "0,1", "--target", "50%", "--resume-after", "300ms", has_kernel_log=True)
    hold.wait_holding(0)
    hold.wait_holding(1)
    from_s = time.time() + 1
    stranger.go()
    make_arrivals(lab, hold, stranger, count, lab.seconds(60, 10), card=1)
    stranger.finish()
    hold.end()
    report_arrivals(lab, "two cards: yield on card 1, dense", hold, stranger, count, (3, 10), card=1)
    others = figures.between(hold.samples(card=0), from_s - hold.wall_zero_s(), hold.end_sent_s - hold.wall_zero_s())
    worst = figures.largest_error([s.level for s in others], 50)
    yields = hold.summary(0)["yields"]
    lab.report.check("two cards: card 0 meanwhile", "± 1, 0 yields", f"{worst:.0f} off at most, {yields} yields",
                     worst <= 1 and yields == 0)


def run_two_cards(lab):
    if len(lab.cards) < 2:
        raise Missing("only one card")
    hold_both(lab)
    yield_on_second(lab)
