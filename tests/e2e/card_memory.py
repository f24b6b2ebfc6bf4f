"""A CUDA program of a few lines, for tests of memory limits: card_memory.py STEP...

    context       makes a context
    alloc MIB     allocates; prints "alloc ok" or "alloc STATUS"
    free          frees the last one
    info          prints free and total of cuMemGetInfo, in MiB
    card          prints total, used and free as NVML tells them, in MiB; makes no context
    list          prints how many processes NVML lists
    wait          tells "waiting", and waits for a line on standard input
    child STEP... runs the rest in another process, started by exec, and waits for it
    by WAY STEP...  the same, started by posix_spawn, fork, or multiprocessing's fork, spawn or forkserver (mp-fork, ...)
"""
import ctypes
import multiprocessing
import os
import subprocess
import sys

MIB = 1 << 20


def cuda(name, *args):
    return getattr(ctypes.CDLL("libcuda.so.1"), name)(*args)


def nvml_card():
    library = ctypes.CDLL("libnvidia-ml.so.1")
    card = ctypes.c_void_p()
    assert library.nvmlInit_v2() == 0
    assert library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(card)) == 0
    return library, card


def say(*words):
    print(*words, flush=True)


def context():
    made = ctypes.c_void_p()
    assert cuda("cuInit", 0) == 0
    say("context", cuda("cuCtxCreate_v2", ctypes.byref(made), 0, 0) or "ok")


def info():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    assert cuda("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total)) == 0
    say("info", free.value // MIB, total.value // MIB)


def card():
    library, handle = nvml_card()
    memory = (ctypes.c_uint64 * 3)()
    assert library.nvmlDeviceGetMemoryInfo(handle, memory) == 0
    say("card", memory[0] // MIB, memory[2] // MIB, memory[1] // MIB)


def listed():
    library, handle = nvml_card()
    count, room = ctypes.c_uint(64), (ctypes.c_uint64 * 256)()
    assert library.nvmlDeviceGetComputeRunningProcesses_v3(handle, ctypes.byref(count), room) == 0
    say("list", count.value)


def fork(words):
    pid = os.fork()
    if not pid:
        os._exit(run(words))
    return pid


def run_by(way, words):
    if way in ("posix_spawn", "fork"):
        pid = fork(words) if way == "fork" else os.posix_spawn(sys.executable, [sys.executable, __file__, *words], os.environ)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    child = multiprocessing.get_context(way.removeprefix("mp-")).Process(target=run, args=(words,))
    child.start()
    child.join()
    return child.exitcode


def run(words):
    words, addresses = iter(words), []
    for word in words:
        if word == "alloc":
            address = ctypes.c_uint64()
            status = cuda("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(int(next(words)) * MIB))
            addresses.append(address)
            say("alloc", status or "ok")
        elif word == "free":
            say("free", cuda("cuMemFree_v2", addresses.pop()) or "ok")
        elif word == "wait":
            say("waiting")
            sys.stdin.readline()
        elif word == "child":
            return subprocess.run([sys.executable, __file__, *words], check=False).returncode
        elif word == "by":
            return run_by(next(words), list(words))
        else:
            {"context": context, "info": info, "card": card, "list": listed}[word]()
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
