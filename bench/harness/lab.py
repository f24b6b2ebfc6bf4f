"""What every part works with: where the programs are, the cards, the report, the children that must not outlive us."""
import os
import random
import shutil
import signal
import subprocess
import time

from . import card as cards

MPS_FOLDERS = "/usr/bin:/usr/local/bin:/usr/local/nvidia/bin"


class Trouble(Exception):
    """A part cannot go on; it counts as failed."""


class Missing(Exception):
    """A part lacks what it needs; it counts as skipped."""


def reason(err, width=110):
    """The error line that a program ended with."""
    lines = [line for line in err.strip().splitlines() if line.startswith("loadline:")] or err.strip().splitlines()
    text = lines[-1].replace("loadline: ", "", 1) if lines else "says nothing"
    return text if len(text) <= width else text[:width - 1] + "…"


class Lab:
    def __init__(self, build, logs, report, quick):
        self.build = os.path.abspath(build)
        self.logs = os.path.abspath(logs)
        self.report = report
        self.quick = quick  # durations and counts are divided by this
        self.children = []
        self.kept = []  # children that outlive a part
        self.shared = {}  # what parts of a run have in common
        self.payload_faults = {}
        self.pythons = {}  # framework: interpreter, or None
        self.random = random.Random(20181101)
        self.nvml = cards.Nvml()
        self.cards = [cards.Card(self.nvml, i) for i in range(self.nvml.count())]
        if not self.cards:
            raise cards.NvmlError("the driver has no card")
        os.makedirs(self.logs, exist_ok=True)

    @property
    def card(self):
        return self.cards[0]

    def seconds(self, value, least=3.0):
        return value if self.quick == 1 else max(least, value / self.quick)

    def times(self, value, least=3):
        return value if self.quick == 1 else max(least, round(value / self.quick))

    def program(self, path):
        """From the build folder as meson makes it, or flat."""
        for name in (path, os.path.basename(path)):
            found = os.path.join(self.build, name)
            if os.access(found, os.X_OK):
                return found
        raise Missing(f"no {path} in {self.build}")

    def log(self, name):
        return os.path.join(self.logs, name)

    def environment(self, extra):
        env = dict(os.environ, LANGUAGE="en")  # messages are looked for in English
        env.update(extra or {})
        return env

    def spawn(self, name, command, env=None, **streams):
        """A child whose streams that are not given go to files of the logs folder."""
        with open(self.log(name + ".out"), "wb") as out, open(self.log(name + ".err"), "wb") as err:
            streams.setdefault("stdin", subprocess.DEVNULL)
            streams.setdefault("stdout", out)
            streams.setdefault("stderr", err)
            child = subprocess.Popen(command, env=self.environment(env), **streams)
        self.children.append(child)
        return child

    def run(self, name, command, env=None, timeout=60):
        """(exit status, stdout, stderr) of a program that ends by itself."""
        child = self.spawn(name, command, env)
        try:
            child.wait(timeout)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        return child.returncode, self.read(name + ".out"), self.read(name + ".err")

    def read(self, name):
        try:
            with open(self.log(name), encoding="utf-8", errors="replace") as text:
                return text.read()
        except OSError:
            return ""

    def tail(self, name, lines=3):
        return " / ".join(self.read(name).strip().splitlines()[-lines:])

    def keep(self, child):
        """It ends when the run ends, not with its part."""
        self.children.remove(child)
        self.kept.append(child)

    def end_children(self):
        self.end_all(self.children)

    def end_kept(self):
        self.end_all(self.kept)

    @staticmethod
    def end_all(children):
        for child in children:
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
        for child in children:
            try:
                child.wait(3)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        children.clear()

    def loadline(self, *words):
        return [self.program("loadline"), *words]

    def payload_fault(self, payload):
        """Why this payload cannot be used here, or None."""
        if payload not in self.payload_faults:
            status, _, err = self.run(f"try-{payload}", self.loadline("hold", "--payload", payload, "--for", "1s"))
            self.payload_faults[payload] = reason(err) if status else None
            time.sleep(0.5)
        return self.payload_faults[payload]

    def payloads(self, figure):
        """Those that work; the others get a row that says why not."""
        found = []
        for payload in ("vulkan", "cuda"):
            why_not = self.payload_fault(payload)
            if why_not:
                self.report.skip(f"{figure}: {payload}", why_not)
            else:
                found.append(payload)
        return found

    def mps_control(self):
        path = os.pathsep.join([os.environ.get("PATH", ""), MPS_FOLDERS])
        found = shutil.which("nvidia-cuda-mps-control", path=path)
        if not found:
            raise Missing("no nvidia-cuda-mps-control")
        return found, path
