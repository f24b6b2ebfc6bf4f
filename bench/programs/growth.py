"""What the library takes for certain of the driver's pools and graphs (src/shim/memory/pools.h):
an allocation grows its pool by its size, rounded up to 32 MiB, at most; not at all if it fits a block that was freed in
its stream, or in a stream that was waited for, or the rest of the pool's last step. A graph takes what its nodes have
addresses for, and nothing if it is launched again in the same stream. Runs without loadline; ends with 1 if one of these
was wrong.    growth.py [ROUNDS [SEED]]"""
import collections
import ctypes
import random
import sys

from driver import NON_BLOCKING, call

MIB, STEP, UNIT = 1 << 20, 32 << 20, 512
THRESHOLD, RESERVED, USED = 4, 5, 7
GRAPH_RESERVED = 2
PINNED, ON_DEVICE = 1, 1


class PoolProps(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("where", ctypes.c_int), ("device", ctypes.c_int), ("security", ctypes.c_void_p),
                ("max_bytes", ctypes.c_size_t), ("usage", ctypes.c_ushort), ("reserved", ctypes.c_ubyte * 54)]


class AllocParams(ctypes.Structure):
    _fields_ = [("pool", PoolProps), ("access", ctypes.c_void_p), ("access_count", ctypes.c_size_t), ("bytes", ctypes.c_size_t), ("address", ctypes.c_uint64)]


def rounded(number, unit):
    return (number + unit - 1) // unit * unit


def new_stream():
    stream = ctypes.c_void_p()
    call("cuStreamCreate", ctypes.byref(stream), NON_BLOCKING)
    return stream


class Pool:
    """A pool of its own, and the gaps that the library would know: {address: (bytes, stream or None)}."""

    def __init__(self):
        self.handle = ctypes.c_void_p()
        props = PoolProps(type=PINNED, where=ON_DEVICE)
        call("cuMemPoolCreate", ctypes.byref(self.handle), ctypes.byref(props))
        call("cuMemPoolSetAttribute", self.handle, THRESHOLD, ctypes.byref(ctypes.c_uint64(2**64 - 1)))
        self.blocks, self.gaps = {}, {}

    def read(self, attribute):
        value = ctypes.c_uint64()
        call("cuMemPoolGetAttribute", self.handle, attribute, ctypes.byref(value))
        return value.value

    def take(self, address, size):
        """A block is there: what it leaves of a gap stays one."""
        for start, (length, stream) in list(self.gaps.items()):
            if start < address + size and address < start + length:
                del self.gaps[start]
                if start < address:
                    self.gaps[start] = (address - start, stream)
                if start + length > address + size:
                    self.gaps[address + size] = (start + length - address - size, stream)

    def allocate(self, size, stream):
        fits = any(length >= rounded(size, UNIT) and owner in (None, stream.value) for length, owner in self.gaps.values())
        address, before = ctypes.c_uint64(), self.read(RESERVED)
        call("cuMemAllocFromPoolAsync", ctypes.byref(address), ctypes.c_size_t(size), self.handle, stream)
        grown = self.read(RESERVED) - before
        self.take(address.value, rounded(size, UNIT))
        self.blocks[address.value] = (rounded(size, UNIT), stream)
        return address.value, grown, fits, before

    def free(self, address, stream):
        call("cuMemFreeAsync", ctypes.c_uint64(address), stream)
        size, _ = self.blocks.pop(address)
        self.gaps[address] = (size, stream.value)

    def wait(self, stream):
        call("cuStreamSynchronize", stream)
        self.gaps = {start: (length, None if owner == stream.value else owner) for start, (length, owner) in self.gaps.items()}

    def trim(self):
        before = self.read(RESERVED)
        call("cuMemPoolTrimTo", self.handle, ctypes.c_size_t(0))
        if self.read(RESERVED) < before:
            self.gaps = {}


def try_pool(rounds, wrong, seen):
    pool, streams = Pool(), [new_stream() for _ in range(3)]
    for number in range(rounds):
        stream = random.choice(streams)
        if pool.blocks and random.random() < 0.5:
            pool.free(random.choice(list(pool.blocks)), stream)
        else:
            size = random.choice([random.randint(1, 4096), random.randint(1, MIB), random.randint(1, 100 * MIB), 31 * MIB, 32 * MIB, 33 * MIB])
            address, grown, fits, _ = pool.allocate(size, stream)
            seen["fits" if fits else "does not fit"] += 1
            if grown > rounded(size, STEP):
                wrong(f"{size} bytes grew a pool by {grown / MIB} MiB")
            if fits and grown:
                wrong(f"{size} bytes fitted a gap, and the pool grew by {grown / MIB} MiB ({number} of {rounds})")
        if random.random() < 0.1:
            pool.wait(stream)
        if random.random() < 0.02:
            pool.trim()
        while sum(size for size, _ in pool.blocks.values()) > 2 << 30:
            pool.free(random.choice(list(pool.blocks)), stream)
    for address in list(pool.blocks):
        pool.free(address, streams[0])
    for stream in streams:
        pool.wait(stream)
    call("cuMemPoolDestroy", pool.handle)


