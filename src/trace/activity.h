/*
 * activity.h - reads CUPTI's activity records in the traced process, and writes them to its file (writer.h).
 *
 * CUPTI's threads fill buffers that this module allocates, and return a buffer when it is full or at a flush
 * (ll_activity_flush). Kernels run as without a trace: the kind of record that serialises kernels is not used. Device
 * times are CUPTI's, converted to CLOCK_MONOTONIC.
 */
#ifndef LOADLINE_TRACE_ACTIVITY_H
#define LOADLINE_TRACE_ACTIVITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/writer.h"

/*
 * Opens the library at path and starts the recording. Call it once in a process. False: the library does not exist, the
 * records of its version are not known, or CUPTI refuses (another profiler is at work, no permission). Then ret_reason
 * has the reason as a sentence. *ret_version: CUPTI's API version, 0 if it is not known.
 */
bool ll_activity_begin(const char *path, struct ll_trace_writer *writer, uint32_t *ret_version, char *ret_reason,
		       size_t size);

/* Writes the complete records. is_last: also the records in buffers that have unfinished work. */
void ll_activity_flush(bool is_last);

#endif
