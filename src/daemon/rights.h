/*
 * rights.h - what the other side of a connection may see and ask for, by its uid.
 *
 * A user's daemon serves its user; another uid may ask for a slot of a job whose token it knows, and for nothing else
 * (connection.is_foreign). The system's daemon serves every uid: each may register jobs, and sees the rows of all; it
 * may change its own jobs alone, and root those of all.
 */
#ifndef LOADLINE_DAEMON_RIGHTS_H
#define LOADLINE_DAEMON_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/message.h"

struct ll_server;
struct ll_connection;
struct ll_job;

/* Whether the user has jobs and connections enough left: none but root may have more than half of the descriptors of
 * the system's daemon. */
bool ll_rights_have_room(const struct ll_server *server, uint32_t uid);

/* Whether the job is the other side's to change. */
bool ll_rights_over(const struct ll_connection *connection, const struct ll_job *job);

/* Takes out of a row what is another user's secret: whoever knows the token of a job belongs to it. Its number stands
 * in its place. */
void ll_rights_trim(const struct ll_connection *connection, union ll_message *row);

#endif
