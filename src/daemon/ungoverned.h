/*
 * ungoverned.h - processes on a card that belong to no job.
 *
 * The sensor reports them (machine.h). A program whose path is on the list of the configuration (ungoverned.allow) is
 * left alone, if the file is root's and nobody else may write to it. Each other one is logged when it is first seen.
 */
#ifndef LOADLINE_DAEMON_UNGOVERNED_H
#define LOADLINE_DAEMON_UNGOVERNED_H

#include <stddef.h>

#include "protocol/message.h"

struct ll_server;

/* Sets the flags of the rows of a round, and logs those that are new. job_number is set. */
void ll_ungoverned_look(struct ll_server *server, struct ll_message_sense_process *rows, size_t count);

void ll_ungoverned_fini(struct ll_server *server);

#endif
