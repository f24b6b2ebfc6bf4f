/*
 * client.h - asks loadlined, as commands do, and waits for the answer until a deadline.
 *
 * A daemon is started only where the caller says so (ll_client_self). Deadlines are CLOCK_MONOTONIC (ll_now_ns). A
 * daemon that does not answer until then is -ETIMEDOUT; one that ends is -EPIPE or -ECONNRESET, and the next one is
 * there within some ms (ll_client_is_lost).
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

/* How long a command waits for an answer. */
#define LL_CLIENT_REPLY_NS UINT64_C(5000000000)

/* Who asks. */
struct ll_client_self {
	const char *version; /* of this program */
	enum ll_message_role role;
	int process_fd;                     /* of this process (base/process.h), for a monitor; -1: none is passed */
	const struct ll_programs *programs; /* starts them if nobody serves (start.h); NULL: does not */
};

/* A command of that version. */
#define LL_CLIENT_COMMAND(version_text) (&(struct ll_client_self){(version_text), LL_ROLE_COMMAND, -1, NULL})

/* A connection. */
struct ll_client {
	int fd; /* -1: none */
	uint32_t serial;
	pid_t pid;     /* of who serves, as seen from here; 0: not seen */
	uid_t its_uid; /* of who has the name, after -EPERM */
	struct ll_message_welcome welcome;
};

/* Connects and says who this is. -ECONNREFUSED: nobody serves. -EPERM: another user has the name. The caller calls
 * close in each case; NULL for err is fine. */
int ll_client_open(struct ll_client *client, const struct ll_place *place, const struct ll_client_self *self,
		   uint64_t deadline_ns, struct ll_err *err);
void ll_client_close(struct ll_client *client);

/* Whether the daemon has ended, so that another try may find the next one. */
bool ll_client_is_lost(int rc);

/* Sends the message, and waits for its answer. Descriptors stay the caller's. A refusal is its code, with the reason in
 * err. ret_reply may be NULL. */
int ll_client_request(struct ll_client *client, union ll_message *message, const int *fds, size_t fd_count,
		      union ll_message *ret_reply, uint64_t deadline_ns, struct ll_err *err);

/* The same in two parts, for a request that has several answers. receive: the next one of the last request. */
int ll_client_send(struct ll_client *client, union ll_message *message, uint64_t deadline_ns, struct ll_err *err);
int ll_client_receive(const struct ll_client *client, union ll_message *ret_message, uint64_t deadline_ns,
		      struct ll_err *err);

/* ---- what loadlined knows ---- */

struct ll_list {
	struct ll_message_tenant_row *tenants;
	struct ll_message_job_row *jobs;
	struct ll_message_card_row *cards;
	struct ll_message_claim_row *claims;
	size_t tenant_count, job_count, card_count, claim_count;
	struct ll_message_list_end end;
};

/* Reads it all. The caller calls fini in each case. */
int ll_client_list(struct ll_client *client, struct ll_list *ret_list, uint64_t deadline_ns, struct ll_err *err);
void ll_list_fini(struct ll_list *list);

/* NULL: there is none. */
const struct ll_message_job_row *ll_list_job(const struct ll_list *list, uint64_t number);
const struct ll_message_card_row *ll_list_card(const struct ll_list *list, uint64_t job_number, const char *uuid);

/* Adds a row of that size to an array that grows by doubling. array: where the pointer to the rows is, of any type.
 * -ENOMEM: nothing is changed. */
int ll_client_add_row(void *array, size_t *count, const void *row, size_t size);

#endif
