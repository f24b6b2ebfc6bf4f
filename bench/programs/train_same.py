#!/usr/bin/env python3
"""A training that gives the same bits in each run: a transformer in mixed precision, with Adam; its size is told. Fixed seeds, and
no operation whose result depends on timing. It touches the card when it is told to. --loaders: so many processes make its batches
(torch.utils.data), in place of the card. Lines of standard input:

    make GIB     makes the model anew, from the same seed: parameters, gradients and moments take about so much
    train N      so many steps

A JSON object a line comes out; `sum` is of all parameters and moments:

    {"event":"ready"}
    {"event":"made","parameters":1057000000,"card_bytes":17800000000}
    {"event":"step","step":5,"loss":8.31}
    {"event":"trained","steps":60,"begun_s":1700000000.1,"seconds":3.9,"step_s":0.065,"sum":"5feceb66ffc8"}
"""
import argparse
import gc
import hashlib
import os
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch  # noqa: E402
import torch.utils.deterministic  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402

import line  # noqa: E402

WIDTH, HEADS, LENGTH, BATCH, WORDS = 2048, 16, 256, 4, 4096
PARAMETER_BYTES = 16  # itself, its gradient and two moments
TELL_EACH = 5
COLUMNS = 1024

torch.use_deterministic_algorithms(True, warn_only=True)
torch.utils.deterministic.fill_uninitialized_memory = False


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (part.reshape(BATCH, LENGTH, HEADS, -1).transpose(1, 2) for part in self.qkv(self.before(x)).chunk(3, dim=-1))
        weights = torch.softmax(q @ k.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5, dim=-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
        return x + self.down(functional.gelu(self.up(self.after(x))))


class Batches(Dataset):
    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        return torch.randint(0, WORDS, (LENGTH,), generator=torch.Generator().manual_seed(index))


def batches():
    """Without end."""
    if options.loaders:
        for words in DataLoader(Batches(), BATCH, num_workers=options.loaders, pin_memory=True):
            yield words.cuda(non_blocking=True)
    while True:
        yield torch.randint(0, WORDS, (BATCH, LENGTH), device="cuda")


class Training:
    def __init__(self, gib):
        self.batches = batches()
        torch.manual_seed(1)
        layers = max(1, round(gib * 2 ** 30 / (PARAMETER_BYTES * 12 * WIDTH ** 2)))
        with torch.device("cuda"):
            self.model = nn.Sequential(nn.Embedding(WORDS, WIDTH), *(Layer() for _ in range(layers)), nn.Linear(WIDTH, WORDS))
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        self.step_once()
        torch.cuda.synchronize()

    def step_once(self):
        words = next(self.batches)
        self.optimiser.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = functional.cross_entropy(self.model(words).flatten(0, 1).float(), words.flatten())
        loss.backward()
        self.optimiser.step()
        return loss

    def train(self, steps):
        begun_s, begin = time.time(), time.perf_counter()
        for step in range(1, steps + 1):
            loss = self.step_once()
            if step % TELL_EACH == 0:
                line.say(event="step", step=step, loss=round(loss.item(), 6))
        torch.cuda.synchronize()
        seconds = time.perf_counter() - begin
        line.say(event="trained", steps=steps, begun_s=begun_s, seconds=round(seconds, 4), step_s=seconds / steps, sum=self.sum())

    def tensors(self):
        for parameter in self.model.parameters():
            yield parameter.detach()
            yield from (self.optimiser.state[parameter][name] for name in ("exp_avg", "exp_avg_sq"))

    def sum(self):
        """Sums of integers are exact in any order: those of the rows and of the columns of each tensor's bits."""
        found = hashlib.sha256()
        for tensor in self.tensors():
            bits = tensor.reshape(-1).view(torch.int32)
            whole = bits[:bits.numel() // COLUMNS * COLUMNS].view(-1, COLUMNS)
            for part in (whole.sum(0), whole.sum(1), bits[whole.numel():]):
                found.update(repr(part.tolist()).encode())
        return found.hexdigest()[:16]


def make(gib):
    training = Training(gib)
    count = sum(parameter.numel() for parameter in training.model.parameters())
    line.say(event="made", parameters=count, card_bytes=torch.cuda.memory_reserved())
    return training


parser = argparse.ArgumentParser()
parser.add_argument("--loaders", type=int, default=0)
options = parser.parse_args()
line.say(event="ready")
training = None
for text in sys.stdin:
    word, value = text.split()
    if word == "make":
        training = None
        gc.collect()
        training = make(float(value))
    else:
        training.train(int(value))
