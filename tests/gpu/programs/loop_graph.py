#!/usr/bin/env python3
"""Replays a CUDA graph of about ten kernels, captured by PyTorch."""
import torch

import beat
import torch_beat

LAYERS = 5
REPLAYS = 50

options = beat.arguments(size=1024)
weights = [torch.randn(options.size, options.size, device="cuda", dtype=torch.bfloat16) / options.size ** 0.5
           for _ in range(LAYERS)]
first = torch.randn_like(weights[0])


def layers():
    x = first
    for weight in weights:
        x = torch.relu(x @ weight)
    return x


side = torch.cuda.Stream()
with torch.cuda.stream(side):
    layers()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    last = layers()
beat.run(torch_beat.batch(graph.replay, REPLAYS), options.seconds)
