#!/usr/bin/env python3
"""What the driver does with exported memory that its maker frees first, on a real card, without loadline:

    python3 bench/programs/exported_facts.py

One line for each question: "QUESTION: ANSWER". What src/shim/memory/exported.c builds upon is marked with *: if one
of these lines does not say yes, the exit status is 1. A part that fails ends with "PART: failed: WHY". Takes some seconds. Needs
Python 3.9, the driver of CUDA 11.3 or newer, 1.5 GiB of card 0, and nobody else at work on it."""
import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys

MIB = 1 << 20
SIZE = 512 * MIB
FIRST_ID = 0x4C4C << 48
OFD_GETLK, OFD_SETLK = 36, 37
DESCRIPTOR = 1


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Prop(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handle_types", ctypes.c_int), ("location", Location), ("win32", ctypes.c_void_p),
                ("flags", ctypes.c_ubyte * 8)]


class PoolProps(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handle_types", ctypes.c_int), ("location", Location), ("win32", ctypes.c_void_p),
                ("max_bytes", ctypes.c_size_t), ("reserved", ctypes.c_ubyte * 56)]


class Bytes(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 64)]


driver = None
is_good = True


def cuda(name, *args):
    status = getattr(driver, name)(*args)
    assert status == 0, f"{name}: {status}"


