/*
 * outputs.h - the files of `loadline trace -o`: a .csv for each process, and a .json for all processes.
 *
 * In a name, %p is the process id, and %% a percent sign. If several processes wrote records, a .csv name without %p
 * gets the process id before its suffix. The suffix decides the format. Other suffixes are refused.
 */
#ifndef LOADLINE_CLI_TRACE_OUTPUTS_H
#define LOADLINE_CLI_TRACE_OUTPUTS_H

#include "cli/trace/run.h"

struct ll_strbuf;

/* Checks the names before the command runs. list: names with commas between, or NULL. -EINVAL: a name cannot be used.
 * Other -errno: a folder cannot be written. */
int ll_trace_outputs_check(const char *list, struct ll_err *err);

int ll_trace_outputs_write(const char *list, const struct ll_trace_run *run, struct ll_err *err);

/* Makes the name for one process. is_alone: it is the only process. */
void ll_trace_outputs_name(const char *pattern, pid_t pid, bool is_alone, struct ll_strbuf *ret_path);

#endif
