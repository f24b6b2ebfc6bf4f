"""mps-control: how long `loadline mps` takes to start, end and change MPS, on a private daemon."""
import os
import subprocess
import time

from . import figures
from .lab import Trouble
from .private_mps import PrivateMps

START_S, STOP_S, KILL_S = 1.5, 2.0, 11
READY_WITHIN_S = 30


class Client:
    """bench/c/foreign under `loadline mps run`: it has its context, has run its first kernels, and waits."""

    def __init__(self, mps, name, *limits):
        lab = mps.lab
        self.ready_file, self.go_file = lab.log(name + ".ready"), lab.log(name + ".go")
        for path in (self.ready_file, self.go_file):
            if os.path.exists(path):
                os.unlink(path)
        words = lab.loadline("mps", "run", "--tenant", name, *limits, "--")
        self.process = lab.spawn(name, [*words, lab.program("bench/c/foreign"), "--mode", "dense", "--bursts", "1",
                                        "--burst-ms", "50", "--ready-file", self.ready_file, "--go-file", self.go_file],
                                 mps.env)
        deadline = time.monotonic() + READY_WITHIN_S
        while not os.path.exists(self.ready_file):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Trouble(f"{name}: {lab.tail(name + '.err') or 'not ready'}")
            time.sleep(0.002)
        self.ready_s = time.monotonic()

    @property
    def pid(self):
        return self.process.pid  # run becomes its command

    def fails_next_call(self):
        """Lets it work, which is a burst and its end; an error of CUDA's ends it too."""
        with open(self.go_file, "wb"):
            pass
        try:
            return self.process.wait(READY_WITHIN_S) != 0
        except subprocess.TimeoutExpired:
            return False

    def end(self):
        self.process.terminate()
        self.process.wait()


def start_once(lab, run):
    """(start alone, to the first client running, stop with no client), seconds."""
    with PrivateMps(lab) as mps:
        client = Client(mps, f"mps-first-{run}")
        running_s = client.ready_s - mps.started_s
        client.end()
        deadline = time.monotonic() + READY_WITHIN_S
        while mps.clients() and time.monotonic() < deadline:
            time.sleep(0.01)
        begin = time.monotonic()
        mps.need("stop")
        return mps.start_seconds, running_s, time.monotonic() - begin


def report_times(lab, runs):
    starts, firsts, stops = zip(*(start_once(lab, run) for run in range(runs)))
    lab.report.keep("mps-control", {"start_s": figures.spread(starts), "first_client_s": figures.spread(firsts),
                                    "stop_s": figures.spread(stops)})
    more = f"; worst of {runs}, the daemon answers after {max(starts):.2f}"
    lab.report.at_most("mps-control: start to first client running", max(firsts), START_S, "s", more=more)
    lab.report.at_most("mps-control: stop with no client", max(stops), STOP_S, "s", more=f"; worst of {runs}")


def report_commands(lab):
    with PrivateMps(lab, "--compute", "50%", "--mem", "8G") as mps:
        client = Client(mps, "mps-old")
        found = mps.clients()
        lab.report.check("mps-control: clients names it", str(client.pid), str(sorted(found)), client.pid in found)
        begin = time.monotonic()
        told = mps.need("set", "--compute", "25%", "--mem", "4G")
        lab.report.info("mps-control: set", f"{time.monotonic() - begin:.2f} s")
        lab.report.check("mps-control: set names who has to be restarted", str(client.pid), told.strip()[-40:],
                         str(client.pid) in told)
        servers = [line for line in mps.lines("status") if "server" in line and "status" in line]
        lab.report.check("mps-control: the server holds it", "active, 25 %",
                         ", ".join(f"{s['status']}, {s['compute_percent']} %" for s in servers),
                         [(s["status"], s["compute_percent"]) for s in servers] == [("active", 25.0)])
        report_kill(lab, mps, client)


def report_kill(lab, mps, client):
    """Its process lives on; that it is off MPS shows at its next CUDA call."""
    begin = time.monotonic()
    status, _, err = mps.command("kill", client.pid)
    seconds = time.monotonic() - begin
    lived_on = client.process.poll() is None
    is_off = client.fails_next_call()
    lab.report.check("mps-control: kill takes the client off, or says why not", "0 and off, or 1 and on",
                     f"{status}, {'off' if is_off else 'on'}; {err.strip()[:60]}",
                     (status == 0 and is_off) or (status == 1 and not is_off and bool(err.strip())))
    lab.report.at_most("mps-control: kill", seconds, KILL_S, "s")
    lab.report.info("mps-control: the killed client's process", "lived on" if lived_on else "ended")


def run(lab):
    report_times(lab, lab.times(10, 2))
    report_commands(lab)
