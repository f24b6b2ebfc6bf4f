#!/usr/bin/env python3
"""Data-parallel training with PyTorch: several processes on one card, gradients averaged through gloo. What each launches
between two marks is known: a mark is a kernel called spin_kernel. A JSON object a line, one for each process:

    {"event":"rank","rank":1,"pid":4711,"marks":4,"kernels":812}

kernels is what PyTorch's own profiler counts between the marks, both included, with --profile; else null.
"""
import argparse
import json
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch import nn

import line

WARM_UP = 8
MARK_CYCLES = 20000


def mark():
    torch.cuda._sleep(MARK_CYCLES)


def make_step(model):
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = torch.randn(64, 512, device="cuda")

    def step():
        optimiser.zero_grad(set_to_none=True)
        model(data).square().mean().backward()
        optimiser.step()
    return step


def region(step, steps, marks):
    torch.cuda.synchronize()
    dist.barrier()
    for _ in range(marks - 1):
        mark()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    mark()
    torch.cuda.synchronize()


def count_kernels(profile):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profile.export_chrome_trace(path)
        with open(path, encoding="utf-8") as text:
            return sum(event.get("cat") == "kernel" for event in json.load(text)["traceEvents"])


def work(rank, options, rendezvous):
    torch.manual_seed(rank)
    torch.cuda.set_device(0)
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=options.ranks)
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 64)).cuda()
    step = make_step(nn.parallel.DistributedDataParallel(model))
    for _ in range(WARM_UP):
        step()
    marks, kernels = 3 + rank, None
    if options.profile:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            region(step, options.steps, marks)
        kernels = count_kernels(profile)
    else:
        region(step, options.steps, marks)
    dist.barrier()
    line.say(event="rank", rank=rank, pid=os.getpid(), marks=marks, kernels=kernels)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--profile", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        processes.spawn(work, (chosen, os.path.join(place, "rendezvous")), nprocs=chosen.ranks)
