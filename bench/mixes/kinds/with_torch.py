#!/usr/bin/env python3
"""Kinds of PyTorch programs: with_torch.py NAME [--OPTION VALUE]... Each function makes its model and its data, and returns what
pulse.py runs. Its parameters are its options; ../programs.py has the values that are drawn.

None of them was written for the rule, or changed for it. Sizes are those of small research programs on one card."""
import inspect
import os
import sys
import time

# Ten programs start at once: torch.compile has no processes of its own to help it.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

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


def answering(answer, every_ms):
    pulse.warm_up(answer)
    torch.cuda.synchronize()
    return pulse.Requests(answer, every_ms / 1000)


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
    """Heads are 64 wide. It reads tokens, or pictures in patches."""

    def __init__(self, width, layers, outputs, tokens=0, patch=0):
        super().__init__()
        self.into = nn.Embedding(tokens, width) if tokens else nn.Linear(3 * patch * patch, width)
        self.blocks = nn.Sequential(*[Block(width, width // 64, tokens > 0) for _ in range(layers)])
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


def pictures_to_classes(width, layers=12):
    return Transformer(width, layers, 100, patch=16).cuda()


@kind
def vit_train(batch=32, width=384, loaders=2):
    """ViT, AMP, images from loader processes."""
    loader = torch.utils.data.DataLoader(Images(128, 100), batch_size=batch, num_workers=loaders, pin_memory=True)
    return training(pictures_to_classes(width), iter(loader), True)


def language_model(width):
    return Transformer(width, 8, 8192, tokens=8192).cuda()


@kind
def gpt_train(batch=16, width=512):
    """A language model of 10 to 70 million parameters, AMP, one batch after the other."""
    return training(language_model(width), texts(batch, 256, 8192), True)


@kind
def gpt_accumulate(batch=2, width=512, each=8):
    """The same in small batches, several to a step of the optimiser."""
    return training(language_model(width), texts(batch, 256, 8192), True, each=each)


@kind
def resnet_small(batch=4, side=64):
    return training(resnet().cuda(), images(batch, side, 100), True)


@kind
def resnet_large(batch=128, side=64):
    return training(resnet().cuda(), images(batch, side, 100), True)


@kind
def mlp_float(batch=128, width=256):
    """A small network without AMP, the loss read at each step, as in many notebooks."""
    model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)).cuda()
    batches = forever(torch.rand(batch, 64), torch.randint(10, (batch,)))
    return training(model, batches, False, read_every=1)


@kind
def lstm_train(batch=32, width=512):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.lstm, self.head = nn.Embedding(4096, 256), nn.LSTM(256, width, 2, batch_first=True), nn.Linear(width, 4096)

        def forward(self, x):
            return self.head(self.lstm(self.into(x))[0])
    return training(Model().cuda(), texts(batch, 128, 4096), False)


@kind
def recommend(batch=2048, rows=1 << 20):
    """Large embeddings, a small network."""
    table, top = nn.EmbeddingBag(rows, 64, sparse=True).cuda(), nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1)).cuda()
    optimiser = torch.optim.SGD([*table.parameters(), *top.parameters()], lr=0.01)
    ids = torch.randint(rows, (batch, 40)).pin_memory()

    def step():
        loss = top(table(ids.cuda(non_blocking=True))).square().mean()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
    return stepping(step)


@kind
def graph_network(nodes=20000, width=128):
    """Messages along the edges of a sparse graph, twenty edges to a node."""
    edges = 20 * nodes
    index = torch.randint(nodes, (2, edges), device="cuda")
    matrix = torch.sparse_coo_tensor(index, torch.ones(edges, device="cuda"), (nodes, nodes)).coalesce().to_sparse_csr()
    layers = nn.ModuleList([nn.Linear(width, width) for _ in range(3)]).cuda()
    optimiser, features = torch.optim.Adam(layers.parameters()), torch.rand(nodes, width, device="cuda")

    def step():
        x = features
        for layer in layers:
            x = torch.relu(layer(matrix @ x))
        optimiser.zero_grad(set_to_none=True)
        x.square().mean().backward()
        optimiser.step()
    return stepping(step)


