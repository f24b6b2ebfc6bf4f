#!/usr/bin/env python3
"""Replays a CUDA graph of two kernels a layer, captured by PyTorch."""
import torch

import beat
import torch_beat

options = beat.arguments(size=1024, layers=5, replays=50)
weights = [torch.randn(options.size, options.size, device="cuda", dtype=torch.bfloat16) / options.size ** 0.5
           for _ in range(options.layers)]
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
beat.run(torch_beat.batch(graph.replay, options.replays), options.seconds)
