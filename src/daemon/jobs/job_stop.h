/*
 * job_stop.h - ends a job: not its first process alone, but all that holds its place.
 *
 * All its processes get the signal of `reclaim: stop`, and after the grace SIGKILL, which is repeated until the job is
 * gone. The keeper sends them to the job's control group. Without a group the job's monitor sends them to the processes
 * that it finds (monitor/tree.h). Nobody can reach what is left then: loadlined forgets the job and gives its place
 * back, and what it still runs is outside of jobs (ungoverned.h).
 */
#ifndef LOADLINE_DAEMON_JOBS_JOB_STOP_H
#define LOADLINE_DAEMON_JOBS_JOB_STOP_H

#include <stdint.h>

struct ll_server;
struct ll_job;

/* Zeroed: the job is not stopped. Times are ll_now_ns; 0: not yet. */
struct ll_job_stop {
	const char *why;    /* a phrase for the user, a literal; NULL: the job's time is over */
	uint64_t since_ns;  /* when it got its signal, and its grace began */
	uint64_t killed_ns; /* when it got SIGKILL first */
	uint64_t again_ns;  /* when it gets SIGKILL next */
	uint64_t asked_ns;  /* when the keeper was asked last */
};

/* What is due now: called at each look, about once a second. The job, and with it
 * `stop`, may be gone then. */
void ll_job_stop_step(struct ll_server *server, struct ll_job *job, struct ll_job_stop *stop);

/* The time between the two signals, by the configuration. */
uint64_t ll_job_stop_grace_ns(const struct ll_server *server);

/* Sends a signal to the job's first process, by its monitor. why: for the log. */
void ll_job_stop_warn(struct ll_server *server, const struct ll_job *job, int number, const char *why);

#endif
