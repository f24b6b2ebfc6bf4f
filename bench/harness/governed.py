"""A looping program of bench/programs, as it is or under `loadline run`."""
import subprocess

from . import shares
from .lab import Missing, Trouble, reason
from .talker import Talker

READY_WITHIN_S = 150


def need_run(lab):
    """Looks whether this build governs programs at all."""
    status, _, err = lab.run("try-run", lab.loadline("run", "--", "true"), timeout=30)
    if status:
        raise Missing(f"loadline run: {reason(err, 80)}")


def wrapped(lab, command, limits):
    """limits: words for `loadline run`; None: the program as it is."""
    return command if limits is None else [*lab.loadline("run"), *map(str, limits), "--", *command]


class Program(Talker):
    """Its tenant is its name, so that status tells it from the others."""

    def __init__(self, lab, name, command, limits=None, env=None):
        if limits is not None:
            limits = ["--tenant", name, *limits]
        super().__init__(lab, name, wrapped(lab, command, limits), env, stdin=subprocess.PIPE)

    def fail(self, what):
        raise Trouble(f"{self.name}: {what}: {self.complaint() or 'says nothing'}")

    def wait_ready(self):
        if not self.wait_for(lambda line: line["event"] == "ready", READY_WITHIN_S):
            self.fail("not ready")
        return self

    def tell(self, words):
        try:
            self.process.stdin.write(f"{words}\n".encode())
            self.process.stdin.flush()
        except OSError:
            self.fail("has ended")

    def go(self, seconds):
        """Lets it work; the mark to wait for the end of that from."""
        mark = self.mark()
        self.tell(f"{seconds:g}")
        return mark

    def wait_done(self, mark, within_s, event="done"):
        found = self.wait_for(lambda line: line["event"] == event, within_s, mark)
        if not found:
            self.fail("not done")
        return found[1]

    def ask(self, words, event, within_s):
        """The answer to a line on its standard input."""
        mark = self.mark()
        self.tell(words)
        return self.wait_done(mark, within_s, event)

    def rate_for(self, seconds):
        """Iterations a second over a stretch of that length."""
        return self.ask(f"{seconds:g}", "done", 3 * seconds + 30)["rate_per_s"]

    def end(self):
        if not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            self.fail("does not end")
        self.reader.join(5)

    def counts(self):
        return [(line["time_s"], line["iterations"]) for _, line in self.lines if line["event"] == "count"]

    def rate(self, from_s, until_s):
        return shares.rate(self.counts(), from_s, until_s)
