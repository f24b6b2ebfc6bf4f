/*
 * names.h - the names of launched kernels in a trace's file. The driver is asked once for each kernel.
 *
 * Another kernel may get the handle of a kernel whose module, library or context is gone, so all names are forgotten
 * then. The table has a fixed size, and a kernel has a few possible slots. If these are in use, one is replaced, and
 * the driver is asked again when the replaced kernel is launched next.
 *
 * The caller holds a lock in find and reset. forget may be called from any thread.
 */
#ifndef LOADLINE_TRACE_PRELOAD_NAMES_H
#define LOADLINE_TRACE_PRELOAD_NAMES_H

#include <stdint.h>

#include "shim/interpose/work.h"
#include "trace/writer.h"

/* Returns the number of the launch's name in the writer's file: the kernel's name, or that of the driver's function. */
uint32_t ll_trace_names_find(struct ll_trace_writer *writer, const struct ll_work *work);

/* Call it before handles become invalid. */
void ll_trace_names_forget(void);

/* Forgets all names, because another writer follows. */
void ll_trace_names_reset(void);

#endif
