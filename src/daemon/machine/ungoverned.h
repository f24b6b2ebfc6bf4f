/*
 * ungoverned.h - processes on a card that belong to no job, and `ungoverned` of the configuration. Also processes of a
 * job that have no claim, which its limits do not reach (mismatch.h).
 *
 * The sensor reports them (machine.h). A program whose path is on the list of the configuration (ungoverned.allow) is
 * left alone, if the file is root's and nobody else may write to it. Each other one is logged when it is first seen.
 * With the action stop or kill it gets SIGTERM or SIGKILL from the keeper when it has been seen for `after`, and again
 * each 30 s while it is there; with stop SIGKILL after the grace of `reclaim: stop`. Processes of root and of
 * loadlined's user are reported alone. In the first 10 s of loadlined nothing is ended, because the jobs of a former
 * daemon are registered anew then. The server of MPS is left alone; its clients are not.
 */
#ifndef LOADLINE_DAEMON_MACHINE_UNGOVERNED_H
#define LOADLINE_DAEMON_MACHINE_UNGOVERNED_H

#include <stddef.h>

#include "protocol/message.h"

struct ll_server;

/* Sets the flags of the rows of a round, logs those that are new, and requests the signals that are due. job_number is
 * set. */
void ll_ungoverned_look(struct ll_server *server, struct ll_message_sense_process *rows, size_t count);

void ll_ungoverned_fini(struct ll_server *server);

#endif
