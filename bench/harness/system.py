"""The system's loadlined, with a configuration and a state of its own, and the programs beside it. Needs root: its place is root's."""
import os
import signal
import tempfile
import time

from .lab import Missing, Trouble

WITHIN_S = 20


def need_root():
    if os.geteuid():
        raise Missing("not root")


def ended(child):
    code = child.returncode
    return signal.Signals(-code).name if code < 0 else f"exit status {code}"


class System:
    """user: who loadlined becomes."""

    def __init__(self, lab, config, user):
        self.lab = lab
        self.folder = tempfile.mkdtemp(prefix="loadline-bench.")
        self.children = {}
        with open(self.path("loadline.yaml"), "w", encoding="utf-8") as file:
            file.write(config)
        os.chmod(self.folder, 0o755)
        os.mkdir(self.path("state"), 0o700)
        if "LOADLINE_SIM_DIR" not in os.environ:
            os.makedirs("/run/loadline", 0o755, exist_ok=True)
        self.start("loadlined", "src/daemon/loadlined", "--system", "--user", user, "--config",
                   self.path("loadline.yaml"), "--state", self.path("state"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, name, program, *words):
        self.children[name] = self.lab.spawn(name, [self.lab.program(program), *words])

    def wait_for(self, what, condition):
        end = time.monotonic() + WITHIN_S
        while not condition():
            for name, child in self.children.items():
                if child.poll() is not None:
                    raise Trouble(f"{name} has ended ({ended(child)}): {self.lab.tail(name + '.err')}")
            if time.monotonic() > end:
                said = "; ".join(f"{name}: {self.lab.tail(name + '.err')}" for name in self.children)
                raise Trouble(f"{what}: not within {WITHIN_S} s ({said})")
            time.sleep(1.1)  # the exporter keeps a text for a second
