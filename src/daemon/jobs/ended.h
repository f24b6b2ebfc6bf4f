/*
 * ended.h - the jobs of the queue that have ended, and how: for `--after-ok`. Plain data, without clock.
 *
 * The last 1000 are kept. If there is no room, the oldest job of the user with the most jobs goes, so that a user with
 * many short jobs does not push out the jobs of others.
 */
#ifndef LOADLINE_DAEMON_JOBS_ENDED_H
#define LOADLINE_DAEMON_JOBS_ENDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LL_ENDED_MAX = 1000 };

struct ll_ended_job {
	uint64_t number, job_number; /* in the queue, and in the books; 0: none */
	uint64_t token;              /* token[0] */
	uint64_t ended_s;            /* since 1970 */
	uint64_t ended_ns;           /* ll_now_ns; 0: a former loadlined saw it */
	uint32_t uid, status;        /* status: as waitpid() gives it */
	bool has_status, has_run;
	bool is_killed;    /* it got SIGKILL at the end of its time: what is left of it gets no card any more */
	bool tells_status; /* somebody will tell the status, if that is not killed before */
};

struct ll_ended {
	size_t count;
	struct ll_ended_job jobs[LL_ENDED_MAX]; /* in the order of their ends */
};

void ll_ended_add(struct ll_ended *ended, const struct ll_ended_job *job);

/* number: in the queue or in the books. NULL: unknown. */
const struct ll_ended_job *ll_ended_find(const struct ll_ended *ended, uint64_t number);

/* Whether a job with this token is there that got SIGKILL at the end of its time. */
bool ll_ended_was_killed(const struct ll_ended *ended, uint64_t token);

/* Returns the job; NULL: the user has no such job there. */
const struct ll_ended_job *ll_ended_set_status(struct ll_ended *ended, uint64_t token, uint32_t uid, uint32_t status);

enum ll_ended_verdict {
	LL_ENDED_OK,      /* status 0 */
	LL_ENDED_FAILED,  /* another status, or it did not run */
	LL_ENDED_UNKNOWN, /* nobody tells the status */
	LL_ENDED_PENDING, /* the status may come yet: within 3 s of the end */
};

/* Whether a job that waits for the good end of this one may start. job NULL: LL_ENDED_UNKNOWN. */
enum ll_ended_verdict ll_ended_judge(const struct ll_ended_job *job, uint64_t now_ns);

/* Writes why it may not: "job 12 ended with status 3". */
void ll_ended_explain(const struct ll_ended_job *job, uint64_t number, char *ret_text, size_t size);

#endif
