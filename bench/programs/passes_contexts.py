"""What passes of contexts, and what cuInit takes before there is one."""
import ctypes
from ctypes import byref, c_int, c_uint, c_void_p

import line
import signatures
from taken import INVALID_VALUE, by, card, need, place

BLOCKING = 4
OFTEN = 100
NOTIFICATION = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_void_p)
TABLE = bytes.fromhex("6bd5fb6c5bf4e74a8987d93912fd9df9")  # one that CUDA's own runtime asks for


def flags_of_contexts():
    card()
    flags, active = c_uint(), c_int()
    by("cuDevicePrimaryCtxGetState", OFTEN, lambda call, _: call(0, byref(flags), byref(active)))
    by("cuDevicePrimaryCtxSetFlags_v2", OFTEN, lambda call, _: call(0, BLOCKING))
    by("cuDevicePrimaryCtxSetFlags", OFTEN, lambda call, _: call(0, BLOCKING), may_refuse=True)
    by("cuCtxSetFlags", OFTEN, lambda call, _: call(BLOCKING))
    by("cuCtxResetPersistingL2Cache", OFTEN, lambda call, _: call())


def tables():
    card()
    table = c_void_p()
    by("cuGetExportTable", OFTEN, lambda call, _: call(byref(table), TABLE))


def notifications():
    """What the driver tells by itself."""
    card()
    made, heard = (c_void_p * OFTEN)(), NOTIFICATION(lambda *_: None)
    by("cuDeviceRegisterAsyncNotification", OFTEN, lambda call, at: call(0, heard, None, place(made, at)))
    by("cuDeviceUnregisterAsyncNotification", OFTEN, lambda call, at: call(0, made[at]) if made[at] else INVALID_VALUE)


class Memory(ctypes.Structure):
    """nvmlMemory_t"""
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


def initialised():
    """Before there is a context only NVML tells of the card."""
    nvml, handle, memory, used = ctypes.CDLL("libnvidia-ml.so.1"), c_void_p(), Memory(), []
    nvml.nvmlInit_v2()
    nvml.nvmlDeviceGetHandleByIndex_v2(0, byref(handle))
    for step in (lambda: 0, lambda: signatures.find("cuInit")(0)):
        status = step()
        nvml.nvmlDeviceGetMemoryInfo(handle, byref(memory))
        used.append(memory.used)
    line.say(event="passes", function="cuInit", status=status, times=1, taken_bytes=used[1] - used[0], most_bytes=None,
             charged_bytes=0, may_refuse=False)


STEPS = (flags_of_contexts, tables, notifications, initialised)
