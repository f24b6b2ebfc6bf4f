#!/usr/bin/env python3
"""Holds memory of the card, works on all of its SMs when told, and knows which value each word of its memory has. Needs no
framework.

    holder.py --bytes 17179869184 [--kernel-us 1000]

Allocates that much, and then does what the lines of its standard input say:

    SECONDS      works: kernels of --kernel-us back to back, and before each one 256 MiB of the memory get a new value
    take BYTES   allocates so much, sets it, and runs a kernel
    fill LEFT    allocates all that the card has but LEFT bytes
    free         frees what `take` and `fill` have allocated
    check        compares all words

A JSON object a line comes out. Times are seconds; those of `done` and `taken` count from the first call.

    {"event":"ready","bytes":17179869184,"seconds":0.2}
    {"event":"done","iterations":2000,"seconds":2.0,"rate_per_s":1000.1,"ends":[0.001,0.002]}
    {"event":"taken","bytes":10737418240,"allocated":0.24,"seconds":0.25}
    {"event":"freed"}
    {"event":"checked","bytes":17179869184,"wrong_parts":0}
"""
import argparse
import collections
import concurrent.futures
import ctypes
import random
import sys
import time

import driver
import line

ALLOCATION, CELL, PART = 1 << 30, 1 << 28, 1 << 25  # a cell's words are alike; a part is compared at once
GRANULE = 2 << 20
AHEAD, COMPARERS = 2, 4

Cell = collections.namedtuple("Cell", "address bytes value")

libc = ctypes.CDLL(None)
libc.memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


class Holder:
    def __init__(self, kernel_us):
        self.card = driver.Card()
        self.kernel_ns = 1000 * kernel_us
        self.dice = random.Random(1)
        self.cells = []
        self.held = 0    # of the cells: the others are what `take` has allocated
        self.taken = []  # addresses of what `take` and `fill` have allocated
        self.next = 0

    def set_words(self, address, count):
        value = self.dice.getrandbits(32)
        driver.call("cuMemsetD32Async", ctypes.c_uint64(address), ctypes.c_uint(value), ctypes.c_size_t(count // 4), self.card.stream)
        return value

    def allocate(self, count):
        address = ctypes.c_uint64()
        driver.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(count))
        return address.value

    def add(self, count):
        """An allocation, all of one value."""
        address = self.allocate(count)
        value = self.set_words(address, count)
        self.cells += [Cell(address + at, min(CELL, count - at), value) for at in range(0, count, CELL)]
        return address

    def hold(self, count):
        begin = time.perf_counter()
        for at in range(0, count, ALLOCATION):
            self.add(min(ALLOCATION, count - at))
        self.held = len(self.cells)
        self.card.launch(1000)
        self.card.wait()
        line.say(event="ready", bytes=count, seconds=round(time.perf_counter() - begin, 4))

    def rewrite_next(self):
        if self.cells:
            self.next = (self.next + 1) % len(self.cells)
            cell = self.cells[self.next]
            self.cells[self.next] = cell._replace(value=self.set_words(cell.address, cell.bytes))

    def work(self, seconds):
        begin, pending, ends = time.perf_counter(), collections.deque(), []
        while pending or time.perf_counter() - begin < seconds:
            if time.perf_counter() - begin < seconds:
                self.rewrite_next()
                self.card.launch(self.kernel_ns)
                pending.append(self.card.mark())
            if len(pending) >= AHEAD or time.perf_counter() - begin >= seconds:
                pending.popleft()()
                ends.append(round(time.perf_counter() - begin, 4))
        rate = (len(ends) - 1) / (ends[-1] - ends[0]) if len(ends) > 1 and ends[-1] > ends[0] else 0.0
        line.say(event="done", iterations=len(ends), seconds=round(time.perf_counter() - begin, 4), rate_per_s=round(rate, 2), ends=ends)

    def take(self, count):
        begin = time.perf_counter()
        self.taken.append(self.add(count))
        allocated = time.perf_counter() - begin
        self.card.launch(100_000)
        self.card.wait()
        line.say(event="taken", bytes=count, allocated=round(allocated, 4), seconds=round(time.perf_counter() - begin, 4))

    def fill(self, left):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        driver.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        count = max(0, free.value - left) // GRANULE * GRANULE
        if count:
            self.taken.append(self.allocate(count))
        line.say(event="taken", bytes=count)

    def free(self):
        self.card.wait()
        for address in self.taken:
            driver.call("cuMemFree_v2", ctypes.c_uint64(address))
        del self.cells[self.held:]
        self.taken, self.next = [], 0
        line.say(event="freed")

    def wrong_parts(self, cells):
        """In a thread of its own."""
        driver.call("cuCtxSetCurrent", self.card.context)
        copy, wrong = ctypes.c_void_p(), 0
        driver.call("cuMemHostAlloc", ctypes.byref(copy), ctypes.c_size_t(PART), 0)
        for cell in cells:
            for at in range(0, cell.bytes, PART):
                count = min(PART, cell.bytes - at)
                driver.call("cuMemcpyDtoH_v2", copy, ctypes.c_uint64(cell.address + at), ctypes.c_size_t(count))
                first = ctypes.cast(copy, ctypes.POINTER(ctypes.c_uint32))[0]
                wrong += first != cell.value or libc.memcmp(copy.value, copy.value + 4, count - 4) != 0
        driver.call("cuMemFreeHost", copy)
        return wrong

    def check(self):
        self.card.wait()
        with concurrent.futures.ThreadPoolExecutor(COMPARERS) as pool:
            wrong = sum(pool.map(self.wrong_parts, [self.cells[at::COMPARERS] for at in range(COMPARERS)]))
        line.say(event="checked", bytes=sum(cell.bytes for cell in self.cells), wrong_parts=wrong)


def obey(holder, words):
    name, *values = words.split()
    if name in ("take", "fill"):
        getattr(holder, name)(int(values[0]))
    elif name in ("free", "check"):
        getattr(holder, name)()
    else:
        holder.work(float(name))


parser = argparse.ArgumentParser()
parser.add_argument("--bytes", type=int, default=0)
parser.add_argument("--kernel-us", type=int, default=1000)
options = parser.parse_args()
holder = Holder(options.kernel_us)
holder.hold(options.bytes)
for text in sys.stdin:
    obey(holder, text)
