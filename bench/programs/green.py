#!/usr/bin/env python3
"""What green contexts and a pool of managed memory take of the card, as the driver itself says: a JSON object a line.
Without limits only: under one the card is not shown as it is."""
import ctypes

import driver
import line

SMS, DEFAULT_STREAM = 1, 1
MANAGED, ON_CARD, RESERVED = 2, 1, 5
BYTES = 100 << 20


class Resource(ctypes.Structure):
    """CUdevResource: room for any."""
    _fields_ = [("bytes", ctypes.c_ubyte * 144)]


class PoolProperties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("place", ctypes.c_int), ("card", ctypes.c_int),
                ("more", ctypes.c_void_p), ("most", ctypes.c_size_t), ("reserved", ctypes.c_ubyte * 120)]


def free_bytes():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    driver.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value


def make_green():
    whole, group, count = Resource(), Resource(), ctypes.c_uint(1)
    desc, green = ctypes.c_void_p(), ctypes.c_void_p()
    driver.call("cuDeviceGetDevResource", 0, ctypes.byref(whole), SMS)
    driver.call("cuDevSmResourceSplitByCount", ctypes.byref(group), ctypes.byref(count), ctypes.byref(whole), None, 0, 16)
    driver.call("cuDevResourceGenerateDesc", ctypes.byref(desc), ctypes.byref(group), 1)
    driver.call("cuGreenCtxCreate", ctypes.byref(green), desc, 0, DEFAULT_STREAM)
    return green


def greens():
    """Beyond the primary context, which is there before. Then what cuCtxSetLimit in one of them changes."""
    before, taken = free_bytes(), []
    made = []
    for _ in range(4):
        made.append(make_green())
        taken.append(before - free_bytes())
    context = ctypes.c_void_p()
    driver.call("cuCtxFromGreenCtx", ctypes.byref(context), made[0])
    line.say(event="green", bytes=taken)


def managed_pool():
    pool, address, reserved = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_uint64()
    before = free_bytes()
    driver.call("cuMemPoolCreate", ctypes.byref(pool), ctypes.byref(PoolProperties(type=MANAGED, place=ON_CARD)))
    driver.call("cuMemAllocFromPoolAsync", ctypes.byref(address), ctypes.c_size_t(BYTES), pool, None)
    driver.call("cuCtxSynchronize")
    driver.call("cuMemPoolGetAttribute", pool, RESERVED, ctypes.byref(reserved))
    untouched = before - free_bytes()
    driver.call("cuMemsetD8_v2", address, 1, ctypes.c_size_t(BYTES))
    driver.call("cuCtxSynchronize")
    line.say(event="managed", asked_bytes=BYTES, reserved_bytes=reserved.value, untouched_bytes=untouched,
             touched_bytes=before - free_bytes())


primary = ctypes.c_void_p()
driver.call("cuInit", 0)
driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(primary), 0)
driver.call("cuCtxSetCurrent", primary)
for step, sign in ((greens, "cuGreenCtxCreate"), (managed_pool, "cuMemGetDefaultMemPool")):
    if hasattr(driver.cuda, sign):
        try:
            step()
        except driver.DriverError as why:
            line.say(event="refused", step=step.__name__, why=str(why))
