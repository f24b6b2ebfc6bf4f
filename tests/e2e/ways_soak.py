"""Thousands of programs under one memory limit, by every way to the driver, some of them killed and some with a driver that
fails: ways_soak.py LOADLINE WAYS SIMCTL COUNT SEED, as a command of `loadline run --mem 1G --count-context=no`.

Whoever lives must have seen the limit and been refused more, whoever meets a failing driver must not have got more either,
nobody may crash, and in the end nothing is charged."""
import json
import random
import signal
import subprocess
import sys
import time

WAYS = "dlsym default deepbind lazy thread address address-v2 address-self fork exec shell nvml nvml-v2".split()
LIMIT, BEYOND = 1 << 30, 2 << 30
# The last two are against hangs, on a host however busy.
TOGETHER, KILLED_S, DEADLINE_S, CLEARED_S = 24, 0.3, 300, 120
# Not what the library itself asks which card this is (cuCtxGetCurrent, cuCtxGetDevice): without an answer it lets a call pass.
FAULTS = [f"fail {function} {status}" for function in ("cuInit", "cuDevicePrimaryCtxRetain", "cuMemAlloc_v2", "cuMemGetInfo_v2",
                                                       "cuGetProcAddress*") for status in (999, 2)]
FAULTS += ["hang cuMemAlloc_v2 20ms", "hang cuDevicePrimaryCtxRetain 50ms"]


class Program:
    def __init__(self, ways, way, kill_s):
        self.way, self.since_s = way, time.monotonic()
        self.kill_at_s = self.since_s + kill_s if kill_s is not None else None
        self.process = subprocess.Popen([ways, way, str(BEYOND)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def tend(self):
        """Whether it has ended."""
        now_s = time.monotonic()
        if self.kill_at_s is not None and now_s >= self.kill_at_s:
            self.process.kill()
        if now_s - self.since_s > DEADLINE_S:
            self.process.kill()
            raise SystemExit(f"{self.way}: hangs")
        return self.process.poll() is not None

    def check(self, may_fail):
        out, err = self.process.communicate()
        status = self.process.returncode
        if status == -signal.SIGKILL and self.kill_at_s is not None:
            return
        if status < 0 or (status and not may_fail):
            raise SystemExit(f"{self.way}: status {status}: {err}")
        told = json.loads(out) if out.strip() else {"beyond": None, "total_bytes": None}
        is_right = told["total_bytes"] == LIMIT and (told["beyond"], told["within"]) in ((2, 0), (None, None))
        if told["beyond"] == 0 or not (may_fail or is_right):
            raise SystemExit(f"{self.way}: {out}")


def soak(ways, simctl, count, chance, has_faults):
    running, left = [], count
    while running or left:
        while left and len(running) < TOGETHER:
            if has_faults and left % 10 == 0:
                words = chance.choice(FAULTS).split() + ["after", str(chance.randrange(20)), "count", str(chance.randrange(1, 6))]
                subprocess.run([simctl, *words], check=True)
            left -= 1
            kill_s = chance.random() * KILLED_S if chance.random() < 0.3 else None
            running.append(Program(ways, WAYS[left % len(WAYS)], kill_s))
        ended = [program for program in running if program.tend()]
        for program in ended:
            program.check(has_faults)
        running = [program for program in running if program not in ended]
        time.sleep(0.002)
    subprocess.run([simctl, "heal"], check=True)


def rows(loadline):
    out = subprocess.run([loadline, "--sim", "status", "--json"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def check_account(loadline):
    """Of the dead the last may still be clearing up."""
    until_s = time.monotonic() + CLEARED_S
    while time.monotonic() < until_s:
        found = rows(loadline)
        if not any("claim" in row for row in found) and [row["memory_bytes"] for row in found if "tenant_row" in row] == [0]:
            return
        time.sleep(0.05)
    raise SystemExit(f"left behind: {found}")


def main():
    loadline, ways, simctl, count, seed = sys.argv[1:]
    chance = random.Random(int(seed))
    for has_faults in (False, True):
        soak(ways, simctl, int(count) // 2, chance, has_faults)
        check_account(loadline)
    soak(ways, simctl, len(WAYS), random.Random(0), False)
    print(f"{count} programs")


if __name__ == "__main__":
    main()
