#!/usr/bin/python3
"""kubernetes_many.py PODS SEED: the scheduler and the users of the node of kubernetes_node.bats, for so many pods.

Pods of random sizes come and go; in between the plugin, loadlined and the kubelet are killed at random, and started again as systemd
does: 0.1 s later, loadlined's socket stays. It runs in the node's network namespace, with T, NODE, LOADLINE, LOADLINE_BUILD and
LOADLINE_SIM_DIR in the environment; PLUGIN and a template, $T/template.json, are the test's.

It fails at the first pod that the kubelet calls failed. One that came while the kubelet had no resource, because it or the plugin had
just begun, and one that was just starting when the kubelet was killed, is put back, as a controller does. Each pod looks for its own size before it works; in each turn all jobs are compared with
what their namespace and size should have. At the end nothing may be left, and all cuts of all cards must be had again."""
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request

T, NODE, BUILD, LOADLINE = (os.environ[name] for name in ("T", "NODE", "LOADLINE_BUILD", "LOADLINE"))
MIB = 1 << 20
SIZES = {"half": (71577 * MIB, 50), "quarter": (35788 * MIB, 25)}
ROOM = {"half": 2, "quarter": 4}
TENANTS = {"prod": "serving", "lab": "research", "home": "research"}
SLACK_PERCENT, SPAN_S = 5, 8
NOBODY = 65534
# What the kubelet says of a pod that it turns away, before anything of it is made, while the plugin is not there.
AWAY = ("Available: 0", "code = Unavailable", "can't allocate unregistered device")
# What containerd says when the kubelet is killed while it starts a container, which it ends then; it may have begun.
CANCELED = "context canceled"


def say(text):
    print(f"{time.monotonic() - BEGAN:8.2f} {text}", flush=True)


class Kept:
    """A program that is started again when it ends."""

    def __init__(self, name, words, path=None):
        self.words, self.again, self.pid = words, 0, 0
        self.log = open(f"{T}/{name}.kept.err", "ab")
        self.listener = None
        if path:
            os.chown(os.path.dirname(path), 0, 0)
            self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.listener.bind(path)
            os.chmod(path, 0o666)
            os.chown(path, NOBODY, NOBODY)
            self.listener.listen(4096)
        self.start()

    def start(self):
        self.pid = os.fork()
        if self.pid:
            return
        os.dup2(self.log.fileno(), 2)
        os.dup2(self.log.fileno(), 1)
        if self.listener:
            os.dup2(self.listener.fileno(), 3)
            os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        os.execvp(self.words[0], self.words)

    def look(self):
        if self.pid and os.waitpid(self.pid, os.WNOHANG)[0]:
            self.pid, self.again = 0, time.monotonic() + 0.1
        if not self.pid and time.monotonic() >= self.again:
            self.start()

    def kill(self, number=signal.SIGKILL):
        if self.pid:
            os.kill(self.pid, number)


def of_kubelet():
    """{NAME: (PHASE, TEXT)} of its pods; None: it does not answer."""
    try:
        with urllib.request.urlopen("http://127.0.0.1:10255/pods", timeout=10) as reply:
            items = json.load(reply)["items"] or []
    except (OSError, ValueError, http.client.HTTPException):
        return None
    pods = {}
    for item in items:
        status = item.get("status", {})
        states = [state for container in status.get("containerStatuses", []) for state in container.get("state", {}).values()]
        text = " ".join([status.get("reason", ""), status.get("message", "")] + [s.get("reason", "") + " " + s.get("message", "") for s in states])
        pods[item["metadata"]["name"].removesuffix("-node1")] = (status.get("phase", ""), text)
    return pods


def of_loadlined():
    """The claims that it lists; None: it does not answer now."""
    run = subprocess.run([LOADLINE, "--sim", "status", "--json"], capture_output=True, text=True, check=False)
    if run.returncode:
        return None
    return [row for row in map(json.loads, run.stdout.splitlines()) if "claim" in row or "tenant_row" in row]


