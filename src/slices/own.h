/*
 * own.h - the time slices of a program of ours that has contexts on cards itself.
 *
 * A program that uses this header exports a function `ioctl` (own.c), which its CUDA or Vulkan library finds before
 * libc's. It notes the program's channel groups (groups.h), and does nothing else.
 */
#ifndef LOADLINE_SLICES_OWN_H
#define LOADLINE_SLICES_OWN_H

#include <stdint.h>

#include "slices/groups.h"

/* A slice this short costs a program nothing while it is alone on its card. A program that comes waits at most this
 * long, and for the change of context (0.35 ms together on an H200, doc/facts.md). */
enum { LL_OWN_SLICE_LEAST_US = 100 };

/* The function behind the program's own `ioctl`. */
ll_ioctl_fn ll_own_ioctl_next(void);

/* Sets the slices of all groups of this process that have another one. -ENOENT: it has none, or its libraries do not
 * call the program's `ioctl`. Other errors: of the last call that failed. May take some ms. */
int ll_own_slices_set(uint32_t us);

#endif
