"""What two processes have to do with each other: what one opens stays its maker's, and what one gives up while another
freezes it stays charged."""
import os
import subprocess
import sys
from ctypes import byref, c_uint64, c_void_p

import line
from signatures import Handle
from taken import MIB, MOST, allocate, by, card, need

COUNT = 64 * MIB
LAZY_PEER = 1            # how memory is opened
BETWEEN_PROCESSES = 4 | 2  # an event, without times
OFTEN = 100
PROGRAM = [sys.executable, "-B", os.path.join(os.path.dirname(os.path.abspath(__file__)), "passes.py")]


def shared():
    card()
    address, memory, event, mark = allocate(COUNT), Handle(), c_void_p(), Handle()
    need("cuEventCreate", byref(event), BETWEEN_PROCESSES)
    by("cuIpcGetMemHandle", OFTEN, lambda call, _: call(byref(memory), address))
    by("cuIpcGetEventHandle", OFTEN, lambda call, _: call(byref(mark), event))
    subprocess.run([*PROGRAM, "opened", bytes(memory).hex(), bytes(mark).hex()], check=True)


def opened(memory, mark):
    """In the other process."""
    card()
    memory, mark = (Handle.from_buffer_copy(bytes.fromhex(text)) for text in (memory, mark))
    address, event = c_uint64(), c_void_p()
    by("cuIpcOpenMemHandle_v2", 1, lambda call, _: call(byref(address), memory, LAZY_PEER))
    by("cuIpcCloseMemHandle", 1, lambda call, _: call(address))
    by("cuIpcOpenMemHandle", 1, lambda call, _: call(byref(address), memory, LAZY_PEER), may_refuse=True)
    by("cuIpcOpenEventHandle", 1, lambda call, _: call(byref(event), mark))


def frozen():
    """The card has the other's memory again, and the account keeps it, so that it can be had again."""
    card()
    with subprocess.Popen([*PROGRAM, "held"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        for name, most in {"cuCheckpointProcessLock": MOST, "cuCheckpointProcessCheckpoint": MOST,
                           "cuCheckpointProcessRestore": None, "cuCheckpointProcessUnlock": MOST}.items():
            by(name, 1, lambda call, _: call(other.pid, None), most)
        other.kill()  # one that stays frozen would end by nothing else


def held():
    """In the other process, until it is told to end."""
    card()
    allocate(COUNT)
    line.say(event="held")
    sys.stdin.read()


STEPS = (shared, frozen)
# What a step runs in another process.
ELSEWHERE = (opened, held)
