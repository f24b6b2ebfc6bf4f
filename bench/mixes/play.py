"""Programs that share a card, in several ways that take turns, window after window in one run.

A way is how the programs of a pool are started: natively, under `loadline run` as one tenant each, all as one tenant (then nobody
is kept from the card for another: gates are open), under MPS without loadline, under `loadline run --by space`. Each kind is
started once for each way, and works in those windows in which it is told to.
"""
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = os.path.join(HERE, "kinds")
READY_WITHIN_S, DONE_WITHIN_S = 240, 60
OTHERS = ("jax", "cupy", "numba", "triton")
WAYS = ("native", "open", "run", "mps", "space")


def words_of(kind):
    python = os.environ.get("LOADLINE_TORCH_PYTHON", sys.executable)
    script = f"with_{kind}.py" if kind in OTHERS else "with_torch.py"
    return [python, os.path.join(KINDS, script)] + ([] if kind in OTHERS else [kind])


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

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
            self.process.wait()


class Pool:
    """Each kind, in each way. options: {kind: words for `loadline run`}."""

    def __init__(self, kinds, ways, logs, options=None):
        os.makedirs(logs, exist_ok=True)
        self.kinds, self.ways, self.mps = kinds, ways, Mps() if {"mps", "space"} & set(ways) else None
        options = options or {}
        self.programs = {(way, kind): self.start(way, kind, options.get(kind, []), logs) for way in ways for kind in kinds}
        self.broken = {}
        for key, program in self.programs.items():
            try:
                program.expect("ready", READY_WITHIN_S)
            except RuntimeError as why:
                self.broken[key] = str(why)

    def start(self, way, kind, options, logs):
        env = {**os.environ, **(self.mps.env if way in ("mps", "space") else {})}
        loadline = os.environ.get("LOADLINE", "loadline")
        tenant = "together" if way == "open" else kind
        governed = [loadline, "run", "--tenant", tenant, *options, *(["--by", "space"] if way == "space" else []), "--"]
        words = (governed if way in ("open", "run", "space") else []) + words_of(kind)
        return Program(f"{way} {kind}", words, env, os.path.join(logs, f"{way}-{kind}.err"))

    def window(self, way, kinds, seconds):
        """{kind: what it told of a window in which these worked together}"""
        chosen = {kind: self.programs[way, kind] for kind in kinds}
        for program in chosen.values():
            program.go(seconds)
        return {kind: program.expect("done", seconds + DONE_WITHIN_S) for kind, program in chosen.items()}

    def end(self):
        for program in self.programs.values():
            program.end()
        if self.mps:
            self.mps.end()


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def say_time(what, begin):
    print(f"{what}: {time.monotonic() - begin:.1f} s", file=sys.stderr, flush=True)
