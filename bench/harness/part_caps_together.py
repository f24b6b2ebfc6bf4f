"""share-caps-together: programs that would fill the card, each under a cap, beside each other: each has its cap, by its own
count of kernels of work, which other programs' time on the card does not lengthen; and status says the same."""
import time

from . import claims
from .governed import Program, need_run
from .lab import Missing, Trouble

# caps in percent; None: no cap
EXACT = ((10, 10), (60, 30), (20, 30, 30), (30, None))
TOGETHER = ((30, 70), (20, 80), (50, 50))
KERNELS_US = (20, 200, 2000, 20000)
OVER, SUM, SAID = 1.5, 0.9, 5  # points over a cap; sum of shares; percent that status may differ
WINDOW_S, SETTLE_S = 4.0, 0.7
NAMES = ("caps-a", "caps-b", "caps-c")


def set_cap(lab, name, percent):
    status, _, err = lab.run(f"set-{name}", lab.loadline("set", name, "--compute", "none" if percent is None else f"{percent}%"))
    if status:
        raise Trouble(f"set --compute {percent}: {err.strip()}")


def accounts(lab):
    _, out, _ = lab.run("status-caps", lab.loadline("status", "--json"))
    lines = claims.parse(out)
    return {name: sum(line.get("gpu_seconds") or 0 for line in claims.claims_of(lines, name)) for name in NAMES}


def window(lab, programs, seconds):
    """Kernels a second of each, after it has settled; and GPU seconds a second of each by status."""
    marks = [program.go(SETTLE_S) for program in programs]
    for program, mark in zip(programs, marks):
        program.wait_done(mark, 60)
    marks = [program.go(seconds) for program in programs]
    time.sleep(0.2)
    before, began = accounts(lab), time.monotonic()
    time.sleep(seconds - 0.6)
    after, took = accounts(lab), time.monotonic() - began
    rates = [program.wait_done(mark, 60)["rate_per_s"] for program, mark in zip(programs, marks)]
    return rates, [(after[program.name] - before[program.name]) / took for program in programs]


def words(caps):
    return "/".join("none" if cap is None else str(cap) for cap in caps)


def measure(lab, programs, caps, alone, seconds):
    chosen = programs[:len(caps)]
    for program, cap in zip(chosen, caps):
        set_cap(lab, program.name, cap)
    rates, said = window(lab, chosen, seconds)
    return [100 * rate / alone for rate in rates], [100 * each for each in said]


def faults_of(caps, shares, said):
    """What is wrong: words."""
    wrong, is_full = [], sum(100 if cap is None else cap for cap in caps) > 90
    for cap, share in zip(caps, shares):
        if cap is not None and share > cap + OVER:
            wrong.append(f"{share:.1f} over {cap}")
        if cap is not None and not is_full and share < cap - OVER:
            wrong.append(f"{share:.1f} under {cap}")
    if is_full and sum(shares) < 100 * SUM:
        wrong.append(f"sum {sum(shares):.1f}")
    wrong += [f"status {told:.1f} for {share:.1f}" for share, told in zip(shares, said)
              if abs(told - share) > max(SAID * share / 100, OVER)]
    return wrong


def report_kernel(lab, kernel_us):
    words_of = [lab.program("bench/c/pace"), "flood", "--kernel-us", kernel_us]
    programs = [Program(lab, name, [str(word) for word in words_of], []) for name in NAMES]
    for program in programs:
        program.wait_ready()
    seconds = lab.seconds(WINDOW_S, 2.0)
    for caps in (*EXACT, *TOGETHER):
        for program in programs:
            set_cap(lab, program.name, None)
        alone = window(lab, programs[:1], min(seconds, 1.5))[0][0]
        shares, said = measure(lab, programs, caps, alone, seconds)
        wrong = faults_of(caps, shares, said)
        figure = f"caps together {words(caps)}, kernels of {kernel_us} us"
        lab.report.keep(figure, {"shares": shares, "said": said, "alone_per_s": alone})
        text = " / ".join(f"{share:.1f}" for share in shares) + "; status " + " / ".join(f"{told:.1f}" for told in said)
        lab.report.check(figure, "the caps, ± 1.5" if caps in EXACT else "<= cap + 1.5, sum >= 90", text, not wrong)
    for program in programs:
        program.end()


def run(lab):
    need_run(lab)
    try:
        lab.program("bench/c/pace")
    except Missing:
        lab.report.skip("caps together", "no bench/c/pace")
        return
    for kernel_us in KERNELS_US:
        report_kernel(lab, kernel_us)
