#!/usr/bin/env python3
"""Training steps of a ResNet of 18 layers on small images, mixed precision, each batch copied from pinned memory. --batch 4:
many small kernels, the card three quarters idle; 64: it is half busy. --churn: in four streams, with allocations of
changing size between the steps."""
import torch
from torch import nn

import beat
import torch_beat

CLASSES, SIDE = 100, 64


class Block(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.path = nn.Sequential(nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(inplace=True),
                                  nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after))
        self.side = nn.Sequential() if before == after and stride == 1 else nn.Sequential(
            nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        return torch.relu(self.path(x) + self.side(x))


def resnet():
    widths = [64, 64, 64, 128, 128, 256, 256, 512, 512]
    blocks = [Block(before, after, 1 if before == after or after == 64 else 2) for before, after in zip(widths, widths[1:])]
    return nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1),
                         *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES)).cuda()


options = beat.arguments(batch=4, churn=0)
torch.manual_seed(1)
model = resnet()
optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
scaler = torch.amp.GradScaler("cuda")
images = torch.randn(options.batch, 3, SIDE, SIDE).pin_memory()
labels = torch.randint(0, CLASSES, (options.batch,)).pin_memory()
streams = [torch.cuda.Stream() for _ in range(4 if options.churn else 0)]
steps = 0


def churn():
    """Memory of a size that no step before had, touched in each stream."""
    for number, stream in enumerate(streams):
        with torch.cuda.stream(stream):
            torch.zeros(1 << 18 | (steps * 4 + number) % 512 << 12, device="cuda").mul_(2)


def step():
    global steps
    steps += 1
    churn()
    optimiser.zero_grad(set_to_none=True)
    with torch.autocast("cuda"):
        loss = nn.functional.cross_entropy(model(images.cuda(non_blocking=True)), labels.cuda(non_blocking=True))
    scaler.scale(loss).backward()
    scaler.step(optimiser)
    scaler.update()


beat.run(torch_beat.batch(step, 1), options.seconds)
