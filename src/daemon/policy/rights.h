/*
 * rights.h - what the other side of a connection may see and request, by its uid.
 *
 * A user's daemon serves its user. A process of another uid may only request a slot of a job whose token it knows
 * (connection.is_foreign). The system's daemon serves every uid. Each user may register jobs, and sees the rows of all
 * jobs. A user may change only the own jobs; root may change all. A configuration (policy.h) names admins, who may
 * what root may, and operators, and says what users see of others.
 */
#ifndef LOADLINE_DAEMON_POLICY_RIGHTS_H
#define LOADLINE_DAEMON_POLICY_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/message.h"

struct ll_server;
struct ll_connection;
struct ll_job;

/* Whether the user may have more descriptors of the system's daemon: those of a job, a connection, a reply that waits,
 * or shared memory. A user and its subordinate uids (subordinate.h) have together no more than a part of what is left
 * free (fair_room.h). Root may have more. */
bool ll_rights_have_room(struct ll_server *server, uint32_t uid);

/* The same for a connection that comes in now. What was counted in this turn of the loop counts. */
bool ll_rights_have_room_at_door(struct ll_server *server, uint32_t uid);

/* Whether there is room for the job with this first token. Jobs that are known, and those of a former daemon, had room
 * before. page_fds: those that the job brings; NULL: none. */
bool ll_rights_have_room_for_job(const struct ll_connection *connection, uint64_t id, const int *page_fds);

/* Whether the other side may change the job. */
bool ll_rights_over(const struct ll_connection *connection, const struct ll_job *job);

/* Whether it may evict, suspend and resume the job: operators may too. */
bool ll_rights_to_move(const struct ll_connection *connection, const struct ll_job *job);

/* Logs that the other side does something to another user's job, by which right, and why. verb: "evicts". reason: what
 * the command said (--reason); empty: nothing. */
void ll_rights_note(const struct ll_connection *connection, const struct ll_job *job, const char *verb,
		    const char *reason);

/* Whether the other side sees anything of other users' jobs. */
bool ll_rights_see_others(const struct ll_connection *connection);

/* Whether it may know that there is a job of that user. To who may not, the job's number is that of no job. */
bool ll_rights_know(const struct ll_connection *connection, uint32_t uid);

/* Whether the other side may signal the process, and so name it as its own. True if /proc hides whose process it is. */
bool ll_rights_over_process(const struct ll_connection *connection, int process_fd);

/* Removes from a message what the other side must not know: the fields of another user's row that are private
 * (protocol/rows.def), as far as `visibility` of the configuration says, and others' part of WELCOME. The token of a
 * job is secret, because a process that knows it belongs to the job; the row gets the job's number in its place.
 * Returns false if the whole row is hidden: it is not sent, and LIST_END does not count it. */
bool ll_rights_trim(struct ll_connection *connection, union ll_message *row);

#endif
