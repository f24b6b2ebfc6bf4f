#include "protocol/client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/process_id.h"
#include "protocol/start.h"

/* ---- packets ---- */

/*
 * loadlined is not silent where the whole machine stands still, as a virtual machine that is saved: a wait is made of
 * pieces, of which a pause takes one, and it has one after its deadline. Nor while loadlined waits for a processor: a
 * wait is then up to five times as long.
 */
#define PIECE_NS (100 * LL_NS_PER_MS)
#define MORE_NS (4 * LL_NS_PER_S)

static bool poll_for(const struct ll_client *client, short events, uint64_t timeout_ns)
{
	struct pollfd ready = {.fd = client->fd, .events = events};
	return poll(&ready, 1, (int)((timeout_ns + LL_NS_PER_MS - 1) / LL_NS_PER_MS)) != 0;
}

static bool is_runnable(const struct ll_client *client)
{
	struct ll_process_stat stat;
	return client->pid > 0 && ll_process_stat_of(client->pid, &stat) == 0 && stat.is_runnable;
}

static uint64_t first_piece_of(uint64_t wait_ns)
{
	return wait_ns < PIECE_NS ? wait_ns : PIECE_NS;
}

static int wait_for(const struct ll_client *client, short events, uint64_t deadline_ns)
{
	uint64_t now_ns = ll_now_ns(), wait_ns = now_ns < deadline_ns ? deadline_ns - now_ns : PIECE_NS;
	uint64_t more_ns = 4 * wait_ns < MORE_NS ? 4 * wait_ns : MORE_NS;
	for (uint64_t left_ns = wait_ns; left_ns; left_ns -= first_piece_of(left_ns)) {
		if (poll_for(client, events, first_piece_of(left_ns)))
			return 0;
	}
	for (;;) {
		/* In this order: if it has run before the look, its answer is here. */
		uint64_t piece_ns = is_runnable(client) ? first_piece_of(more_ns) : 0;
		if (poll_for(client, events, piece_ns))
			return 0;
		if (!piece_ns)
			return -ETIMEDOUT;
		more_ns -= piece_ns;
	}
}

static int send_message(const struct ll_client *client, const union ll_message *message, const int *fds,
			size_t fd_count, uint64_t deadline_ns)
{
	int rc;
	while ((rc = ll_message_send(client->fd, message, fds, fd_count)) == -EAGAIN) {
		rc = wait_for(client, POLLOUT, deadline_ns);
		if (rc)
			return rc;
	}
	return rc;
}

/* A newer version may send a kind that is unknown here; it is ignored. Descriptors are closed, because no reply has
 * descriptors that a caller needs. */
static int receive_message(const struct ll_client *client, union ll_message *ret_message, uint64_t deadline_ns)
{
	int fds[LL_MESSAGE_FDS];
	size_t count = 0;
	int rc;
	while ((rc = ll_message_receive(client->fd, ret_message, fds, &count)) == -EAGAIN || rc == -ENOTSUP) {
		rc = rc == -EAGAIN ? wait_for(client, POLLIN, deadline_ns) : 0;
		if (rc)
			return rc;
	}
	ll_message_close_fds(fds, count);
	return rc;
}

static int fail_reply(int rc, const union ll_message *message, struct ll_err *err)
{
	if (rc == -ETIMEDOUT) {
		ll_err_set(err, rc, "loadlined does not answer");
		return ll_err_hint(err, "it is stopped, or frozen with its control group: `loadline doctor` tells");
	}
	if (message && message->header.kind == LL_MESSAGE_REFUSED)
		return ll_err_set(err, rc, "%s", message->refused.reason);
	return ll_err_set(err, rc, "loadlined: %s", strerror(-rc));
}

/* A refusal without a serial is about the connection. */
static bool is_reply(const struct ll_client *client, const union ll_message *message)
{
	const struct ll_message_header *header = &message->header;
	return header->serial == client->serial || header->kind == LL_MESSAGE_WELCOME ||
	       (header->kind == LL_MESSAGE_REFUSED && !header->serial);
}

/* The next message of that serial. */
static int receive_reply(const struct ll_client *client, union ll_message *ret_message, uint64_t deadline_ns,
			 struct ll_err *err)
{
	int rc;
	do
		rc = receive_message(client, ret_message, deadline_ns);
	while (!rc && !is_reply(client, ret_message));
	if (rc)
		return fail_reply(rc, NULL, err);
	if (ret_message->header.kind != LL_MESSAGE_REFUSED)
		return 0;
	return fail_reply(ret_message->refused.code < 0 ? ret_message->refused.code : -EPROTO, ret_message, err);
}

