"""Jobs of two users at random over the nodes of a Slurm whose files are written: slurm_soak.py FOLDER BUILD LOADLINE COUNT SECONDS SEED NODE...

COUNT jobs, or as many as there is time for. slurmd, loadlined and jobs are killed amid it, and started again as systemd does. Each job must get what its shards are, and no more, by the
simulated cards' own account; a job that nobody killed must complete; in the end nothing may be left. Everything that this starts ends
with the process namespace that it has to be in: it kills by number."""
import collections
import glob
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
USERS = ("games", "lp")
NOBODY = 65534
SHARDS, TOGETHER = 16, 12
# What a context may take beside what is asked for, and what makes a request too large for certain.
SLACK_MIB, ROUND_MIB = 1300, 4
# Kernels that are in flight, or in the account, at either end.
IN_FLIGHT_S = 0.15
LOOK_S, KILL_S, RESTART_S = 0.4, 1.2, 0.1
# Against hangs, on a host however busy.
DEADLINE_S = 300
OPEN_NS = 2 * 10**9
PROLOG_S = 90  # ours takes 20 s at most on a host that is free
PF_EXITING = 4  # of the kernel's flags of a process, proc(5)

JOB = """#!/bin/sh
# FITS BEYOND PROGRAMS SECONDS: what can be allocated, and then what cannot if there is a limit (MiB).
told=$(python3 {here}/card_memory.py context alloc $1 alloc $2)
echo "$told"
case $told in *"context ok
alloc ok"*) ;; *) {build}/sim/loadline-simctl show | grep -v " 0.0 MiB"; date +%T.%N; squeue -h -o '%i %t %b %N %S %r' ;; esac
for i in $(seq $3); do
	{build}/sim/loadline-simctl busy 0 kernel 1ms for $4s memory $(($1 / $3 / 2))M &
	pids="$pids $!"
done
for pid in $pids; do
	wait $pid || exit 3
done
echo complete
"""


def read_file(path):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def is_alive(pid):
    flags = read_file(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return bool(flags) and flags[0] not in "ZX" and not int(flags[6]) & PF_EXITING


class Job:
    def __init__(self, number, shards, cards, mem_mib):
        self.number, self.shards, self.cards, self.mem_mib = number, shards, cards, mem_mib
        self.killed_by = None
        self.output = ""
        self.most_mib = 0


class Node:
    def __init__(self, soak, name):
        self.soak, self.name = soak, name
        self.world = soak.folder / "world" / name
        self.processes = {}
        self.due = {}
        (self.world / "system").mkdir(parents=True)
        self.world.chmod(0o777)
        self.environment = {**os.environ, "LOADLINE_SIM_DIR": str(self.world)}
        # loadlined.socket: it stays when loadlined is killed.
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        (self.world / "system").chmod(0o755)
        path = self.world / "system" / "socket"
        self.listener.bind(str(path))
        path.chmod(0o666)
        os.chown(path, NOBODY, NOBODY)
        self.listener.listen(4096)
        self.accounts = soak.folder / f"accounts-{name}"
        self.accounts.mkdir()
        os.chown(self.accounts, NOBODY, NOBODY)

    def start(self, what):
        build = self.soak.build
        words = {"loadlined": ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", 'LISTEN_PID=$$ exec "$@"', "-",
                               f"{build}/src/daemon/loadlined", "--system", "--state", str(self.accounts)],
                 "sensor": ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", f"LD_LIBRARY_PATH={build}/sim",
                            f"{build}/src/sensor/loadline-sensor", "--every", "0.5"],
                 "slurmd": ["slurmd", "-D", "-N", self.name]}[what]
        environment = {**self.environment, "LISTEN_FDS": "1"} if what == "loadlined" else self.environment
        take = (lambda: os.dup2(self.listener.fileno(), 3)) if what == "loadlined" else None
        with open(self.soak.folder / f"{what}-{self.name}.err", "a", encoding="utf-8") as out:
            self.processes[what] = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, preexec_fn=take,
                                                    pass_fds=(3,) if take else ())

    def kill(self, what, after_s):
        self.processes[what].kill()
        self.processes[what].wait()
        self.due[what] = time.monotonic() + after_s

    def tend(self):
        for what, process in self.processes.items():
            if what not in self.due and process.poll() is not None:
                raise SystemExit(f"{what} of {self.name} has ended by itself: {process.returncode}")
        for what in [what for what, at_s in self.due.items() if time.monotonic() >= at_s]:
            del self.due[what]
            self.start(what)

    def rows(self):
        out = subprocess.run([self.soak.loadline, "--sim", "status", "--json"], env=self.environment, check=True, capture_output=True, text=True)
        return [json.loads(line) for line in out.stdout.splitlines()]

    def contexts(self):
        """(job, card, MiB) of each process on a card."""
        out = subprocess.run([f"{self.soak.build}/sim/loadline-simctl", "show"], env=self.environment, check=True, capture_output=True, text=True)
        for card, pid, mib in re.findall(r"card (\d+), pid (\d+), ([0-9.]+) MiB", out.stdout):
            group = read_file(f"/proc/{pid}/cgroup")
            job = re.search(rf"/slurm_{self.name}/uid_\d+/job_(\d+)", group)
            # A process that ends leaves its group first.
            if job or is_alive(pid):
                yield job and int(job[1]), int(card), float(mib), int(pid)


