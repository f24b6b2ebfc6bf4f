/*
 * promises.h - limits of jobs as commands set them, and the memory of a card that jobs are promised (--mem-request).
 *
 * The requests of all jobs on a card may not be more than `run` said can be promised there, unless somebody asked for
 * more (--overcommit).
 */
#ifndef LOADLINE_DAEMON_PROMISES_H
#define LOADLINE_DAEMON_PROMISES_H

#include "daemon/books.h"

struct ll_server;

/* Lets the job use a card. -EDQUOT: its request cannot be promised there. -ENOSPC, -ENOMEM. ret_reason: for people. */
int ll_promises_bind(struct ll_server *server, struct ll_job *job, const struct ll_message_bind *bind,
		     char ret_reason[LL_REASON_SIZE]);

/* Changes limits. -EDQUOT: nothing is changed. */
int ll_promises_set(struct ll_server *server, struct ll_job *job, const struct ll_message_set *set,
		    char ret_reason[LL_REASON_SIZE]);

#endif
