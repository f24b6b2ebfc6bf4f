/*
 * client.h - sends requests of commands to loadlined, and waits for each reply until a deadline.
 *
 * A daemon is started only if the caller wants that (ll_client_self.programs). Deadlines are CLOCK_MONOTONIC
 * (ll_now_ns). If the daemon does not reply before the deadline, the functions return -ETIMEDOUT; a time for which the
 * whole machine stood still counts for at most 100 ms of it, and while the daemon waits for a processor a wait is up to
 * five times as long, but at most 4 s longer. If the daemon ends, they return -EPIPE or -ECONNRESET; the
 * next daemon serves within some milliseconds (ll_client_is_lost).
 */
#ifndef LOADLINE_PROTOCOL_CLIENT_H
#define LOADLINE_PROTOCOL_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/message.h"
#include "protocol/place.h"

struct ll_err;
struct ll_programs;

/* The time for which a command waits for a reply. */
#define LL_CLIENT_REPLY_NS UINT64_C(5000000000)

/* The time in which another loadlined follows one that has ended, and knows the cards and the jobs that run: systemd
 * starts it, its sensor comes to it, and so do the monitors. A second on a machine that is free. */
#define LL_CLIENT_RETURN_NS UINT64_C(10000000000)

/* The program that connects. */
struct ll_client_self {
	const char *version; /* version of this program */
	enum ll_message_role role;
	int process_fd; /* descriptor of this process (base/process.h), if it is a monitor; -1: none is passed */
	/* the programs to start if nobody serves (start.h); NULL: none is started */
	const struct ll_programs *programs;
};

/* A command of that version. */
#define LL_CLIENT_COMMAND(version_text) (&(struct ll_client_self){(version_text), LL_ROLE_COMMAND, -1, NULL})

/* A connection. */
struct ll_client {
	int fd; /* -1: none */
	uint32_t serial;
	pid_t pid;     /* of the daemon, as this process sees it; 0: not visible */
	uid_t its_uid; /* user ID of the process that bound the name, after -EPERM */
	struct ll_message_welcome welcome;
};

/* Connects and sends HELLO, and tries again until the deadline if loadlined is flooded with connections.
 * -ECONNREFUSED: nobody serves. -EPERM: another user has bound the name. The caller calls ll_client_close after success
 * and after failure. err may be NULL. */
int ll_client_open(struct ll_client *client, const struct ll_place *place, const struct ll_client_self *self,
		   uint64_t deadline_ns, struct ll_err *err);
void ll_client_close(struct ll_client *client);

/* Whether the error says that the daemon has ended. The caller may then try again and reach the next daemon. */
bool ll_client_is_lost(int rc);

/* Sends the message and waits for its reply. The caller keeps its descriptors. If the daemon refuses, the function
 * returns the code of the refusal, and err has the reason. ret_reply may be NULL. */
int ll_client_request(struct ll_client *client, union ll_message *message, const int *fds, size_t fd_count,
		      union ll_message *ret_reply, uint64_t deadline_ns, struct ll_err *err);

/* The same in two steps, for a request that has several replies. ll_client_receive returns the next reply to the last
 * request. */
int ll_client_send(struct ll_client *client, union ll_message *message, uint64_t deadline_ns, struct ll_err *err);
int ll_client_receive(const struct ll_client *client, union ll_message *ret_message, uint64_t deadline_ns,
		      struct ll_err *err);

/* ---- rows ---- */

/* The rows of one kind in a reply. */
struct ll_reply_rows {
	enum ll_message_kind kind;
	void *rows;    /* the address of the pointer to them, which the caller frees; NULL: they are not kept */
	size_t *count; /* NULL: there is one, and `rows` is where it goes */
};

/* Sends the request and reads all rows of its reply; the kind of rows[0] ends it. loadlined refuses some requests with
 * -EBUSY; they are sent again until the deadline. */
