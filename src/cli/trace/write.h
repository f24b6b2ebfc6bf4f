/*
 * write.h - the two forms of a trace. Both write to a stream whose errors the caller looks at when it closes it.
 */
#ifndef LOADLINE_CLI_TRACE_WRITE_H
#define LOADLINE_CLI_TRACE_WRITE_H

#include <stdio.h>

#include "cli/trace/run.h"

/*
 * A row for each event of a process, by start. The columns are those of `nvprof --print-gpu-trace --csv`, their units
 * in their names; start_ns counts from the start of the command. What an event has not is empty.
 */
void ll_trace_write_csv(FILE *file, const struct ll_trace_run *run, const struct ll_trace_process *process);

/*
 * The JSON that Perfetto and chrome://tracing load: a process for each process, a thread for each of its streams, one
 * for waits at the gate, and a counter of the card's memory that it holds.
 */
void ll_trace_write_chrome(FILE *file, const struct ll_trace_run *run);

#endif
