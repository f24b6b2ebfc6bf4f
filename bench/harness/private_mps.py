"""An MPS daemon of our own, started and ended by `loadline mps`, in a folder of our own. No card's mode is changed."""
import json
import os
import shutil
import tempfile
import time

from .lab import Missing, Trouble, reason

DEFAULT_MODE = 0
END_WITHIN_S = 20


class PrivateMps:
    def __init__(self, lab, *limits):
        if lab.card.compute_mode() != DEFAULT_MODE:
            raise Missing("the card's compute mode is not default")
        self.lab = lab
        self.limits = map(str, limits)
        self.folder = tempfile.mkdtemp(prefix="llmps")  # short: a socket's path has 107 characters at most
        self.env = {"CUDA_MPS_PIPE_DIRECTORY": os.path.join(self.folder, "pipe"),
                    "CUDA_MPS_LOG_DIRECTORY": os.path.join(self.folder, "log")}
        self.started_s = 0.0  # time.monotonic() when the command was given
        self.start_seconds = 0.0

    def __enter__(self):
        self.started_s = time.monotonic()
        status, _, err = self.command("start", "-i", "0", *self.limits)
        self.start_seconds = time.monotonic() - self.started_s
        if status:
            self.remove()
            kind = Missing if "no nvidia-cuda-mps-control" in err else Trouble
            raise kind(f"loadline mps start: {reason(err, 100)}")
        return self

    def __exit__(self, *_):
        self.lab.end_children()
        self.command("stop", "--force", "--within", f"{END_WITHIN_S}s")
        self.remove()

    def command(self, *words, timeout=60):
        """(exit status, stdout, stderr) of `loadline mps WORD...`."""
        name = f"mps-{words[0]}"
        return self.lab.run(name, self.lab.loadline("mps", *map(str, words)), self.env, timeout=timeout)

    def need(self, *words):
        status, out, err = self.command(*words)
        if status:
            raise Trouble(f"loadline mps {words[0]}: {reason(err, 100)}")
        return out

    def lines(self, *words):
        return [json.loads(line) for line in self.need(*words, "--json").splitlines()]

    def clients(self):
        return {line["client"] for line in self.lines("clients")}

    def remove(self):
        logs = os.path.join(self.folder, "log")
        for name in os.listdir(logs) if os.path.isdir(logs) else []:
            shutil.copy(os.path.join(logs, name), self.lab.log("mps-" + name))
        shutil.rmtree(self.folder, ignore_errors=True)
