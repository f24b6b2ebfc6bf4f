"""A running bench/c/foreign: somebody else's work on the card."""
import os
import re
import subprocess
import time

from . import figures
from .lab import Trouble

READY_WITHIN_S = 30


class Stranger:
    def __init__(self, lab, name, mode, *options, env=None, is_triggered=False, is_ready=True):
        self.lab = lab
        self.name = name
        self.out = lab.log(name + ".csv")
        self.ready_file, self.go_file = lab.log(name + ".ready"), lab.log(name + ".go")
        for path in (self.out, self.ready_file, self.go_file):
            if os.path.exists(path):
                os.unlink(path)
        command = [lab.program("bench/c/foreign"), "--mode", mode, "--ready-file", self.ready_file, "--go-file",
                   self.go_file, "--out", self.out, *map(str, options)]
        command += ["--triggered"] if is_triggered else []
        self.process = lab.spawn(name, command, env, stdin=subprocess.PIPE if is_triggered else subprocess.DEVNULL)
        if is_ready:
            self.wait_ready()

    def wait_ready(self):
        """Its context is there and its first kernels have run."""
        deadline = time.monotonic() + READY_WITHIN_S
        while not os.path.exists(self.ready_file):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Trouble(f"{self.name}: {self.lab.tail(self.name + '.err') or 'not ready'}")
            time.sleep(0.01)

    def go(self):
        with open(self.go_file, "wb"):
            pass

    def trigger(self):
        try:
            self.process.stdin.write(b"\n")
            self.process.stdin.flush()
        except OSError:
            raise Trouble(f"{self.name}: {self.lab.tail(self.name + '.err') or 'has ended'}") from None

    def finish(self, seconds=30):
        """Lets it end: by itself, or by the end of its standard input."""
        if self.process.stdin:
            self.process.stdin.close()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            self.process.wait(10)
        if self.process.returncode:
            raise Trouble(f"{self.name}: {self.lab.tail(self.name + '.err')}")

    def stop(self):
        self.process.terminate()
        self.finish()

    def bursts(self):
        with open(self.out, encoding="ascii") as rows:
            next(rows)
            return figures.bursts_of(tuple(map(int, row.split(","))) for row in rows)

    def rate(self):
        """Rounds a second of mode loop."""
        found = re.search(r"rate_per_s=([0-9.]+)", self.lab.read(self.name + ".out"))
        if not found:
            raise Trouble(f"{self.name}: no rate: {self.lab.tail(self.name + '.err')}")
        return float(found.group(1))
