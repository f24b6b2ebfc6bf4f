/*
 * inject.h - libloadline-trace.so inside a traced program.
 *
 * The driver loads it in cuInit, because CUDA_INJECTION64_PATH names it, and calls InitializeInjection: from there on
 * CUPTI's records are written (activity.h). A thread flushes them every LL_INJECT_FLUSH_NS, so that a program that is
 * killed loses no more than that.
 *
 * It is preloaded too, for a program may end by _exit, as the children of Python's multiprocessing do, and then no
 * handler runs. Its _exit, _Exit and quick_exit flush and go on to libc's. In a program without CUDA, in a forked
 * child, and in the child of a vfork they only go on. The governing library tells it how long launches wait
 * (gate_waits.c).
 */
#ifndef LOADLINE_TRACE_INJECT_H
#define LOADLINE_TRACE_INJECT_H

#include "base/clock.h"

#define LL_INJECT_FLUSH_NS (200 * LL_NS_PER_MS)

__attribute__((visibility("default"))) int InitializeInjection(void);

/* Whether CUPTI's records are being written in this process: for libloadline-events.so, which times launches otherwise.
 */
__attribute__((visibility("default"))) int loadline_trace_is_by_cupti(void);

/* To be called before such an end, too: the last harvest of libloadline-events.so. One function. */
__attribute__((visibility("default"))) void loadline_trace_at_end(void (*fn)(void));

#endif
