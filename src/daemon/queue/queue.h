/*
 * queue.h - the queue for the cards of the machine: which job starts when, on which cards.
 *
 * There is a queue if a configuration with groups of cards is in force (policy.h) and the sensor reports the cards
 * (machine.h). Each job then needs a place before it registers: its `run` sends ADMIT and waits. rules/queue decides;
 * here are the requests, the clocks, and the configuration as the queue reads it.
 *
 * A place belongs to the token of the job. It is free again when the job ends, or if the job does not register in time.
 * A job that runs longer than its time gets signals, by its monitor: `reclaim: warn` and `stop` of the configuration.
 */
#ifndef LOADLINE_DAEMON_QUEUE_QUEUE_H
#define LOADLINE_DAEMON_QUEUE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/message.h"

struct ll_admission;
struct ll_err;
struct ll_server;
struct ll_connection;
struct ll_job;

/* -ENOMEM. */
int ll_admission_init(struct ll_server *server);
void ll_admission_stop(struct ll_server *server); /* before the loop's last turn */
void ll_admission_fini(struct ll_server *server); /* after it */

/* Stores the state in the folder from now on, and begins with the state that is there. A folder that cannot be opened
 * is logged. -ENOMEM. */
int ll_admission_keep(struct ll_admission *admission, const char *folder);

/* Writes the state for the last time, before the jobs are removed from the books. */
void ll_admission_save_last(struct ll_admission *admission);

/* What the state has besides the queue (machine.c) has changed: saves it soon. */
void ll_admission_keep_change(struct ll_admission *admission);

/* Something has changed: looks at all in the next turn of the loop. */
void ll_admission_wake(struct ll_admission *admission);

/* ---- requests of commands ---- */

/* Handles ADMIT, QUEUE and QUEUE_ACT. Returns false if the message is not allowed here. */
bool ll_admission_handle(struct ll_connection *connection, const union ll_message *message);

/* Handles JOB_STATUS, of the job's monitor or of its user's command. Returns false if the message is not allowed here.
 */
bool ll_admission_handle_status(struct ll_connection *connection, const struct ll_message_job_status *status);

/* The connection has ended: a job that waits on it waits no longer. */
void ll_admission_disconnect(struct ll_server *server, const struct ll_connection *connection);

/* ---- sums, for metrics (admission.c) ---- */

/* Brings the description of the machine up to date, as a request about the queue does. */
void ll_admission_refresh(const struct ll_server *server);

/* Counts the waiting jobs of the tenant; *ret_oldest_s: how long the first of them has waited. */
void ll_admission_count_waiting(const struct ll_server *server, const char *tenant, uint32_t *ret_count,
				uint64_t *ret_oldest_s);

/* *ret_indices: a bit for each index of a card in which no job may start now. Returns false, and no bits, without a
 * queue. */
bool ll_admission_out_of_use(const struct ll_server *server, uint64_t *ret_indices);

/* ---- jobs ---- */

/* Whether the job, if it has a place, may have these limits: what they take beyond its place must be free on its cards,
 * and of class high it must be within the guarantee. -EACCES. */
int ll_admission_check_limits(struct ll_admission *admission, const struct ll_job *job, const struct ll_limits *limits,
			      struct ll_err *err);

/* The job has other limits (facts.limits): its place grows with them. */
void ll_admission_set_limits(struct ll_admission *admission, const struct ll_job *job);

/*
 * A job registers. If it has a place, its limits become those of the place, and ret_tenant its tenant. Without a queue,
 * and if the job is known, comes from a former daemon or is taken over (job_upkeep.c), ll_department_admit decides.
 * -ESTALE: it has no place, and may ask for one (again). -EACCES: so too, but it runs already. Other errors:
 * ll_department_admit.
 */
int ll_admission_claim(const struct ll_server *server, struct ll_message_job *message, const int *page_fds,
		       char ret_tenant[LL_NAME_SIZE], struct ll_err *err);

/* The number that a job of this token has in the queue, which it gets in the books too; 0: it is not in the queue. */
uint64_t ll_admission_number(const struct ll_server *server, const struct ll_job_facts *facts);

/* Whether the job with this first token got SIGKILL at the end of its time, and the queue has given its place back
 * (job_upkeep.c). A job that only left the queue, as when a configuration without one comes into force, is another
 * matter. */
bool ll_admission_has_ended(const struct ll_server *server, uint64_t id);

/* The job is in the books, and has ended. */
void ll_admission_register(struct ll_server *server, struct ll_job *job);
void ll_admission_end(struct ll_server *server, const struct ll_job *job);

/* Fills in what the queue knows of a job that ends now: when it came, what it asked for, its cards, its tenant, and
 * what ended it. */
struct ll_past_job;
void ll_admission_describe_end(const struct ll_server *server, const struct ll_job *job, struct ll_past_job *past);

/* Drains a card, as `queue drain` does, for a reason that users see. 1: it is drained already. -ENOMEM. */
int ll_admission_drain_card(struct ll_server *server, unsigned index, const char *reason);

/* Fills in the drained card at this place of the list, from 0. Returns false if there are fewer. */
bool ll_admission_drained(const struct ll_server *server, size_t place, struct ll_message_sense_drained *ret_row);

/* Stops the job as one whose time is over. why: a phrase for the user, a literal. Returns false if it has neither a
 * place nor a control group. */
bool ll_admission_stop_job(struct ll_server *server, struct ll_job *job, const char *why);

/* Whether the job was recalled: its memory leaves its cards, or has left them, until the queue lets it go on (lend.c).
 */
bool ll_lending_is_recalled(const struct ll_server *server, const struct ll_job *job);

/* Sends what the connection's user may borrow, and borrows. Nothing, if nothing is lent. */
struct ll_connection;
void ll_lending_list(struct ll_connection *connection);

/* LL_QUEUE_IS_LENT: the job borrows; LL_QUEUE_IS_RECALLED: as above. */
uint32_t ll_lending_of(const struct ll_server *server, const struct ll_job *job);

/* The number of cards of the job's place; 0: it has none. */
unsigned ll_admission_card_count(const struct ll_server *server, const struct ll_job *job);

/* Whether the job may use the card: it is of its place, or, if the job has none, ll_department_check_card allows it.
 * -EACCES. */
int ll_admission_check_card(const struct ll_server *server, const struct ll_job *job, const char *uuid,
			    struct ll_err *err);

/* The same for the cards of a claim. */
int ll_admission_check_claim(const struct ll_server *server, const struct ll_job *job,
			     const struct ll_message_claim *claim, struct ll_err *err);

#endif
