"""look.py [OPTION OF run]... -- COMMAND...: runs the command under a limit of 2 GiB (or the --mem that is given) in a fresh world of the
simulator, and looks at the card and at the books all the while. Prints what is wrong, a line each, and what it saw last.

The card: its high mark, which misses no moment. It may have DRIVER_MIB beyond the limit, which the driver takes for itself. The books: what
`status` says that the tenant is charged. The command says "full" when it has taken all that it gets, and ends when its input does."""
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

LOADLINE, BUILD = os.environ["LOADLINE"], pathlib.Path(os.environ["LOADLINE_BUILD"])
DRIVER_MIB = 4
DEADLINE_S = 600
# One look, on a host that is busy with 200 programs.
LOOK_S = 120
# Between what a context is charged and what it takes, and what the driver takes for itself.
CONTEXT_MIB = 16


class LookFailed(Exception):
    pass


def answer_of(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LOOK_S)
    except subprocess.TimeoutExpired as late:
        raise LookFailed(f"{' '.join(map(str, command))}: no answer in {LOOK_S} s") from late
    if done.returncode:
        raise LookFailed(f"{' '.join(map(str, command))}: ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def show():
    return answer_of(BUILD / "sim/loadline-simctl", "show")


def has_ended(pid):
    try:
        return not pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return True


def card():
    """MiB used, at most; how many contexts; whether a process of them has ended."""
    text = show()
    used, most = (float(number) for number in re.search(r"([\d.]+) MiB used.*at most ([\d.]+) MiB", text).groups())
    pids = re.findall(r"context \d+: card 0, pid (\d+), [\d.]+ MiB", text)
    return used, most, len(pids), any(has_ended(pid) for pid in pids)


def books():
    """MiB charged to the tenant's processes. What ended ones had stays in the books until the driver has given it back, also where
    another process has taken the charge over."""
    claims = [json.loads(line) for line in answer_of(LOADLINE, "--sim", "status", "--json").splitlines()]
    return max([(claim.get("tenant_memory_bytes") or 0) - (claim.get("tenant_leaving_bytes") or 0) for claim in claims
                if claim.get("tenant") == "case"], default=0) / 2**20


class Watch(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.stopped, self.most_booked, self.looks = threading.Event(), 0.0, 0
        self.failure = "it did not end"

    def look(self):
        used, _, contexts, has_dead = card()
        booked = books()
        self.most_booked, self.looks = max(self.most_booked, booked), self.looks + 1
        return used, booked, contexts, has_dead

    def look_at_rest(self):
        """Without the dead."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            used, booked, contexts, has_dead = self.look()
            if not has_dead or time.monotonic() > deadline:
                return used, booked, contexts

    def run(self):
        try:
            while not self.stopped.wait(0.01):
                self.look()
            self.failure = None
        except LookFailed as failure:
            self.failure = failure


def parse(words):
    options, command = words[:words.index("--")], words[words.index("--") + 1:]
    limit = "2G"
    if "--mem" in options:
        at = options.index("--mem")
        limit = options[at + 1]
        del options[at:at + 2]
    return limit, options, command


def wait_for_full(process):
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip())
        if line.startswith("full"):
            break
    return lines


def run(limit, options, command):
    """What is wrong, and what was seen."""
    wrong, watch = [], Watch()
    mib = int(limit[:-1]) * 1024
    os.environ["CASE_DRIVER"] = str(BUILD / "sim/libcuda.so.1")
    show()
    process = subprocess.Popen([LOADLINE, "--sim", "run", "--tenant", "case", "--mem", limit, *options, "--", *command],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    timer = threading.Timer(DEADLINE_S, process.kill)
    timer.start()
    watch.start()
    lines = wait_for_full(process)
    if not lines or not lines[-1].startswith("full"):
        wrong.append("it did not come to its end")
    used, booked, contexts = watch.look_at_rest()
    process.stdin.close()
    lines += process.stdout.read().splitlines()
    status = process.wait()
    timer.cancel()
    watch.stopped.set()
    watch.join()
    most = card()[1]
    if watch.failure:
        wrong.append(f"a look failed: {watch.failure}")
    if status:
        wrong.append(f"it ended with {status}")
    if most > mib + DRIVER_MIB:
        wrong.append(f"the card had {most:.0f} MiB of {mib}")
    if watch.most_booked > mib:
        wrong.append(f"{watch.most_booked:.0f} MiB were charged of {mib}")
    if os.environ.get("CASE_ENDS_FULL") and not -DRIVER_MIB <= booked - used <= CONTEXT_MIB * max(contexts, 1):
        wrong.append(f"at the end {booked:.0f} MiB were charged for {used:.0f} on the card")
    saw = f"card {most:.0f} MiB, charged {watch.most_booked:.0f} of {mib}; at the end {used:.0f}, {booked:.0f}, {contexts} contexts; {watch.looks} looks"
    return wrong, lines, saw


def main():
    began = time.monotonic()
    wrong, lines, saw = run(*parse(sys.argv[1:]))
    print("\n".join(lines[-4:]))
    print(saw, f"{time.monotonic() - began:.1f} s")
    print("\n".join(f"WRONG: {text}" for text in wrong) or "holds")
    return 1 if wrong else 0


sys.exit(main())
