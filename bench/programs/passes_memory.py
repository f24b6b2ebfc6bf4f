"""What passes of memory: the host's, questions, managed memory's pages, properties of pools and of physical memory."""
import ctypes
import mmap
import os
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

import driver
import structs
from signatures import Location
from taken import MIB, MOST, allocate, by, card, need, place, to

PIECES, PIECE = 64, 16 * MIB
MAPPED_MOST = MOST + PIECES * PIECE // 512  # the card has 8 bytes of its own for each 4 KiB of the host's that it can reach
MANAGED = 256 * MIB
ATTACH_GLOBAL, READ_MOSTLY, PREFER = 1, 1, 3
DMA_BUF = 1
OFTEN = 1000


def host_memory():
    """1 GiB of it."""
    card()
    found, oldest = (c_void_p * PIECES)(), (c_void_p * 4)()
    by("cuMemAllocHost_v2", PIECES, lambda call, at: call(place(found, at), PIECE), MAPPED_MOST)
    by("cuMemFreeHost", PIECES, lambda call, at: to(found[at], call))
    by("cuMemHostAlloc", PIECES, lambda call, at: call(place(found, at), PIECE, 0), MAPPED_MOST)
    by("cuMemAllocHost", 4, lambda call, at: call(place(oldest, at), PIECE), may_refuse=True)


def host_memory_of_the_program():
    card()
    pages = mmap.mmap(-1, PIECES * PIECE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    by("cuMemHostRegister_v2", PIECES, lambda call, at: call(start + at * PIECE, PIECE, 0), MAPPED_MOST)
    by("cuMemHostUnregister", PIECES, lambda call, at: call(start + at * PIECE))
    by("cuMemHostRegister", PIECES, lambda call, at: call(start + at * PIECE, PIECE, 0), may_refuse=True)


def host_addresses():
    card()
    host, _ = driver.map_host(MIB)
    address, flags = c_uint64(), c_uint()
    by("cuMemHostGetDevicePointer_v2", OFTEN, lambda call, _: call(byref(address), host, 0))
    by("cuMemHostGetFlags", OFTEN, lambda call, _: call(byref(flags), host))
    by("cuMemHostGetDevicePointer", OFTEN, lambda call, _: call(byref(address), host, 0), may_refuse=True)


def addresses():
    card()
    address, base, size, handle = allocate(PIECE), c_uint64(), c_size_t(), c_int()

    def export(call, _):
        status = call(byref(handle), address, PIECE, DMA_BUF, 0)
        if not status:
            os.close(handle.value)
        return status

    by("cuMemGetAddressRange_v2", OFTEN, lambda call, _: call(byref(base), byref(size), address))
    by("cuMemGetHandleForAddressRange", 10, export)
    by("cuMemGetAddressRange", OFTEN, lambda call, _: call(byref(base), byref(size), address & 0xffffffff), may_refuse=True)


def managed_memory():
    """Pages that come to the card are of what was charged in full; more than that never comes."""
    stream, address, here = card().stream, c_uint64(), Location(structs.DEVICE, 0)
    need("cuMemAllocManaged", byref(address), MANAGED, ATTACH_GLOBAL)
    start, wait = address.value, lambda: need("cuCtxSynchronize")
    starts, sizes, places, first = (c_uint64 * 1)(start), (c_size_t * 1)(MANAGED), (Location * 1)(here), (c_size_t * 1)(0)
    most = MANAGED + MOST
    by("cuMemAdvise_v2", 100, lambda call, at: call(start, MANAGED, PREFER + at % 2, here), most)
    by("cuMemAdvise", 100, lambda call, at: call(start, MANAGED, PREFER + at % 2, 0), most)
    by("cuMemPrefetchAsync_v2", 4, lambda call, _: call(start, MANAGED, here, 0, stream), most, settle=wait)
    by("cuMemPrefetchAsync", 4, lambda call, _: call(start, MANAGED, 0, stream), most, settle=wait)
    by("cuMemDiscardBatchAsync", 4, lambda call, _: call(starts, sizes, 1, 0, stream), most, settle=wait)
    by("cuMemPrefetchBatchAsync", 4, lambda call, _: call(starts, sizes, 1, places, first, 1, 0, stream), most, settle=wait)
    by("cuMemDiscardAndPrefetchBatchAsync", 4, lambda call, _: call(starts, sizes, 1, places, first, 1, 0, stream), most,
       settle=wait)


def managed_questions():
    card()
    address, answer, answers = c_uint64(), c_int(), (c_int * 2)()
    need("cuMemAllocManaged", byref(address), MANAGED, ATTACH_GLOBAL)
    places = (c_void_p * 2)(ctypes.addressof(answers), ctypes.addressof(answers) + 4)
    sizes, kinds = (c_size_t * 2)(4, 4), (c_int * 2)(READ_MOSTLY, READ_MOSTLY + 1)
    by("cuMemRangeGetAttribute", OFTEN, lambda call, _: call(byref(answer), 4, READ_MOSTLY, address.value, MANAGED))
    by("cuMemRangeGetAttributes", OFTEN, lambda call, _: call(places, sizes, kinds, 2, address.value, MANAGED))


def pools():
    card()
    here, pool, other, access = Location(structs.DEVICE, 0), c_void_p(), c_void_p(), c_int()
    desc = structs.AccessDesc(here, structs.READ_WRITE)
    need("cuMemPoolCreate", byref(pool), byref(structs.PoolProps(type=structs.PINNED, location=here)))
    by("cuMemPoolSetAccess", OFTEN, lambda call, _: call(pool, byref(desc), 1))
    by("cuMemPoolGetAccess", OFTEN, lambda call, _: call(byref(access), pool, byref(here)))
    by("cuDeviceGetMemPool", OFTEN, lambda call, _: call(byref(other), 0))
    by("cuMemGetMemPool", OFTEN, lambda call, _: call(byref(other), byref(here), structs.PINNED))


def physical_memory():
    card()
    here, handle, start, size, flags = Location(structs.DEVICE, 0), c_uint64(), c_uint64(), c_size_t(), c_uint64()
    prop = structs.AllocationProp(type=structs.PINNED, location=here)
    desc = structs.AccessDesc(here, structs.READ_WRITE)
    by("cuMemGetAllocationGranularity", OFTEN, lambda call, _: call(byref(size), byref(prop), 0))
    need("cuMemCreate", byref(handle), PIECE, byref(prop), 0)
    need("cuMemAddressReserve", byref(start), PIECE, 0, 0, 0)
    need("cuMemMap", start, PIECE, 0, handle, 0)
    by("cuMemSetAccess", OFTEN, lambda call, _: call(start, PIECE, byref(desc), 1))
    by("cuMemGetAccess", OFTEN, lambda call, _: call(byref(flags), byref(here), start))
    by("cuMemGetAllocationPropertiesFromHandle", OFTEN, lambda call, _: call(byref(prop), handle))


STEPS = (host_memory, host_memory_of_the_program, host_addresses, addresses, managed_memory, managed_questions, pools,
         physical_memory)
