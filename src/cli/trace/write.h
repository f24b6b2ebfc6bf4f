/*
 * write.h - writes a trace in its two formats. The caller checks the stream's errors when it closes the stream.
 */
#ifndef LOADLINE_CLI_TRACE_WRITE_H
#define LOADLINE_CLI_TRACE_WRITE_H

#include <stdio.h>

#include "cli/trace/run.h"

/*
 * Writes a row for each event of a process, sorted by start. The columns are those of `nvprof --print-gpu-trace --csv`,
 * with their units in their names. start_ns counts from the start of the command. A field that an event does not have
 * is empty.
 */
void ll_trace_write_csv(FILE *file, const struct ll_trace_run *run, const struct ll_trace_process *process);

/*
 * Writes the JSON that Perfetto and chrome://tracing load. A process of the command is a process there. Each of its
 * streams is a thread, and so are the waits of each of its threads at the gate. A counter shows the device memory that
 * the process holds.
 */
void ll_trace_write_chrome(FILE *file, const struct ll_trace_run *run);

#endif
