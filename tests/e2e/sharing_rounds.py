"""Memory that a process makes, shares with its child, and lets go when the child has it: sharing_rounds.py WAY MIB ROUNDS

    WAY  vmm (physical memory by a descriptor) or legacy (cuIpcGetMemHandle)

The child lets go of nothing. Stops at the first answer that is not 0, and prints how many rounds came about, and that answer:
"shared 2 2". Then both stay until the end of standard input.
"""
import ctypes
import os
import socket
import sys

MIB = 1 << 20
way, size, rounds = sys.argv[1], int(sys.argv[2]) * MIB, int(sys.argv[3])


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Prop(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handle_types", ctypes.c_int), ("location", Location), ("win32", ctypes.c_void_p),
                ("flags", ctypes.c_ubyte * 8)]


class Access(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


class IpcHandle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 64)]


PINNED, DEVICE, DESCRIPTOR, READ_WRITE = 1, 1, 1, 3


class Refused(Exception):
    pass


def cuda(name, *args):
    status = getattr(driver, name)(*args)
    if status:
        print(f"{name}: {status}", file=sys.stderr, flush=True)
        raise Refused(status)


def begin():
    context = ctypes.c_void_p()
    cuda("cuInit", 0)
    cuda("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    cuda("cuCtxSetCurrent", context)


def map_it(handle):
    address, access = ctypes.c_uint64(), Access(Location(DEVICE, 0), READ_WRITE)
    cuda("cuMemAddressReserve", ctypes.byref(address), ctypes.c_size_t(size), ctypes.c_size_t(0), ctypes.c_uint64(0), ctypes.c_uint64(0))
    cuda("cuMemMap", address, ctypes.c_size_t(size), ctypes.c_size_t(0), handle, ctypes.c_uint64(0))
    cuda("cuMemSetAccess", address, ctypes.c_size_t(size), ctypes.byref(access), ctypes.c_size_t(1))
    return address


def take(data, fds):
    if way == "legacy":
        address = ctypes.c_uint64()
        cuda("cuIpcOpenMemHandle_v2", ctypes.byref(address), IpcHandle.from_buffer_copy(data), 1)
        return
    handle = ctypes.c_uint64()
    cuda("cuMemImportFromShareableHandle", ctypes.byref(handle), ctypes.c_void_p(fds[0]), DESCRIPTOR)
    os.close(fds[0])
    map_it(handle)
    cuda("cuMemRelease", handle)  # the mapping holds it


def told_the_child(data, fds):
    socket.send_fds(line, [data], fds)
    for fd in fds:
        os.close(fd)
    answer = int(line.recv(16))
    if answer:
        raise Refused(answer)


def give_physical():
    handle, prop, fd = ctypes.c_uint64(), Prop(PINNED, DESCRIPTOR, Location(DEVICE, 0)), ctypes.c_int()
    cuda("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(size), ctypes.byref(prop), ctypes.c_uint64(0))
    address = map_it(handle)
    cuda("cuMemExportToShareableHandle", ctypes.byref(fd), handle, DESCRIPTOR, ctypes.c_uint64(0))
    told_the_child(b"-", [fd.value])
    cuda("cuMemUnmap", address, ctypes.c_size_t(size))
    cuda("cuMemRelease", handle)


def give_plain():
    address, handle = ctypes.c_uint64(), IpcHandle()
    cuda("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
    cuda("cuIpcGetMemHandle", ctypes.byref(handle), address)
    told_the_child(bytes(handle), [])
    cuda("cuMemFree_v2", address)


def be_the_child():
    status = 0
    begin()
    while True:
        data, fds, _, _ = socket.recv_fds(line, 64, 1)
        if not data:
            os._exit(0)
        try:
            take(data, fds)
        except Refused as refused:
            status = refused.args[0]
        line.send(b"%d" % status)


line, childs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
is_child = os.fork() == 0
if is_child:
    line.close()
    line = childs
else:
    childs.close()
driver = ctypes.CDLL("libcuda.so.1")  # after the fork: a child cannot go on with its parent's
if is_child:
    be_the_child()
begin()
done, status = 0, 0
try:
    while done < rounds:
        give_physical() if way == "vmm" else give_plain()
        done += 1
except Refused as refused:
    status = refused.args[0]
print("shared", done, status, flush=True)
sys.stdin.read()
