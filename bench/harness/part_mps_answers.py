"""mps-answers: what a real control daemon answers, and what becomes of clients, servers and daemons that are lost. It is what
the simulated daemon (sim/README.md) was built without: rows without a limit are for comparing the two."""
import ctypes
import os
import signal
import subprocess
import sys
import time

from .card import NvmlError, Process
from .lab import Missing
from .part_mps import DEFAULT_MODE, Mps
from .talker import Talker

CLIENT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "programs", "mps_client.py")
TERMINATED = 810
LEAST_SMS = 8
PATIENCE_S = 30
ALONE = ["help", "get_default_device_pinned_mem_limit 0", "set_default_device_pinned_mem_limit 0 2G",
         "get_default_device_pinned_mem_limit 0", "set_default_device_pinned_mem_limit 0 2",
         "get_default_device_pinned_mem_limit 0", "set_default_device_pinned_mem_limit 99 2G",
         "get_default_device_pinned_mem_limit 99", "get_default_device_pinned_mem_limit 0", "set_default_active_thread_percentage 0",
         "set_default_active_thread_percentage 101", "get_default_client_priority", "set_default_client_priority 7",
         "get_server_status 1", "get_client_list 1", "terminate_client 1 2", "shutdown_server 1", "lspart",
         "sm_partition add 0 1", "start_server", "device_query"]
BESIDE = ["get_client_list {server}", "get_device_client_list", "get_device_client_list {server}", "ps", "ps -p {client}",
          "get_active_thread_percentage {server}", "get_device_pinned_mem_limit {server} 0",
          "terminate_client {server} 1"]


class Client:
    """A program that is a client of the daemon from its first line on."""

    def __init__(self, mps, name, **env):
        self.talker = Talker(mps.lab, "mps-answers-" + name, [sys.executable, CLIENT], {**mps.env, **env},
                             stdin=subprocess.PIPE)
        found = self.talker.wait_for(lambda line: True, PATIENCE_S)
        self.first = found[1] if found else {"refused": self.talker.complaint() or "says nothing"}

    def try_again(self):
        """What a kernel and a new context end with now: CUDA's numbers, or None for a process that is gone or hangs."""
        mark = self.talker.mark()
        try:
            self.talker.process.stdin.write(b"\n")
            self.talker.process.stdin.flush()
        except OSError:
            return None, None
        found = self.talker.wait_for(lambda line: "kernel" in line, PATIENCE_S, mark)
        return (found[1]["kernel"], found[1]["context"]) if found else (None, None)

    def end(self, number=signal.SIGTERM):
        self.talker.process.send_signal(number)
        self.talker.process.wait(10)


def ask(mps, words):
    """(exit status, both outputs as one line) of one command."""
    script = f"echo '{words}' | '{mps.control}' 2>&1"
    status, out, _ = mps.lab.run("mps-answers-ask", ["/bin/sh", "-c", script], mps.env, timeout=20)
    mps.lab.report.keep(f"mps-answers: {words}", {"status": status, "text": out})
    return status, " / ".join(out.split("\n")).strip(" /")


def show(mps, words):
    status, text = ask(mps, words)
    mps.lab.report.note(f"mps-answers: {words}", f"{status}: {text[:160]}")


def check_fixed(mps):
    status, text = ask(mps, "no_such_command")
    mps.lab.report.check("mps-answers: an unknown command", "0, Unknown command", f"{status}, {text}",
                         status == 0 and "unknown command" in text.lower())
    for words, wanted in (("get_default_active_thread_percentage", "100.0"),
                          ("set_default_active_thread_percentage 50", "50.0"),
                          ("set_default_active_thread_percentage 100", "100.0")):
        status, text = ask(mps, words)
        mps.lab.report.check(f"mps-answers: {words}", f"0, {wanted}", f"{status}, {text}", (status, text) == (0, wanted))


def server_of(mps):
    words = ask(mps, "get_server_list")[1].split()
    return int(words[0]) if words and words[0].isdigit() else 0


def pids_of(card, function):
    processes, count = (Process * 128)(), ctypes.c_uint(128)
    try:
        card.nvml.call(function, card.handle, ctypes.byref(count), processes)
    except NvmlError as why:
        return str(why)
    return sorted(process.pid for process in processes[:count.value])


