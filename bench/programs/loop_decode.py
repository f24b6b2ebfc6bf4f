#!/usr/bin/env python3
"""A decoder that makes a token a step, eagerly; the host reads each token before it begins the next. --graph: the step is
one CUDA graph, and nobody reads the token: the card is full."""
import torch

import beat
import torch_beat
from decoder import Decoder

options = beat.arguments(graph=0, width=1024)
model = Decoder(width=options.width)


def graph():
    for _ in range(3):
        model.step()
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        model.step()
    return captured.replay


def one_token():
    model.step()
    return 1, model.token.item


if options.graph:
    beat.run(torch_beat.batch(graph(), 4), options.seconds)
else:
    beat.run(one_token, options.seconds, ahead=1)
