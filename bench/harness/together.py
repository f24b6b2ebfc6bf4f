"""Looping programs that work at once, and each of them alone: what each gets of the time, and how fast it is."""
import time

from . import shares
from .claims import StatusWatch
from .governed import Program

SETTLE_S, LATE_S = 2.0, 1.5
DONE_WITHIN_S = 30


def alone_rate(lab, name, words, seconds, env=None):
    """Iterations a second of the program as it is."""
    program = Program(lab, name, words, None, env)
    program.wait_ready().rate_for(1)
    rate = program.rate_for(seconds)
    program.end()
    return rate


def watch(lab, name, programs, seconds, during=time.sleep):
    """Governed programs that are ready: [(percent of the time by its accounts, iterations a second)] of each, and what
    during(seconds) found. They have ended then."""
    marks = [program.go(SETTLE_S + seconds + LATE_S) for program in programs]
    time.sleep(SETTLE_S)
    from_s = time.time()
    with StatusWatch(lab, f"status-{name}") as status:
        found = during(seconds)
    until_s = time.time()
    for program, mark in zip(programs, marks):
        program.wait_done(mark, DONE_WITHIN_S)
        program.end()
    return [(shares.level(status.windows(program.name)), program.rate(from_s, until_s)) for program in programs], found
