"""A CUDA program that does what it is told, for tests of eviction: it reads steps from its standard input, a line each.

    context          makes a context
    card N           the same on card N, which it uses from then on
    alloc MIB        allocates, and gives each byte the allocation's number, from 1
    small BYTES      the same of so many bytes
    async MIB        the same in the order of the default stream (cuMemAllocAsync)
    unasync          frees the last one in that order
    keep             the card's pool keeps what is freed
    trim             it gives that back
    pool BYTES       compares what the pool tells that it has of the card
    check            compares every byte of all allocations
    free             frees the last one
    sync             waits for the card
    kernel SECONDS   launches a kernel of this length
    wait             the default stream waits, and cannot be stopped, until
    go               is told
    export           makes physical memory and exports it
    share N FILE     writes the handle of allocation N for other processes (cuIpcGetMemHandle)
    open N MIB FILE  opens such a handle, and compares the bytes with N
    close            closes the last that it opened
    peer             enables the access of a peer
    fork             forks a child that lives for five minutes, or until it is killed
    descend          forks a child that does the rest
    descriptors N    has so many free descriptors, and all again with N = -1

It answers each with the step's first word, and "ok" or what is wrong.
"""
import ctypes
import os
import resource
import sys
import time

MIB = 1 << 20
PTX = b""".version 6.0
.target sm_50
.address_size 64
.visible .entry work_ns(.param .u64 length)
{
	ret;
}
"""
cu = ctypes.CDLL("libcuda.so.1")
allocations = []
contexts = {}
current = 0
opened = []
taken = []
word = ctypes.c_void_p()
full = resource.getrlimit(resource.RLIMIT_NOFILE)


def make_context(card=0):
    global current
    made = ctypes.c_void_p()
    current = card
    status = cu.cuInit(0) or cu.cuDevicePrimaryCtxRetain(ctypes.byref(made), card) or cu.cuCtxSetCurrent(made)
    contexts[card] = made
    return status


def allocate(size):
    address = ctypes.c_uint64()
    status = cu.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size))
    if status:
        return status
    allocations.append((address, size, current))
    return cu.cuMemsetD8_v2(address, ctypes.c_ubyte(len(allocations)), ctypes.c_size_t(size))


def allocate_async(size):
    address = ctypes.c_uint64()
    status = cu.cuMemAllocAsync(ctypes.byref(address), ctypes.c_size_t(size), None)
    if status:
        return status
    allocations.append((address, size, current))
    return cu.cuMemsetD8Async(address, ctypes.c_ubyte(len(allocations)), ctypes.c_size_t(size), None)


def pool():
    made = ctypes.c_void_p()
    cu.cuDeviceGetDefaultMemPool(ctypes.byref(made), 0)
    return made


RELEASE_THRESHOLD, RESERVED_CURRENT = 4, 5


def compare_pool(size):
    reserved = ctypes.c_uint64()
    status = cu.cuMemPoolGetAttribute(pool(), RESERVED_CURRENT, ctypes.byref(reserved))
    return status or (0 if reserved.value == size else f"has {reserved.value} bytes")


def check():
    for number, (address, size, card) in enumerate(allocations, 1):
        seen = ctypes.create_string_buffer(size)
        status = cu.cuCtxSetCurrent(contexts[card]) if len(contexts) > 1 else 0
        status = status or cu.cuMemcpyDtoH_v2(seen, address, ctypes.c_size_t(size))
        if status or seen.raw != bytes([number]) * size:
            return status or f"wrong bytes in allocation {number}"
    return cu.cuCtxSetCurrent(contexts[current]) if len(contexts) > 1 else 0


def launch(seconds):
    module, function, length = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64(int(seconds * 1e9))
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(length))
    return (cu.cuModuleLoadData(ctypes.byref(module), PTX)
            or cu.cuModuleGetFunction(ctypes.byref(function), module, b"work_ns")
            or cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, parameters, None))


DEVICEMAP, GEQ = 2, 0


