"""NVML's answers that are the card's also for a governed program: each as it came, so that two programs' can be compared."""
import ctypes
import os
import time
from ctypes import byref, c_ubyte, c_uint, c_ulonglong, c_void_p

import line

ROOM = 512
WITHIN_S = 5  # in which the stranger's work shows


class Sample(ctypes.Structure):
    """nvmlProcessUtilizationSample_t"""
    _fields_ = [("pid", c_uint), ("stamp", c_ulonglong), ("sm", c_uint), ("memory", c_uint), ("encoder", c_uint),
                ("decoder", c_uint)]


class Samples(ctypes.Structure):
    """nvmlProcessesUtilizationInfo_t"""
    _fields_ = [("version", c_uint), ("count", c_uint), ("since", c_ulonglong), ("samples", c_void_p)]


class Rates(ctypes.Structure):
    """nvmlUtilization_t"""
    _fields_ = [("gpu", c_uint), ("memory", c_uint)]


def call(name, *args):
    """(status, or None)"""
    function = getattr(nvml, name, None)
    return None if function is None else function(handle, *args)


def say(name, status, value=None):
    line.say(event="answer", function=name, status=status, value=value if status == 0 else None)


def totals():
    """What does not change from one process to the next: all of it, or its first number where the rest is of the moment."""
    start()
    for name, numbers in {"nvmlDeviceGetBAR1MemoryInfo": 1, "nvmlDeviceGetConfComputeMemSizeInfo": 2,
                          "nvmlDeviceGetConfComputeProtectedMemoryUsage": 1, "nvmlDeviceGetAttributes": 5,
                          "nvmlDeviceGetAttributes_v2": 5}.items():
        answer = (c_ulonglong * (ROOM // 8))()
        say(name, call(name, answer), list(answer)[:numbers])


def accounting():
    """Of this process: nothing where the card keeps no accounts."""
    start()
    count, pids, answer = c_uint(ROOM), (c_uint * ROOM)(), (c_ubyte * ROOM)()
    say("nvmlDeviceGetAccountingPids", call("nvmlDeviceGetAccountingPids", byref(count), pids))
    for name in ("nvmlDeviceGetAccountingStats", "nvmlDeviceGetAccountingStats_v2"):
        say(name, call(name, os.getpid(), answer))


def utilisation(stranger):
    """While somebody of that number works: everybody's, the stranger's too."""
    start()
    rates, samples, end_s = Rates(), (Sample * ROOM)(), time.monotonic() + WITHIN_S
    while True:
        count = c_uint(ROOM)
        answers = (call("nvmlDeviceGetUtilizationRates", byref(rates)),
                   call("nvmlDeviceGetProcessUtilization", samples, byref(count), c_ulonglong(0)))
        seen = {sample.pid for sample in samples[:count.value]} if answers[1] == 0 else set()
        found = [rates.gpu > 50, int(stranger) in seen]
        if all(found) or time.monotonic() > end_s:
            break
        time.sleep(0.05)
    say("nvmlDeviceGetUtilizationRates", answers[0], found[0])
    say("nvmlDeviceGetProcessUtilization", answers[1], [bool(seen), found[1]])
    several = Samples(version=ctypes.sizeof(Samples) | 1 << 24)
    say("nvmlDeviceGetProcessesUtilizationInfo", call("nvmlDeviceGetProcessesUtilizationInfo", byref(several)))


def start():
    global nvml, handle
    nvml, handle = ctypes.CDLL("libnvidia-ml.so.1"), c_void_p()
    nvml.nvmlInit_v2()
    nvml.nvmlDeviceGetHandleByIndex_v2(0, byref(handle))


STEPS = (totals, accounting, utilisation)
