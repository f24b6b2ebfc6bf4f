#!/usr/bin/env python3
"""A service whose answers are known: a decoder whose step is one CUDA graph, captured by PyTorch. Each request makes --tokens tokens
from the same beginning, and its answer is compared, bit for bit, with the first one. --every-ms: a pause between two requests.
It works until its standard input ends. A JSON object a line comes out:

    {"event":"ready","card_bytes":800000000}
    {"event":"end","rounds":900,"wrong":0,"longest_s":0.8}
"""
import sys
import threading
import time

import torch

import beat
from decoder import Decoder

options = beat.arguments(tokens=32, every_ms=5.0, width=1024)
torch.manual_seed(1)
model = Decoder(width=options.width)
for _ in range(3):
    model.step()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    model.step()


def bits(tensor):
    """Sums of integers are exact in any order."""
    return tensor.reshape(-1).view(torch.int16).sum(dtype=torch.int64).item()


def answer():
    for tensor in (model.keys, model.values, model.place, model.token):
        tensor.zero_()
    tokens = []
    for _ in range(options.tokens):
        graph.replay()
        tokens.append(model.token.item())
    return tokens, bits(model.keys), bits(model.values)


def weights():
    return [bits(model.embedding), *(bits(weight) for layer in model.layers for weight in layer.values())]


def wait_for_end():
    sys.stdin.read()
    is_over.set()


is_over = threading.Event()
right, right_weights = answer(), weights()
wrong = int(answer() != right)  # a step that is not the same twice would be told at once
beat.say("ready", card_bytes=torch.cuda.memory_reserved())
threading.Thread(target=wait_for_end, daemon=True).start()
rounds, longest_s = 0, 0.0
while not is_over.wait(options.every_ms / 1000):
    begin = time.perf_counter()
    wrong += answer() != right
    rounds += 1
    longest_s = max(longest_s, time.perf_counter() - begin)
wrong += weights() != right_weights
beat.say("end", rounds=rounds, wrong=wrong, longest_s=round(longest_s, 4))