class Pod:
    def __init__(self, name, size, namespace, launches):
        self.name, self.size, self.namespace = name, size, namespace
        self.file, self.out = f"{T}/node/pods/{name}.json", f"{T}/out/{name}"
        self.launches = launches

    def put(self):
        with open(f"{T}/template.json", encoding="ascii") as file:
            pod = json.load(file)
        pod["metadata"] = {"name": self.name, "namespace": self.namespace}
        command = (f"exec >>{self.out} 2>&1; export CUDA_VISIBLE_DEVICES=${{NVIDIA_VISIBLE_DEVICES##*,}}; "
                   f"until {LOADLINE} --sim status --json >{self.out}.status; do sleep 0.2; done; echo began; "
                   f"{BUILD}/tests/e2e/launcher 2 {self.launches}; echo status $?")
        container = pod["spec"]["containers"][0]
        container["command"][2] = command
        container["resources"]["limits"] = {f"loadline.dev/{self.size}": 1}
        with open(f"{T}/node/{self.name}.json", "w", encoding="ascii") as file:
            json.dump(pod, file)
        os.rename(file.name, self.file)

    def remove(self):
        os.unlink(self.file)

    def has_begun(self):
        try:
            with open(self.out, encoding="utf-8") as file:
                return "began" in file.read()
        except OSError:
            return False

    def check_size(self):
        """What the container sees of its card's memory is its size."""
        with open(self.out + ".status", encoding="utf-8") as file:
            seen = [row["memory_total_bytes"] for row in map(json.loads, file) if row.get("card") is not None]
        if SIZES[self.size][0] not in seen:
            raise SystemExit(f"{self.name}, a {self.size}, sees memory of {seen}")


