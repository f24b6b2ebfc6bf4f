/*
 * job.h - makes the command of `run` a job: starts its monitor, which registers it with loadlined.
 */
#ifndef LOADLINE_CLI_RUN_JOB_H
#define LOADLINE_CLI_RUN_JOB_H

#include <stdbool.h>

#include "protocol/message.h"
#include "protocol/place.h"

struct ll_err;
struct ll_run_settings;

struct ll_run_job {
	const struct ll_run_settings *settings;
	const char *command;
	const char *path;   /* of the executable */
	char *const *words; /* the command with its arguments, NULL-ended */
	const struct ll_place *place;
	bool is_named;       /* the user named the tenant */
	const char *project; /* NULL: none */
	const char *name;    /* NULL: none */
	uint64_t said;       /* as in struct ll_message_job */
};

/* The limits of a job with these settings. */
void ll_run_job_limits(const struct ll_run_settings *settings, struct ll_limits *ret_limits);

/* Makes the message that registers the job, of this process. */
void ll_run_job_describe(const struct ll_run_job *job, union ll_message *ret_message);

/* Puts the limits that loadlined made of the request in place of those of the settings. */
void ll_run_job_take_limits(struct ll_run_settings *settings, const struct ll_message_accepted *accepted);

/*
 * Starts the monitor, and waits until it has told loadlined of the job, at most 5 s. On success *ret_accepted is the
 * reply. -EACCES: the configuration of the machine does not allow the job. The lifeline stays open in this
 * process, and the command inherits it. An error says why the job is not known: the monitor goes on trying, if there is
 * one. Calls no function of the driver.
 */
int ll_run_job_start(const struct ll_run_job *job, struct ll_message_accepted *ret_accepted, struct ll_err *err);

#endif
