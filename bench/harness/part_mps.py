"""mps: a hold as a client of a private MPS server, beside another client. Changes no mode of the card."""
import os
import shutil
import signal
import tempfile
import time

from . import figures, processes
from .hold import Hold
from .lab import Missing, Trouble
from .level import hold_level, judged, report_util
from .part_yield import make_arrivals, report_arrivals
from .stranger import Stranger

DEFAULT_MODE = 0
OWN_MIB = 43
YIELD_MS = 600
BURST_MS = 1500


class Mps:
    """A control daemon of our own, with state and logs in a folder of our own."""

    def __init__(self, lab):
        self.lab = lab
        self.control, path = lab.mps_control()
        self.folder = tempfile.mkdtemp(prefix="llmps")  # short: a socket's path has 108 characters at most
        self.env = {"PATH": path, "CUDA_MPS_PIPE_DIRECTORY": os.path.join(self.folder, "pipe"),
                    "CUDA_MPS_LOG_DIRECTORY": os.path.join(self.folder, "log")}
        for key in ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"):
            os.mkdir(self.env[key])

    def __enter__(self):
        status, out, err = self.lab.run("mps-start", [self.control, "-d"], self.env, timeout=30)
        if status:
            self.remove()
            raise Missing(f"MPS does not start: {(out + err).strip()[-120:]}")
        return self

    def __exit__(self, *_):
        self.lab.end_children()  # the daemon does not go before its clients
        pids = self.pids()
        self.ask("quit")
        self.end(pids)
        self.remove()

    def ask(self, words):
        script = f"echo '{words}' | '{self.control}'"
        return self.lab.run("mps-" + words.split()[0], ["/bin/sh", "-c", script], self.env, timeout=20)[1]

    def pids(self):
        """Of the daemon and its servers, of ours alone."""
        found = [int(word) for word in self.ask("get_server_list").split() if word.isdigit()]
        try:
            with open(os.path.join(self.env["CUDA_MPS_PIPE_DIRECTORY"], "nvidia-cuda-mps-control.pid"),
                      encoding="ascii") as pid:
                found.append(int(pid.read()))
        except (OSError, ValueError):
            pass
        return found

    def end(self, pids):
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            for pid in filter(processes.is_alive, pids):
                if number is not None:
                    os.kill(pid, number)
            deadline = time.monotonic() + 5
            while any(map(processes.is_alive, pids)) and time.monotonic() < deadline:
                time.sleep(0.05)

    def remove(self):
        for name in os.listdir(os.path.join(self.folder, "log")):
            shutil.copy(os.path.join(self.folder, "log", name), self.lab.log("mps-" + name))
        shutil.rmtree(self.folder, ignore_errors=True)


def report_memory(lab, level):
    told_mib = level.hold.summary()["memory_bytes"] / (1 << 20)
    lab.report.at_most("mps: GPU memory of its own, settled", level.memory_mib, OWN_MIB, "MiB", 1,
                       f"; the hold says {told_mib:.1f}")
    lab.report.at_most("mps: host CPU, % of a core", level.cpu_percent, 3, "%")
    lab.report.at_most("mps: anonymous RSS", level.rss_anon_mib, 64, "MiB", 1, f"; total {level.rss_mib:.1f}")


def yield_to_client(lab, env):
    count = lab.times(20, 3)
    stranger = Stranger(lab, "mps-foreign", "dense", "--burst-ms", BURST_MS, env=env, is_triggered=True)
    hold = Hold(lab, "mps-yield", "--mps", "--payload", "cuda", "--target", "50%", "--resume-after", "300ms", env=env,
                has_kernel_log=True)
    hold.wait_holding()
    stranger.go()
    make_arrivals(lab, hold, stranger, count, lab.seconds(90, 20))
    stranger.finish()
    hold.end()
    figure = "mps: yield to a dense client"
    report_arrivals(lab, figure, hold, stranger, count, (None, None))
    arrivals = figures.judge_arrivals(hold.kernels(), stranger.bursts())
    if arrivals:
        worst_ms = max(a.latency_ns for a in arrivals) / 1e6
        middle_ms = figures.percentile([a.latency_ns / 1e6 for a in arrivals], 50)
        lab.report.at_most(f"{figure}: all", worst_ms, YIELD_MS, "ms", 1, f"; p50 {middle_ms:.1f}")


def run(lab):
    if lab.card.compute_mode() != DEFAULT_MODE:
        raise Missing("the card's compute mode is not default")
    bare_mib = lab.card.settled_mib()
    with Mps(lab) as mps:
        try:
            # A client that stays keeps the server up, whose memory is not the hold's.
            keeper = Stranger(lab, "mps-keeper", "dense", "--bursts", 1, "--burst-ms", 1, env=mps.env)
        except Trouble as why:
            raise Missing(f"MPS does not take clients: {why}") from None
        server_mib = lab.card.settled_mib() - bare_mib
        lab.report.info("mps: server and one full client", f"{server_mib:.1f} MiB")
        level = hold_level(lab, "mps", lab.seconds(30), "--mps", "--payload", "cuda", "--target", "50%", env=mps.env)
        report_util(lab, "mps: util 50 %", judged(level), 50)
        report_memory(lab, level)
        yield_to_client(lab, mps.env)
        keeper.stop()