def wait():
    address = ctypes.c_uint64()
    status = cu.cuMemHostAlloc(ctypes.byref(word), ctypes.c_size_t(4), DEVICEMAP)
    if status:
        return status
    ctypes.memset(word, 0, 4)
    return (cu.cuMemHostGetDevicePointer_v2(ctypes.byref(address), word, 0)
            or cu.cuStreamWaitValue32_v2(None, address, ctypes.c_uint32(1), GEQ))


def go():
    ctypes.memset(word, 1, 4)
    return 0


class Prop(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handle_types", ctypes.c_int), ("location_type", ctypes.c_int),
                ("device", ctypes.c_int), ("metadata", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8)]


def export():
    prop, handle, fd = Prop(1, 1, 1, 0, None), ctypes.c_uint64(), ctypes.c_int()
    return (cu.cuMemCreate(ctypes.byref(handle), ctypes.c_size_t(2 * MIB), ctypes.byref(prop), ctypes.c_uint64(0))
            or cu.cuMemExportToShareableHandle(ctypes.byref(fd), handle, 1, ctypes.c_uint64(0))
            or os.close(fd.value) or cu.cuMemRelease(handle))


class IpcHandle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 64)]


def share(number, path):
    handle = IpcHandle()
    status = cu.cuIpcGetMemHandle(ctypes.byref(handle), allocations[number - 1][0])
    if not status:
        with open(path, "wb") as file:
            file.write(bytes(handle))
    return status


def open_shared(number, size, path):
    with open(path, "rb") as file:
        handle = IpcHandle.from_buffer_copy(file.read())
    address, seen = ctypes.c_uint64(), ctypes.create_string_buffer(size)
    status = cu.cuIpcOpenMemHandle_v2(ctypes.byref(address), handle, 1)
    if status:
        return status
    opened.append(address)
    status = cu.cuMemcpyDtoH_v2(seen, address, ctypes.c_size_t(size))
    return status or (0 if seen.raw == bytes([number]) * size else "wrong bytes")


def fork():
    if os.fork() == 0:
        time.sleep(300)
        os._exit(0)
    return 0


def descend():
    pid = os.fork()
    if pid:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    return 0


def limit_descriptors(more):
    while taken:
        os.close(taken.pop())
    if more < 0:
        resource.setrlimit(resource.RLIMIT_NOFILE, full)
        return 0
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, full[1]))
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        for _ in range(more):
            os.close(taken.pop())
    return 0


def do(words):
    name, rest = words[0], words[1:]
    if name == "context":
        return make_context()
    if name == "card":
        return make_context(int(rest[0]))
    if name == "alloc":
        return allocate(int(rest[0]) * MIB)
    if name == "small":
        return allocate(int(rest[0]))
    if name == "async":
        return allocate_async(int(rest[0]) * MIB)
    if name == "unasync":
        return cu.cuMemFreeAsync(allocations.pop()[0], None)
    if name == "keep":
        return cu.cuMemPoolSetAttribute(pool(), RELEASE_THRESHOLD, ctypes.byref(ctypes.c_uint64(2**64 - 1)))
    if name == "trim":
        return cu.cuMemPoolTrimTo(pool(), ctypes.c_size_t(0))
    if name == "pool":
        return compare_pool(int(rest[0]))
    if name == "check":
        return check()
    if name == "free":
        return cu.cuMemFree_v2(allocations.pop()[0])
    if name == "sync":
        return cu.cuCtxSynchronize()
    if name == "kernel":
        return launch(float(rest[0]))
    if name == "wait":
        return wait()
    if name == "go":
        return go()
    if name == "export":
        return export()
    if name == "share":
        return share(int(rest[0]), rest[1])
    if name == "open":
        return open_shared(int(rest[0]), int(rest[1]) * MIB, rest[2])
    if name == "close":
        return cu.cuIpcCloseMemHandle(opened.pop())
    if name == "peer":
        return cu.cuCtxEnablePeerAccess(None, 0)
    if name == "fork":
        return fork()
    if name == "descend":
        return descend()
    return limit_descriptors(int(rest[0]))


for line in iter(sys.stdin.readline, ""):
    print(line.split()[0], do(line.split()) or "ok", flush=True)