class Trial:
    def __init__(self, count, seed):
        self.count, self.random = count, random.Random(seed)
        self.live, self.made, self.kills, self.again, self.ended, self.removed = {}, 0, {}, 0, 0, 0
        self.first, self.rates, self.back, self.canceled = {}, 0, [], 0
        self.kept = {
            "loadlined": Kept("loadlined", [f"{BUILD}/src/daemon/loadlined", "--system", "--config", f"{T}/conf"],
                              f"{T}/world/system/socket"),
            "plugin": Kept("plugin", ["nsenter", "-t", NODE, "-m", "-n", "-p", "-u", os.environ["PLUGIN"]])}

    def has_room(self, size):
        return sum(pod.size == size for pod in [*self.live.values(), *(pod for _, pod in self.back)]) < ROOM[size]

    def make(self, size, launches=""):
        self.made += 1
        pod = Pod(f"p{self.made}", size, self.random.choice(list(TENANTS)), launches)
        self.live[pod.name] = pod
        pod.put()
        say(f"{pod.name} comes: {size} of {pod.namespace}")

    def kill(self):
        name = self.random.choice(["plugin", "loadlined", "kubelet"])
        if name == "loadlined":
            self.kept[name].kill()
            self.first.clear()
        else:
            which = "cat /run/kubelet.pid" if name == "kubelet" else "pidof loadline-kubelet"
            subprocess.run(["nsenter", "-t", NODE, "-m", "-p", "sh", "-c", f"kill -KILL $({which})"], check=False)
        self.kills[name] = self.kills.get(name, 0) + 1
        say(f"kill -9 {name}")

    def act(self):
        """One thing at random."""
        sizes = [size for size in SIZES if self.has_room(size)]
        what = self.random.random()
        if what < 0.6 and sizes and self.made < self.count:
            self.make(self.random.choice(sizes), self.random.choice(["", "200", "1000"]))
        elif what < 0.8 and self.live:
            pod = self.random.choice(list(self.live.values()))
            self.end(pod, "is deleted")
            self.removed += 1
        elif what < 0.95:
            self.kill()

    def end(self, pod, why):
        if pod.has_begun():
            pod.check_size()
            self.ended += 1
        say(f"{pod.name} {why}")
        pod.remove()
        del self.live[pod.name]

    def look(self):
        for kept in self.kept.values():
            kept.look()
        while self.back and self.back[0][0] <= time.monotonic():
            pod = self.back.pop(0)[1]
            self.make(pod.size, pod.launches)
        self.look_at_pods(of_kubelet() or {})
        asked = time.monotonic()
        self.look_at_jobs(asked, of_loadlined() or [])

    def look_at_pods(self, pods):
        for pod in list(self.live.values()):
            phase, text = pods.get(pod.name, ("", ""))
            if phase == "Succeeded":
                self.end(pod, "has ended")
            elif phase == "Failed" and (CANCELED in text or (any(word in text for word in AWAY) and not pod.has_begun())):
                self.again += 1
                self.canceled += CANCELED in text
                say(f"{pod.name} is turned away by the kubelet: {text[:120]}")
                self.end(pod, "is put back")
                self.count += 1
                self.back.append((time.monotonic() + 1, pod))
            elif phase == "Failed":
                raise SystemExit(f"{pod.name}, a {pod.size} of {pod.namespace}, has failed: {text}")

    def look_at_jobs(self, asked, rows):
        """No job has more than its size, or is of another tenant; none runs more than its part of the time, in spans in which loadlined
        was not killed: while it is away, programs are on the card as they like."""
        now = time.monotonic()
        for row in rows:
            limit = row["memory_limit_bytes"], row["compute_cap_percent"]
            if limit not in SIZES.values():
                raise SystemExit(f"a job is not held to a size: {row}")
            if "claim" not in row:
                continue
            if row["proof"] != "cgroup" or row["tenant"] != TENANTS[row["project"]] or row["memory_bytes"] > limit[0]:
                raise SystemExit(f"a claim is not what it should be: {row}")
            key = row["job_number"], row["pid"]
            at, seconds = self.first.setdefault(key, (asked, row["gpu_seconds"]))
            if now - at < SPAN_S:
                continue
            percent = (row["gpu_seconds"] - seconds) / (now - at) * 100
            self.rates += 1
            self.first[key] = asked, row["gpu_seconds"]
            if percent > limit[1] + SLACK_PERCENT:
                raise SystemExit(f"a claim ran {percent:.1f} % of the time: {row}")

    def wait(self, what, condition):
        until = time.monotonic() + 120 * (1 + os.getloadavg()[0] / 2)
        while not condition():
            self.look()
            if time.monotonic() > until:
                raise SystemExit(f"never: {what}; {of_loadlined()} {of_kubelet()}")
            time.sleep(0.1)

    def run(self):
        next_act = 0
        while self.made < self.count or self.live or self.back:
            self.look()
            if time.monotonic() >= next_act:
                self.act()
                next_act = time.monotonic() + self.random.uniform(0, 1.5)
            time.sleep(0.05)
        self.wait("nothing is left of the pods", lambda: of_loadlined() == [] and of_kubelet() == {})
        say("all cuts are had again")
        for size, room in ROOM.items():
            for _ in range(room):
                self.make(size)
        self.wait("all begin", lambda: not self.back and all(pod.has_begun() for pod in self.live.values()))
        self.wait("all run", lambda: sum("claim" in row for row in of_loadlined() or []) == sum(ROOM.values()))
        for pod in list(self.live.values()):
            self.end(pod, "is deleted")
        self.wait("nothing is left", lambda: of_loadlined() == [] and of_kubelet() == {})


BEGAN = time.monotonic()
trial = Trial(int(sys.argv[1]), int(sys.argv[2]))
try:
    trial.run()
finally:
    for kept in trial.kept.values():
        kept.kill(signal.SIGTERM)
print(json.dumps({"pods": trial.made - trial.again, "began": trial.ended, "removed": trial.removed, "kills": trial.kills,
                  "turned_away": trial.again - trial.canceled, "canceled": trial.canceled, "rates": trial.rates,
                  "seconds": round(time.monotonic() - BEGAN)}))
