/*
 * admit.h - asks the queue of the machine for a place, and waits for it.
 */
#ifndef LOADLINE_CLI_RUN_ADMIT_H
#define LOADLINE_CLI_RUN_ADMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "cli/run/args.h"
#include "driver/cards.h"
#include "protocol/client.h"
#include "protocol/message.h"

struct ll_err;
struct ll_run_settings;

struct ll_run_admit {
	const struct ll_run_args *args;
	const struct ll_run_settings *settings;
	const struct ll_driver *driver;
	const char *command;
	uint64_t said; /* as in struct ll_message_job */
};

/*
 * Waits until the job has its place. Meanwhile it prints to stderr its position, who it waits for and when it will
 * start. cards: gets the UUIDs of the place, with commas; empty: this machine has no queue, and the job starts as it
 * is. -EACCES: the configuration does not allow the job, or it would never start. -EAGAIN: no place now (--no-wait).
 * -ECANCELED: none in the time of --timeout, or the job was canceled. -EINVAL: an option needs a queue, and there is
 * none; or no card can serve the limits. ret_client: the caller calls ll_client_close when the job has registered, or
 * cannot start: then the place is free again.
 */
int ll_run_admit(const struct ll_run_admit *wish, struct ll_client *ret_client, struct ll_strbuf *cards,
		 struct ll_err *err);

#endif
