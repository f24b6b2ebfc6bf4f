/*
 * inject.h - libloadline-trace.so inside a traced program.
 *
 * The driver loads it in cuInit, because CUDA_INJECTION64_PATH names it, and calls InitializeInjection. From then on
 * CUPTI's records are written (activity.h). A thread flushes them every LL_INJECT_FLUSH_NS, so that a killed program
 * loses only the records of that time.
 *
 * The library is also preloaded, because a program may end by _exit, as the children of Python's multiprocessing do,
 * and then no exit handler runs. The library's _exit, _Exit and quick_exit flush the records and call libc's functions.
 * In a program without CUDA, in a forked child, and in the child of a vfork they only call libc's. The governing
 * library reports the waits of launches to this library (gate_waits.c).
 */
#ifndef LOADLINE_TRACE_INJECT_H
#define LOADLINE_TRACE_INJECT_H

#include "base/clock.h"

#define LL_INJECT_FLUSH_NS (200 * LL_NS_PER_MS)

__attribute__((visibility("default"))) int InitializeInjection(void);

/* Returns whether CUPTI's records are being written in this process. If not, libloadline-events.so times the launches.
 */
__attribute__((visibility("default"))) int loadline_trace_is_by_cupti(void);

/* Sets the function that _exit, _Exit and quick_exit call as well. libloadline-events.so sets its last harvest. There
 * is one such function. */
__attribute__((visibility("default"))) void loadline_trace_at_end(void (*fn)(void));

#endif
