#!/usr/bin/env python3
"""PyTorch under a memory limit: eager, compiled by Triton, or with a CUDA graph. The environment chooses its allocator."""
import torch

import trial


def eager():
    a = (torch.arange(512 * 512) % 7).reshape(512, 512).float()
    return torch.equal((a.cuda() @ a.cuda()).cpu(), a @ a)


def compiled():
    x = torch.linspace(0, 1, 100000)
    function = torch.compile(lambda v: torch.sin(v) * 2 + v * v)
    return torch.allclose(function(x.cuda()).cpu(), torch.sin(x) * 2 + x * x, atol=1e-5)


def replayed():
    x = torch.zeros(1000, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x * 2 + 1
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2 + 1
    x.fill_(20)
    graph.replay()
    return bool((y == 41).all())


class Torch:
    least = 0.7

    def __init__(self, compute):
        self.compute = compute

    def total(self):
        free, total = torch.cuda.mem_get_info()
        told = torch.cuda.get_device_properties(0).total_memory
        return total if free <= total and told == total else -1

    def take(self, count):
        return torch.empty(count, dtype=torch.uint8, device="cuda").fill_(1)

    def free(self):
        torch.cuda.empty_cache()

    def is_own_error(self, error):
        return isinstance(error, torch.cuda.OutOfMemoryError)


options = trial.arguments(mode="eager")
trial.run(Torch({"eager": eager, "compile": compiled, "graph": replayed}[options.mode]), options)
