/*
 * activity.h - CUPTI's activity records, taken in the process that they are about.
 *
 * CUPTI gathers them on its own threads in buffers of ours, and hands these back when full or when asked
 * (ll_activity_flush); each record is then written (writer.h). Kernels run as they would without it: the kind that
 * serialises them is not used. Device stamps are CUPTI's, moved to CLOCK_MONOTONIC.
 */
#ifndef LOADLINE_TRACE_ACTIVITY_H
#define LOADLINE_TRACE_ACTIVITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/writer.h"

/*
 * Opens the library at path and begins. False, with the reason as a sentence: it is not there, its version is not one
 * whose records are known, or it refuses (another profiler is at work, no permission). *ret_version: its API version,
 * 0 where that is not known. Once a process.
 */
bool ll_activity_begin(const char *path, struct ll_trace_writer *writer, uint32_t *ret_version, char *ret_reason,
		       size_t size);

/* Writes the records that are complete; is_last: also of buffers with work that is still going on. */
void ll_activity_flush(bool is_last);

#endif
