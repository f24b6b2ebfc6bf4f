"""mps-space: `loadline run --by space`: its share of the SMs, the total that it sees, and two programs at once."""
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
SETTLE_S, SECONDS = 2.0, 15
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


def report_share(lab, program, sms, native_rate):
    percents, rates = measure(lab, [program], lab.seconds(SECONDS))
    if not percents:
        raise Trouble("GPM gave no value")
    lab.report.keep("mps-space: SM share", {"sm_percent": figures.spread(percents), "per_s": rates[0],
                                            "native_per_s": native_rate, "sm_count": sms})
    speed = f"; speed {100 * rates[0] / native_rate:.1f} % of native" if rates[0] and native_rate else ""
    lab.report.near(f"mps-space: SM share of {PERCENT} %", figures.mean(percents), PERCENT, round(100 / sms, 2), "%",
                    more=f"; {sms} SMs{speed}")


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
    _, (native_rate,) = measure(lab, [native], lab.seconds(5))
    native.end()
    limits = ["--by", "space", "--compute", f"{PERCENT}%", "--mem", str(MEMORY)]
    with PrivateMps(lab) as mps:
        report_total(lab, mps)
        first = Program(lab, "mps-space-1", words, limits, env=mps.env).wait_ready()
        report_share(lab, first, sms, native_rate)
        alone_rate = first.rate_for(lab.seconds(5))
        second = Program(lab, "mps-space-2", words, limits, env=mps.env).wait_ready()
        report_two(lab, first, second, alone_rate)
        first.end()
        second.end()
