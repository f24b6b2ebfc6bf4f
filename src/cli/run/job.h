/*
 * job.h - makes the command of `run` a job: starts its monitor, which registers it with loadlined.
 */
#ifndef LOADLINE_CLI_RUN_JOB_H
#define LOADLINE_CLI_RUN_JOB_H

#include <stdbool.h>

struct ll_err;
struct ll_run_settings;

struct ll_run_job {
	const struct ll_run_settings *settings;
	const char *command;
	const char *sim_folder; /* of the simulated world; NULL: the real cards */
	bool is_named;          /* the user named the tenant */
};

/*
 * Starts the monitor, and waits until it has told loadlined of the job, at most 0.25 s; it goes on trying after that.
 * The lifeline stays open in this process, and the command inherits it. An error says why there is no monitor. The
 * command may be run nevertheless: nothing that it asked for needs loadlined. Calls no function of the driver.
 */
int ll_run_job_start(const struct ll_run_job *job, struct ll_err *err);

#endif
