"""A Python program that calls the driver by ctypes, with the shim preloaded: its calls land in the hooks, and work."""
import ctypes
import sys


class DlInfo(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("at", ctypes.c_void_p)]


def file_of(function):
    info = DlInfo()
    dladdr = ctypes.CDLL(None).dladdr
    dladdr.argtypes = [ctypes.c_void_p, ctypes.POINTER(DlInfo)]
    assert dladdr(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(info))
    return info.file.decode()


def main():
    cuda = ctypes.CDLL("libcuda.so.1")
    assert file_of(cuda.cuMemAlloc_v2).endswith("/libloadline-cuda.so"), file_of(cuda.cuMemAlloc_v2)
    assert file_of(cuda.cuInit).endswith("/libcuda.so.1"), file_of(cuda.cuInit)
    assert not hasattr(cuda, "cuNoSuchThing")
    context, address, device = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_int()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
    assert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device) == 0
    assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4096)) == 0
    assert address.value
    assert cuda.cuCtxDestroy_v2(context) == 0
    return 0


sys.exit(main())
