"""The driver API through ctypes, as far as the programs without a framework need it. Kernels are those of stranger.ptx:
they work for a given time on the card, and time that a neighbour takes from them does not count."""
import ctypes
import os

FOLDER = os.path.dirname(os.path.abspath(__file__))
SM_COUNT, MAPPED, NON_BLOCKING, DISABLE_TIMING = 16, 2, 1, 2
RECORD_BYTES = 32
THREADS = 256

cuda = ctypes.CDLL("libcuda.so.1")


class DriverError(Exception):
    pass


def call(name, *args):
    status = getattr(cuda, name)(*args)
    if status:
        raise DriverError(f"{name}: CUDA error {status}")


def load(name, entry):
    """A kernel from a file of this folder, in the current context."""
    module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    with open(os.path.join(FOLDER, name), "rb") as text:
        call("cuModuleLoadData", ctypes.byref(module), text.read() + b"\0")
    call("cuModuleGetFunction", ctypes.byref(kernel), module, entry)
    return kernel


def map_host(count):
    """(the host's address, the card's) of memory that both see."""
    host, address = ctypes.c_void_p(), ctypes.c_uint64()
    call("cuMemHostAlloc", ctypes.byref(host), ctypes.c_size_t(count), MAPPED)
    call("cuMemHostGetDevicePointer_v2", ctypes.byref(address), host, 0)
    return host.value, address.value


def wait(stream):
    call("cuStreamSynchronize", stream)


class Card:
    """A context on card 0, a stream, and the kernel."""

    def __init__(self):
        device, count = ctypes.c_int(), ctypes.c_int()
        self.context = ctypes.c_void_p()
        call("cuInit", 0)
        call("cuDeviceGet", ctypes.byref(device), 0)
        call("cuCtxCreate_v2", ctypes.byref(self.context), 0, device)
        call("cuDeviceGetAttribute", ctypes.byref(count), SM_COUNT, device)
        self.stream = self.new_stream()
        self.kernel = load("stranger.ptx", b"spin_ns_stranger")
        self.blocks = count.value
        self.values = (ctypes.c_uint64 * 5)()
        self.values[1] = map_host(RECORD_BYTES)[1]  # where the kernels leave their stamps, which nobody reads
        self.parameters = (ctypes.c_void_p * 5)(*(ctypes.addressof(self.values) + 8 * at for at in range(5)))

    def new_stream(self):
        stream = ctypes.c_void_p()
        call("cuStreamCreate", ctypes.byref(stream), NON_BLOCKING)
        return stream

    def launch(self, length_ns, stream=None):
        """A kernel on all SMs that works for that long."""
        self.values[0] = length_ns
        call("cuLaunchKernel", self.kernel, self.blocks, 1, 1, THREADS, 1, 1, 0, stream or self.stream, self.parameters, None)

    def wait(self, stream=None):
        wait(stream or self.stream)

    def mark(self):
        """A function that waits for what has been launched so far."""
        event = ctypes.c_void_p()
        call("cuEventCreate", ctypes.byref(event), DISABLE_TIMING)
        call("cuEventRecord", event, self.stream)

        def wait():
            call("cuEventSynchronize", event)
            call("cuEventDestroy_v2", event)
        return wait