def try_last_step(wrong, seen):
    """The first block tells where steps begin. What is behind a block in a new step is free."""
    pool, stream = Pool(), new_stream()
    base, _, _, _ = pool.allocate(MIB, stream)
    seen["first block from a step's start, MiB"] = base % STEP / MIB
    end = base + MIB
    for size in (20 * MIB, 40 * MIB, 100 * MIB, 7 * MIB + 512):
        rest = (base - end) % STEP
        if rest:
            address, grown, _, _ = pool.allocate(rest, stream)
            if grown or address != end:
                wrong(f"the last step had {rest / MIB} MiB: an allocation of them went {(address - end) / MIB} MiB further, and the pool grew by {grown / MIB} MiB")
            end = address + rest
        address, grown, _, _ = pool.allocate(size, stream)
        if address != end or grown != rounded(size, STEP):
            wrong(f"{size / MIB} MiB behind a full step: {(address - end) / MIB} MiB further, the pool grew by {grown / MIB} MiB")
        end = address + rounded(size, UNIT)


def graph_reserved():
    value = ctypes.c_uint64()
    call("cuDeviceGetGraphMemAttribute", 0, GRAPH_RESERVED, ctypes.byref(value))
    return value.value


def make_graph(sizes, in_turn):
    """Allocations and their frees; in_turn: each begins when the one before is freed. Returns the graph made executable, and
    what its addresses can take."""
    graph, executable, last, taken = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), []
    call("cuGraphCreate", ctypes.byref(graph), 0)
    frees = []
    for size in sizes:
        params, node = AllocParams(pool=PoolProps(type=PINNED, where=ON_DEVICE), bytes=size), ctypes.c_void_p()
        follows = in_turn and last.value
        call("cuGraphAddMemAllocNode", ctypes.byref(node), graph, ctypes.byref(last) if follows else None, ctypes.c_size_t(1 if follows else 0), ctypes.byref(params))
        taken.append((params.address, params.address + size))
        if in_turn:
            call("cuGraphAddMemFreeNode", ctypes.byref(last), graph, ctypes.byref(node), ctypes.c_size_t(1), ctypes.c_uint64(params.address))
        else:
            frees.append((node, params.address))
    nodes = (ctypes.c_void_p * len(frees))(*(node.value for node, _ in frees))
    for _, address in frees:
        call("cuGraphAddMemFreeNode", ctypes.byref(last), graph, nodes, ctypes.c_size_t(len(frees)), ctypes.c_uint64(address))
    call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
    bound, start, end = 0, 0, 0
    for first, behind in sorted(taken) + [(2**64, 2**64)]:
        if first >= end:
            bound, start, end = bound + rounded(end - start, STEP), first, behind
        end = max(end, behind)
    return executable, bound


def try_graphs(rounds, wrong, seen):
    streams = [new_stream() for _ in range(2)]
    for _ in range(rounds):
        graphs, epoch, where = [], 0, {}
        for _ in range(random.randint(1, 4)):
            sizes = [random.choice([1000, MIB, 31 * MIB, 33 * MIB, random.randint(1, 200 * MIB)]) for _ in range(random.randint(1, 5))]
            in_turn, before = random.random() < 0.5, graph_reserved()
            graphs.append(make_graph(sizes, in_turn))
            if graph_reserved() != before:
                wrong(f"instantiating a graph took {(graph_reserved() - before) / MIB} MiB")
            seen["MiB by addresses, in turn" if in_turn else "MiB by addresses, at once"] += graphs[-1][1] // MIB
        for _ in range(12):
            number, stream = random.randrange(len(graphs)), random.choice(streams)
            executable, bound = graphs[number]
            certain, before = where.get(number) == (stream.value, epoch), graph_reserved()
            call("cuGraphLaunch", executable, stream)
            grown = graph_reserved() - before
            seen["certain launches" if certain else "other launches"] += 1
            seen["MiB taken"] += max(grown, 0) // MIB
            if grown > bound:
                wrong(f"a launch took {grown / MIB} MiB, {bound / MIB} by its addresses")
            if certain and grown:
                wrong(f"a launch that had its memory took {grown / MIB} MiB")
            if number in where and where[number][0] != stream.value:
                epoch += 1
            where[number] = (stream.value, epoch)
            if random.random() < 0.2:
                call("cuStreamSynchronize", stream)
        for stream in streams:
            call("cuStreamSynchronize", stream)
        for executable, _ in graphs:
            call("cuGraphExecDestroy", executable)
        call("cuDeviceGraphMemTrim", 0)


def main():
    rounds, seed = (int(word) for word in (sys.argv[1:] + ["3000", "1"][len(sys.argv) - 1:]))
    random.seed(seed)
    device, context = ctypes.c_int(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    wrongs, seen = [], collections.Counter()
    try_last_step(wrongs.append, seen)
    try_pool(rounds, wrongs.append, seen)
    try_graphs(rounds // 100, wrongs.append, seen)
    for what, count in seen.items():
        print(f"{what}: {count}")
    for text in wrongs[:20]:
        print(f"wrong: {text}")
    print(f"{len(wrongs)} wrong")
    return 1 if wrongs else 0


sys.exit(main())