static int send_request(struct ll_client *client, union ll_message *message, const int *fds, size_t fd_count,
			uint64_t deadline_ns, struct ll_err *err)
{
	message->header.serial = ++client->serial;
	int rc = send_message(client, message, fds, fd_count, deadline_ns);
	return rc ? fail_reply(rc, NULL, err) : 0;
}

int ll_client_request(struct ll_client *client, union ll_message *message, const int *fds, size_t fd_count,
		      union ll_message *ret_reply, uint64_t deadline_ns, struct ll_err *err)
{
	union ll_message answer;
	int rc = send_request(client, message, fds, fd_count, deadline_ns, err);
	if (!rc)
		rc = receive_reply(client, &answer, deadline_ns, err);
	if (!rc && ret_reply)
		*ret_reply = answer;
	return rc;
}

int ll_client_send(struct ll_client *client, union ll_message *message, uint64_t deadline_ns, struct ll_err *err)
{
	return send_request(client, message, NULL, 0, deadline_ns, err);
}

int ll_client_receive(const struct ll_client *client, union ll_message *ret_message, uint64_t deadline_ns,
		      struct ll_err *err)
{
	return receive_reply(client, ret_message, deadline_ns, err);
}

/* ---- the connection ---- */

/* Between two attempts, if loadlined has closed the connection before its WELCOME. */
#define FIRST_PAUSE_NS LL_NS_PER_MS
#define LONG_PAUSE_NS (50 * LL_NS_PER_MS)