int ll_client_ask(struct ll_client *client, union ll_message *request, const struct ll_reply_rows *rows, size_t count,
		  uint64_t deadline_ns, struct ll_err *err);

/* ---- the books of loadlined ---- */

struct ll_list {
	struct ll_message_tenant_row *tenants;
	struct ll_message_job_row *jobs;
	struct ll_message_card_row *cards;
	struct ll_message_claim_row *claims;
	size_t tenant_count, job_count, card_count, claim_count;
	struct ll_message_list_end end;
};

/* Reads all rows. The caller calls ll_list_fini after success and after failure. */
int ll_client_list(struct ll_client *client, struct ll_list *ret_list, uint64_t deadline_ns, struct ll_err *err);
void ll_list_fini(struct ll_list *list);

/* Return NULL if there is no such row. */
const struct ll_message_job_row *ll_list_job(const struct ll_list *list, uint64_t number);
const struct ll_message_card_row *ll_list_card(const struct ll_list *list, uint64_t job_number, const char *uuid);

/* Appends a row of that size to an array that grows by doubling. array: the address of the pointer to the rows, which
 * may be of any type. -ENOMEM: the array is unchanged. */
int ll_client_add_row(void *array, size_t *count, const void *row, size_t size);

/* ---- what the user may have, and has, by the configuration in force ---- */

struct ll_policy {
	struct ll_message_policy_tenant *tenants; /* those of the user; for admins and operators all */
	struct ll_message_policy_part *parts;
	struct ll_message_policy_loan *loans;
	struct ll_message_policy_budget *budgets;
	size_t tenant_count, part_count, loan_count, budget_count;
};

/* Reads it; it is empty if no configuration is in force. The caller calls ll_policy_fini after success and after
 * failure. */
int ll_client_policy(struct ll_client *client, struct ll_policy *ret_policy, uint64_t deadline_ns, struct ll_err *err);

/* Returns the budget of a tenant; NULL: it has none. */
const struct ll_message_policy_budget *ll_policy_budget(const struct ll_policy *policy, const char *tenant);

void ll_policy_fini(struct ll_policy *policy);

/* ---- the sums for metrics ---- */

struct ll_metrics_sums {
	struct ll_message_policy_tenant *policies; /* of configured tenants */
	struct ll_message_policy_part *parts;
	struct ll_message_metrics_tenant *tenants;
	size_t policy_count, part_count, tenant_count;
	struct ll_message_metrics_end end;
};

/* Reads all rows. Call ll_metrics_sums_fini after success and after failure. -EACCES: neither serve.metrics nor
 * serve.page is configured, and this user is no operator. -ENOTSUP: an older loadlined. */
int ll_metrics_sums_read(struct ll_metrics_sums *sums, struct ll_client *client, uint64_t deadline_ns,
			 struct ll_err *err);
void ll_metrics_sums_fini(struct ll_metrics_sums *sums);

/* ---- what the sensor reports of the cards and the processes on them ---- */

/* A sensor reports each 5 s. What is older than this does not tell about now. */
#define LL_SENSED_FRESH_NS UINT64_C(15000000000)

struct ll_sensed {
	struct ll_message_sense_card *cards;
	struct ll_message_sense_process *processes;
	size_t card_count, process_count;
	struct ll_message_sense_drained *drained;
	size_t drained_count;
	struct ll_message_sense_end end; /* silent_ns: UINT64_MAX: there is no sensor */
};

/* Reads all rows. Call ll_sensed_fini after success and after failure. -ENOTSUP: an older loadlined. */
int ll_sensed_read(struct ll_sensed *sensed, struct ll_client *client, uint64_t deadline_ns, struct ll_err *err);
void ll_sensed_fini(struct ll_sensed *sensed);

/* Returns the row of a process on a card; NULL: there is none, or the report is not fresh. */
const struct ll_message_sense_process *ll_sensed_find(const struct ll_sensed *sensed, const char *uuid, uint32_t pid);

#endif