class Soak:
    def __init__(self, folder, build, loadline, count, seconds, seed, names):
        self.folder, self.build, self.loadline = pathlib.Path(folder), build, loadline
        self.count, self.seconds = count, seconds
        self.chance = random.Random(seed)
        self.jobs, self.counts = {}, collections.Counter()
        self.looks, self.in_prolog = 0, {}
        self.killed = []
        self.open_ns = collections.defaultdict(list)
        self.script = self.folder / "out" / "job.sh"
        self.script.write_text(JOB.format(here=HERE, build=build), encoding="utf-8")
        munge = self.folder / "munge"
        self.spawn("munged", "-F", f"--socket={munge}/socket", f"--key-file={munge}/key", f"--log-file={munge}/log",
                   f"--pid-file={munge}/pid", f"--seed-file={munge}/seed")
        self.spawn("slurmctld", "-D", "-i")
        self.nodes = [Node(self, name) for name in names]

    def spawn(self, *words):
        with open(self.folder / f"{words[0]}.err", "a", encoding="utf-8") as out:
            subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def ask(self, *words):
        """A command of Slurm. One may fail while slurmctld is busy."""
        return self.until(lambda: self.try_command(words), words[0])

    @staticmethod
    def try_command(words):
        out = subprocess.run(words, capture_output=True, text=True, check=False)
        if out.returncode:
            print(f"{words}: {out.stderr.strip()}", file=sys.stderr)
        return None if out.returncode else out.stdout or "\n"

    def until(self, condition, what):
        until_s = time.monotonic() + DEADLINE_S
        while time.monotonic() < until_s:
            found = condition()
            if found:
                return found
            for node in self.nodes:
                node.tend()
            time.sleep(0.1)
        raise SystemExit(f"not within {DEADLINE_S} s: {what}")

    def start(self):
        for node in self.nodes:
            subprocess.run([f"{self.build}/sim/loadline-simctl", "show"], env=node.environment, check=True, stdout=subprocess.DEVNULL)
            node.start("loadlined")
            node.start("sensor")
            node.start("slurmd")
        self.until(lambda: self.states().count("idle") == len(self.nodes), "nodes are idle")
        for node in self.nodes:
            row = next(row for row in node.rows() if "memory_total_bytes" in row)
            self.card_mib = int(row["memory_total_bytes"]) >> 20

    def states(self):
        return self.ask("sinfo", "-h", "-N", "-o", "%T").split()

    # ---- jobs ----

    def submit(self):
        shards = self.chance.choice((0, 1, 2, 3, 4, 4, 8, 12))
        cards = 1 if shards else self.chance.choice((1, 1, 2))
        own_mib = self.card_mib * shards // SHARDS if shards else self.card_mib
        mem_mib = self.chance.randrange(4000, own_mib) if self.chance.random() < 0.3 else own_mib if shards else 0
        fits = (mem_mib or 8000) - SLACK_MIB
        beyond = SLACK_MIB if mem_mib else 1
        words = ["sbatch", "--parsable", f"--uid={self.chance.choice(USERS)}", f"--chdir={self.folder}/out", "--output=%j",
                 f"--gres=shard:{shards}" if shards else f"--gres=gpu:{cards}"]
        if mem_mib and mem_mib != own_mib:
            words.append(f"--ll-mem={mem_mib}M")
        words += [str(self.script), str(fits), str(beyond), str(self.chance.choice((1, 1, 2))), f"{self.chance.uniform(0.3, 3):.1f}"]
        number = int(self.ask(*words))
        self.jobs[number] = Job(number, shards, cards, mem_mib)

    def running(self):
        rows = [line.split(maxsplit=2) for line in self.ask("squeue", "-h", "-o", "%i %t %r").splitlines() if line]
        begin = {row[0] for row in rows if row[2] == "Prolog"}
        self.in_prolog = {number: self.in_prolog.get(number, time.monotonic()) for number in begin}
        for number, _, reason in rows:
            if "held" in reason:
                self.ask("scontrol", "release", number)
            elif number in begin and time.monotonic() - self.in_prolog[number] > PROLOG_S:
                self.requeue(number)
        return {int(row[0]): row[1] for row in rows}

    def requeue(self, number):
        """slurmctld waits without end for the prolog of a slurmd that was killed: when the next one registers, it looks for lost jobs of the node,
        but leaves out those whose prolog runs (IS_JOB_CONFIGURING in its _purge_missing_jobs). Then a person puts the job back."""
        if not self.counts["slurmd"]:
            raise SystemExit(f"job {number} is in its prolog for {PROLOG_S} s, and no slurmd was killed")
        self.counts["prologs_in_vain"] += 1
        self.ask("scontrol", "requeue", number)
        del self.in_prolog[number]

    # ---- what is killed ----

    def kill(self):
        what = self.chance.choice(("slurmd", "loadlined", "cancel", "signal", "process"))
        node = self.chance.choice(self.nodes)
        if what in ("slurmd", "loadlined"):
            if what in node.due:
                return
            if what == "loadlined":
                self.open_ns[node.name].append(time.time_ns())
            node.kill(what, RESTART_S if what == "loadlined" else self.chance.uniform(0, 1))
        else:
            groups = glob.glob(f"/sys/fs/cgroup/freezer/slurm_{node.name}/uid_*/job_*")
            if not groups:
                return
            group = self.chance.choice(groups)
            job = self.jobs.get(int(group.rpartition("_")[2]))
            pids = [int(pid) for path in glob.glob(f"{group}/**/cgroup.procs", recursive=True) for pid in read_file(path).split()]
            if not job or not pids:
                return
            job.killed_by = what
            if what == "process":
                try:
                    os.kill(self.chance.choice(pids), signal.SIGKILL)
                except ProcessLookupError:
                    return
            else:
                subprocess.run(["scancel", *(["--signal=KILL", "--full"] if what == "signal" else []), str(job.number)], check=False,
                               capture_output=True)
        self.counts[what] += 1
        self.killed.append(f"{time.strftime('%T')} {what} {node.name} {'' if what in node.processes else group.rpartition('/')[2]}")

    # ---- what must hold ----

    def look(self):
        node = self.chance.choice(self.nodes)
        used, self.looks = collections.Counter(), self.looks + 1
        for number, card, mib, pid in node.contexts():
            if number is None:
                raise SystemExit(f"{node.name}: process {pid} on card {card} belongs to no job")
            used[number, card] += mib
        for (number, card), mib in used.items():
            job = self.jobs[number]
            job.most_mib = max(job.most_mib, mib)
            if job.mem_mib and mib > job.mem_mib + ROUND_MIB:
                raise SystemExit(f"job {number} has {mib} MiB of card {card} of {node.name}, and may have {job.mem_mib}")

    def check_output(self, job, node):
        """Of its last run, on that node; an earlier one may have left half of a line."""
        out = read_file(self.folder / "out" / str(job.number))
        is_complete = out.rstrip().endswith("complete")
        allocs = re.findall(r"^alloc (\w+)$", out, re.M)
        fits, beyond = "ok", "2" if job.mem_mib else "ok"
        # One that is cancelled as it begins may have nothing any more; nobody has more.
        if "ok" in allocs[1:] and beyond != "ok" or not job.killed_by and any(got != due for got, due in zip(allocs, (fits, beyond))):
            raise SystemExit("\n".join([f"job {job.number}: {vars(job)}: {out}", *self.killed]))
        rows = [json.loads(line) for line in out.splitlines() if line.startswith("{") and line.endswith("}")]
        begin_ns = min((row["first_start_ns"] for row in rows), default=0)
        end_ns = max((row["last_end_ns"] for row in rows), default=0)
        # From 0.25 s after the end of a loadlined until the next one serves nobody holds programs to their time (doc/share.md).
        if any(begin_ns - OPEN_NS < at_ns < end_ns for at_ns in self.open_ns[node]):
            self.counts["time_was_open"] += 1
        elif rows and job.shards:
            span_s = (end_ns - begin_ns) * 1e-9
            used_s = sum(row["launches"] for row in rows) * 1e-3
            part = job.shards / SHARDS
            if used_s > span_s * part + IN_FLIGHT_S:
                raise SystemExit(f"job {job.number}: {used_s} s of {span_s} s of a card, and may have {part}: {out}")
            self.counts["judged"] += 1
        return is_complete

    def check_nodes(self):
        """Slurm takes a node out of service if a prolog fails there. It also does so if slurmd is killed between the request for the prolog and
        that for the job: the next slurmd waits for the first one in vain. Then a person lets node and job go on."""
        names = [line.split()[0] for line in self.ask("sinfo", "-h", "-N", "-o", "%N %T").splitlines() if "drain" in line or "down" in line]
        if not names:
            return
        told = [line for path in self.folder.glob("slurmd-*.err") for line in read_file(path).splitlines()
                if re.search("prolog|spank|status|signal", line, re.I)]
        in_vain = sum("REQUEST_LAUNCH_PROLOG notification failed" in line for line in told)
        if in_vain <= self.counts["slurmd_in_vain"] or any("error: loadline" in line for line in told):
            raise SystemExit("\n".join([f"{names}: {self.ask('sinfo', '-R', '-h', '-o', '%E')}", *told[-40:]]))
        self.counts["slurmd_in_vain"] = in_vain
        for name in names:
            self.ask("scontrol", "update", f"nodename={name}", "state=resume")

    def check_jobs(self):
        ended = self.ask("scontrol", "show", "jobs", "-o")
        lost = []
        for number, job in sorted(self.jobs.items()):
            line = re.search(rf"^JobId={number} .*$", ended, re.M)
            state = re.search(r"JobState=(\w+) Reason=(\S+).* ExitCode=(\S+)", line[0]) if line else None
            is_complete = self.check_output(job, re.search(r" NodeList=(\S*)", line[0])[1] if line else None)
            self.counts["complete"] += is_complete
            if not job.killed_by and not (is_complete and state and state[1] == "COMPLETED"):
                lost.append(f"job {number} is {state and state.groups()}: {read_file(self.folder / 'out' / str(number))}")
        if lost:
            raise SystemExit("\n".join(lost))

    def check_left(self):
        """What is left on the nodes, in words; empty: nothing."""
        left = [f"/run file {name}" for name in os.listdir(self.folder / "state")] if (self.folder / "state").exists() else []
        for node in self.nodes:
            left += [f"{node.name}: {row}" for row in node.rows() if "claim" in row or "job" in row]
            left += [f"{node.name}: {row}" for row in node.contexts()]
            left += glob.glob(f"/sys/fs/cgroup/freezer/slurm_{node.name}/uid_*/job_*")
        uids = {str(int(subprocess.check_output(["id", "-u", user]))) for user in USERS}
        for path in glob.glob("/proc/[0-9]*/status"):
            text = read_file(path)
            uid = re.search(r"^Uid:\t(\d+)", text, re.M)
            if uid and uid[1] in uids and "State:\tZ" not in text:
                left.append(f"process {path}: {text.splitlines()[0]}")
        return left

    def run(self):
        self.start()
        began_s = look_at_s = kill_at_s = progress_s = time.monotonic()
        queue = {}
        while len(self.jobs) < self.count or queue:
            now_s = time.monotonic()
            if now_s - began_s > self.seconds:
                self.count = len(self.jobs)
            for node in self.nodes:
                node.tend()
            before, queue = set(queue), self.running()
            if before - set(queue):
                progress_s = now_s
            if now_s - progress_s > DEADLINE_S:
                raise SystemExit("no job has ended for long: " + self.ask("squeue", "-h", "-o", "%i %t %r %N"))
            for _ in range(min(self.count - len(self.jobs), TOGETHER * len(self.nodes) // 4 - len(queue))):
                self.submit()
                queue[max(self.jobs)] = "PD"
            if now_s >= kill_at_s and len(self.jobs) < self.count:
                self.kill()
                kill_at_s = now_s + self.chance.uniform(0, 2 * KILL_S)
            if now_s >= look_at_s:
                self.look()
                self.check_nodes()
                look_at_s = time.monotonic() + LOOK_S
            time.sleep(0.1)
        left = self.until_nothing_left()
        self.check_jobs()
        if left:
            raise SystemExit("left: " + "\n".join(left))
        print(json.dumps({"jobs": len(self.jobs), "seconds": round(time.monotonic() - began_s, 1), "looks": self.looks,
                          "killed_jobs": sum(1 for job in self.jobs.values() if job.killed_by), **self.counts}))

    def until_nothing_left(self):
        """The epilog of a later job removes what a job without one has left."""
        until_s, next_s = time.monotonic() + 60, 0
        while True:
            if time.monotonic() > next_s:
                for node in self.nodes:
                    self.ask("srun", "-w", node.name, "--gres=shard:1", "true")
                next_s = time.monotonic() + 5
            left = self.check_left()
            if not left or time.monotonic() > until_s:
                return left
            for node in self.nodes:
                node.tend()
            time.sleep(0.2)


def main():
    folder, build, loadline, count, seconds, seed, *names = sys.argv[1:]
    Soak(folder, build, loadline, int(count), int(seconds), int(seed), names).run()


if __name__ == "__main__":
    main()
