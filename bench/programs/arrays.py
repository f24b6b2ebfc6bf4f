#!/usr/bin/env python3
"""Holds arrays of many sizes, made by a framework, when the first line of its standard input comes, until that ends. The card is
not touched before. The sizes are the same in each run: from 512 bytes to 256 MiB, each order of magnitude alike.

    arrays.py --framework cupy --gib 6

A JSON object a line comes out:

    {"event":"ready"}
    {"event":"made","arrays":300,"bytes":6442450944}
"""
import argparse
import math
import random
import sys

import line

SMALLEST, LARGEST = 512, 1 << 28


def sizes(total):
    dice, found = random.Random(1), []
    while sum(found) < total:
        found.append(int(math.exp(dice.uniform(math.log(SMALLEST), math.log(LARGEST)))))
    return found


def with_torch():
    import torch
    return (lambda count: torch.zeros(count, dtype=torch.uint8, device="cuda")), torch.cuda.synchronize


def with_jax():
    import jax
    import numpy
    return (lambda count: jax.device_put(numpy.zeros(count, dtype=numpy.uint8)).block_until_ready()), lambda: None


def with_cupy():
    import cupy
    return (lambda count: cupy.zeros(count, dtype=cupy.uint8)), lambda: cupy.cuda.Device().synchronize()


parser = argparse.ArgumentParser()
parser.add_argument("--framework", choices=("torch", "jax", "cupy"), required=True)
parser.add_argument("--gib", type=float, default=6.0)
options = parser.parse_args()
make, wait = {"torch": with_torch, "jax": with_jax, "cupy": with_cupy}[options.framework]()
line.say(event="ready")
if sys.stdin.readline():
    held = [make(count) for count in sizes(options.gib * 2 ** 30)]
    wait()
    line.say(event="made", arrays=len(held), bytes=sum(sizes(options.gib * 2 ** 30)))
    sys.stdin.read()
