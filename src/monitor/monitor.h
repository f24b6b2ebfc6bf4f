/*
 * monitor.h - the small process of a job. It lives in the control group in which `run` was called, as long as a process
 * of the job lives. It registers the job with loadlined, and starts loadlined again when the connection ends.
 *
 * Each job has a monitor, so the monitor is as small as possible: it has no threads, no event library and no lasting
 * allocations.
 */
#ifndef LOADLINE_MONITOR_MONITOR_H
#define LOADLINE_MONITOR_MONITOR_H

#include "protocol/message.h"
#include "protocol/start.h"

struct ll_monitor_config {
	struct ll_place place;
	struct ll_programs programs;
	const char *version;
	int report_fd, lifeline_fd, process_fd; /* start.h */
};

/* Returns when the job has ended. -EPROTO: there is no job on report_fd. */
int ll_monitor_run(const struct ll_monitor_config *config);

#endif
