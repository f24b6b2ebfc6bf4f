/*
 * monitor.h - the small process of a job. It lives in the control group in which `run` was called, as long as a process
 * of the job lives. It tells loadlined of the job, and starts loadlined again when the connection ends.
 *
 * It is as small as it can be, because there is one for each job: no threads, no event library, no allocation that
 * stays.
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
