"""Programs that share a card, in several ways that take turns, window after window in one run.

A way is how the programs of a pool are started: natively, under `loadline run` as one tenant each, all as one tenant (then nobody
is kept from the card for another: gates are open), under MPS without loadline, under `loadline run --by space` or `--by auto`. Each
kind is started once for each way, and works in those windows in which it is told to.
"""
import contextlib
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import programs

READY_WITHIN_S, DONE_WITHIN_S = 240, 60
# ways under `loadline run`, with more words for it; ways that know the MPS daemon
GOVERNED = {"open": [], "run": [], "space": ["--by", "space"], "auto": ["--by", "auto"]}
UNDER_MPS = ("mps", "space", "auto")


def name_of(way, program):
    """For a tenant and a file: loadline's names have neither of these two signs."""
    return f"{way}-{program.replace('=', '-').replace(',', '+')}"


def tenant_of(way, program):
    """A tenant for each program; one for all where gates are to be open."""
    return "together" if way == "open" else name_of(way, program)


class Broken(RuntimeError):
    """programs: {kind: why}, of those that did not do what they were told."""

    def __init__(self, programs):
        super().__init__("; ".join(programs.values()))
        self.programs = programs


class Mps:
    """A daemon of our own, which nobody else uses."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="mixes-mps-")
        self.env = {"CUDA_MPS_PIPE_DIRECTORY": self.folder, "CUDA_MPS_LOG_DIRECTORY": self.folder}
        subprocess.run(["nvidia-cuda-mps-control", "-d"], env={**os.environ, **self.env}, check=True)

    def end(self):
        subprocess.run(["nvidia-cuda-mps-control"], input=b"quit\n", env={**os.environ, **self.env}, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


class Program:
    def __init__(self, name, words, env, log):
        self.name, self.lines = name, queue.Queue()
        with open(log, "wb") as err:
            self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, env=env,
                                            start_new_session=True)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            if line.startswith(b"{"):
                self.lines.put(json.loads(line))
        self.lines.put(None)

    def expect(self, event, seconds):
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            line = None
        if line is None or line["event"] != event:
            raise RuntimeError(f"{self.name}: no {event}: {line}")
        return line

    def go(self, seconds):
        self.process.stdin.write(f"{seconds:g}\n".encode())
        self.process.stdin.flush()

    def close(self):
        """It ends by itself when it reads this."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def end(self):
        self.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
            self.process.wait()


class Pool:
    """Each kind, in each way. A kind is any name of which words() gives the command: a program of programs.py, if nothing is said.
    options: {kind: words for `loadline run`}."""

    def __init__(self, kinds, ways, logs, options=None, words=programs.parse):
        os.makedirs(logs, exist_ok=True)
        self.kinds, self.ways, self.mps = [], ways, Mps() if set(UNDER_MPS) & set(ways) else None
        self.logs, self.options, self.words = logs, options or {}, words
        self.programs, self.broken = {}, {}
        self.add(kinds)

    def add(self, kinds):
        """Starts these, all at once, and waits until they are ready. broken tells which are not, and why."""
        self.kinds += kinds
        keys = [(way, kind) for way in self.ways for kind in kinds]
        self.programs.update({key: self.start(*key) for key in keys})
        for key in keys:
            try:
                self.programs[key].expect("ready", READY_WITHIN_S)
            except RuntimeError as why:
                self.broken[key] = str(why)

    def start(self, way, kind):
        env = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", **os.environ, **(self.mps.env if way in UNDER_MPS else {})}
        loadline = os.environ.get("LOADLINE", "loadline")
        governed = [loadline, "run", "--tenant", tenant_of(way, kind), *self.options.get(kind, []), *GOVERNED.get(way, []), "--"]
        words = (governed if way in GOVERNED else []) + self.words(kind)
        return Program(f"{way} {kind}", words, env, os.path.join(self.logs, f"{name_of(way, kind)}.err"))

    def window(self, way, kinds, seconds):
        """{kind: what it told of a window in which these worked together}. Raises Broken when all have been heard."""
        told, faults = {}, {}
        for kind in kinds:
            try:
                self.programs[way, kind].go(seconds)
            except OSError:
                faults[kind] = f"{way} {kind}: has ended"
        for kind in [kind for kind in kinds if kind not in faults]:
            try:
                told[kind] = self.programs[way, kind].expect("done", seconds + DONE_WITHIN_S)
            except RuntimeError as why:
                faults[kind] = str(why)
        if faults:
            raise Broken(faults)
        return told

    def drop(self, kind):
        """Ends a kind in all ways: its memory is free for the others."""
        for way in self.ways:
            self.programs.pop((way, kind)).end()
        self.kinds.remove(kind)

    def end(self):
        for program in self.programs.values():
            program.close()
        for program in self.programs.values():
            program.end()
        if self.mps:
            self.mps.end()


def set_program(kind, *words):
    """`loadline set` for the program of that kind that works as run."""
    words = [os.environ.get("LOADLINE", "loadline"), "set", tenant_of("run", kind), *words]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Broken({kind: f"set {' '.join(words[2:])}: {done.stderr.strip()}"})


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def say_time(what, begin):
    print(f"{what}: {time.monotonic() - begin:.1f} s", file=sys.stderr, flush=True)
