"""What passes of arrays: their parts, questions about them, views of memory as textures, and mappings into sparse ones."""
import ctypes
from ctypes import byref, c_ubyte, c_uint64, c_void_p

import structs
from signatures import Location
from taken import MIB, allocate, by, card, need, place, to

SIDE, CHANNELS = 1024, 4
FLOAT, NV12 = 0x20, 0xb0
SURFACE, SPARSE, DEFERRED = 0x02, 0x40, 0x80
LEVELS = 4
ARRAY_KIND, LINEAR_KIND = 0, 2
TILE_POOL, MAP = 1, 1
POOL = 64 * MIB
OFTEN = 1000


def texels(flags=0, depth=0, kind=FLOAT, channels=CHANNELS):
    return structs.Array3D(SIDE, SIDE, depth, kind, channels, flags)


def make(name, desc, *more):
    made = c_void_p()
    need(name, byref(made), byref(desc), *more)
    return made


def planes_of_arrays():
    card()
    planes, part = make("cuArray3DCreate_v2", texels(kind=NV12, channels=3)), c_void_p()
    by("cuArrayGetPlane", OFTEN, lambda call, at: call(byref(part), planes, at % 2))


def levels_of_mipmaps():
    card()
    mipmap, part = make("cuMipmappedArrayCreate", texels(depth=SIDE // 16), LEVELS), c_void_p()
    by("cuMipmappedArrayGetLevel", OFTEN, lambda call, at: call(byref(part), mipmap, at % LEVELS))


def descriptions_of_arrays():
    card()
    answer, flat = (c_ubyte * 256)(), make("cuArrayCreate_v2", structs.Array(SIDE, SIDE, FLOAT, CHANNELS))
    solid = make("cuArray3DCreate_v2", texels(depth=16))
    by("cuArrayGetDescriptor_v2", OFTEN, lambda call, _: call(answer, flat))
    by("cuArray3DGetDescriptor_v2", OFTEN, lambda call, _: call(answer, solid))
    by("cuArrayGetDescriptor", OFTEN, lambda call, _: call(answer, flat), may_refuse=True)
    by("cuArray3DGetDescriptor", OFTEN, lambda call, _: call(answer, solid), may_refuse=True)


def needs_of_arrays():
    card()
    answer, array = (c_ubyte * 256)(), make("cuArray3DCreate_v2", texels(DEFERRED))
    mipmap = make("cuMipmappedArrayCreate", texels(DEFERRED), LEVELS)
    by("cuArrayGetMemoryRequirements", OFTEN, lambda call, _: call(answer, array, 0))
    by("cuMipmappedArrayGetMemoryRequirements", OFTEN, lambda call, _: call(answer, mipmap, 0))


def sparse_arrays():
    card()
    answer, array = (c_ubyte * 256)(), make("cuArray3DCreate_v2", texels(SPARSE))
    mipmap = make("cuMipmappedArrayCreate", texels(SPARSE), LEVELS)
    by("cuArrayGetSparseProperties", OFTEN, lambda call, _: call(answer, array))
    by("cuMipmappedArrayGetSparseProperties", OFTEN, lambda call, _: call(answer, mipmap))


def sparse_mapping():
    """The mapping holds the memory, and the account has given it back with its handle."""
    stream, handle, tile = card().stream, c_uint64(), (ctypes.c_uint * 64)()
    array = make("cuArray3DCreate_v2", texels(SPARSE))
    need("cuArrayGetSparseProperties", tile, array)
    prop = structs.AllocationProp(type=structs.PINNED, location=Location(structs.DEVICE, 0))
    prop.flags[2] = TILE_POOL  # CUmemAllocationProp.allocFlags.usage
    need("cuMemCreate", byref(handle), POOL, byref(prop), 0)
    info = structs.ArrayMapInfo(kind=ARRAY_KIND, array=array, width=tile[0], height=tile[1], depth=tile[2] or 1, operation=MAP,
                                handle=handle.value, cards=1)

    def map_and_release(call, _):
        return call(byref(info), 1, stream) or need("cuStreamSynchronize", stream) or need("cuMemRelease", handle)

    by("cuMemMapArrayAsync", 1, map_and_release, charged=-POOL)


def textures():
    card()
    made, other = (c_uint64 * OFTEN)(), c_void_p()
    memory = structs.ResourceDesc(kind=LINEAR_KIND, address=allocate(MIB), format=FLOAT, channels=1, size=MIB)
    array = structs.ResourceDesc(kind=ARRAY_KIND, address=make("cuArray3DCreate_v2", texels(SURFACE)).value)
    how = structs.TextureDesc()
    by("cuTexObjectCreate", OFTEN, lambda call, at: call(place(made, at), byref(memory), byref(how), None))
    by("cuTexObjectDestroy", OFTEN, lambda call, at: to(made[at], call))
    made = (c_uint64 * OFTEN)()
    by("cuSurfObjectCreate", OFTEN, lambda call, at: call(place(made, at), byref(array)))
    by("cuSurfObjectDestroy", OFTEN, lambda call, at: to(made[at], call))
    by("cuTexRefCreate", 1, lambda call, _: call(byref(other)))
    by("cuTexRefDestroy", 1, lambda call, _: to(other, call))


STEPS = (planes_of_arrays, levels_of_mipmaps, descriptions_of_arrays, needs_of_arrays, sparse_arrays, sparse_mapping, textures)
