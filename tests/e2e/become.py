"""Takes MIB of the card and becomes COMMAND, which does not use CUDA: a server that starts itself anew, a shell's exec.

become.py MIB COMMAND...
"""
import ctypes
import os
import sys

cuda = ctypes.CDLL("libcuda.so.1")
context, address = ctypes.c_void_p(), ctypes.c_uint64()
for status in (cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)):
    if status:
        sys.exit(f"no context: {status}")
status = cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(int(sys.argv[1]) << 20))
if status:
    sys.exit(f"no memory: {status}")
os.execvp(sys.argv[2], sys.argv[2:])
