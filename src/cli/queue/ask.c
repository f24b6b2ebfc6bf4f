#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "cli/queue/queue.h"

/* The simulated world is told by the environment, as loadlined's own place is. */
int ll_queue_open(struct ll_client *client, struct ll_err *err)
{
	struct ll_place place;
	*client = (struct ll_client){.fd = -1};
	int rc = ll_place_find(getenv("LOADLINE_SIM_DIR"), &place, err);
	if (!rc && !ll_place_is_system(&place))
		rc = -ECONNREFUSED;
	if (!rc)
		rc = ll_client_open(client, &place, LL_CLIENT_COMMAND(LOADLINE_VERSION),
				    ll_now_ns() + LL_CLIENT_REPLY_NS, err);
	if (rc != -ECONNREFUSED)
		return rc;
	ll_err_set(err, -ENOENT, "this machine has no queue: the system's loadlined does not serve");
	return ll_err_hint(err, "`loadline doctor` tells more");
}

static int add_row(struct ll_queue_rows *rows, const union ll_message *message)
{
	if (message->header.kind == LL_MESSAGE_QUEUE_ROW)
		return ll_client_add_row(&rows->jobs, &rows->job_count, &message->queue_row, sizeof *rows->jobs);
	if (message->header.kind == LL_MESSAGE_QUEUE_WINDOW)
		return ll_client_add_row(&rows->windows, &rows->window_count, &message->queue_window,
					 sizeof *rows->windows);
	return 0;
}

static int read_rows(struct ll_client *client, struct ll_queue_rows *rows, struct ll_err *err)
{
	union ll_message message;
	uint64_t deadline_ns = ll_now_ns() + LL_CLIENT_REPLY_NS;
	ll_message_init(&message, LL_MESSAGE_QUEUE);
	int rc = ll_client_send(client, &message, deadline_ns, err);
	for (message.header.kind = 0; !rc && message.header.kind != LL_MESSAGE_QUEUE_END;) {
		rc = ll_client_receive(client, &message, deadline_ns, err);
		if (!rc && add_row(rows, &message))
			rc = ll_err_set(err, -ENOMEM, "queue: %s", strerror(ENOMEM));
	}
	return rc;
}

int ll_queue_read(struct ll_queue_rows *rows, struct ll_err *err)
{
	struct ll_client client;
	*rows = (struct ll_queue_rows){0};
	int rc = ll_queue_open(&client, err);
	if (!rc)
		rc = read_rows(&client, rows, err);
	ll_client_close(&client);
	return rc;
}

void ll_queue_free(struct ll_queue_rows *rows)
{
	free(rows->jobs);
	free(rows->windows);
}

int ll_queue_change(const struct ll_message_queue_act *act, struct ll_err *err)
{
	struct ll_client client;
	union ll_message message;
	int rc = ll_queue_open(&client, err);
	ll_message_init(&message, LL_MESSAGE_QUEUE_ACT);
	struct ll_message_header header = message.header;
	message.queue_act = *act;
	message.header = header;
	if (!rc)
		rc = ll_client_request(&client, &message, NULL, 0, NULL, ll_now_ns() + LL_CLIENT_REPLY_NS, err);
	ll_client_close(&client);
	return rc;
}
