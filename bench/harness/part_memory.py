"""memory: GPU memory of each payload, from creation to release. stop: signals. faults: what is refused."""
import signal
import time

from . import figures, processes
from .card import MIB, MemoryWatch, UtilWatch
from .hold import Hold
from .lab import Trouble, reason
from .stranger import Stranger

SETTLED_MIB = {"vulkan": 56, "cuda": 268}
TOO_LITTLE = {"vulkan": "20M", "cuda": "300M"}  # cuda: over what it settles at, under its peak
NOTHING_MIB = 0.1
DEAD_WITHIN_S = 2.0


def wait_memory(card, base_mib, within_s):
    """Seconds until the card's memory is back; None when it is not. And what was left then."""
    begin = time.monotonic()
    while True:
        left_mib = card.used_mib() - base_mib
        took_s = time.monotonic() - begin
        if left_mib <= NOTHING_MIB:
            return took_s, left_mib
        if took_s > within_s:
            return None, left_mib
        time.sleep(0.005)


def report_nothing_left(lab, figure, base_mib, within_s):
    took_s, left_mib = wait_memory(lab.card, base_mib, within_s)
    lab.report.check(figure, f"0 within {within_s:g} s",
                     f"{left_mib:.2f} MiB" + (f" after {took_s:.2f} s" if took_s is not None else ""), took_s is not None)


def report_creation(lab, payload):
    """Alone on the card: the driver's own 3 MiB for a first CUDA process count too."""
    card = lab.card
    base_mib = card.settled_mib()
    with MemoryWatch(card) as watch:
        hold = Hold(lab, f"memory-{payload}", "--payload", payload, "--target", "50%")
        hold.wait_holding()
        time.sleep(lab.seconds(4, 2))
    settled_mib = figures.percentile([mib for _, mib in watch.values[-200:]], 50) - base_mib
    peak_mib = max(mib for _, mib in watch.values) - base_mib
    told_mib = hold.events("sample")[-1]["memory_bytes"] / MIB
    hold.end()
    lab.report.keep(f"memory: {payload}", {"peak_mib": peak_mib, "settled_mib": settled_mib, "told_mib": told_mib,
                                           "samples": len(watch.values)})
    lab.report.info(f"memory: {payload}, peak while created", f"{peak_mib:.1f} MiB in {len(watch.values)} readings")
    lab.report.at_most(f"memory: {payload}, settled", settled_mib, SETTLED_MIB[payload], "MiB", 1,
                       f"; the hold says {told_mib:.1f}")
    report_nothing_left(lab, f"memory: {payload}, after its end", base_mib, 1)


def report_release(lab, payload):
    """While a stranger works, and when it has gone and the hold still waits with nothing on the card."""
    card = lab.card
    base_mib = card.settled_mib()
    stranger = Stranger(lab, f"release-{payload}-foreign", "dense", "--bursts", 1, "--burst-ms", 6000)
    with_stranger_mib = card.settled_mib()
    hold = Hold(lab, f"release-{payload}", "--payload", payload, "--target", "50%", "--release-after", "1s",
                "--resume-after", "10s")
    hold.wait_holding()
    time.sleep(0.5)
    stranger.go()
    told = hold.wait_event("release", 5)
    if not told:
        raise Trouble(f"release-{payload}: nothing released 5 s after foreign work began")
    report_nothing_left(lab, f"memory: {payload}, released beside foreign work", with_stranger_mib, 1)
    stranger.finish()
    report_nothing_left(lab, f"memory: {payload}, released, hold alive and alone", base_mib, 2)
    lab.report.check(f"memory: {payload}, hold waits", "alive", "alive" if hold.process.poll() is None else "gone",
                     hold.process.poll() is None and not hold.events("resume"))
    hold.end()


def report_limit(lab, payload):
    base_mib = lab.card.settled_mib()
    limit = TOO_LITTLE[payload]
    status, _, err = lab.run(f"limit-{payload}", lab.loadline("hold", "--payload", payload, "--max-memory", limit,
                                                              "--for", "5s"))
    lab.report.check(f"memory: {payload}, --max-memory {limit}", "exit status 4",
                     f"{status}: {reason(err, 80)}", status == 4)
    report_nothing_left(lab, f"memory: {payload}, after that refusal", base_mib, 1)


def run(lab):
    Stranger(lab, "memory-warm-up", "dense", "--bursts", 1).stop()  # what a driver keeps after its first use
    for payload in lab.payloads("memory"):
        report_creation(lab, payload)
        report_release(lab, payload)
        report_limit(lab, payload)


def held(lab, name, payload):
    """A hold that holds, and the memory before it."""
    base_mib = lab.card.settled_mib()
    hold = Hold(lab, name, "--payload", payload, "--target", "50%")
    hold.wait_holding()
    time.sleep(lab.seconds(2, 1))
    return hold, base_mib


def report_signal(lab, payload, number):
    name = f"stop: {payload}, {number.name}"
    hold, base_mib = held(lab, f"stop-{payload}-{number.name}", payload)
    took_s = hold.end(number)
    lab.report.at_most(f"{name}: gone", took_s, 1, "s")
    status, summaries = hold.process.returncode, len(hold.events("summary"))
    lab.report.check(f"{name}: summary, exit status", "1, 0", f"{summaries}, {status}", (summaries, status) == (1, 0))
    report_nothing_left(lab, f"{name}: memory", base_mib, 1)


def claims(lab):
    _, out, _ = lab.run("status", lab.loadline("status", "--json"))
    return out.count('"claim"')


def wait_dead(members, within_s):
    end = time.monotonic() + within_s
    while any(map(processes.is_alive, members)) and time.monotonic() < end:
        time.sleep(0.01)
    return sum(map(processes.is_alive, members))


def report_kill(lab, payload):
    name = f"stop: {payload}, SIGKILL"
    hold, base_mib = held(lab, f"stop-{payload}-SIGKILL", payload)
    members, before = processes.family(hold.pid), claims(lab)
    with UtilWatch(lab.card) as watch:
        hold.end(signal.SIGKILL)
        left = wait_dead(members, DEAD_WITHIN_S)
        report_nothing_left(lab, f"{name}: memory", base_mib, DEAD_WITHIN_S)
        time.sleep(1)
    lab.report.check(f"{name}: processes left", "0", f"{left} of {len(members)}", left == 0)
    busy = watch.between(hold.end_sent_s + 0.7, time.time())
    lab.report.check(f"{name}: kernels gone", "0 % utilisation", f"{max(busy, default=-1)} % in {len(busy)} samples",
                     bool(busy) and max(busy) == 0)
    after = claims(lab)
    lab.report.check(f"{name}: claims", "1, then 0", f"{before}, then {after}", (before, after) == (1, 0))


def run_stop(lab):
    for payload in lab.payloads("stop"):
        report_signal(lab, payload, signal.SIGTERM)
        report_signal(lab, payload, signal.SIGINT)
        report_kill(lab, payload)


def run_faults(lab):
    hold, _ = held(lab, "faults-first", "auto")
    status, _, err = lab.run("faults-second", lab.loadline("hold", "--for", "3s"), timeout=20)
    lab.report.check("faults: a second hold on the card", "exit status 4", f"{status}: {reason(err, 80)}", status == 4)
    time.sleep(1)
    state = hold.samples()[-1].state
    hold.end()
    yields = hold.summary()["yields"]
    lab.report.check("faults: the first one goes on", "holding, 0 yields", f"{state}, {yields} yields",
                     (state, yields) == ("holding", 0))
