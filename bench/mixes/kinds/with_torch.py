#!/usr/bin/env python3
"""Kinds of PyTorch programs: with_torch.py NAME. Each function makes its model and its data, and returns what pulse.py runs.

None of them was written for the rule, or changed for it. Sizes are those of small research programs on one card."""
import argparse
import time

import torch
from torch import nn

import pulse

KINDS = {}


def kind(make):
    KINDS[make.__name__] = make
    return make


def stepping(step, marks=None):
    pulse.warm_up(step)
    torch.cuda.synchronize()
    return pulse.Steps(step, marks or pulse.Marks())


def answering(answer, every_s):
    pulse.warm_up(answer)
    torch.cuda.synchronize()
    return pulse.Requests(answer, every_s)


# ---- models ----

class Block(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, width, layers, heads, outputs, causal=False, tokens=0, patch=0):
        super().__init__()
        self.into = nn.Embedding(tokens, width) if tokens else nn.Linear(3 * patch * patch, width)
        self.blocks = nn.Sequential(*[Block(width, heads, causal) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outputs)
        self.patch = patch

    def forward(self, x):
        if self.patch:
            batch, p = x.shape[0], self.patch
            x = x.unfold(2, p, p).unfold(3, p, p).permute(0, 2, 3, 1, 4, 5).reshape(batch, -1, 3 * p * p)
        x = self.norm(self.blocks(self.into(x)))
        return self.head(x if self.patch == 0 else x.mean(1))


class Residual(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.path = nn.Sequential(nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(inplace=True),
                                  nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after))
        self.side = nn.Conv2d(before, after, 1, stride) if (before, stride) != (after, 1) else nn.Identity()

    def forward(self, x):
        return torch.relu(self.path(x) + self.side(x))


def resnet(classes=100):
    widths = [64, 64, 64, 128, 128, 256, 256, 512, 512]
    blocks = [Residual(a, b, 1 if a == b or b == 64 else 2) for a, b in zip(widths, widths[1:])]
    return nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1), nn.ReLU(), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


class Unet(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.into = nn.Conv2d(4, width, 3, 1, 1)
        self.down1, self.down2 = Residual(width, width, 1), Residual(width, 2 * width, 2)
        self.middle = nn.Sequential(Residual(2 * width, 4 * width, 2), Residual(4 * width, 4 * width, 1))
        self.attention = Block(4 * width, 8, False)
        self.up1, self.up2 = Residual(6 * width, 2 * width, 1), Residual(3 * width, width, 1)
        self.out = nn.Conv2d(width, 4, 3, 1, 1)

    def forward(self, x):
        a = self.down1(self.into(x))
        b = self.down2(a)
        c = self.middle(b)
        batch, width, high, wide = c.shape
        c = self.attention(c.flatten(2).transpose(1, 2)).transpose(1, 2).view(batch, width, high, wide)
        c = self.up1(torch.cat([nn.functional.interpolate(c, scale_factor=2), b], 1))
        return self.out(self.up2(torch.cat([nn.functional.interpolate(c, scale_factor=2), a], 1)))


class Images(torch.utils.data.IterableDataset):
    def __init__(self, side, classes):
        self.side, self.classes = side, classes

    def __iter__(self):
        while True:
            yield torch.rand(3, self.side, self.side), torch.randint(self.classes, ()).item()


# ---- trainings ----

def training(model, batches, amp, each=1, read_every=20):
    """A usual loop: each: micro steps between two steps of the optimiser; the loss is read now and then, for the log."""
    optimiser, scaler = torch.optim.AdamW(model.parameters(), lr=1e-4), torch.amp.GradScaler("cuda", enabled=amp)
    count = 0

    def step():
        nonlocal count
        x, y = next(batches)
        with torch.autocast("cuda", enabled=amp):
            out = model(x.cuda(non_blocking=True))
            loss = nn.functional.cross_entropy(out.flatten(0, -2), y.cuda(non_blocking=True).flatten())
        scaler.scale(loss / each).backward()
        count += 1
        if count % each == 0:
            scaler.step(optimiser)
            scaler.update()
            optimiser.zero_grad(set_to_none=True)
        if count % read_every == 0:
            loss.item()
    return stepping(step)


def forever(*tensors):
    while True:
        yield tensors


def images(batch, side, classes):
    return forever(torch.rand(batch, 3, side, side).pin_memory(), torch.randint(classes, (batch,)).pin_memory())


def texts(batch, length, tokens):
    x = torch.randint(tokens, (batch, length)).pin_memory()
    return forever(x, x)


@kind
def vit_train():
    """ViT, AMP, images from two loader processes."""
    loader = torch.utils.data.DataLoader(Images(128, 100), batch_size=32, num_workers=2, pin_memory=True)
    return training(Transformer(384, 12, 6, 100, patch=16).cuda(), iter(loader), True)


@kind
def gpt_train():
    """A language model of 40 million parameters, AMP, one batch after the other."""
    return training(Transformer(512, 8, 8, 8192, True, 8192).cuda(), texts(16, 256, 8192), True)


@kind
def gpt_accumulate():
    """The same in small batches, eight to a step of the optimiser."""
    return training(Transformer(512, 8, 8, 8192, True, 8192).cuda(), texts(2, 256, 8192), True, each=8)


@kind
def resnet_small():
    return training(resnet().cuda(), images(4, 64, 100), True)


@kind
def resnet_large():
    return training(resnet().cuda(), images(128, 64, 100), True)


@kind
def mlp_float():
    """A small network without AMP, the loss read at each step, as in many notebooks."""
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)).cuda()
    batches = forever(torch.rand(128, 64), torch.randint(10, (128,)))
    return training(model, batches, False, read_every=1)


