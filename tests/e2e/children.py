"""Code with dynamic parallelism, which MPS does not load: which function of the driver says so?

    children.py ways [FILE [KERNEL]]   each way that needs the code of a library's kernel, in a process of its own: prints
                                       "FUNCTION STATUS". FILE: other code that has such a KERNEL, such as a fatbin of nvcc's
    children.py faults [STATUS]        the simulator lets each function of HOOKED fail by itself with this status
    children.py old                    the same with a driver that does not say whether the process is a client of MPS
    children.py twice                  loads code without and with it, by one function and then by another, and all that again
    children.py hooked, loading        the functions that tell it, and those of them that do nothing but load code or find it
"""
import ctypes
import os
import subprocess
import sys
from ctypes import byref, c_int, c_size_t, c_void_p

HEAD = b".version 7.4\n.target sm_50\n.address_size 64\n.visible .global .align 4 .u32 counter;\n"
BODY = b".visible .entry parent()\n{\n\tret;\n}\n"
PLAIN = HEAD + BODY
CHILDREN = HEAD + b".extern .func (.param .b32 status) cudaLaunchDeviceV2(.param .b64 buffer, .param .b64 stream);\n" + BODY
CDP_NOT_SUPPORTED = "CUDA_ERROR_CDP_NOT_SUPPORTED"

# Functions that load code or find it: "not supported" means this too, from older drivers.
LOADING = """cuModuleLoad cuModuleLoadData cuModuleLoadDataEx cuModuleLoadFatBinary cuModuleGetFunction cuLibraryLoadData
    cuLibraryLoadFromFile cuLibraryGetKernel cuLibraryGetModule cuKernelGetFunction cuFuncLoad""".split()
HOOKED = LOADING + """cuModuleGetGlobal_v2 cuLibraryGetGlobal cuLibraryGetManaged
    cuKernelGetAttribute cuKernelSetAttribute cuKernelSetCacheConfig cuFuncGetAttribute cuFuncSetAttribute cuFuncSetCacheConfig
    cuOccupancyMaxActiveBlocksPerMultiprocessor cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
    cuOccupancyMaxPotentialBlockSize cuOccupancyMaxPotentialBlockSizeWithFlags cuOccupancyAvailableDynamicSMemPerBlock
    cuGraphAddKernelNode cuGraphAddKernelNode_v2 cuGraphKernelNodeSetParams cuGraphKernelNodeSetParams_v2
    cuGraphExecKernelNodeSetParams cuGraphExecKernelNodeSetParams_v2 cuGraphAddNode cuGraphAddNode_v2 cuGraphAddNode_v3
    cuGraphInstantiate cuGraphInstantiate_v2 cuGraphInstantiateWithFlags cuGraphInstantiateWithParams
    cuGraphInstantiateWithParams_ptsz cuGraphExecUpdate cuGraphExecUpdate_v2 cuGraphUpload cuGraphUpload_ptsz
    cuGraphLaunch cuGraphLaunch_ptsz cuLaunchKernel cuLaunchKernel_ptsz cuLaunchKernelEx cuLaunchKernelEx_ptsz
    cuLaunchCooperativeKernel cuLaunchCooperativeKernel_ptsz cuLaunchCooperativeKernelMultiDevice
    cuLaunch cuLaunchGrid cuLaunchGridAsync""".split()
# The simulator answers some functions within another one.
FAULT_OF = {"cuModuleLoadData": "cuModuleLoadDataEx", "cuModuleLoadFatBinary": "cuModuleLoadDataEx"}


class KernelParams(ctypes.Structure):
    _fields_ = [("function", c_void_p), ("sizes", ctypes.c_uint * 7), ("params", c_void_p), ("extra", c_void_p),
                ("kernel", c_void_p), ("context", c_void_p)]


class LaunchConfig(ctypes.Structure):
    _fields_ = [("sizes", ctypes.c_uint * 7), ("stream", c_void_p), ("attributes", c_void_p), ("attribute_count", ctypes.c_uint)]


class LaunchParams(ctypes.Structure):
    _fields_ = [("function", c_void_p), ("sizes", ctypes.c_uint * 7), ("stream", c_void_p), ("params", c_void_p)]


ONE = (1, 1, 1, 1, 1, 1, 0)
sizes = ctypes.c_uint * 7


def call(name, *args):
    return getattr(ctypes.CDLL("libcuda.so.1"), name)(*args)


def must(name, *args):
    status = call(name, *args)
    assert status == 0, f"{name}: {status}"


def made(name, *args):
    handle = c_void_p()
    must(name, byref(handle), *args)
    return handle


def context():
    must("cuInit", 0)
    must("cuCtxSetCurrent", made("cuDevicePrimaryCtxRetain", 0))


