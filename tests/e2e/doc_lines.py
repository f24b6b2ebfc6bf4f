#!/usr/bin/env python3
"""The command lines of Markdown pages, and a run of each on the simulated driver.

    doc_lines.py PAGE...                 LOADLINE, LOADLINE_BUILD, LOADLINE_SIM_DIR and XDG_RUNTIME_DIR are set, as tests/e2e/helper.bash does
    doc_lines.py --as UID PAGE...        for root: that user's processes run all of it
    doc_lines.py --as UID,UID PAGE...    root's loadlined serves, and each of these users runs each line `with: queue`, one after the other;
                                         of a table `with: policy` each line is run by the one that it names

A command line is a line of a code block, or a code span in a table whose second column has the title `command` (命令), that begins with
one of STARTERS. The lines of a block, or of a table's row, form a group: they run one after the other in a simulated world of their
own. Groups run beside each other.

A comment of the page, which its reader does not see, changes that. Before a block it is for the whole block, behind a span for that span:

    <!-- not run: REASON -->       the lines need what is not here: they are counted, and printed with the reason
    <!-- before: COMMAND -->       this command runs first
    <!-- on: NAME -->              the simulated cards are these (loadline --sim=NAME)
    <!-- with: queue -->           the system's loadlined and its sensor serve eight cards, with a policy for everybody (POLICY). 12 stands
                                   for a job that waits or, behind --after and --after-ok, for one that ends soon
    <!-- with: policy -->          before a table: its lines are one group. The system's loadlined and its sensor serve the page's first block
                                   of yaml. The first user stands for the members of its first Unix group, and so on. Needs several users
    <!-- as: GROUP -->             behind a line of it: that user runs it; of no group of the page: the first user behind those
    <!-- shows: TEXT -->           the line is run again until it says that
    <!-- said: by the first -->    before a block behind that table: the job of its first line says each line of the block, the last of them
                                   when the other jobs have ended

A program of an example (`./a`, `python train.py`) is a stand-in that keeps the simulated card busy. CLAIM, JOB and PID stand for the
first claim there is; if the group has not started a program, one is started. What runs until it is ended is begun, must appear in
`loadline status`, and gets SIGINT behind the group's last line, a hold before the next hold, and all of it before `mps stop`. What was
evicted or suspended is resumed before. Each line must end with exit status 0 (130 after SIGINT).
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections import namedtuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))

STARTERS = ("loadline", "/usr/lib/loadline/loadlined", "/usr/lib/loadline/loadline-sensor", "nohup", "sudo", "docker", "podman", "apptainer", "make", "apt", "systemctl", "srun", "sbatch", "kubectl")
STAND_INS = ("python", "jupyter", "torchrun", "COMMAND", "./a", "./b", "./program", "./service", "./batch", "./render")
SERVICES = ("/usr/lib/loadline/loadlined", "/usr/lib/loadline/loadline-sensor")  # as an administrator starts them by hand
POLICY = """version: 1
operators: {users: ["*"]}
cards:
  - {name: whole, cards: "0-5", give: card}
  - {name: parts, cards: "6-7", give: memory}
tenants:
  - name: everybody
    members: {users: ["*"]}
    guarantee: [{of: whole, cards: 6}, {of: parts, memory: 140G}]
    classes: [normal, low]
