/*
 * submit.h - what is known of the user's submitted jobs: a file for each job, which the user owns.
 *
 * The files are in ${XDG_STATE_HOME}/loadline/jobs, where XDG_STATE_HOME is ~/.local/state if it is not set; for
 * simulated cards in a folder of their world beside it (jobs-sim-…). The name of a file has the name of the machine,
 * because several machines may share a home, and the job's number: that of the queue, or without a queue the next free
 * one. The job's supervisor writes the file, and replaces it as a whole.
 *
 * A job without an end, whose supervisor is gone, is lost: the machine was started anew, or the supervisor was killed.
 */
#ifndef LOADLINE_CLI_SUBMIT_SUBMIT_H
#define LOADLINE_CLI_SUBMIT_SUBMIT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/host.h"
#include "base/process_id.h"
#include "cli/options/command.h"
#include "cli/options/option.h"
#include "cli/run/run.h"

struct ll_err;

enum ll_submit_state {
	LL_SUBMIT_WAITS,
	LL_SUBMIT_RUNS,
	LL_SUBMIT_ENDED,   /* the command has ended: status */
	LL_SUBMIT_NOT_RUN, /* the command was not started: status, reason */
	LL_SUBMIT_LOST,    /* nobody writes this: ll_submit_read finds it */
};

enum { LL_SUBMIT_TEXT_SIZE = 400 };

struct ll_submit_record {
	uint64_t number;
	uint64_t job;   /* token[0] of the job; 0: not known */
	bool is_queued; /* the number is of the queue of the machine */
	char boot[LL_BOOT_ID_SIZE];
	struct ll_process_id supervisor;
	struct ll_process_id first; /* the process that becomes the command, and leads a process group of its own */
	uint64_t submitted_s, started_s, ended_s; /* since 1970; 0: not yet */
	enum ll_submit_state state;
	unsigned restarts; /* how often it was put back into the queue, and started again */
	int status; /* exit status as shells write it: 128 and the signal's number, if a signal ended the command */
	char reason[LL_SUBMIT_TEXT_SIZE];  /* why the command was not run */
	char command[LL_SUBMIT_TEXT_SIZE]; /* with its words; may be cut */
	char directory[PATH_MAX], log[PATH_MAX];
};

/* The folder, which is made if it is missing. sim_folder: of the simulated world; NULL: the real cards. Errors as
 * ll_earlier_folder_open. */
int ll_submit_folder(const char *sim_folder, char ret_path[PATH_MAX], struct ll_err *err);

/* Takes the next free number for a job without a queue, by making its file. */
int ll_submit_take_number(const char *folder, uint64_t *ret_number, struct ll_err *err);

int ll_submit_write(const char *folder, const struct ll_submit_record *record, struct ll_err *err);

/* The state is the one of now: LL_SUBMIT_LOST if the supervisor is gone, and has not written how the job ended.
 * -ENOENT: no such job was submitted on this machine. -EBADMSG: the file is damaged. */
int ll_submit_read(const char *folder, uint64_t number, struct ll_submit_record *ret_record, struct ll_err *err);

/* Reads all jobs of this machine, in the order of their numbers. The caller frees *ret_records. */
int ll_submit_read_all(const char *folder, struct ll_submit_record **ret_records, size_t *ret_count,
		       struct ll_err *err);

/* Removes the files of jobs that ended more than 30 days ago. */
void ll_submit_prune(const char *folder);

/* Whether the first process, or the command that it has become, lives. */
bool ll_submit_first_lives(const struct ll_submit_record *record);

/* "waiting", "running", "ended", "not run", "lost" */
const char *ll_submit_state_word(enum ll_submit_state state);

/*
 * The commands about submitted jobs, and what they share.
 */

extern const struct ll_command ll_submit_list, ll_submit_wait, ll_submit_stop, ll_submit_log;

/* Finds the folder of the records, and reads the record of the job that the word names. -EINVAL: the word is no number.
 * Other errors: ll_submit_read. */
int ll_submit_find(const char *word, char ret_folder[PATH_MAX], struct ll_submit_record *ret_record,
		   struct ll_err *err);

/*
 * Starts a submitted job, and the process that stays with it.
 *
 * The starter is `loadline submit`. It forks the supervisor, which leaves the session of the starter. The supervisor
 * forks the job's first process, which does what `loadline run` does: it waits for its place, and becomes the command.
 * So all of them are the user's own processes. The supervisor writes the job's record, waits for the
 * command's end, and tells loadlined the exit status. If loadlined has stopped the job and put it back into the queue,
 * the supervisor forks its first process again, with LOADLINE_RESTART_COUNT in the environment; record and log go on.
 *
 * Standard input of the job is /dev/null. Its output goes to the log from the moment at which the job has a number; the
 * messages before that go to the starter's standard error. The working directory, the umask, the environment and the
 * resource limits are the starter's.
 */

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

/*
 * What `loadline submit` tells loadlined, and asks systemd's login manager.
 */

/* Tells the system's loadlined how the first process of a job ended, as waitpid() gave it. job: token[0]. Tries for 10
 * seconds while loadlined is started anew; then loadlined does not know the status. Returns whether the job is in the
 * queue again, and its command is to be started again. */
bool ll_submit_tell_status(uint64_t job, uint32_t status);

/* Whether a control group is that of a login session, whose processes may be ended at logout. */
bool ll_submit_is_in_session(const char *cgroup);

/* Whether the login manager ends the processes of this session at logout (KillUserProcesses of logind.conf). */
bool ll_submit_dies_at_logout(void);

#endif
