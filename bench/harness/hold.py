"""A running `loadline hold --json`: its lines as they come, and what it used."""
import signal
import subprocess
import time

from . import figures, processes
from .lab import Trouble
from .talker import Talker

LEVEL_KEYS = {"util": "util_percent", "sm": "sm_percent", "occupancy": "occupancy_percent", "tensor": "tensor_percent",
              "dram": "dram_percent", "power": "power_watts"}
START_WITHIN_S = 30


class Hold(Talker):
    def __init__(self, lab, name, *options, env=None, has_kernel_log=False):
        self.kernel_path = lab.log(name + ".kernels.csv") if has_kernel_log else None
        more = ["--kernel-log", self.kernel_path] if has_kernel_log else []
        super().__init__(lab, name, lab.loadline("hold", "--json", *options, *more), env)

    def wait_event(self, name, seconds, since=0, card=0):
        return self.wait_for(lambda line: line["event"] == name and line.get("card") == card, seconds, since)

    def wait_holding(self, card=0, since=0):
        def is_holding(line):
            return line["event"] == "sample" and line["state"] == "holding" and line["card"] == card

        found = self.wait_for(is_holding, START_WITHIN_S, since)
        if not found:
            raise Trouble(f"{self.name}: does not hold: {self.lab.tail(self.name + '.err')}")
        return found

    def end(self, number=signal.SIGTERM, within_s=10):
        """Sends the signal; how long the process took to go."""
        self.end_sent_s = time.time()
        begin = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Trouble(f"{self.name}: not gone {within_s} s after signal {number}") from None
        took_s = time.monotonic() - begin
        self.reader.join(5)
        return took_s

    # ---- what it said ----

    def events(self, name, card=0):
        return [line for _, line in self.lines if line["event"] == name and line.get("card") == card]

    def summary(self, card=0):
        found = self.events("summary", card)
        if not found:
            raise Trouble(f"{self.name}: no summary: {self.lab.tail(self.name + '.err')}")
        return found[-1]

    def samples(self, metric="util", card=0):
        unit = "watts" if metric == "power" else "percent"
        return [figures.Sample(line["time_s"], line[LEVEL_KEYS[metric]], line["target_" + unit], line["state"])
                for line in self.events("sample", card)]

    def first_kernel_s(self, card=0):
        return self.summary(card).get("first_kernel_time_s") or 0.0

    def wall_zero_s(self):
        """The wall clock at the hold's own time 0: lines arrive late, never early, so the earliest is right."""
        return min(wall_s - line["time_s"] for wall_s, line in self.lines if "time_s" in line)

    def kernels(self, card=0):
        """Own kernels of a card, on its clock."""
        rows = []
        with open(self.kernel_path, encoding="ascii") as log:
            for text in log:
                label, *stamps = text.split(",")
                if label == str(card) and text.endswith("\n"):
                    rows.append((int(stamps[0]), int(stamps[1])))
        return figures.kernels(rows)


class Use:
    """Host time and memory of a running hold, between two looks."""

    def __init__(self, hold):
        self.hold = hold
        self.begin_s = time.monotonic()
        self.cpu_s = processes.cpu_seconds(hold.pid)

    def cpu_percent(self):
        return figures.cpu_percent(self.cpu_s, processes.cpu_seconds(self.hold.pid), time.monotonic() - self.begin_s)
