/*
 * outputs.h - the files that `loadline trace -o` writes: .csv, one for each process, and .json, one for all.
 *
 * %p in a name is the process id, %% a percent sign. A .csv without %p gets the process id before its suffix where
 * several processes wrote records. The name says what is written; any other suffix is refused.
 */
#ifndef LOADLINE_CLI_TRACE_OUTPUTS_H
#define LOADLINE_CLI_TRACE_OUTPUTS_H

#include "cli/trace/run.h"

struct ll_strbuf;

/* list: names with commas between; NULL: none. Before the command runs: -EINVAL for a name that cannot be used, -errno
 * where its folder cannot be written in. */
int ll_trace_outputs_check(const char *list, struct ll_err *err);

int ll_trace_outputs_write(const char *list, const struct ll_trace_run *run, struct ll_err *err);

/* The name for one process. is_alone: it is the only one. */
void ll_trace_outputs_name(const char *pattern, pid_t pid, bool is_alone, struct ll_strbuf *ret_path);

#endif
