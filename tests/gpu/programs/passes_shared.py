"""What another process opens: it stays its maker's, and takes nothing of the one that opens it."""
import os
import subprocess
import sys
from ctypes import byref, c_uint64, c_void_p

from signatures import Handle
from taken import MIB, allocate, by, card, need

COUNT = 64 * MIB
LAZY_PEER = 1            # how memory is opened
BETWEEN_PROCESSES = 4 | 2  # an event, without times
OFTEN = 100


def shared():
    card()
    address, memory, event, mark = allocate(COUNT), Handle(), c_void_p(), Handle()
    need("cuEventCreate", byref(event), BETWEEN_PROCESSES)
    by("cuIpcGetMemHandle", OFTEN, lambda call, _: call(byref(memory), address))
    by("cuIpcGetEventHandle", OFTEN, lambda call, _: call(byref(mark), event))
    subprocess.run([sys.executable, "-B", os.path.join(os.path.dirname(os.path.abspath(__file__)), "passes.py"), "opened",
                    bytes(memory).hex(), bytes(mark).hex()], check=True)


def opened(memory, mark):
    """In the other process."""
    card()
    memory, mark = (Handle.from_buffer_copy(bytes.fromhex(text)) for text in (memory, mark))
    address, event = c_uint64(), c_void_p()
    by("cuIpcOpenMemHandle_v2", 1, lambda call, _: call(byref(address), memory, LAZY_PEER))
    by("cuIpcCloseMemHandle", 1, lambda call, _: call(address))
    by("cuIpcOpenMemHandle", 1, lambda call, _: call(byref(address), memory, LAZY_PEER), may_refuse=True)
    by("cuIpcOpenEventHandle", 1, lambda call, _: call(byref(event), mark))


STEPS = (shared,)
