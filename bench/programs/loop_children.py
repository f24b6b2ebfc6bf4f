#!/usr/bin/env python3
"""Kernels that launch kernels, which a host does not see, in a loop: loop_children.py --library FILE, made from children.cu.
Exit status 77: this driver has no such launches."""
import ctypes

import beat

CHILDREN, CHILD_NS = 20, 200000
NOT_SUPPORTED, MISSING = 801, 77

options = beat.arguments(library="")
parents = ctypes.CDLL(options.library)


def must(status):
    if status == NOT_SUPPORTED:
        raise SystemExit(MISSING)
    if status:
        raise SystemExit(f"CUDA runtime error {status}")


def queue():
    must(parents.launch_parent(CHILDREN, ctypes.c_ulonglong(CHILD_NS)))
    mark = ctypes.c_void_p()
    must(parents.new_mark(ctypes.byref(mark)))
    return 1, lambda: must(parents.wait_mark(mark))


beat.run(queue, options.seconds)
