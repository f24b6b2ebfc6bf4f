#!/usr/bin/env python3
"""Copies within the card in a loop: loop_copies.py --kind KIND. Exit status 77: this driver has no such call."""
import ctypes
import sys

import beat
import driver

BYTES, COPIES = 64 << 20, 16  # so long that no host is the slower one
ROW_BYTES, ROW_WIDTH, FLOAT, CHANNELS = 1 << 20, 1 << 16, 0x20, 4
STREAM_ORDER = 1


class Attributes(ctypes.Structure):
    """CUmemcpyAttributes: an order, two places, flags."""
    _fields_ = [("order", ctypes.c_int), ("places", ctypes.c_int * 4), ("flags", ctypes.c_uint)]


class Row(ctypes.Structure):
    """CUDA_ARRAY_DESCRIPTOR of one dimension."""
    _fields_ = [("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("format", ctypes.c_uint),
                ("channels", ctypes.c_uint)]


class Point(ctypes.Structure):
    _fields_ = [("x", ctypes.c_size_t), ("y", ctypes.c_size_t), ("z", ctypes.c_size_t)]


class Operand(ctypes.Structure):
    """CUmemcpy3DOperand that is an address."""
    _fields_ = [("type", ctypes.c_int), ("address", ctypes.c_uint64), ("row", ctypes.c_size_t), ("layer", ctypes.c_size_t),
                ("place", ctypes.c_int * 2)]


class Block(ctypes.Structure):
    """CUDA_MEMCPY3D_BATCH_OP"""
    _fields_ = [("source", Operand), ("target", Operand), ("extent", Point), ("order", ctypes.c_int),
                ("flags", ctypes.c_uint)]


def need(name):
    if not hasattr(driver.cuda, name):
        print(f"no {name}", file=sys.stderr)
        sys.exit(77)
    return name


def allocate():
    address = ctypes.c_uint64()
    driver.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(BYTES))
    return address


def new_array():
    array = ctypes.c_void_p()
    driver.call("cuArrayCreate_v2", ctypes.byref(array), ctypes.byref(Row(ROW_WIDTH, 0, FLOAT, CHANNELS)))
    return array


def device():
    target, source = allocate(), allocate()

    def work():
        for _ in range(COPIES):
            driver.call("cuMemcpyDtoDAsync_v2", target, source, ctypes.c_size_t(BYTES), card.stream)
    return work


def array():
    target, source = new_array(), new_array()
    zero, count = ctypes.c_size_t(0), ctypes.c_size_t(ROW_BYTES)

    def work():
        for _ in range(16 * COPIES):
            driver.call("cuMemcpyAtoA_v2", target, zero, source, zero, count)
    return work


def batch():
    name = need("cuMemcpyBatchAsync_v2")
    target, source = allocate(), allocate()
    targets, sources = (ctypes.c_uint64 * COPIES)(*[target.value] * COPIES), (ctypes.c_uint64 * COPIES)(*[source.value] * COPIES)
    sizes, first = (ctypes.c_size_t * COPIES)(*[BYTES] * COPIES), (ctypes.c_size_t * 1)(0)
    attributes = Attributes(order=STREAM_ORDER)

    def work():
        driver.call(name, targets, sources, sizes, ctypes.c_size_t(COPIES), ctypes.byref(attributes), first,
                    ctypes.c_size_t(1), card.stream)
    return work


def blocks():
    name = need("cuMemcpy3DBatchAsync_v2")
    target, source = allocate(), allocate()
    operands = [Operand(type=1, address=at.value) for at in (source, target)]
    ops = (Block * COPIES)(*[Block(*operands, Point(4096, BYTES // 4096, 1), STREAM_ORDER) for _ in range(COPIES)])

    def work():
        driver.call(name, ctypes.c_size_t(COPIES), ops, ctypes.c_ulonglong(0), card.stream)
    return work


options = beat.arguments(kind="device")
card = driver.Card()
copy = {"device": device, "array": array, "batch": batch, "blocks": blocks}[options.kind]()


def queue():
    copy()
    return 1, card.mark()


beat.run(queue, options.seconds)
