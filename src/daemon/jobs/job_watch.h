/*
 * job_watch.h - looks at running jobs as the configuration says, and tells what it finds (events.h):
 *
 *   idle-holder     A job holds so much memory and has had no work for so long. Told once in `again`.
 *   endless-kernel  A process of a job has work on a card, nothing keeps it from running, and for so long none of it
 *                   has been completed. Told once; with the action stop, the job is stopped as one whose time is over.
 *   low-use         The jobs of a tenant, or of a user, have used too little of the card time that they held
 *                   (low_use.h).
 *
 * It looks 4 times in the shortest of the configured times, but at least each 30 s and at most each 0.5 s, while there
 * are jobs.
 */
#ifndef LOADLINE_DAEMON_JOBS_JOB_WATCH_H
#define LOADLINE_DAEMON_JOBS_JOB_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct ll_server;
struct ll_job_watch;

/* Of a job on a card, for low_use.c. Zeroed when the job joins the card. */
struct ll_watched_card {
	uint64_t gpu_time_ns, grown_ns; /* grown_ns: when it was last more; 0: it was not read yet */
};

/* Of a claim. Zeroed at its begin. */
struct ll_watched_claim {
	uint64_t completed; /* launches and nanoseconds: a number that grows with each completed kernel */
	uint64_t since_ns;  /* since when it has had work, and completed none; 0: not looked at yet */
	bool is_told;
};

/* A user's loadlined has none: *ret_watch is NULL. -ENOMEM. */
int ll_job_watch_new(struct ll_server *server, struct ll_job_watch **ret_watch);
void ll_job_watch_free(struct ll_job_watch *watch); /* before the loop's last turn; NULL is fine */

/* Jobs or the configuration have changed: starts to look. NULL is fine. */
void ll_job_watch_wake(struct ll_job_watch *watch);

#endif