def begin():
    global driver
    context = ctypes.c_void_p()
    driver = ctypes.CDLL("libcuda.so.1")
    cuda("cuInit", 0)
    cuda("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    cuda("cuCtxSetCurrent", context)


def used_mib():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    cuda("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return (total.value - free.value) // MIB


def say(question, answer):
    global is_good
    is_good &= answer is True or not question.startswith("*")
    print(f"{question}: {'yes' if answer is True else 'no' if answer is False else answer}", flush=True)


def expect(line, word):
    """Waits for the other process's word. It says none if it has failed."""
    got = line.recv(64)
    assert got == word, f"the other process has not said \"{word.decode()}\""


def end_other(pid, line):
    """What made it fail stands in a line of its own."""
    global is_good
    line.send(b"end")
    is_good &= os.waitpid(pid, 0)[1] == 0


def lock_of(kind, first):
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, first, 1, 0)


def is_locked(fd, first):
    return struct.unpack("hhqqi4x", fcntl.fcntl(fd, OFD_GETLK, lock_of(fcntl.F_WRLCK, first)))[0] != fcntl.F_UNLCK


def descriptors():
    begin()
    handle, fd, number = ctypes.c_uint64(), ctypes.c_int(), FIRST_ID + 4711
    before = used_mib()
    prop = Prop(1, DESCRIPTOR, Location(1, 0))
    cuda("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(SIZE), ctypes.byref(prop), ctypes.c_uint64(0))
    cuda("cuMemExportToShareableHandle", ctypes.byref(fd), handle, DESCRIPTOR, ctypes.c_uint64(0))
    path = os.readlink(f"/proc/self/fd/{fd.value}")
    say("a descriptor's file", path)
    try:
        fcntl.fcntl(fd.value, OFD_SETLK, lock_of(fcntl.F_RDLCK, number))
        say("* a lock can be put on a descriptor", True)
    except OSError as error:
        say("* a lock can be put on a descriptor", error.strerror)
        return
    with open(f"/proc/self/fdinfo/{fd.value}", encoding="utf-8") as info:
        text = info.read()
        say("* /proc tells the lock", "OFDLCK" in text and str(number) in text)
    other = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    say("* another description of the file sees it", is_locked(other, number))
    cuda("cuMemRelease", handle)
    say("a descriptor alone holds the memory", used_mib() - before >= SIZE // MIB)
    second = os.dup(fd.value)
    os.close(fd.value)
    say("* a copy keeps the lock", is_locked(other, number))
    again = ctypes.c_uint64()
    cuda("cuMemImportFromShareableHandle", ctypes.byref(again), ctypes.c_void_p(second), DESCRIPTOR)
    told = Prop()
    cuda("cuMemGetAllocationPropertiesFromHandle", ctypes.byref(told), again)
    say("* the properties of what was imported have the card", told.location.type == 1 and told.location.id == 0)
    os.close(second)
    say("* the last close frees the lock", not is_locked(other, number))
    say("a handle holds the memory without a descriptor", used_mib() - before >= SIZE // MIB)
    cuda("cuMemRelease", again)
    say("then nothing holds it", used_mib() - before < SIZE // MIB)


def run(part, *args):
    """Ends this process."""
    signal.alarm(60)
    try:
        part(*args)
        os._exit(0 if is_good else 1)
    except Exception as error:  # pylint: disable=broad-except
        print(f"{part.__name__}: failed: {error}", flush=True)
        os._exit(1)


def start_other(body, *args):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        ours.close()
        run(body, theirs, *args)
    theirs.close()
    return pid, ours


def open_legacy(line):
    data = line.recv(64)
    begin()
    first, second, base, size = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_size_t()
    handle = Bytes.from_buffer_copy(data)
    cuda("cuIpcOpenMemHandle_v2", ctypes.byref(first), handle, 1)
    cuda("cuIpcOpenMemHandle_v2", ctypes.byref(second), handle, 1)
    cuda("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), first)
    say("what is opened twice has one address", first.value == second.value)
    say("* the range of opened memory is the allocation's", size.value == SIZE)
    line.send(b"open")
    expect(line, b"close")
    cuda("cuIpcCloseMemHandle", first)
    cuda("cuIpcCloseMemHandle", second)
    line.send(b"closed")
    expect(line, b"end")


def legacy():
    pid, line = start_other(open_legacy)
    begin()
    address, handle, again = ctypes.c_uint64(), Bytes(), Bytes()
    cuda("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(SIZE))
    cuda("cuIpcGetMemHandle", ctypes.byref(handle), address)
    cuda("cuIpcGetMemHandle", ctypes.byref(again), ctypes.c_uint64(address.value + MIB))
    say("an allocation has one handle, from whatever address", bytes(handle) == bytes(again))
    line.send(bytes(handle))
    expect(line, b"open")
    with_it = used_mib()
    cuda("cuMemFree_v2", address)
    say("freed legacy memory stays while it is open", with_it - used_mib() < SIZE // MIB)
    line.send(b"close")
    expect(line, b"closed")
    say("and goes when it is closed", with_it - used_mib() >= SIZE // MIB)
    end_other(pid, line)


def import_block(line):
    data, fds, _, _ = socket.recv_fds(line, 64, 1)
    begin()
    pool, address, base, size = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_size_t()
    cuda("cuMemPoolImportFromShareableHandle", ctypes.byref(pool), ctypes.c_void_p(fds[0]), DESCRIPTOR, ctypes.c_uint64(0))
    pointer = Bytes.from_buffer_copy(data)
    cuda("cuMemPoolImportPointer", ctypes.byref(address), pool, ctypes.byref(pointer))
    cuda("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), address)
    say("the range of an imported block", f"{size.value // MIB} MiB")
    line.send(b"open")
    expect(line, b"free")
    cuda("cuMemFree_v2", address)
    line.send(b"freed")
    expect(line, b"end")


def blocks():
    pid, line = start_other(import_block)
    begin()
    props, pool, address, pointer, fd = PoolProps(1, DESCRIPTOR, Location(1, 0)), ctypes.c_void_p(), ctypes.c_uint64(), Bytes(), ctypes.c_int()
    cuda("cuMemPoolCreate", ctypes.byref(pool), ctypes.byref(props))
    cuda("cuMemAllocFromPoolAsync", ctypes.byref(address), ctypes.c_size_t(SIZE), pool, None)
    cuda("cuStreamSynchronize", None)
    cuda("cuMemPoolExportToShareableHandle", ctypes.byref(fd), pool, DESCRIPTOR, ctypes.c_uint64(0))
    cuda("cuMemPoolExportPointer", ctypes.byref(pointer), address)
    socket.send_fds(line, [bytes(pointer)], [fd.value])
    expect(line, b"open")
    with_it, reserved = used_mib(), ctypes.c_uint64()
    cuda("cuMemFreeAsync", address, None)
    cuda("cuStreamSynchronize", None)
    cuda("cuMemPoolTrimTo", pool, ctypes.c_size_t(0))
    cuda("cuMemPoolGetAttribute", pool, 5, ctypes.byref(reserved))
    say("a pool whose freed block is imported has reserved", f"{reserved.value // MIB} MiB")
    say("the card has meanwhile less by", f"{with_it - used_mib()} MiB")
    line.send(b"free")
    expect(line, b"freed")
    say("and after the importer's free by", f"{with_it - used_mib()} MiB")
    end_other(pid, line)


# Each in a process of its own: CUDA does not go on in a forked child.
failed = False
for part in (descriptors, legacy, blocks):
    child = os.fork()
    if child == 0:
        run(part)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        print(f"{part.__name__}: failed: signal {os.WTERMSIG(status)}", flush=True)
    failed |= status != 0
sys.exit(failed)
