#!/usr/bin/env python3
"""Training steps of a small transformer in PyTorch, eager: many small kernels, forward, backward and optimiser. --cpu: the
processor on which the launching threads stay: this one, and the one that PyTorch starts at the first step for backward.
--stamps: how many steps have stamps on the card's clock (stamps.py)."""
import torch
from torch import nn

import beat
import torch_beat

WORDS = 1000

options = beat.arguments(width=512, layers=4, batch=32, length=128, cpu=-1, stamps=0)
torch.manual_seed(1)
layer = nn.TransformerEncoderLayer(options.width, 8, 4 * options.width, dropout=0.0, batch_first=True)
model = nn.Sequential(nn.Embedding(WORDS, options.width), nn.TransformerEncoder(layer, options.layers),
                      nn.Linear(options.width, WORDS)).cuda()
optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)
words = torch.randint(0, WORDS, (options.batch, options.length), device="cuda")


def step():
    optimiser.zero_grad(set_to_none=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(words).flatten(0, 1), words.flatten())
    loss.backward()
    optimiser.step()


beat.stay_on(options.cpu)
beat.run(torch_beat.batch(step, 1), options.seconds, stamps=torch_beat.stamps(options.stamps))
