#!/usr/bin/env python3
"""Asks the driver for memory on the card by every kind of allocation: kinds.py BYTES. What it answers to a request that is
a little larger (2: out of memory, 0: granted, and then kept), a JSON object a line; null: this driver has no such call."""
import ctypes
import sys

import driver
import line

GRANULE = 2 << 20
FLOAT, CHANNELS, TEXEL_BYTES = 0x20, 4, 16
ATTACH_GLOBAL = 1
RELAXED = 2  # captures
SIDE = 1024


class Property(ctypes.Structure):
    """CUmemAllocationProp: pinned memory on card 0."""
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("place", ctypes.c_int), ("card", ctypes.c_int),
                ("more", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8)]


class PoolProperties(ctypes.Structure):
    """CUmemPoolProps: the same; its reserve differs between versions, and so there is room to spare."""
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("place", ctypes.c_int), ("card", ctypes.c_int),
                ("more", ctypes.c_void_p), ("most", ctypes.c_size_t), ("reserved", ctypes.c_ubyte * 120)]


class Array(ctypes.Structure):
    _fields_ = [("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("format", ctypes.c_uint),
                ("channels", ctypes.c_uint)]


class Array3D(ctypes.Structure):
    _fields_ = [("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("depth", ctypes.c_size_t),
                ("format", ctypes.c_uint), ("channels", ctypes.c_uint), ("flags", ctypes.c_uint)]


def ask(name, *args):
    function = getattr(driver.cuda, name, None)
    return None if function is None else function(*args)


def plain(count, out):
    return ask("cuMemAlloc_v2", out, ctypes.c_size_t(count))


def pitched(count, out):
    pitch = ctypes.c_size_t()
    return ask("cuMemAllocPitch_v2", out, ctypes.byref(pitch), ctypes.c_size_t(1 << 20), ctypes.c_size_t(count >> 20), 16)


def managed(count, out):
    return ask("cuMemAllocManaged", out, ctypes.c_size_t(count), ATTACH_GLOBAL)


def ordered(count, out):
    return ask("cuMemAllocAsync", out, ctypes.c_size_t(count), card.stream)


def pooled(count, out):
    pool = ctypes.c_void_p()
    status = ask("cuMemPoolCreate", ctypes.byref(pool), ctypes.byref(PoolProperties(type=1, place=1)))
    return status or ask("cuMemAllocFromPoolAsync", out, ctypes.c_size_t(count), pool, card.stream)


def managed_pool(count, out):
    """From CUDA 13.0 on; an older driver refuses to make one."""
    pool = ctypes.c_void_p()
    if ask("cuMemPoolCreate", ctypes.byref(pool), ctypes.byref(PoolProperties(type=2, place=1))):
        return None
    return ask("cuMemAllocFromPoolAsync", out, ctypes.c_size_t(count), pool, card.stream)


def graph(count, out):
    """A node of a graph: it takes the memory when it is launched."""
    made, ready = ctypes.c_void_p(), ctypes.c_void_p()
    status = (ask("cuStreamBeginCapture_v2", card.stream, RELAXED) or ask("cuMemAllocAsync", out, ctypes.c_size_t(count), card.stream)
              or ask("cuStreamEndCapture", card.stream, ctypes.byref(made)))
    status = status or ask("cuGraphInstantiateWithFlags", ctypes.byref(ready), made, ctypes.c_ulonglong(0))
    return status or ask("cuGraphLaunch", ready, card.stream)


def physical(count, out):
    return ask("cuMemCreate", out, ctypes.c_size_t(count), ctypes.byref(Property(type=1, place=1)), ctypes.c_ulonglong(0))


def array(count, out):
    rows = count // (SIDE * SIDE * TEXEL_BYTES)
    return ask("cuArrayCreate_v2", out, ctypes.byref(Array(SIDE * 32, rows * 32, FLOAT, CHANNELS)))


def solid_array(count, out):
    depth = count // (SIDE * SIDE * TEXEL_BYTES)
    return ask("cuArray3DCreate_v2", out, ctypes.byref(Array3D(SIDE, SIDE, depth, FLOAT, CHANNELS, 0)))


def mipmapped(count, out):
    depth = count // (SIDE * SIDE * TEXEL_BYTES)
    return ask("cuMipmappedArrayCreate", out, ctypes.byref(Array3D(SIDE, SIDE, depth, FLOAT, CHANNELS, 0)), 1)


card = driver.Card()
request = int(sys.argv[1]) + 16 * GRANULE
for kind in (plain, pitched, managed, ordered, pooled, managed_pool, graph, physical, array, solid_array, mipmapped):
    answer = kind(request, ctypes.byref(ctypes.c_ulonglong()))
    line.say(event="kind", kind=kind.__name__, status=answer)