static void read_pid(struct ll_client *client)
{
	struct ucred peer = {0};
	socklen_t length = sizeof peer;
	if (getsockopt(client->fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0)
		client->pid = peer.pid;
}

static int say_hello(struct ll_client *client, const struct ll_client_self *self, uint64_t deadline_ns,
		     struct ll_err *err)
{
	union ll_message message, answer;
	ll_message_init_hello(&message, self->role, self->version);
	int rc =
	    ll_client_request(client, &message, &self->process_fd, self->process_fd >= 0, &answer, deadline_ns, err);
	if (!rc && answer.header.kind != LL_MESSAGE_WELCOME)
		return ll_err_set(err, -EPROTO, "loadlined: %s", strerror(EPROTO));
	if (!rc)
		client->welcome = answer.welcome;
	return rc;
}

static int open_once(struct ll_client *client, const struct ll_place *place, const struct ll_client_self *self,
		     uint64_t deadline_ns, struct ll_err *err)
{
	*client = (struct ll_client){.fd = -1};
	int rc = self->programs ? ll_daemon_reach(place, self->programs, deadline_ns, &client->fd, &client->its_uid)
				: ll_place_connect_by(place, deadline_ns, &client->fd, &client->its_uid);
	if (rc == -EAGAIN) /* no place among the connections that wait became free in time */
		rc = -ETIMEDOUT;
	if (rc == -ECONNREFUSED)
		return ll_err_set(err, rc, "no loadlined runs (%s%s)", ll_place_mark(place), place->name);
	if (rc == -EPERM)
		return ll_err_set(err, rc, "user %lu has the name of loadlined, %s%s", (unsigned long)client->its_uid,
				  ll_place_mark(place), place->name);
	if (rc)
		return fail_reply(rc, NULL, err);
	read_pid(client);
	return say_hello(client, self, deadline_ns, err);
}

/* loadlined closes a new connection if its user has too many that say nothing (daemon/core/door.c), or if it ends. If
 * nobody serves a moment later, the connection was lost. */
int ll_client_open(struct ll_client *client, const struct ll_place *place, const struct ll_client_self *self,
		   uint64_t deadline_ns, struct ll_err *err)
{
	struct ll_err why = {0};
	uint64_t pause_ns = FIRST_PAUSE_NS;
	int rc = open_once(client, place, self, deadline_ns, &why), lost = 0;
	while (ll_client_is_lost(rc) && ll_now_ns() + pause_ns < deadline_ns) {
		lost = rc;
		ll_client_close(client);
		ll_sleep_until_ns(ll_now_ns() + pause_ns);
		pause_ns = 2 * pause_ns < LONG_PAUSE_NS ? 2 * pause_ns : LONG_PAUSE_NS;
		why = (struct ll_err){0};
		rc = open_once(client, place, self, deadline_ns, &why);
	}
	if (lost && rc == -ECONNREFUSED)
		return fail_reply(lost, NULL, err);
	if (rc && err)
		*err = why;
	return rc;
}

void ll_client_close(struct ll_client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
}

bool ll_client_is_lost(int rc)
{
	return rc == -EPIPE || rc == -ECONNRESET;
}

/* ---- rows ---- */

/* loadlined reads a few reports at a time. */
#define BUSY_PAUSE_NS (200 * LL_NS_PER_MS)

int ll_client_add_row(void *array, size_t *count, const void *row, size_t size)
{
	void *rows;
	memcpy(&rows, array, sizeof rows);
	if ((*count & (*count - 1)) == 0) {
		void *more = reallocarray(rows, *count ? 2 * *count : 1, size);
		if (!more)
			return -ENOMEM;
		rows = more;
		memcpy(array, &rows, sizeof rows);
	}
	memcpy((char *)rows + *count * size, row, size);
	++*count;
	return 0;
}

static int take_row(const struct ll_reply_rows *rows, const union ll_message *message)
{
	union ll_message sized;
	ll_message_init(&sized, rows->kind);
	if (rows->count)
		return ll_client_add_row(rows->rows, rows->count, message, sized.header.size);
	if (rows->rows)
		memcpy(rows->rows, message, sized.header.size);
	return 0;
}

static int ask_once(struct ll_client *client, union ll_message *request, const struct ll_reply_rows *rows, size_t count,
		    uint64_t deadline_ns, struct ll_err *err)
{
	union ll_message message;
	int rc = send_request(client, request, NULL, 0, deadline_ns, err);
	for (message.header.kind = 0; !rc && message.header.kind != rows[0].kind;) {
		rc = receive_reply(client, &message, deadline_ns, err);
		for (size_t i = 0; !rc && i < count; i++) {
			if (rows[i].kind == message.header.kind && take_row(&rows[i], &message))
				rc = ll_err_set(err, -ENOMEM, "loadlined: %s", strerror(ENOMEM));
		}
	}
	return rc;
}

int ll_client_ask(struct ll_client *client, union ll_message *request, const struct ll_reply_rows *rows, size_t count,
		  uint64_t deadline_ns, struct ll_err *err)
{
	int rc;
	while ((rc = ask_once(client, request, rows, count, deadline_ns, err)) == -EBUSY && ll_now_ns() < deadline_ns)
		ll_sleep_until_ns(ll_now_ns() + BUSY_PAUSE_NS);
	return rc;
}

static int ask_plainly(struct ll_client *client, enum ll_message_kind kind, const struct ll_reply_rows *rows,
		       size_t count, uint64_t deadline_ns, struct ll_err *err)
{
	union ll_message request;
	ll_message_init(&request, kind);
	return ll_client_ask(client, &request, rows, count, deadline_ns, err);
}

/* ---- the books ---- */

int ll_client_list(struct ll_client *client, struct ll_list *ret_list, uint64_t deadline_ns, struct ll_err *err)
{
	const struct ll_reply_rows rows[] = {{LL_MESSAGE_LIST_END, &ret_list->end, NULL},
					     {LL_MESSAGE_TENANT_ROW, &ret_list->tenants, &ret_list->tenant_count},
					     {LL_MESSAGE_JOB_ROW, &ret_list->jobs, &ret_list->job_count},
					     {LL_MESSAGE_CARD_ROW, &ret_list->cards, &ret_list->card_count},
					     {LL_MESSAGE_CLAIM_ROW, &ret_list->claims, &ret_list->claim_count}};
	*ret_list = (struct ll_list){0};
	return ask_plainly(client, LL_MESSAGE_LIST, rows, sizeof rows / sizeof *rows, deadline_ns, err);
}

void ll_list_fini(struct ll_list *list)
{
	free(list->tenants);
	free(list->jobs);
	free(list->cards);
	free(list->claims);
	*list = (struct ll_list){0};
}

const struct ll_message_job_row *ll_list_job(const struct ll_list *list, uint64_t number)
{
	for (size_t i = 0; i < list->job_count; i++) {
		if (list->jobs[i].number == number)
			return &list->jobs[i];
	}
	return NULL;
}

const struct ll_message_card_row *ll_list_card(const struct ll_list *list, uint64_t job_number, const char *uuid)
{
	for (size_t i = 0; i < list->card_count; i++) {
		if (list->cards[i].job_number == job_number && strcmp(list->cards[i].uuid, uuid) == 0)
			return &list->cards[i];
	}
	return NULL;
}

/* ---- the configuration ---- */

int ll_client_policy(struct ll_client *client, struct ll_policy *ret_policy, uint64_t deadline_ns, struct ll_err *err)
{
	const struct ll_reply_rows rows[] = {
	    {LL_MESSAGE_POLICY_END, NULL, NULL},
	    {LL_MESSAGE_POLICY_TENANT, &ret_policy->tenants, &ret_policy->tenant_count},
	    {LL_MESSAGE_POLICY_PART, &ret_policy->parts, &ret_policy->part_count},
	    {LL_MESSAGE_POLICY_LOAN, &ret_policy->loans, &ret_policy->loan_count},
	    {LL_MESSAGE_POLICY_BUDGET, &ret_policy->budgets, &ret_policy->budget_count}};
	*ret_policy = (struct ll_policy){0};
	if (!client->welcome.policy_since_s)
		return 0;
	return ask_plainly(client, LL_MESSAGE_POLICY, rows, sizeof rows / sizeof *rows, deadline_ns, err);
}

const struct ll_message_policy_budget *ll_policy_budget(const struct ll_policy *policy, const char *tenant)
{
	for (size_t i = 0; i < policy->budget_count; i++) {
		if (strcmp(policy->budgets[i].tenant, tenant) == 0)
			return &policy->budgets[i];
	}
	return NULL;
}

void ll_policy_fini(struct ll_policy *policy)
{
	free(policy->tenants);
	free(policy->parts);
	free(policy->loans);
	free(policy->budgets);
	*policy = (struct ll_policy){0};
}

/* ---- sums ---- */

int ll_metrics_sums_read(struct ll_metrics_sums *sums, struct ll_client *client, uint64_t deadline_ns,
			 struct ll_err *err)
{
	const struct ll_reply_rows rows[] = {{LL_MESSAGE_METRICS_END, &sums->end, NULL},
					     {LL_MESSAGE_POLICY_TENANT, &sums->policies, &sums->policy_count},
					     {LL_MESSAGE_POLICY_PART, &sums->parts, &sums->part_count},
					     {LL_MESSAGE_METRICS_TENANT, &sums->tenants, &sums->tenant_count}};
	*sums = (struct ll_metrics_sums){0};
	return ask_plainly(client, LL_MESSAGE_METRICS, rows, sizeof rows / sizeof *rows, deadline_ns, err);
}

void ll_metrics_sums_fini(struct ll_metrics_sums *sums)
{
	free(sums->policies);
	free(sums->parts);
	free(sums->tenants);
	*sums = (struct ll_metrics_sums){0};
}

/* ---- the sensor ---- */

int ll_sensed_read(struct ll_sensed *sensed, struct ll_client *client, uint64_t deadline_ns, struct ll_err *err)
{
	const struct ll_reply_rows rows[] = {{LL_MESSAGE_SENSE_END, &sensed->end, NULL},
					     {LL_MESSAGE_SENSE_CARD, &sensed->cards, &sensed->card_count},
					     {LL_MESSAGE_SENSE_PROCESS, &sensed->processes, &sensed->process_count},
					     {LL_MESSAGE_SENSE_DRAINED, &sensed->drained, &sensed->drained_count}};
	*sensed = (struct ll_sensed){.end.silent_ns = UINT64_MAX};
	return ask_plainly(client, LL_MESSAGE_SENSED, rows, sizeof rows / sizeof *rows, deadline_ns, err);
}

void ll_sensed_fini(struct ll_sensed *sensed)
{
	free(sensed->cards);
	free(sensed->processes);
	free(sensed->drained);
	*sensed = (struct ll_sensed){.end.silent_ns = UINT64_MAX};
}

const struct ll_message_sense_process *ll_sensed_find(const struct ll_sensed *sensed, const char *uuid, uint32_t pid)
{
	for (size_t i = 0; sensed->end.silent_ns < LL_SENSED_FRESH_NS && i < sensed->process_count; i++) {
		if (sensed->processes[i].pid == pid && strcmp(sensed->processes[i].uuid, uuid) == 0)
			return &sensed->processes[i];
	}
	return NULL;
}
