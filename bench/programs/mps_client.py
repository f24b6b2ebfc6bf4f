#!/usr/bin/env python3
"""A client of MPS: says what it finds, then for every line of its input what a kernel and a new context end with."""
import ctypes
import sys

import driver
from line import say


def status_of(function, *args):
    try:
        function(*args)
    except driver.DriverError as error:
        return int(str(error).rsplit(" ", 1)[1])
    return 0


def work(card):
    card.launch(100000)
    card.wait()


def main():
    free, total, sms = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_int()
    try:
        card = driver.Card()
    except driver.DriverError as error:
        say(refused=str(error))
        return
    driver.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    driver.call("cuDeviceGetAttribute", ctypes.byref(sms), driver.SM_COUNT, 0)
    say(sms=sms.value, free_mib=free.value >> 20, total_mib=total.value >> 20)
    for _ in sys.stdin:
        context = ctypes.c_void_p()
        say(kernel=status_of(work, card), context=status_of(driver.call, "cuCtxCreate_v2", ctypes.byref(context), 0, 0))
        if context.value:
            driver.call("cuCtxDestroy_v2", context)


main()