@kind
def reinforce(batch=16, width=128):
    """Steps of environments on the host, each with a forward pass that is waited for; an update each 64 steps."""
    policy = nn.Sequential(nn.Linear(32, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 4)).cuda()
    optimiser, seen = torch.optim.Adam(policy.parameters()), []
    state = torch.zeros(batch, 32)

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

def gpt2(layers):
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(n_layer=layers)).cuda().half().eval()


class Text:
    """Greedy generation with a cache of keys and values, a token of each text a step, read by the host. A process's first steps
    at each length of the cache are ten times as slow as the later ones, so the texts are made once before the program is ready."""

    def __init__(self, prompt, tokens, first=None, batch=1, layers=12):
        self.model, self.prompt, self.tokens = gpt2(layers), torch.randint(50000, (batch, prompt), device="cuda"), tokens
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
        self.token.tolist()
        self.left -= 1


@kind
def generate(batch=1, layers=12, tokens=200):
    """GPT-2 size, eager, after a prompt of 32."""
    return stepping(Text(32, tokens, batch=batch, layers=layers).step, pulse.Waited())


@kind
def prefill(prompt=900, layers=12, tokens=16):
    """Long prompts, a few tokens each."""
    return stepping(Text(prompt, tokens, layers=layers).step, pulse.Waited())


@kind
def stream_text(batch=1, layers=12, pause_ms=4):
    """Tokens that are sent to readers: some host work after each."""
    text = Text(32, 200, batch=batch, layers=layers)

    def step():
        text.step()
        time.sleep(pause_ms / 1000)
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


def decoder(width):
    return Transformer(width, 12, 8192, tokens=8192).cuda().half().eval()


@kind
def decode_graph(batch=8, width=1024):
    """A decoder's step as one CUDA graph, launched ahead."""
    model = decoder(width)
    x = torch.randint(8192, (batch, 16), device="cuda")
    replay = captured(lambda: model(x))
    return stepping(replay)


@kind
def graph_waited(batch=8, width=1024):
    """The same, each result read by the host."""
    model = decoder(width)
    x, out = torch.randint(8192, (batch, 16), device="cuda"), torch.zeros(1, device="cuda")
    replay = captured(lambda: out.copy_(model(x).amax().view(1)))

    def step():
        replay()
        out.item()
    return stepping(step, pulse.Waited())


def pictures(batch):
    return torch.rand(batch, 3, 128, 128).half()


@kind
def compiled(batch=16, width=384):
    """Images through a model that torch.compile has made, the classes read by the host."""
    model, x = torch.compile(pictures_to_classes(width, 4).half().eval()), pictures(batch).cuda()

    @torch.no_grad()
    def step():
        model(x).argmax(1).tolist()
    return stepping(step, pulse.Waited())


@kind
def batches(batch=64, width=384):
    """Images in batches, the answers copied back each time."""
    model, x = pictures_to_classes(width).half().eval(), pictures(batch).pin_memory()

    @torch.no_grad()
    def step():
        model(x.cuda(non_blocking=True)).float().cpu()
    return stepping(step, pulse.Waited())


@kind
def requests_short(batch=16, every_ms=50):
    """Requests of 1 to 3 ms."""
    model, x = pictures_to_classes(768, 4).half().eval(), pictures(batch).pin_memory()

    @torch.no_grad()
    def answer():
        model(x.cuda(non_blocking=True)).float().cpu()
    return answering(answer, every_ms)


@kind
def requests_long(tokens=6, every_ms=100):
    """Requests of 20 to 40 ms, most of it on the host."""
    text = Text(32, 1 << 30, first=tokens)

    def answer():
        text.left = 0
        for _ in range(tokens):
            text.step()
    return answering(answer, every_ms)


