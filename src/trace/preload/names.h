/*
 * names.h - what the file of a trace calls what is launched: asked of the driver once for each kernel.
 *
 * A handle may be another kernel's once its module, its library or its context is gone: then all is forgotten. A kernel
 * is looked for at a few places of a table of fixed size; one that finds no place drives another out, which is asked
 * for again when it comes next.
 *
 * find and reset are called under the caller's lock; forget from anywhere.
 */
#ifndef LOADLINE_TRACE_PRELOAD_NAMES_H
#define LOADLINE_TRACE_PRELOAD_NAMES_H

#include <stdint.h>

#include "shim/interpose/work.h"
#include "trace/writer.h"

/* The number of its name in the writer's file: that of the kernel, or of the driver's function. */
uint32_t ll_trace_names_find(struct ll_trace_writer *writer, const struct ll_work *work);

/* Before handles become invalid. */
void ll_trace_names_forget(void);

/* Another writer follows. */
void ll_trace_names_reset(void);

#endif
