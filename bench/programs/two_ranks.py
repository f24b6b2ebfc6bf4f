"""A program of two ranks that talk by NCCL, one on each of two cards: rank 0 starts this program again as rank 1, and tells it on
its standard input what to do. RANK and MASTER_PORT are torch.distributed's."""
import os
import socket
import subprocess
import sys

import torch
import torch.distributed

ANY_PORT = ("127.0.0.1", 0)
COUNT = 2


def rank():
    return int(os.environ.get("RANK", "0"))


def free_port():
    with socket.socket() as found:
        found.bind(ANY_PORT)
        return str(found.getsockname()[1])


def start_second(**streams):
    """From rank 0. The rank's process; the caller closes its standard input and waits for it."""
    os.environ["MASTER_PORT"] = free_port()
    words = [sys.executable, "-B", os.path.abspath(sys.argv[0]), *sys.argv[1:]]
    return subprocess.Popen(words, stdin=subprocess.PIPE, env={**os.environ, "RANK": "1"}, **streams)


def join():
    os.environ["MASTER_ADDR"] = ANY_PORT[0]
    torch.cuda.set_device(rank())
    torch.distributed.init_process_group("nccl", rank=rank(), world_size=COUNT)