@kind
def lstm_train():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.lstm, self.head = nn.Embedding(4096, 256), nn.LSTM(256, 512, 2, batch_first=True), nn.Linear(512, 4096)

        def forward(self, x):
            return self.head(self.lstm(self.into(x))[0])
    return training(Model().cuda(), texts(32, 128, 4096), False)


@kind
def recommend():
    """Large embeddings, a small network."""
    table, top = nn.EmbeddingBag(1 << 20, 64, sparse=True).cuda(), nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1)).cuda()
    optimiser = torch.optim.SGD([*table.parameters(), *top.parameters()], lr=0.01)
    ids = torch.randint(1 << 20, (2048, 40)).pin_memory()

    def step():
        loss = top(table(ids.cuda(non_blocking=True))).square().mean()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
    return stepping(step)


@kind
def graph_network():
    """Messages along the edges of a sparse graph."""
    nodes, edges = 20000, 400000
    index = torch.randint(nodes, (2, edges), device="cuda")
    matrix = torch.sparse_coo_tensor(index, torch.ones(edges, device="cuda"), (nodes, nodes)).coalesce().to_sparse_csr()
    layers = nn.ModuleList([nn.Linear(128, 128) for _ in range(3)]).cuda()
    optimiser, features = torch.optim.Adam(layers.parameters()), torch.rand(nodes, 128, device="cuda")

    def step():
        x = features
        for layer in layers:
            x = torch.relu(layer(matrix @ x))
        optimiser.zero_grad(set_to_none=True)
        x.square().mean().backward()
        optimiser.step()
    return stepping(step)


@kind
def reinforce():
    """Steps of an environment on the host, each with a forward pass that is waited for; an update each 64 steps."""
    policy = nn.Sequential(nn.Linear(32, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 4)).cuda()
    optimiser, seen = torch.optim.Adam(policy.parameters()), []
    state = torch.zeros(16, 32)

    def step():
        nonlocal state
        with torch.no_grad():
            action = policy(state.cuda()).argmax(1).cpu()
        state = torch.tanh(state * 0.9 + action[:, None] * 0.1)
        seen.append(state)
        if len(seen) == 64:
            loss = policy(torch.cat(seen).cuda()).logsumexp(1).mean()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            seen.clear()
    return stepping(step, pulse.Waited())


# ---- inference ----

def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config()).cuda().half().eval()


class Text:
    """Greedy generation with a cache of keys and values, a token a step, the token read by the host. A process's first steps
    at each length of the cache are ten times as slow as the later ones, so one text is made before the program is ready."""

    def __init__(self, prompt, tokens, first=None):
        self.model, self.prompt, self.tokens = gpt2(), torch.randint(50000, (1, prompt), device="cuda"), tokens
        self.cache, self.token, self.left = None, None, 0
        for _ in range(first or tokens):
            self.step()
        self.left = 0

    @torch.no_grad()
    def step(self):
        if self.left == 0:
            self.cache, self.token, self.left = None, self.prompt, self.tokens
        out = self.model(input_ids=self.token, past_key_values=self.cache, use_cache=True)
        self.cache, self.token = out.past_key_values, out.logits[:, -1:].argmax(-1)
        self.token.item()
        self.left -= 1


@kind
def generate():
    """GPT-2 size, eager, 200 tokens after a prompt of 32."""
    return stepping(Text(32, 200).step, pulse.Waited())


@kind
def prefill():
    """Prompts of 900 tokens, 16 tokens each."""
    return stepping(Text(900, 16).step, pulse.Waited())


@kind
def stream_text():
    """Tokens that are sent to a reader: some host work after each."""
    text = Text(32, 200)

    def step():
        text.step()
        time.sleep(0.004)
    return stepping(step, pulse.Waited())


def captured(step):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side), torch.no_grad():
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.no_grad():
        step()
    return graph.replay


@kind
def decode_graph():
    """A decoder's step as one CUDA graph, launched ahead."""
    model = Transformer(1024, 12, 16, 8192, True, 8192).cuda().half().eval()
    x = torch.randint(8192, (8, 16), device="cuda")
    replay = captured(lambda: model(x))
    return stepping(replay)


