"""The driver's structures as far as passes_*.py fill them in, by the names of cuda.h."""
import ctypes
from ctypes import c_float, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p

from signatures import Location

DEVICE, HOST = 1, 2  # CUmemLocationType
PINNED = 1           # CUmemAllocationType
READ_WRITE = 3       # CUmemAccess_flags


def structure(name, *fields):
    """Fields of one type, many at once: ("a b c", type)."""
    return type(name, (ctypes.Structure,), {"_fields_": [(one, kind) for names, kind in fields for one in names.split()]})


AccessDesc = structure("CUmemAccessDesc", ("location", Location), ("flags", c_int))
AllocationProp = structure("CUmemAllocationProp", ("type handles", c_int), ("location", Location), ("windows", c_void_p),
                           ("flags", c_ubyte * 8))
PoolProps = structure("CUmemPoolProps", ("type handles", c_int), ("location", Location), ("windows", c_void_p),
                      ("most", c_size_t), ("usage", c_ubyte * 64))
MulticastProp = structure("CUmulticastObjectProp", ("cards", c_uint), ("size", c_size_t), ("handles flags", c_uint64))

Array = structure("CUDA_ARRAY_DESCRIPTOR", ("width height", c_size_t), ("format channels", c_uint))
Array3D = structure("CUDA_ARRAY3D_DESCRIPTOR", ("width height depth", c_size_t), ("format channels flags", c_uint))
ArrayMapInfo = structure("CUarrayMapInfo", ("kind", c_int), ("array", c_void_p), ("subresource", c_int), ("unused", c_int),
                         ("level layer x y z width height depth", c_uint), ("operation handle_type", c_int),
                         ("handle offset", c_uint64), ("cards flags", c_uint), ("reserved", c_uint * 2))
ResourceDesc = structure("CUDA_RESOURCE_DESC", ("kind", c_int), ("address", c_uint64), ("format channels", c_uint),
                         ("size", c_size_t), ("unused", c_ubyte * 104), ("flags", c_uint))
TextureDesc = structure("CUDA_TEXTURE_DESC", ("address_modes", c_int * 3), ("filter", c_int), ("flags anisotropy", c_uint),
                        ("mip_filter", c_int), ("bias least most", c_float), ("border", c_float * 4), ("reserved", c_int * 12))

KernelNode = structure("CUDA_KERNEL_NODE_PARAMS", ("function", c_void_p), ("grid_x grid_y grid_z", c_uint),
                       ("block_x block_y block_z shared", c_uint), ("parameters extra kernel context", c_void_p))
MemsetNode = structure("CUDA_MEMSET_NODE_PARAMS", ("address", c_uint64), ("pitch", c_size_t), ("value element", c_uint),
                       ("width height", c_size_t))
HostNode = structure("CUDA_HOST_NODE_PARAMS", ("function data", c_void_p))
Copy3D = structure("CUDA_MEMCPY3D", ("src_x src_y src_z src_lod", c_size_t), ("src_kind", c_int), ("src_host", c_void_p),
                   ("src_device", c_uint64), ("src_array unused", c_void_p), ("src_pitch src_height", c_size_t),
                   ("dst_x dst_y dst_z dst_lod", c_size_t), ("dst_kind", c_int), ("dst_host", c_void_p),
                   ("dst_device", c_uint64), ("dst_array unused2", c_void_p), ("dst_pitch dst_height", c_size_t),
                   ("width height depth", c_size_t))
MemOp = structure("CUstreamBatchMemOpParams", ("operation", c_int), ("address value", c_uint64), ("flags", c_uint),
                  ("alias unused", c_uint64))
MemOpNode = structure("CUDA_BATCH_MEM_OP_NODE_PARAMS", ("context", c_void_p), ("count", c_uint), ("operations", c_void_p),
                      ("flags", c_uint))
InstantiateParams = structure("CUDA_GRAPH_INSTANTIATE_PARAMS", ("flags", c_uint64), ("stream node", c_void_p), ("result", c_int))
DevResource = structure("CUdevResource", ("bytes", c_ubyte * 144))  # room for any kind of it
UpdateResult = structure("CUgraphExecUpdateResultInfo", ("result", c_int), ("node other", c_void_p))