def look_at_client(mps):
    lab, client = mps.lab, Client(mps, "client")
    if "refused" in client.first:
        raise Missing(f"MPS does not take clients: {client.first['refused'][-100:]}")
    server = server_of(mps)
    status, text = ask(mps, f"get_server_status {server}")
    lab.report.check("mps-answers: status of a server", "0, ACTIVE", f"{status}, {text}", (status, text) == (0, "ACTIVE"))
    for words in BESIDE:
        show(mps, words.format(server=server, client=client.talker.pid))
    for kind in ("", "MPS"):
        name = f"nvmlDeviceGet{kind}ComputeRunningProcesses_v3"
        lab.report.note(f"mps-answers: {name}", f"{pids_of(lab.card, name)}; server {server}, client {client.talker.pid}")
    return client


def sms_at(whole, percent):
    """What MPS gives a client of a card of that many SMs: whole pairs of them, rounded down, and never fewer than 8."""
    return max(min(LEAST_SMS, whole), whole * percent // 100 // 2 * 2)


def check_share(report, percent, sms, whole):
    wanted = sms_at(whole, percent)
    report.check(f"mps-answers: SMs at {percent} %", f"{wanted}", f"{sms}; {whole * percent / 100:.2f} of {whole}",
                 sms == wanted)


def measure_shares(mps):
    """How a percentage of SMs is rounded, and what a memory limit leaves."""
    whole = Client(mps, "share")
    whole.end()
    for percent in (99, 75, 50, 33, 25, 10, 7, 5, 3, 1):
        client = Client(mps, "share", CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=str(percent))
        client.end()
        check_share(mps.lab.report, percent, client.first.get("sms", 0), whole.first["sms"])
    for limit in ("0=2G", "0=2G,99=2G"):
        client = Client(mps, "limit", CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=limit)
        client.end()
        mps.lab.report.note(f"mps-answers: limit {limit}", str(client.first))


def check_unharmed(mps, client, beside):
    status = client.try_again()
    mps.lab.report.check(f"mps-answers: beside a {beside}", "(0, 0)", str(status), status == (0, 0))


def lose_client(mps, client):
    victim = Client(mps, "victim")
    victim.end(signal.SIGKILL)
    check_unharmed(mps, client, "client killed with SIGKILL")
    victim = Client(mps, "victim")
    begin = time.monotonic()
    status, text = ask(mps, f"terminate_client {server_of(mps)} {victim.talker.pid}")
    mps.lab.report.note("mps-answers: terminate_client", f"{status}: {text}; {time.monotonic() - begin:.2f} s")
    kernel, context = victim.try_again()
    mps.lab.report.check("mps-answers: a terminated client's kernel", str(TERMINATED), f"{kernel}, a context {context}",
                         kernel == TERMINATED)
    victim.end(signal.SIGKILL)
    check_unharmed(mps, client, "terminated client")


def lose_server(mps, client):
    server = server_of(mps)
    os.kill(server, signal.SIGKILL)
    mps.lab.report.note("mps-answers: server killed: its client", str(client.try_again()))
    client.end(signal.SIGKILL)
    client = Client(mps, "next")
    mps.lab.report.check("mps-answers: server killed: the next client", "runs", str(client.first), "sms" in client.first)
    mps.lab.report.note("mps-answers: server killed: the next server", f"{server_of(mps)} after {server}")
    return client


def lose_daemon(mps, client):
    pids = mps.pids()
    os.kill(pids[-1], signal.SIGKILL)
    mps.lab.report.note("mps-answers: daemon killed: its client", str(client.try_again()))
    show(mps, "get_server_list")
    client.end(signal.SIGKILL)
    client = Client(mps, "without")
    mps.lab.report.note("mps-answers: daemon killed: the next client", str(client.first))
    client.end(signal.SIGKILL)
    status, out, err = mps.lab.run("mps-answers-start", [mps.control, "-d"], mps.env, timeout=30)
    mps.lab.report.check("mps-answers: another daemon in the same folder", "0", f"{status} {(out + err).strip()[-80:]}",
                         status == 0)
    mps.end(pids)


def run(lab):
    if lab.card.compute_mode() != DEFAULT_MODE:
        raise Missing("the card's compute mode is not default")
    with Mps(lab) as mps:
        check_fixed(mps)
        for words in ALONE:
            show(mps, words)
        status, out, err = lab.run("mps-answers-second", [mps.control, "-d"], mps.env, timeout=30)
        lab.report.note("mps-answers: a second daemon", f"{status}: out '{out.strip()}', err '{err.strip()}'")
        lab.report.note("mps-answers: files", " ".join(sorted(os.listdir(mps.env["CUDA_MPS_PIPE_DIRECTORY"]))))
    with Mps(lab) as mps:
        client = look_at_client(mps)
        measure_shares(mps)
        lose_client(mps, client)
        lose_daemon(mps, lose_server(mps, client))