@kind
def graph_waited():
    """The same, each result read by the host."""
    model = Transformer(1024, 12, 16, 8192, True, 8192).cuda().half().eval()
    x, out = torch.randint(8192, (8, 16), device="cuda"), torch.zeros(1, device="cuda")
    replay = captured(lambda: out.copy_(model(x).amax().view(1)))

    def step():
        replay()
        out.item()
    return stepping(step, pulse.Waited())


@kind
def batches():
    """Images in batches of 64, the answers copied back each time."""
    model, x = Transformer(384, 12, 6, 100, patch=16).cuda().half().eval(), torch.rand(64, 3, 128, 128).half().pin_memory()

    @torch.no_grad()
    def step():
        model(x.cuda(non_blocking=True)).float().cpu()
    return stepping(step, pulse.Waited())


@kind
def requests_short():
    """Requests of 2 to 3 ms, 50 ms apart on average."""
    model, x = Transformer(768, 4, 12, 100, patch=16).cuda().half().eval(), torch.rand(16, 3, 128, 128).half().pin_memory()

    @torch.no_grad()
    def answer():
        model(x.cuda(non_blocking=True)).float().cpu()
    return answering(answer, 0.05)


@kind
def requests_long():
    """Requests of some 40 ms, most of it on the host, 100 ms apart on average."""
    text = Text(32, 1 << 30, first=6)

    def answer():
        text.left = 0
        for _ in range(6):
            text.step()
    return answering(answer, 0.1)


@kind
def diffusion():
    """Steps of denoising by a U-Net, half precision, each picture read back."""
    model, x = Unet().cuda().half().eval(), torch.randn(4, 4, 64, 64, device="cuda").half()
    count = 0

    @torch.no_grad()
    def step():
        nonlocal count, x
        x = x - 0.01 * model(x)
        count += 1
        if count % 20 == 0:
            x.float().cpu()
    return stepping(step)


# ---- computing ----

@kind
def matmul():
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    return stepping(lambda: torch.mm(a, a))


@kind
def long_kernels():
    """Kernels of some 20 ms each."""
    torch.backends.cuda.matmul.allow_tf32 = False
    a = torch.randn(8192, 8192, device="cuda")
    return stepping(lambda: torch.mm(a, a))


@kind
def streams():
    """Transforms in eight streams, one wait a round."""
    data, ways = [torch.randn(1 << 20, device="cuda", dtype=torch.complex64) for _ in range(8)], [torch.cuda.Stream() for _ in range(8)]

    def step():
        for x, way in zip(data, ways):
            with torch.cuda.stream(way):
                torch.fft.ifft(torch.fft.fft(x))
        torch.cuda.synchronize()
    return stepping(step, pulse.Waited())


@kind
def scan():
    """A hundred small dependent steps, then a wait."""
    w, x = torch.randn(256, 256, device="cuda") / 16, torch.randn(64, 256, device="cuda")

    def step():
        h = x
        for _ in range(100):
            h = torch.tanh(h @ w)
        h.sum().item()
    return stepping(step, pulse.Waited())


@kind
def copy_back():
    """A kernel and a copy back each round."""
    a, host = torch.randn(1024, 1024, device="cuda"), torch.empty(1024, 1024).pin_memory()

    def step():
        host.copy_(a @ a)
    return stepping(step, pulse.Waited())


@kind
def copy_in():
    """64 MiB come in each round, and are reduced."""
    host, here = torch.rand(16 << 20).pin_memory(), torch.empty(16 << 20, device="cuda")

    def step():
        here.copy_(host, non_blocking=True)
        here.mul_(2).sum()
    return stepping(step)


@kind
def wait_each():
    """A wait for each kernel of some microseconds."""
    x = torch.zeros(32, device="cuda")

    def step():
        x.add_(1)
        torch.cuda.synchronize()
    return stepping(step, pulse.Waited())


@kind
def host_bursts():
    """8 ms of work on the host, then a burst of kernels that is not waited for."""
    a = torch.randn(1024, 1024, device="cuda")

    def step():
        until = time.perf_counter() + 0.008
        while time.perf_counter() < until:
            pass
        for _ in range(40):
            torch.mm(a, a)
    return stepping(step)


@kind
def elementwise():
    """Bound by the card's memory."""
    x = torch.randn(32 << 20, device="cuda")
    return stepping(lambda: x.mul_(1.0001))


@kind
def solve():
    """Linear algebra with waits inside the library."""
    a = torch.randn(8, 512, 512, device="cuda")
    a = a @ a.mT + 512 * torch.eye(512, device="cuda")

    def step():
        torch.linalg.cholesky(a).diagonal(dim1=1, dim2=2).sum().item()
    return stepping(step, pulse.Waited())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=sorted(KINDS))
    name = parser.parse_args().name
    torch.manual_seed(1)
    pulse.run(KINDS[name]())


main()