@kind
def diffusion(batch=4, width=128, side=64):
    """Steps of denoising by a U-Net, half precision, each picture read back."""
    model, x = Unet(width).cuda().half().eval(), torch.randn(batch, 4, side, side, device="cuda").half()
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
def matmul(size=4096):
    a = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
    return stepping(lambda: torch.mm(a, a))


@kind
def long_kernels(size=8192):
    """Kernels of 3 to 20 ms each."""
    torch.backends.cuda.matmul.allow_tf32 = False
    a = torch.randn(size, size, device="cuda")
    return stepping(lambda: torch.mm(a, a))


@kind
def streams(count=8, size=1 << 20):
    """Transforms in many streams, one wait a round."""
    data = [torch.randn(size, device="cuda", dtype=torch.complex64) for _ in range(count)]
    ways = [torch.cuda.Stream() for _ in range(count)]

    def step():
        for x, way in zip(data, ways):
            with torch.cuda.stream(way):
                torch.fft.ifft(torch.fft.fft(x))
        torch.cuda.synchronize()
    return stepping(step, pulse.Waited())


@kind
def scan(steps=100, width=256):
    """Many small dependent steps, then a wait."""
    w, x = torch.randn(width, width, device="cuda") / width ** 0.5, torch.randn(64, width, device="cuda")

    def step():
        h = x
        for _ in range(steps):
            h = torch.tanh(h @ w)
        h.sum().item()
    return stepping(step, pulse.Waited())


@kind
def copy_back(size=1024):
    """A kernel and a copy back each round."""
    a, host = torch.randn(size, size, device="cuda"), torch.empty(size, size).pin_memory()

    def step():
        host.copy_(a @ a)
    return stepping(step, pulse.Waited())


@kind
def copy_in(mib=64):
    """Data come in each round, and are reduced."""
    host, here = torch.rand(mib << 18).pin_memory(), torch.empty(mib << 18, device="cuda")

    def step():
        here.copy_(host, non_blocking=True)
        here.mul_(2).sum()
    return stepping(step)


@kind
def wait_each(size=32):
    """A wait for each kernel of some microseconds."""
    x = torch.zeros(size, device="cuda")

    def step():
        x.add_(1)
        torch.cuda.synchronize()
    return stepping(step, pulse.Waited())


@kind
def host_bursts(host_ms=8, kernels=40):
    """Work on the host, then a burst of kernels that is not waited for."""
    a = torch.randn(1024, 1024, device="cuda")

    def step():
        until = time.perf_counter() + host_ms / 1000
        while time.perf_counter() < until:
            pass
        for _ in range(kernels):
            torch.mm(a, a)
    return stepping(step)


@kind
def elementwise(mib=128):
    """Bound by the card's memory."""
    x = torch.randn(mib << 18, device="cuda")
    return stepping(lambda: x.mul_(1.0001))


@kind
def solve(batch=8, size=512):
    """Linear algebra with waits inside the library."""
    a = torch.randn(batch, size, size, device="cuda")
    a = a @ a.mT + size * torch.eye(size, device="cuda")

    def step():
        torch.linalg.cholesky(a).diagonal(dim1=1, dim2=2).sum().item()
    return stepping(step, pulse.Waited())


def main():
    """The first word is a name; an option of a kind is a parameter of its function."""
    if len(sys.argv) < 2 or sys.argv[1] not in KINDS:
        sys.exit(f"with_torch.py: no such kind; kinds: {', '.join(sorted(KINDS))}")
    make = KINDS[sys.argv[1]]
    defaults = {name: parameter.default for name, parameter in inspect.signature(make).parameters.items()}
    torch.manual_seed(1)
    pulse.run(make(**vars(pulse.arguments(sys.argv[2:], **defaults))))


if __name__ == "__main__":
    main()
