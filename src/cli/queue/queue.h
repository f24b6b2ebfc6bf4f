/*
 * queue.h - the parts of `loadline queue`.
 */
#ifndef LOADLINE_CLI_QUEUE_QUEUE_H
#define LOADLINE_CLI_QUEUE_QUEUE_H

#include "cli/options/command.h"
#include "protocol/client.h"
#include "protocol/message.h"

extern const struct ll_command ll_queue_list, ll_queue_cancel, ll_queue_pause, ll_queue_release, ll_queue_move,
    ll_queue_time, ll_queue_drain;

/* The rows of the reply to LL_MESSAGE_QUEUE. */
struct ll_queue_rows {
	struct ll_message_queue_row *jobs;
	struct ll_message_queue_window *windows;
	size_t job_count, window_count;
};

/* Connects to the system's loadlined, which has the queue. -ENOENT: this machine has no queue. The caller closes the
 * client in each case. */
int ll_queue_open(struct ll_client *client, struct ll_err *err);

/* Reads all rows. The caller frees them in each case. */
int ll_queue_read(struct ll_queue_rows *rows, struct ll_err *err);
void ll_queue_free(struct ll_queue_rows *rows);

/* Sends a change. */
int ll_queue_change(const struct ll_message_queue_act *act, struct ll_err *err);

/* ---- output ---- */

/* Which jobs are shown. With any of them the windows are left out. */
struct ll_queue_filter {
	const char *user, *tenant; /* NULL: of all. user: a name or a number */
	const char *state;         /* "running"; NULL: in each */
};

int ll_queue_print_text(const struct ll_queue_rows *rows, const struct ll_queue_filter *filter, struct ll_err *err);
int ll_queue_print_json(const struct ll_queue_rows *rows, const struct ll_queue_filter *filter, struct ll_err *err);

#endif
