"""Copies and memsets from before CUDA 3.2, with addresses of 32 bits: what they make the card do nobody waits for, so a
driver must refuse each of them in every context that a program can have."""
from ctypes import byref, c_ubyte, c_void_p

import line
import signatures
from taken import card, refused

HOST = (c_ubyte * 4096)()
COUNT = 1
# 0 is no address: a driver that takes the call refuses the address, which is another error than to refuse the context.
CALLS = {
    "cuMemsetD8": (0, 0, COUNT), "cuMemsetD16": (0, 0, COUNT), "cuMemsetD32": (0, 0, COUNT),
    "cuMemsetD2D8": (0, COUNT, 0, COUNT, COUNT), "cuMemsetD2D16": (0, COUNT, 0, COUNT, COUNT),
    "cuMemsetD2D32": (0, COUNT, 0, COUNT, COUNT),
    "cuMemcpyDtoD": (0, 0, COUNT), "cuMemcpyDtoDAsync": (0, 0, COUNT, None), "cuMemcpyHtoD": (0, HOST, COUNT),
    "cuMemcpyHtoDAsync": (0, HOST, COUNT, None), "cuMemcpyDtoH": (HOST, 0, COUNT),
    "cuMemcpyDtoHAsync": (HOST, 0, COUNT, None),
    "cuMemcpyHtoA": (None, 0, HOST, COUNT), "cuMemcpyHtoAAsync": (None, 0, HOST, COUNT, None),
    "cuMemcpyAtoH": (HOST, None, 0, COUNT), "cuMemcpyAtoHAsync": (HOST, None, 0, COUNT, None),
    "cuMemcpyAtoA": (None, 0, None, 0, COUNT), "cuMemcpyAtoD": (0, None, 0, COUNT), "cuMemcpyDtoA": (None, 0, 0, COUNT),
    "cuMemcpy2D": (HOST,), "cuMemcpy2DAsync": (HOST, None), "cuMemcpy2DUnaligned": (HOST,), "cuMemcpy3D": (HOST,),
    "cuMemcpy3DAsync": (HOST, None),
}


def old_copies():
    """In a context of today, and in one that the oldest function made."""
    card()
    for name, words in CALLS.items():
        refused(name, "today", *words)
    context, create = c_void_p(), signatures.find("cuCtxCreate")
    status = create(byref(context), 0, 0) if create else None
    line.say(event="oldest", status=status)
    if status == 0:
        for name, words in CALLS.items():
            refused(name, "oldest", *words)


STEPS = (old_copies,)
