"""What exact_*.py have in common: a computation on matrices of small whole numbers, whose results are exact in whatever order and
precision a library adds them. So the same steps give the same bits in each run.

    exact_jax.py --size 4096 --matrices 32

Each line of standard input is a number of steps from the beginning. A JSON object a line comes out; `sum` is of all matrices:

    {"event":"ready"}
    {"event":"step","step":10}
    {"event":"finished","steps":200,"seconds":3.1,"sum":"5feceb66ffc8"}

A framework is an object with: start(size, count), the matrices; step(matrices), the next ones; wait(matrices); and sums(matrix), the
sum of each row and of each column as whole numbers on the host.
"""
import argparse
import hashlib
import sys
import time

import line

MODULUS = 7
TELL_EACH = 10


def sum_of(framework, matrices):
    found = hashlib.sha256()
    for matrix in matrices:
        for part in framework.sums(matrix):
            found.update(part.astype("int64").tobytes())
    return found.hexdigest()[:16]


def calculate(framework, options, steps):
    matrices, begin = framework.start(options.size, options.matrices), time.perf_counter()
    for step in range(1, steps + 1):
        matrices = framework.step(matrices)
        if step % TELL_EACH == 0:
            framework.wait(matrices)
            line.say(event="step", step=step)
    framework.wait(matrices)
    seconds = time.perf_counter() - begin
    line.say(event="finished", steps=steps, seconds=round(seconds, 4), sum=sum_of(framework, matrices))


def run(framework, lines=sys.stdin):
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--matrices", type=int, default=32)
    options = parser.parse_args()
    framework.wait(framework.step(framework.start(options.size, options.matrices)))
    line.say(event="ready")
    for text in lines:
        calculate(framework, options, int(text))
