"""What the kinds of programs have in common: they get ready, work for as long as they are told, and count what the card has finished.

    with_torch.py NAME [--OPTION VALUE]...
    with_jax.py [--OPTION VALUE]...

A line on standard input is a number of seconds to work for; the end of it is the end. A JSON object a line comes out:

    {"event":"ready"}
    {"event":"done","seconds":2.8,"rate_per_s":409.9,"steps_by_10ms":[4,4,5]}       a kind that steps
    {"event":"done","seconds":2.8,"rate_per_s":12.1,"latencies_ms":[2.4,2.5]}       a kind that answers requests

A step is what the program itself calls one: a step of a training, a token, a request. It counts when the card has finished it:
the program marks the end of each step by an event without timing and asks for the oldest mark after each step, which waits for
nothing. So the count does not change what the program does, and launches that only wait in a queue do not count.
"""
import argparse
import collections
import json
import random
import sys
import time

BIN_S = 0.01
WARM_UP_S = 1.0


def arguments(words=None, **options):
    """The command line: a keyword is an option, its value the default. words: those of the command line, if not all."""
    parser = argparse.ArgumentParser()
    for name, default in options.items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(default), default=default)
    return parser.parse_args(words)


def say(**facts):
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


class Marks:
    """Marks of PyTorch's current stream. A kind of another framework gives a class with the same two functions."""

    def __init__(self):
        import torch
        self.torch, self.free = torch, []

    def mark(self):
        event = self.free.pop() if self.free else self.torch.cuda.Event()
        event.record()
        return event

    def is_reached(self, event):
        if not event.query():
            return False
        self.free.append(event)
        return True


class Waited:
    """For a kind whose step ends when the card has finished it."""

    def mark(self):
        return None

    def is_reached(self, _):
        return True


class Steps:
    def __init__(self, step, marks):
        self.step, self.marks, self.pending = step, marks, collections.deque()

    def drain(self):
        while self.pending:
            if self.marks.is_reached(self.pending[0]):
                self.pending.popleft()
            else:
                time.sleep(0.0002)

    def work(self, seconds):
        counts = [0] * (int(seconds / BIN_S) + 1)
        begin = time.perf_counter()
        now_s = 0.0
        while now_s < seconds:
            self.step()
            self.pending.append(self.marks.mark())
            now_s = time.perf_counter() - begin
            while self.pending and self.marks.is_reached(self.pending[0]):
                self.pending.popleft()
                if now_s < seconds:
                    counts[int(now_s / BIN_S)] += 1
        self.drain()
        counts.pop()
        say(event="done", seconds=seconds, rate_per_s=round(sum(counts) / (len(counts) * BIN_S), 4), steps_by_10ms=counts)


class Requests:
    """Requests come at random, every_s apart on average (Poisson), and wait for those before."""

    def __init__(self, answer, every_s, seed=1):
        self.answer, self.every_s, self.dice = answer, every_s, random.Random(seed)

    def work(self, seconds):
        latencies_ms, begin = [], time.perf_counter()
        due_s = begin + self.dice.expovariate(1 / self.every_s)
        while due_s - begin < seconds:
            time.sleep(max(0.0, due_s - time.perf_counter()))
            self.answer()
            latencies_ms.append(round(1000 * (time.perf_counter() - due_s), 3))
            due_s += self.dice.expovariate(1 / self.every_s)
        took_s = time.perf_counter() - begin
        say(event="done", seconds=round(took_s, 4), rate_per_s=round(len(latencies_ms) / took_s, 4), latencies_ms=latencies_ms)


def warm_up(step):
    begin = time.perf_counter()
    for _ in range(3):
        step()
    while time.perf_counter() - begin < WARM_UP_S:
        step()


def run(work):
    """work: Steps or Requests."""
    say(event="ready")
    for line in sys.stdin:
        work.work(float(line))