defaults: {memory: 16G, time: 8h}
"""
SENSOR_NEEDS = "LD_LIBRARY_PATH=/usr/lib/loadline/sim "  # of a simulated driver
RUN = (SENSOR_NEEDS, "loadline ", "nohup loadline ", *SERVICES)
AT_A_TIME = 6  # groups; most of their time they wait
DEADLINE_S = 60  # on a host that is free

MARK = re.compile(r"<!-- (not run|before|on|with|as|shows|said): (.*?) -->")
GROUPS = re.compile(r"groups: \[(\w+)\]")
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)((?: <!-- .*? -->)*)")
# line: its number; marks: {kind of a mark: [what it says]}
Line = namedtuple("Line", "page line command marks")


# ---- from a page to groups of lines ----


def is_command(text):
    return text.removeprefix(SENSOR_NEEDS).split(" ")[0] in STARTERS


def marks_of(text):
    found = {}
    for kind, rest in MARK.findall(text):
        found.setdefault(kind, []).append(rest)
    return found


def lines_of_block(page, number, block, marks):
    """number: of the line before the block's first. Lines that end with a backslash are joined; a console's begin with `$ `."""
    marks = marks_of(marks)
    has_prompt = any(line.startswith("$ ") for line in block)
    joined, first = "", 0
    for at, line in enumerate(block, number + 1):
        first = first if joined else at
        if has_prompt and not joined:
            line = line[2:] if line.startswith("$ ") else ""
        if line.endswith("\\"):
            joined += line[:-1]
            continue
        command = " ".join(re.sub(r"\s+#.*$", "", joined + line).split()) if is_command((joined + line).split("#")[0]) else ""
        joined = ""
        if command:
            yield Line(page.name, first, command, marks)
            marks = {kind: told for kind, told in marks.items() if kind != "before"}


def lines_of_row(page, number, row):
    for span, marks in SPAN.findall(row):
        if is_command(span):
            yield Line(page.name, number, span.replace("\\|", "|"), marks_of(marks))


def groups_of(page):
    """[[Line]] of a page, in order."""
    marks, block, begin, in_commands, fence, story = "", None, 0, False, None, None
    for number, line in enumerate([*page.read_text().splitlines(), ""], 1):
        if block is not None and (line.startswith("```") if fence else not line.startswith("    ")):
            if "said" in marks_of(marks):
                story[0].marks["said"] = block
            yield list(lines_of_block(page, begin, block, marks))
            block, marks = None, ""
            if fence:
                fence = None
                continue
        if block is not None:
            block.append(line if fence else line[4:])
        elif line.startswith("```"):
            block, begin, fence = [], number, "```"
        elif line.startswith("    ") and is_command(line[4:].removeprefix("$ ")):
            block, begin = [line[4:]], number - 1
        elif line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if not in_commands and len(cells) == 2 and cells[1] in ("command", "命令"):
                in_commands = True
                story = [] if marks_of(marks).get("with") == ["policy"] else None
            row = list(lines_of_row(page, number, line)) if in_commands else []
            if not row or story is None:
                yield row
                continue
            row[0].marks["with"] = [re.search(r"^```yaml\n(.*?)^```", page.read_text(), re.S | re.M)[1]]
            story += row
            if len(story) == len(row):
                yield story
        else:
            in_commands = False
            if line.strip():
                marks = marks + line if MARK.search(line) else ""


# ---- a run of a group ----


class Failed(Exception):
    pass


def deadline_s():
    """As wait_for of helper.bash: more by as many times as there are programs for each processor."""
    return DEADLINE_S * (1 + int(os.getloadavg()[0]) // (os.cpu_count() or 1))


def is_late(began):
    return time.monotonic() - began > deadline_s()


class World:
    """A simulated world, a working folder with the stand-ins, and what was begun there."""

    def __init__(self, name, cards="", uid=None, host=None):
        """cards: of the simulator, =NAME, or nothing for its default. uid: whose processes these are, in the simulated world of the host."""
        top = pathlib.Path(os.environ["LOADLINE_SIM_DIR"])
        self.folder, self.begun, self.undone, self.services = top / name / "here", [], [], host.services if host else []
        self.sim = host.sim if host else top / name / "sim"
        self.host, self.users, self.cards, self.at = host, [], cards, None
        self.who = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        runtime = pathlib.Path(os.environ["XDG_RUNTIME_DIR"]) / name
        for folder in (self.folder, runtime) if host else (self.folder, runtime, self.sim):
            folder.mkdir(parents=True, mode=0o700)
        for folder in () if uid is None else (self.folder, self.folder.parent, runtime, *([] if host else [self.sim])):
            os.chown(folder, uid, uid)
        self.env = {**os.environ, "LOADLINE_SIM_DIR": str(self.sim), "XDG_RUNTIME_DIR": str(runtime), "XDG_STATE_HOME": str(top / name),
                    "PATH": f"{self.folder}:{os.environ['PATH']}"}
        (self.folder / "packaging").symlink_to(ROOT / "packaging")  # pages name samples as they stand in the tree
        self.program("loadline", f'exec {os.environ["LOADLINE"]} --sim{cards} "$@"')
        for stand_in in STAND_INS:
            self.program(stand_in, f'exec {os.environ["LOADLINE_BUILD"]}/sim/loadline-simctl busy 0 kernel 1ms memory 64M for ${{STAND_IN_S:-300}}s')

    def admit_users(self, uids):
        """A world for each of them, with the same cards and the same services."""
        self.sim.parent.chmod(0o755)
        self.sim.chmod(0o777)
        self.users = [World(f"{self.sim.parent.name}-{uid}", self.cards, uid, self) for uid in uids]

    def program(self, name, command):
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{command}\n")
        path.chmod(0o755)

    def status(self):
        told = subprocess.run([self.folder / "loadline", "status", "--json"], env=self.env, capture_output=True, text=True, timeout=deadline_s(),
                              check=False, **self.who)
        return [json.loads(line) for line in told.stdout.splitlines()]

    def claims(self, is_synthetic):
        return [row for row in self.status() if "claim" in row and bool(row["synthetic"]) == is_synthetic]

    def start(self, command):
        number = len(self.begun)
        out = open(self.folder / f"out{number}", "a+", encoding="utf-8")  # text() moves the position, which is the program's too
        seconds = "1" if " trace " in command else "300"
        process = subprocess.Popen(["bash", "-c", command], cwd=self.folder, env={**self.env, "STAND_IN_S": seconds}, stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=subprocess.STDOUT, start_new_session=True, **self.who)
        return process, out

    # ---- the system's loadlined ----

    def serve(self, command):
        """A service of the system, as `/usr/lib/loadline/PROGRAM WORD... &`. The sensor is the last one: then there is a queue."""
        program, *words = shlex.split(command.rstrip("& "))
        name = program.rsplit("/", 1)[1]
        folder = {"loadlined": "src/daemon", "loadline-sensor": "src/sensor"}[name]
        env = {**self.env, "LD_LIBRARY_PATH": os.environ["LOADLINE_BUILD"] + "/sim"}
        words = [word.replace("$LOADLINE_SIM_DIR", env["LOADLINE_SIM_DIR"]) for word in words]
        out = open(self.folder / f"{name}.log", "a+", encoding="utf-8")
        process = subprocess.Popen([f"{os.environ['LOADLINE_BUILD']}/{folder}/{name}", *words], cwd=self.folder, env=env,
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True, **self.who)
        self.services.append(process)
        asked = "queue list" if name == "loadline-sensor" else "status"
        began = time.monotonic()
        while subprocess.run(f"{self.folder}/loadline {asked}", shell=True, env=self.env, capture_output=True, check=False, **self.who).returncode:
            if process.poll() is not None or is_late(began):
                raise Failed(f"does not serve: {command}\n{self.text(out)}")
            time.sleep(0.2)

    def serve_queue(self, policy):
        (self.folder / "policy.yaml").write_text(policy)
        (self.folder / "policy.yaml").chmod(0o644)
        self.wait(*self.start("loadline status"), "loadline status")  # makes the world
        self.serve('/usr/lib/loadline/loadlined --system --config policy.yaml --state . &')
        self.serve("/usr/lib/loadline/loadline-sensor --every 0.5 &")

    def submit(self, words):
        told = subprocess.run(f"loadline submit {words}", shell=True, cwd=self.folder, env=self.env, capture_output=True, text=True,
                              timeout=deadline_s(), check=False, **self.who)
        if told.returncode:
            raise Failed(f"exit status {told.returncode}: loadline submit {words}\n{told.stderr}")
        return told.stdout.strip()

    def stop_submitted(self):
        told = subprocess.run("loadline submit list --json", shell=True, cwd=self.folder, env=self.env, capture_output=True, text=True,
                              timeout=deadline_s(), check=True, **self.who)
        for row in (json.loads(line)["submitted"] for line in told.stdout.splitlines()):
            if row["state"] in ("waiting", "running"):
                # One may end by itself meanwhile, because the job for which it waits has ended.
                subprocess.run(f"loadline submit stop {row['number']}", shell=True, env=self.env, capture_output=True, timeout=deadline_s(),
                               check=False, **self.who)

    def number_for(self, command):
        if "--after" in command:
            return self.submit("-- sleep 1")
        self.submit("--cards 4 --time 1h -- sleep 300")
        return self.submit("--cards 4 --time 1h -- sleep 300")

    def text(self, out):
        out.flush()
        out.seek(0)
        return out.read()

    def wait(self, process, out, command):
        try:
            status = process.wait(deadline_s())
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise Failed(f"did not end within {deadline_s()} s: {command}\n{self.text(out)}") from None
        if status:
            raise Failed(f"exit status {status}: {command}\n{self.text(out)}")

    def begin(self, command, is_synthetic):
        """A command that runs until it is ended: until there is one claim more of its kind, or it has ended by itself."""
        claims = len(self.claims(is_synthetic))
        process, out = self.start(command)
        began = time.monotonic()
        while process.poll() is None:
            if len(self.claims(is_synthetic)) > claims:
                self.begun.append((process, out, command))
                return
            if is_late(began):
                os.killpg(process.pid, signal.SIGKILL)
                raise Failed(f"took no claim within {deadline_s()} s: {command}\n{self.text(out)}")
            time.sleep(0.1)
        self.wait(process, out, command)

    def fill_in(self, command):
        """The command with a claim, a job or a process in the place of its placeholder."""
        if self.services and re.search(r"\b12\b", command):
            return re.sub(r"\b12\b", self.number_for(command), command)
        if not re.search(r"\b(CLAIM|JOB|PID)\b", command):
            return command
        if not self.claims(False):
            self.begin("loadline run --evictable -- ./program" if "--pid" not in command else "loadline run -- ./program", False)
        row = self.claims(False)[0]
        return re.sub(r"\b(CLAIM|JOB)\b", row["claim"], command).replace("PID", str(row["pid"]))

    def follow(self, command):
        if command.removeprefix(SENSOR_NEEDS).startswith(SERVICES):
            self.serve(command.removeprefix(SENSOR_NEEDS))
            return
        command = re.sub(r"(?<=127\.0\.0\.1:)\d+", lambda _: str(free_port()), self.fill_in(command))
        words = [word for word in shlex.split(command) if not word.startswith("--sim")]
        if "--watch" in command:
            command = f"timeout --preserve-status -s INT 2 {command}"
        if words[:2] == ["nohup", "loadline"]:
            words = words[1:]
        verb = next(iter(words[1:]), "")
        is_hold = verb == "hold" and "--dry-run" not in words
        if verb in ("evict", "suspend"):
            self.undone.append(command.replace(f" {verb} ", " resume "))
        elif verb == "resume":
            self.undone = []
        elif words[1:3] == ["mps", "stop"]:
            self.end(self.begun)
        if is_hold:
            self.end([one for one in self.begun if " hold" in one[2]])
        if is_hold or ("run" in words[1:3] and " trace " not in command):
            self.begin(command, is_hold)
        else:
            process, out = self.start(command)
            self.wait(process, out, command)

    def wait_until_said(self, texts, say):
        """say: returns what has been said, which has to have all the texts."""
        began = time.monotonic()
        while missing := [text for text in texts if text not in (said := say())]:
            if is_late(began):
                raise Failed(f"not said within {deadline_s()} s: {missing[0]}\n{said}")
            time.sleep(0.2)

    def say(self, command):
        process, out = self.start(command)
        self.wait(process, out, command)
        return self.text(out)

    def end(self, begun):
        """SIGINT to what was begun: a hold ends with 0, a program with the signal."""
        bad = []
        for process, _, _ in begun:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
        for process, out, command in begun:
            try:
                if process.wait(deadline_s()) not in (0, 130, -signal.SIGINT):
                    bad.append(f"exit status {process.returncode} after SIGINT: {command}\n{self.text(out)}")
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                bad.append(f"did not end within {deadline_s()} s of SIGINT: {command}\n{self.text(out)}")
        self.begun = [one for one in self.begun if one not in begun]
        if bad:
            raise Failed("\n".join(bad))

    def end_all(self):
        try:
            for command in self.undone:
                self.follow(command)
        finally:
            try:
                self.end(self.begun)
                self.stop_submitted()
            finally:
                for service in () if self.host else self.services:
                    service.terminate()
                for service in () if self.host else self.services:
                    service.wait(deadline_s())


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def world_of(name, lines, uid=None):
    cards = next((told[0] for line in lines if (told := line.marks.get("on"))), "h100x8" if any("with" in line.marks for line in lines) else "")
    return World(name, f"={cards}" if cards else "", uid)


def run_story(world, lines, policy):
    """Each line by its user, and then the end of all jobs but the first."""
    groups = GROUPS.findall(policy)
    uids = [user.who["user"] for user in world.users]
    world.serve_queue(GROUPS.sub(lambda found: f'users: ["{uids[groups.index(found[1])]}"]', policy))
    of = [world.users[[*groups, *line.marks["as"]].index(line.marks["as"][0])] for line in lines]
    for user, line in zip(of, lines):
        world.at = line
        if shown := line.marks.get("shows"):
            user.wait_until_said(shown, lambda user=user, line=line: user.say(line.command))
        else:
            user.follow(line.command)
    first = of[0].begun[0]
    for user in world.users:
        user.end([one for one in user.begun if one is not first])
    of[0].wait_until_said(lines[0].marks.get("said", []), lambda: of[0].text(first[1]))


def run_lines(world, lines):
    for line in lines:
        world.at = line
        for user in world.users or [world]:
            for command in [*line.marks.get("before", []), line.command]:
                user.follow(command)


def run_group(world, lines):
    """What went wrong, or None."""
    failure, world.at = None, lines[0]
    began = time.monotonic()
    try:
        served = next((line.marks["with"][0] for line in lines if "with" in line.marks), None)
        if served == "queue":
            world.serve_queue(POLICY)
        if served in (None, "queue"):
            run_lines(world, lines)
        else:
            run_story(world, lines, served)
    except Failed as why:
        failure = f"{world.at.page}:{world.at.line}: {why}"
    for user in [*world.users, world]:
        try:
            user.end_all()
        except Failed as why:
            failure = failure or f"{lines[0].page}:{lines[0].line}: {why}"
    if os.environ.get("DOC_LINES_TIMES"):
        print(f"{time.monotonic() - began:5.1f} s  {lines[0].page}:{lines[0].line}  {lines[0].command}")
    return failure


def main():
    uids = [int(uid) for uid in sys.argv[2].split(",")] if sys.argv[1] == "--as" else []
    groups = [group for name in sys.argv[3 if uids else 1:] for group in groups_of(pathlib.Path(name)) if group]
    for folder in ("LOADLINE_SIM_DIR", "XDG_RUNTIME_DIR") if uids else ():
        os.chmod(os.environ[folder], 0o755)
    if len(uids) > 1:
        groups = [group for group in groups if any("with" in line.marks for line in group)]
    for line in () if len(uids) > 1 else (line for group in groups if "as" in group[0].marks for line in group):
        line.marks.setdefault("not run", ["needs several users"])
    left_out = [line for group in groups for line in group if "not run" in line.marks]
    to_run = [kept for group in groups if (kept := [line for line in group if "not run" not in line.marks])]
    unknown = [f"{line.page}:{line.line}: neither run nor marked with a reason: {line.command}"
               for group in to_run for line in group if not line.command.startswith(RUN)]
    to_run = [kept for group in to_run if (kept := [line for line in group if line.command.startswith(RUN)])]
    # Before there are threads: a process that one of them starts may have a file of another open, which cannot be run then.
    worlds = [world_of(f"g{at}", lines, uids[0] if len(uids) == 1 else None) for at, lines in enumerate(to_run)]
    for world in worlds if len(uids) > 1 else ():
        world.admit_users(uids)
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        failures = [why for why in pool.map(run_group, worlds, to_run) if why]
    for line in left_out:
        print(f"not run: {line.page}:{line.line}: {line.command} ({line.marks['not run'][0]})")
    print(f"{sum(map(len, to_run))} lines were run, {len(left_out)} were not")
    for failure in [*unknown, *failures]:
        print(f"error: {failure}")
    return 1 if unknown or failures else 0


if __name__ == "__main__":
    sys.exit(main())
