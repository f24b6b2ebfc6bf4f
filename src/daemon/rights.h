/*
 * rights.h - what the other side of a connection may see and request, by its uid.
 *
 * A user's daemon serves its user. A process of another uid may only request a slot of a job whose token it knows
 * (connection.is_foreign). The system's daemon serves every uid. Each user may register jobs, and sees the rows of all
 * jobs. A user may change only the own jobs; root may change all.
 */
#ifndef LOADLINE_DAEMON_RIGHTS_H
#define LOADLINE_DAEMON_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/message.h"

struct ll_server;
struct ll_connection;
struct ll_job;

/* Whether the user may have another job or connection. A user other than root may use at most half of the descriptors
 * of the system's daemon. */
bool ll_rights_have_room(const struct ll_server *server, uint32_t uid);

/* Whether the other side may change the job. */
bool ll_rights_over(const struct ll_connection *connection, const struct ll_job *job);

/* Removes from a row what another user must not know. The token of a job is secret, because a process that knows it
 * belongs to the job. The row gets the job's number in its place. */
void ll_rights_trim(const struct ll_connection *connection, union ll_message *row);

#endif
