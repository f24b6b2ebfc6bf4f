#include "hold/governed.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/scope.h"
#include "protocol/message.h"
#include "protocol/place.h"

#define WAIT_NS (100 * LL_NS_PER_MS)

struct query {
	const char *uuid;
	pid_t daemon_pid; /* as seen from here */
	char tenant[LL_NAME_SIZE];
	struct ll_governed *list;
	size_t count;
};

static int send_all(int fd)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_HELLO);
	message.hello.protocol = LL_PROTOCOL_VERSION;
	message.hello.role = LL_ROLE_COMMAND;
	message.hello.version = ll_version_number(LOADLINE_VERSION);
	ll_message_text_set(message.hello.version_text, sizeof message.hello.version_text, LOADLINE_VERSION);
	int rc = ll_message_send(fd, &message, NULL, 0);
	if (rc)
		return rc;
	ll_message_init(&message, LL_MESSAGE_LIST);
	return ll_message_send(fd, &message, NULL, 0);
}

static int add_claim(struct query *query, const struct ll_message_claim_row *row)
{
	if (!row->pid || strcmp(row->uuid, query->uuid) != 0)
		return 0;
	struct ll_governed *list = reallocarray(query->list, query->count + 1, sizeof *list);
	if (!list)
		return -ENOMEM;
	query->list = list;
	struct ll_governed *governed = &list[query->count++];
	*governed = (struct ll_governed){.pid = (pid_t)row->pid, .has_work = row->wanting_ns != 0};
	snprintf(governed->tenant, sizeof governed->tenant, "%s", query->tenant);
	return 0;
}

/* Returns 1 for the last message. */
static int take_message(struct query *query, const union ll_message *message)
{
	switch (message->header.kind) {
	case LL_MESSAGE_WELCOME:
		return (pid_t)message->welcome.pid == query->daemon_pid ? 0 : -ESRCH;
	case LL_MESSAGE_JOB_ROW:
		snprintf(query->tenant, sizeof query->tenant, "%s", message->job_row.job.tenant);
		return 0;
	case LL_MESSAGE_CLAIM_ROW: /* it follows the row of its job */
		return add_claim(query, &message->claim_row);
	case LL_MESSAGE_LIST_END:
		return 1;
	case LL_MESSAGE_REFUSED:
		return message->refused.code;
	default:
		return 0;
	}
}

static int wait_readable(int fd, uint64_t until_ns)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	uint64_t now_ns = ll_now_ns();
	if (now_ns >= until_ns)
		return -ETIMEDOUT;
	return poll(&ready, 1, (int)((until_ns - now_ns) / LL_NS_PER_MS) + 1) == 0 ? -ETIMEDOUT : 0;
}

static int read_rows(struct query *query, int fd)
{
	uint64_t until_ns = ll_now_ns() + WAIT_NS;
	int rc = 0;
	while (!rc) {
		union ll_message message;
		int fds[LL_MESSAGE_FDS];
		size_t count = 0;
		rc = ll_message_receive(fd, &message, fds, &count);
		ll_message_close_fds(fds, count);
		if (!rc)
			rc = take_message(query, &message);
		else if (rc == -EAGAIN)
			rc = wait_readable(fd, until_ns);
		else if (rc == -ENOTSUP) /* of a newer version */
			rc = 0;
	}
	return rc == 1 ? 0 : rc;
}

static pid_t peer_pid(int fd)
{
	struct ucred peer = {0};
	socklen_t length = sizeof peer;
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length);
	return peer.pid;
}

int ll_governed_list(const struct ll_place *place, const char *uuid, struct ll_governed **ret_list, size_t *ret_count)
{
	struct query query = {.uuid = uuid};
	LL_SCOPE_CLOSE int fd = -1;
	int rc = ll_place_connect(place, &fd, NULL);
	if (rc == 0) {
		query.daemon_pid = peer_pid(fd);
		rc = send_all(fd);
	}
	if (rc == 0)
		rc = read_rows(&query, fd);
	if (rc) {
		free(query.list);
		return rc;
	}
	*ret_list = query.list;
	*ret_count = query.count;
	return 0;
}