def apart(job, *args):
    """Runs it in a process of its own: a process has one line for this."""
    child = os.fork()
    if child == 0:
        try:
            job(*args)
            sys.stdout.flush()
            os._exit(0)
        except BaseException as error:  # whatever it is, the parent's work is not done twice
            print(f"{args[0]}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# ---- ways to need the code of a library's kernel ----

class Code:
    """A library with the kernel, and beside it a graph with another kernel."""

    def __init__(self, image, name):
        context()
        self.image = image
        self.library = made("cuLibraryLoadData", image, None, None, 0, None, None, 0)
        self.kernel = made("cuLibraryGetKernel", self.library, name)
        self.stream = made("cuStreamCreate", 1)
        self.graph = made("cuGraphCreate", 0)
        self.node = made("cuGraphAddKernelNode_v2", self.graph, None, c_size_t(0), byref(
            KernelParams(made("cuModuleGetFunction", made("cuModuleLoadData", PLAIN), b"parent"), sizes(*ONE))))
        self.exec = made("cuGraphInstantiateWithFlags", self.graph, ctypes.c_ulonglong(0))
        self.as_function = KernelParams(self.kernel, sizes(*ONE))
        self.as_kernel = KernelParams(None, sizes(*ONE), kernel=self.kernel)
        self.config = LaunchConfig(sizes(*ONE), self.stream)
        self.several = LaunchParams(self.kernel, sizes(*ONE), self.stream)
        self.out = (c_size_t * 64)()
        self.out_2 = (c_size_t * 64)()


OUT = ("out", "out_2")
NODE = ("out", "graph", None, c_size_t(0))
GRID = ("kernel", *ONE, "stream", None)
WAYS = [
    ("cuModuleLoadData", "out", "image"),
    ("cuLibraryGetModule", "out", "library"),
    ("cuLibraryGetGlobal", *OUT, "library", b"counter"),
    ("cuLibraryGetKernelCount", "out", "library"),
    ("cuLibraryEnumerateKernels", "out", 1, "library"),
    ("cuKernelGetFunction", "out", "kernel"),
    ("cuKernelGetName", "out", "kernel"),
    ("cuKernelGetParamInfo", "kernel", c_size_t(0), *OUT),
    ("cuKernelGetAttribute", "out", 0, "kernel", 0),
    ("cuKernelSetAttribute", 8, 1024, "kernel", 0),
    ("cuKernelSetCacheConfig", "kernel", 1, 0),
    ("cuFuncGetAttribute", "out", 0, "kernel"),
    ("cuFuncSetAttribute", "kernel", 8, 1024),
    ("cuFuncSetCacheConfig", "kernel", 1),
    ("cuFuncGetName", "out", "kernel"),
    ("cuFuncGetModule", "out", "kernel"),
    ("cuFuncGetParamInfo", "kernel", c_size_t(0), *OUT),
    ("cuFuncIsLoaded", "out", "kernel"),
    ("cuFuncLoad", "kernel"),
    ("cuOccupancyMaxActiveBlocksPerMultiprocessor", "out", "kernel", 32, c_size_t(0)),
    ("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", "out", "kernel", 32, c_size_t(0), 0),
    ("cuOccupancyMaxPotentialBlockSize", *OUT, "kernel", None, c_size_t(0), 0),
    ("cuOccupancyMaxPotentialBlockSizeWithFlags", *OUT, "kernel", None, c_size_t(0), 0, 0),
    ("cuOccupancyAvailableDynamicSMemPerBlock", "out", "kernel", 1, 32),
    ("cuOccupancyMaxPotentialClusterSize", "out", "kernel", "config"),
    ("cuOccupancyMaxActiveClusters", "out", "kernel", "config"),
    ("cuLaunchKernel", *GRID, None),
    ("cuLaunchKernel_ptsz", *GRID, None),
    ("cuLaunchKernelEx", "config", "kernel", None, None),
    ("cuLaunchKernelEx_ptsz", "config", "kernel", None, None),
    ("cuLaunchCooperativeKernel", *GRID),
    ("cuLaunchCooperativeKernel_ptsz", *GRID),
    ("cuLaunchCooperativeKernelMultiDevice", "several", 1, 0),
    ("cuGraphAddKernelNode", *NODE, "as_function"),
    ("cuGraphAddKernelNode_v2", *NODE, "as_function"),
    ("cuGraphAddKernelNode_v2", *NODE, "as_kernel"),
    ("cuGraphKernelNodeSetParams_v2", "node", "as_kernel"),
    ("cuGraphExecKernelNodeSetParams_v2", "exec", "node", "as_kernel"),
]


def try_way(way, image, kernel):
    code = Code(image, kernel)
    name, *args = way
    args = [getattr(code, arg) if isinstance(arg, str) else arg for arg in args]
    print(name, call(name, *[byref(arg) if isinstance(arg, ctypes.Structure) else arg for arg in args]))


def ways(file=None, kernel="parent"):
    image = CHILDREN
    if file:
        with open(file, "rb") as code:
            image = code.read()
    for way in WAYS:
        apart(try_way, way, image, kernel.encode())


# ---- one function that fails ----

def simctl(*words):
    subprocess.run([os.environ["SIMCTL"], *words], check=True)


def try_fault(name, status, is_old):
    context()
    memory = made("cuMemAlloc_v2", c_size_t(1))
    for _ in range(5):  # the first launches of a thread, and of a process, take the long way also through an open gate
        must("cuMemsetD8_v2", memory, 0, c_size_t(1))
    base = name.removesuffix("_ptsz")
    simctl("fail", FAULT_OF.get(base, base), status)
    if is_old:
        simctl("fail", "cuDeviceGetAttribute", "CUDA_ERROR_INVALID_VALUE")
    print(name, call(name, *[None] * 12))


def faults(status=CDP_NOT_SUPPORTED, is_old=False):
    for name in HOOKED:
        apart(try_fault, name, status, is_old)
        simctl("heal")


def old():
    faults(is_old=True)


def twice():
    for image in PLAIN, CHILDREN:
        context()
        for _ in range(2):
            status = call("cuModuleLoadData", byref(c_void_p()), image)
            library = made("cuLibraryLoadData", image, None, None, 0, None, None, 0)
            print(status, call("cuLibraryGetModule", byref(c_void_p()), library))


def hooked():
    print(*HOOKED, sep="\n")


def loading():
    print(*LOADING, sep="\n")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
