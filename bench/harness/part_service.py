"""service-cost: what the system's loadlined and the programs beside it cost the host: without jobs, and with 64 on all cards.

loadlined with a configuration, a queue and accounts, its sensor (each 5 s), its keeper, and the exporter of metrics, which is scraped
each 15 s. CPU time is that of the kernel's scheduler; memory is what is private to the process (smaps_rollup). Needs root: the
place of the system's loadlined is root's."""
import os
import re
import signal
import threading
import time
import urllib.request

from .governed import Program, wrapped
from .processes import family, read_text, thread_seconds
from .system import System, need_root

JOBS = 64
IDLE_S, BUSY_S, SETTLE_S = 60, 120, 15
SCRAPE_EVERY_S = 15
LOADLINED_PERCENT = 5
CONFIG = """\
version: 1
cards: [{{name: all, cards: "{cards}", give: memory}}]
tenants:
  - {{name: research, members: {{users: ["*"]}}}}
defaults: {{memory: 800M}}
serve: {{metrics: "{address}"}}
"""


class Scraper(threading.Thread):
    """Scrapes as Prometheus does."""

    def __init__(self, url):
        super().__init__(daemon=True)
        self.url, self.took_s, self.lengths = url, [], []
        self.ended = threading.Event()

    def scrape(self):
        begin = time.monotonic()
        with urllib.request.urlopen(self.url, timeout=10) as reply:
            text = reply.read().decode()
        self.took_s.append(time.monotonic() - begin)
        self.lengths.append(len(text))
        return text

    def run(self):
        while not self.ended.wait(SCRAPE_EVERY_S):
            self.scrape()


def private_kib(pid):
    text = read_text(f"/proc/{pid}/smaps_rollup")
    return sum(int(kib) for kib in re.findall(r"^Private_\w+: +(\d+) kB", text, re.M))


class Service(System):
    """The programs, on the cards of this world."""

    def __init__(self, lab):
        cards = len(lab.cards)
        super().__init__(lab, CONFIG.format(cards=f"0-{cards - 1}" if cards > 1 else "0", address="127.0.0.1:9409"), "root")
        self.start("loadline-keeper", "src/keeper/loadline-keeper", "--user", "root", "--groups", "folder")
        self.start("loadline-sensor", "src/sensor/loadline-sensor")
        self.start("loadline-exporter", "src/exporter/loadline-exporter", "--listen", "127.0.0.1:0")
        self.scraper = Scraper(f"http://127.0.0.1:{self.port()}/metrics")
        self.wait_for("the queue", lambda: "\nloadline_queue_up 1\n" in self.scraper.scrape())
        self.scraper.start()

    def port(self):
        found = []

        def has_port():
            found[:] = re.findall(r", port (\d+)", self.lab.read("loadline-exporter.err"))
            return found

        self.wait_for("the exporter", has_port)
        return found[0]

    def measure(self, seconds):
        """{program: (percent of a core, private KiB)} over that time."""
        before = {name: thread_seconds(child.pid) for name, child in self.children.items()}
        begin = time.monotonic()
        time.sleep(seconds)
        took_s = time.monotonic() - begin
        return {name: (100 * (thread_seconds(child.pid) - before[name]) / took_s, private_kib(child.pid))
                for name, child in self.children.items()}


def monitors():
    """Processes of monitors of jobs, also of other users' jobs."""
    return {pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
            if read_text(f"/proc/{pid}/comm").strip() == "loadline-job"}


def report(lab, when, uses):
    lab.report.keep(f"service {when}", uses)
    for name, (percent, kib) in uses.items():
        figure = f"service: {name}, {when}"
        measured = f"{percent:.2f} % of a core, {kib / 1024:.1f} MiB private"
        if name == "loadlined":
            lab.report.check(figure, f"<= {LOADLINED_PERCENT} % of a core", measured, percent <= LOADLINED_PERCENT)
        else:
            lab.report.info(figure, measured)


def start_jobs(lab):
    pace = [lab.program("bench/c/pace"), "spans", "--kernel-us", "1000", "--pause-us", "20000"]
    jobs = [Program(lab, f"service-{i}", wrapped(lab, pace, ["--mem", "800M", "-i", i % len(lab.cards)]))
            for i in range(JOBS)]
    for job in jobs:
        job.wait_ready()
    for job in jobs:
        job.go(3600)
    return jobs


def end_jobs(service, jobs):
    """Before the keeper ends, which removes their control groups."""
    for pid in [pid for job in jobs for pid in family(job.process.pid)]:
        try:
            os.kill(pid, signal.SIGTERM)
        except OSError:
            pass
    service.wait_for("the end of the jobs", lambda: "\nloadline_jobs 0\n" in service.scraper.scrape())


def run(lab):
    need_root()
    service = Service(lab)
    time.sleep(lab.seconds(SETTLE_S))
    report(lab, "no jobs", service.measure(lab.seconds(IDLE_S)))
    others = monitors()
    jobs = start_jobs(lab)
    time.sleep(lab.seconds(SETTLE_S))
    uses = service.measure(lab.seconds(BUSY_S))
    service.wait_for(f"{JOBS} jobs in a scrape", lambda: f"\nloadline_jobs {JOBS}\n" in service.scraper.scrape())
    report(lab, f"{JOBS} jobs", uses)
    own = monitors() - others
    lab.report.info(f"service: the monitor of a job, {JOBS} jobs",
                    f"{sum(map(private_kib, own)) / max(1, len(own)):.0f} KiB private, "
                    f"{sum(map(thread_seconds, own)):.3f} s of CPU for all {len(own)}")
    service.scraper.ended.set()
    end_jobs(service, jobs)
    lab.report.info(f"service: a scrape, {JOBS} jobs",
                    f"{1000 * max(service.scraper.took_s):.1f} ms at most, {max(service.scraper.lengths) / 1024:.0f} KiB")
