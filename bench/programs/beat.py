"""What the looping programs have in common: they say that they are ready, work as long as they are told, and count.

    PROGRAM [its own options] [--seconds N]

Without --seconds each line on standard input is a number of seconds to work for, and the end of it is the end. A JSON
object a line comes out:

    {"event":"ready"}                                                      set up and warm
    {"event":"count","time_s":1700000000.1,"iterations":400}               wall clock; at the start, each second, at the end
    {"event":"stamps","batches_ns":[[17000,27000],...]}                    of a program with stamps: its first batches
    {"event":"done","iterations":4100,"seconds":10.002,"rate_per_s":409.9}

Iterations are those that the card has finished, since the program began; those of `done` are of this stretch alone, and
its rate is without the first batch, which comes to an idle card and to a library that has been at rest. A
program gives `queue`: it hands the card some work and returns (iterations, a function that waits for it). Two such
batches are on their way at any time, so a card that this program has to itself never waits for the host.
"""
import argparse
import collections
import os
import sys
import time

import line

AHEAD = 2
WARM_UP_S = 0.5


def arguments(**options):
    """The command line: a keyword is an option, its value the default."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float)
    for name, default in options.items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(default), default=default)
    return parser.parse_args()


def say(event, **more):
    line.say(event=event, **more)


class Beat:
    def __init__(self, queue, ahead=AHEAD):
        self.queue = queue
        self.ahead = ahead
        self.iterations = 0
        self.told_s = 0.0

    def tell(self, now_s):
        say("count", time_s=now_s, iterations=self.iterations)
        self.told_s = now_s

    def finish_one(self, pending):
        count, wait = pending.popleft()
        wait()
        self.iterations += count

    def work(self, seconds):
        """(iterations, seconds, iterations a second from the end of the first batch on)"""
        begin, before, pending = time.perf_counter(), self.iterations, collections.deque()
        first_s, first = begin, before
        self.tell(time.time())
        while time.perf_counter() - begin < seconds:
            pending.append(self.queue())
            if len(pending) >= self.ahead:
                self.finish_one(pending)
                if first == before:
                    first_s, first = time.perf_counter(), self.iterations
            if time.time() - self.told_s >= 1:
                self.tell(time.time())
        while pending:
            self.finish_one(pending)
        end_s = time.perf_counter()
        self.tell(time.time())
        if first == self.iterations:
            first_s, first = begin, before
        return self.iterations - before, end_s - begin, (self.iterations - first) / (end_s - first_s)

    def warm_up(self):
        begin = time.perf_counter()
        while time.perf_counter() - begin < WARM_UP_S:
            self.queue()[1]()


def stay_on(cpu):
    """Keeps this thread, and those that it starts from now on, on one processor. -1: on any."""
    if cpu >= 0:
        os.sched_setaffinity(0, {cpu})


def run(queue, seconds=None, ahead=AHEAD, cpu=-1, stamps=None):
    """The whole program once its data is on the card. seconds None: as standard input says. cpu -1: any. stamps: a
    stamps.Stamps, whose batches have a line of their own after each stretch."""
    beat = Beat(stamps.around(queue) if stamps else queue, ahead)
    beat.warm_up()
    stay_on(cpu)
    say("ready")
    for stretch in [seconds] if seconds else map(float, sys.stdin):
        if stamps:
            stamps.start()
        count, took_s, rate_per_s = beat.work(stretch)
        if stamps:
            say("stamps", batches_ns=stamps.rows())
        say("done", iterations=count, seconds=round(took_s, 6), rate_per_s=round(rate_per_s, 4))
