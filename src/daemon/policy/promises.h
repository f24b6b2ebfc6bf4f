/*
 * promises.h - the limits of jobs that commands set, and the memory of a card that is promised to jobs (--mem-request).
 *
 * The sum of the requests of all jobs on a card may not exceed the promisable bytes that `run` reported, unless a
 * command allowed it (--overcommit).
 */
#ifndef LOADLINE_DAEMON_POLICY_PROMISES_H
#define LOADLINE_DAEMON_POLICY_PROMISES_H

#include "daemon/jobs/books.h"

struct ll_server;

/* Lets the job use a card. -EDQUOT: the card cannot promise its request. -ENOSPC, -ENOMEM. ret_reason: a text for the
 * user. */
int ll_promises_bind(struct ll_server *server, struct ll_job *job, const struct ll_message_bind *bind,
		     char ret_reason[LL_REASON_SIZE]);

/* Puts the limits that the message sets in place of those in limits. */
void ll_promises_merge(struct ll_limits *limits, const struct ll_message_set *set);

/* The job has other limits (facts.limits): tells its processes, and decides about its memory again. */
void ll_promises_apply(struct ll_server *server, struct ll_job *job);

/* Changes limits. -EDQUOT: no limit is changed. */
int ll_promises_set(struct ll_server *server, struct ll_job *job, const struct ll_message_set *set,
		    char ret_reason[LL_REASON_SIZE]);

/* After a job has come with pages that its own user's loadlined may have made: if its request would take what another
 * user was promised, the job has none from now on. */
void ll_promises_check_brought(struct ll_server *server, struct ll_job *job);

#endif
