"""mps-space: `loadline run --by space`: its share of the SMs, the total that it sees, and two programs at once.

The share is judged by a grid that keeps every SM busy that it gets (loop_sms.py), counted by the SMs' own numbers and by
GPM. A matrix product keeps none busy all the time, not even with the whole card: it is judged by what it does there."""
import ctypes
import time

from . import figures
from .card import GpmWatch
from .frameworks import command
from .governed import Program, need_run
from .lab import Missing, Trouble, reason
from .part_run_cap import need_gpm
from .private_mps import PrivateMps

PERCENT = 25
SETTLE_S, SECONDS, NATIVE_S = 2.0, 8, 5
GIB = 1 << 30
MEMORY = 20 * GIB


def sm_count(lab):
    """As a program without limits sees it."""
    cuda = ctypes.CDLL("libcuda.so.1")
    device, count = ctypes.c_int(), ctypes.c_int()
    for status in (cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0),
                   cuda.cuDeviceGetAttribute(ctypes.byref(count), 16, device)):
        if status:
            raise Missing(f"CUDA error {status}")
    return count.value


def measure(lab, programs, seconds):
    """([SM activity over windows of a second], [each program's rate])"""
    marks = [program.go(SETTLE_S + seconds + 1.5) for program in programs]
    time.sleep(SETTLE_S)
    from_s = time.time()
    with GpmWatch(lab.card) as gpm:
        time.sleep(seconds + 0.5)
    until_s = time.time()
    for program, mark in zip(programs, marks):
        program.wait_done(mark, 30)
    return [values["sm"] for end_s, values in gpm.values if end_s > from_s], [p.rate(from_s, until_s) for p in programs]


def report_total(lab, mps):
    words = lab.loadline("run", "--by", "space", "--compute", f"{PERCENT}%", "--mem", str(MEMORY), "--",
                         *command(lab, None, "total.py"))
    status, out, err = lab.run("mps-total", words, mps.env)
    if status:
        raise Trouble(f"total: {reason(err)}")
    lab.report.check("mps-space: total memory shown", f"{MEMORY} bytes", f"{out.strip()} bytes",
                     out.strip() == str(MEMORY))


def measure_one(lab, name, program, seconds):
    """(SM activity in percent of the card, rate)"""
    percents, (rate,) = measure(lab, [program], seconds)
    if not percents or not rate:
        raise Trouble(f"{name}: GPM gave no value, or nothing was counted")
    lab.report.keep(f"mps-space: {name}", {"sm_percent": figures.spread(percents), "per_s": rate})
    return figures.mean(percents), rate


def judge_sms(report, figure, sms, whole, more=""):
    """SMs are whole: a reading of 31.97 is 32 of them."""
    wanted = whole * PERCENT / 100
    report.check(figure, f"{wanted:g} ± 1 SMs of {whole}", "none" if sms is None else f"{sms:.2f}{more}",
                 sms is not None and abs(round(sms) - wanted) <= 1 + 1e-9)


def report_grid(report, told, percent, whole):
    """told: what loop_sms.py says; percent: of the card's SMs, by GPM."""
    judge_sms(report, f"mps-space: {PERCENT} %, a grid that fills it, by %smid", told["blocks"], whole,
              f"; the driver says {told['shown']}; by clusters of two blocks {told['clusters']}")
    judge_sms(report, f"mps-space: {PERCENT} %, a grid that fills it, by GPM", percent * whole / 100, whole,
              f"; {percent:.2f} % of the card")


def report_product(report, percent, native_percent, whole, speed):
    """Of the SMs that the product keeps busy when it has them all."""
    judge_sms(report, f"mps-space: {PERCENT} %, bf16 4096³ loop, by GPM", percent / native_percent * whole, whole,
              f"; {percent:.2f} % of the card, native {native_percent:.2f}; speed {speed:.1f} % of native")


def sms_of(program):
    found = program.wait_for(lambda line: line["event"] == "sms", 1)
    if not found:
        raise Trouble("loop_sms.py counts no SMs")
    return found[1]


def measure_grid(lab, name, limits=None, env=None):
    program = Program(lab, f"mps-space-{name}", command(lab, None, "loop_sms.py"), limits, env).wait_ready()
    percent, _ = measure_one(lab, name, program, lab.seconds(NATIVE_S))
    program.end()
    return sms_of(program), percent


def report_two(lab, first, second, alone_rate):
    """At once: each keeps its speed. In turns it would have half of it."""
    _, rates = measure(lab, [first, second], lab.seconds(8))
    if not all(rates) or not alone_rate:
        lab.report.check("mps-space: two at once", "a rate each", str(rates), False)
        return
    least = 100 * min(rates) / alone_rate
    lab.report.at_least("mps-space: two at once, the slower one's speed", least, 80, "% of alone at its share")


def run(lab):
    need_run(lab)
    need_gpm(lab.card)
    sms = sm_count(lab)
    words = command(lab, "torch", "loop_matmul.py", "--size", 4096)
    native = Program(lab, "mps-space-native", words).wait_ready()
    native_percent, native_rate = measure_one(lab, "product-native", native, lab.seconds(NATIVE_S))
    native.end()
    told, percent = measure_grid(lab, "grid-native")
    lab.report.check("mps-space: a grid that fills the card, by %smid, by GPM", f"{sms}, >= 99 %",
                     f"{told['blocks']}, {percent:.2f} %", told["blocks"] == sms and percent >= 99)
    limits = ["--by", "space", "--compute", f"{PERCENT}%", "--mem", str(MEMORY)]
    with PrivateMps(lab) as mps:
        report_total(lab, mps)
        report_grid(lab.report, *measure_grid(lab, "grid", limits, mps.env), sms)
        first = Program(lab, "mps-space-1", words, limits, env=mps.env).wait_ready()
        percent, rate = measure_one(lab, "product", first, lab.seconds(SECONDS))
        report_product(lab.report, percent, native_percent, sms, 100 * rate / native_rate)
        alone_rate = first.rate_for(lab.seconds(5))
        second = Program(lab, "mps-space-2", words, limits, env=mps.env).wait_ready()
        report_two(lab, first, second, alone_rate)
        first.end()
        second.end()
