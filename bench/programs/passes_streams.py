"""What passes of streams and events."""
import ctypes
from ctypes import byref, c_uint, c_uint64, c_void_p

import structs
from taken import MIB, MOST, allocate, by, card, need, place, to

OFTEN, STREAMS = 1000, 50
STREAM_BYTES = 3 * MIB // 4  # of each, at the most: an H200 takes 0.54
DISABLE_TIMING, NON_BLOCKING, ATTACH_GLOBAL, AT_LEAST, WRITE_32 = 2, 1, 1, 0, 2
SMS = DEFAULT_STREAM = 1
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
    by("cuEventDestroy_v2", OFTEN, lambda call, at: to(made[at], call))
    for at in range(OFTEN):
        need("cuEventCreate", place(made, at), DISABLE_TIMING)
    by("cuEventDestroy", OFTEN, lambda call, at: to(made[at], call))


def marks():
    """Of streams, and of whole contexts."""
    here, event = card(), c_void_p()
    need("cuEventCreate", byref(event), DISABLE_TIMING)
    for name, words in {"cuEventRecord": (event, here.stream), "cuEventRecordWithFlags": (event, here.stream, 0),
                        "cuStreamWaitEvent": (here.stream, event, 0), "cuCtxRecordEvent": (here.context, event),
                        "cuCtxWaitEvent": (here.context, event)}.items():
        by(name, OFTEN, lambda call, _, words=words: call(*words), settle=lambda: need("cuCtxSynchronize"))


def marks_of_green_contexts():
    """Of a part of the card's SMs."""
    card()
    whole, part, count = structs.DevResource(), structs.DevResource(), c_uint(1)
    primary, desc, green, event = c_void_p(), c_void_p(), c_void_p(), c_void_p()
    need("cuDevicePrimaryCtxRetain", byref(primary), 0)
    need("cuCtxSetCurrent", primary)  # whose the event has to be
    need("cuDeviceGetDevResource", 0, byref(whole), SMS)
    need("cuDevSmResourceSplitByCount", byref(part), byref(count), byref(whole), None, 0, 16)
    need("cuDevResourceGenerateDesc", byref(desc), byref(part), 1)
    need("cuGreenCtxCreate", byref(green), desc, 0, DEFAULT_STREAM)
    need("cuEventCreate", byref(event), DISABLE_TIMING)
    for name in ("cuGreenCtxRecordEvent", "cuGreenCtxWaitEvent"):
        by(name, OFTEN, lambda call, _: call(green, event), settle=lambda: need("cuCtxSynchronize"))


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
    for name in ("cuStreamWriteValue32_v2", "cuStreamWriteValue64_v2", "cuStreamWriteValue32", "cuStreamWriteValue64"):
        by(name, OFTEN, lambda call, at: call(stream, where, at, 0), settle=wait, may_refuse=not name.endswith("_v2"))
    for name in ("cuStreamWaitValue32_v2", "cuStreamWaitValue64_v2", "cuStreamWaitValue32", "cuStreamWaitValue64"):
        by(name, OFTEN, lambda call, _: call(stream, where, 0, AT_LEAST), settle=wait, may_refuse=not name.endswith("_v2"))


def batches_of_values():
    stream, where = card().stream, allocate(4096)
    writes = (structs.MemOp * 4)(*(structs.MemOp(operation=WRITE_32, address=where + 8 * at, value=at) for at in range(4)))
    for name in ("cuStreamBatchMemOp_v2", "cuStreamBatchMemOp"):
        by(name, OFTEN, lambda call, _: call(stream, 4, writes, 0), settle=lambda: need("cuCtxSynchronize"),
           may_refuse=name == "cuStreamBatchMemOp")


STEPS = (streams, events, marks, marks_of_green_contexts, managed_streams, callbacks, values, batches_of_values)
