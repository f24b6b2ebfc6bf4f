#!/usr/bin/env python3
"""A program with a context, which asks who uses the card: NVML's list, and nvidia-smi, which has a
list of its own (nvmlInternalGetExportTable).

    {"event":"inside","pid":12,"nvml":[[12, 553648128]],"smi":[12]}
"""
import ctypes
import os
import subprocess

import driver
import line

MOST = 128


class Process(ctypes.Structure):
    """nvmlProcessInfo_t"""
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("instance", ctypes.c_uint), ("compute", ctypes.c_uint)]


def call(name, *args):
    status = getattr(nvml, name)(*args)
    if status:
        raise SystemExit(f"{name}: NVML error {status}")


def ask_nvml():
    device, count, found = ctypes.c_void_p(), ctypes.c_uint(MOST), (Process * MOST)()
    call("nvmlInit_v2")
    call("nvmlDeviceGetHandleByIndex_v2", 0, ctypes.byref(device))
    call("nvmlDeviceGetComputeRunningProcesses_v3", device, ctypes.byref(count), found)
    return [[process.pid, process.used] for process in found[:count.value]]


def ask_smi():
    answer = subprocess.run(["nvidia-smi", "-i", "0", "--query-compute-apps=pid", "--format=csv,noheader"], check=True,
                            capture_output=True, text=True).stdout
    return [int(word) for word in answer.split()]


card = driver.Card()
nvml = ctypes.CDLL("libnvidia-ml.so.1")
line.say(event="inside", pid=os.getpid(), nvml=ask_nvml(), smi=ask_smi())
