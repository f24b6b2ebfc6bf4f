#!/usr/bin/env python3
"""Keeps every SM that it gets busy: 20 ms kernels back to back, of as many threads as its SMs hold. Before that it counts
these SMs by their numbers (%smid), and how many of them kernels of two blocks to a cluster come to, as large products use:

    {"event":"sms","shown":32,"blocks":32,"clusters":30}

shown: what the driver says. clusters is null where the driver or the card has none. Needs no framework."""
import ctypes

import beat
import driver
import line

THREADS, PER_SM = 1024, 2
MARKS = 1024
TRIAL_NS = 5_000_000
MAX_DYNAMIC_SHARED, WHOLE_SM_BYTES = 8, 160 << 10  # so much shared memory that an SM has room for one block
CLUSTER_DIMENSION = 4


class Attribute(ctypes.Structure):
    """CUlaunchAttribute with three numbers in it."""
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16)]


class Config(ctypes.Structure):
    """CUlaunchConfig"""
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
                ("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint)]


options = beat.arguments(kernel_us=20000)
card = driver.Card()
kernel = driver.load("where.ptx", b"work_ns_where")
host, address = driver.map_host(4 * MARKS)
marks = (ctypes.c_uint * MARKS).from_address(host)
values = (ctypes.c_uint64 * 2)(0, address)
parameters = (ctypes.c_void_p * 2)(*(ctypes.addressof(values) + 8 * at for at in range(2)))


def launch(length_ns):
    values[0] = length_ns
    driver.call("cuLaunchKernel", kernel, PER_SM * card.blocks, 1, 1, THREADS, 1, 1, 0, card.stream, parameters, None)


def launch_clusters(length_ns):
    """A block to each SM, two to a cluster."""
    values[0] = length_ns
    attribute = Attribute(CLUSTER_DIMENSION, 0, (ctypes.c_uint * 16)(2, 1, 1))
    config = Config((card.blocks // 2 * 2, 1, 1), (THREADS, 1, 1), WHOLE_SM_BYTES, card.stream,
                    ctypes.addressof(attribute), 1)
    driver.call("cuFuncSetAttribute", kernel, MAX_DYNAMIC_SHARED, WHOLE_SM_BYTES)
    driver.call("cuLaunchKernelEx", ctypes.byref(config), kernel, parameters, None)


def count_sms(start):
    """SMs on which it ran; None where it cannot."""
    ctypes.memset(host, 0, 4 * MARKS)
    try:
        start(TRIAL_NS)
        card.wait()
    except (driver.DriverError, AttributeError):
        return None
    return sum(marks)


def queue():
    launch(1000 * options.kernel_us)
    return 1, card.mark()


line.say(event="sms", shown=card.blocks, blocks=count_sms(launch), clusters=count_sms(launch_clusters))
beat.run(queue, options.seconds)
