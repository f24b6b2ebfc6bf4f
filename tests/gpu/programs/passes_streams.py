"""What passes of streams and events."""
import ctypes
from ctypes import byref, c_uint64, c_void_p

import structs
from taken import MIB, MOST, allocate, by, card, need, place

OFTEN, STREAMS = 1000, 50
STREAM_BYTES = MIB // 4  # of each, at the most
DISABLE_TIMING, NON_BLOCKING, ATTACH_GLOBAL, AT_LEAST, WRITE_32 = 2, 1, 1, 0, 2
CALLBACK = ctypes.CFUNCTYPE(None, c_void_p, ctypes.c_int, c_void_p)


def streams():
    card()
    made, most = (c_void_p * STREAMS)(), STREAMS * STREAM_BYTES + MOST
    by("cuStreamCreate", STREAMS, lambda call, at: call(place(made, at), NON_BLOCKING), most)
    by("cuStreamCreateWithPriority", STREAMS, lambda call, at: call(place(made, at), NON_BLOCKING, 0), most)


def events():
    card()
    made = (c_void_p * OFTEN)()
    by("cuEventCreate", OFTEN, lambda call, at: call(place(made, at), DISABLE_TIMING))
    by("cuEventDestroy_v2", OFTEN, lambda call, at: call(made[at]))
    for at in range(OFTEN):
        need("cuEventCreate", place(made, at), DISABLE_TIMING)
    by("cuEventDestroy", OFTEN, lambda call, at: call(made[at]))


def managed_streams():
    stream, address = card().stream, c_uint64()
    need("cuMemAllocManaged", byref(address), MIB, ATTACH_GLOBAL)
    by("cuStreamAttachMemAsync", OFTEN, lambda call, _: call(stream, address.value, 0, ATTACH_GLOBAL),
       settle=lambda: need("cuCtxSynchronize"))


def callbacks():
    stream, heard = card().stream, CALLBACK(lambda *_: None)
    by("cuStreamAddCallback", OFTEN, lambda call, _: call(stream, heard, None, 0), settle=lambda: need("cuCtxSynchronize"))


def values():
    """None of them waits: what is waited for is there."""
    stream, where, wait = card().stream, allocate(4096), lambda: need("cuCtxSynchronize")
    for size in (32, 64):
        for version in ("_v2", ""):
            by(f"cuStreamWriteValue{size}{version}", OFTEN, lambda call, at: call(stream, where, at, 0), settle=wait,
               may_refuse=not version)
            by(f"cuStreamWaitValue{size}{version}", OFTEN, lambda call, _: call(stream, where, 0, AT_LEAST), settle=wait,
               may_refuse=not version)


def batches_of_values():
    stream, where = card().stream, allocate(4096)
    writes = (structs.MemOp * 4)(*(structs.MemOp(operation=WRITE_32, address=where + 8 * at, value=at) for at in range(4)))
    for name in ("cuStreamBatchMemOp_v2", "cuStreamBatchMemOp"):
        by(name, OFTEN, lambda call, _: call(stream, 4, writes, 0), settle=lambda: need("cuCtxSynchronize"),
           may_refuse=name == "cuStreamBatchMemOp")


STEPS = (streams, events, managed_streams, callbacks, values, batches_of_values)
