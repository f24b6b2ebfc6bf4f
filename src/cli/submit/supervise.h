/*
 * supervise.h - starts a submitted job, and the process that stays with it.
 *
 * The starter is `loadline submit`. It forks the supervisor, which leaves the session of the starter. The supervisor
 * forks the job's first process, which does what `loadline run` does: it waits for its place, and becomes the command.
 * So all of them are the user's own processes. The supervisor writes the job's record (record.h), waits for the
 * command's end, and tells loadlined the exit status.
 *
 * Standard input of the job is /dev/null. Its output goes to the log from the moment at which the job has a number; the
 * messages before that go to the starter's standard error. The working directory, the umask, the environment and the
 * resource limits are the starter's.
 */
#ifndef LOADLINE_CLI_SUBMIT_SUPERVISE_H
#define LOADLINE_CLI_SUBMIT_SUPERVISE_H

#include "cli/options/option.h"
#include "cli/run/args.h"
#include "cli/submit/record.h"

struct ll_err;

struct ll_submit_job {
	const struct ll_run_args *args;
	const struct ll_operands *operands; /* the command */
	const char *folder;                 /* of the records */
	const char *output;                 /* file of the log; %j: the job's number */
};

/* What the starter learns. */
struct ll_submit_started {
	uint64_t number; /* 0: the job was not accepted */
	int status;      /* then the exit status for the starter; the reason was printed */
	char log[PATH_MAX];
};

/* Returns when the job has a number, or will have none. */
int ll_submit_start(const struct ll_submit_job *job, struct ll_submit_started *ret_started, struct ll_err *err);

/* Makes the absolute path of the log: %j is the number, %% a percent sign. -ENAMETOOLONG. -EINVAL: another character
 * follows %. */
int ll_submit_log_path(const char *output, uint64_t number, const char *directory, char ret_path[PATH_MAX]);

#endif
