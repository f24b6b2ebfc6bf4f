#!/usr/bin/env python3
"""Sums over two cards in a loop, by NCCL: two processes, one for each card, whose kernels wait for each other on the cards. The
second is a child of the first, which tells it of each batch, and that it is over by the end of its standard input.

With --pause-us the hosts compute for so long before each sum, and the cards wait for them."""
import sys
import time

import torch
import torch.distributed

import beat
import two_ranks

SUMS, NUMBERS = 10, 16 << 20  # some ms


def join():
    two_ranks.join()
    return torch.ones(options.numbers, device="cuda")


def sums(numbers):
    for _ in range(SUMS):
        until_s = time.perf_counter() + options.pause_us / 1e6
        while time.perf_counter() < until_s:
            pass
        torch.distributed.all_reduce(numbers, torch.distributed.ReduceOp.MAX)
    event = torch.cuda.Event()
    event.record()
    return SUMS, event.synchronize


def follow():
    numbers, pending = join(), []
    for _ in sys.stdin:
        pending.append(sums(numbers)[1])
        if len(pending) > beat.AHEAD:
            pending.pop(0)()
    torch.cuda.synchronize()


def lead(seconds):
    second = two_ranks.start_second()
    numbers = join()

    def queue():
        second.stdin.write(b"\n")
        second.stdin.flush()
        return sums(numbers)
    beat.run(queue, seconds)
    second.stdin.close()
    return second


options = beat.arguments(numbers=NUMBERS, pause_us=0)
other = follow() if two_ranks.rank() else lead(options.seconds)
torch.distributed.destroy_process_group()  # which waits for the other one's
if other:
    sys.exit(other.wait())
