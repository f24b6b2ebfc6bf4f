/*
 * waiting.h - tells on stderr what a job waits for: one line, which is replaced on a terminal.
 */
#ifndef LOADLINE_CLI_RUN_WAITING_H
#define LOADLINE_CLI_RUN_WAITING_H

#include <stdbool.h>

#include "base/strbuf.h"
#include "cli/common/still.h"
#include "protocol/message.h"

struct ll_run_waiting {
	bool is_shown;   /* something was printed */
	bool is_unended; /* the line on the terminal has no end yet */
	struct ll_message_queued last;
	struct ll_still still; /* until the first line */
};

/* Prints the line. Elsewhere than on a terminal it is printed if it says something new. */
void ll_run_waiting_show(struct ll_run_waiting *waiting, const struct ll_message_queued *queued);

/* The job has its place: says so if it had to wait, and when it will be ended. */
void ll_run_waiting_end(struct ll_run_waiting *waiting, const struct ll_message_admitted *admitted);

/* Removes an unended line. */
void ll_run_waiting_clear(struct ll_run_waiting *waiting);

/* Adds what a job waits for, and by which rule: "waits for job 7 of ann (until 14:05): ...". */
void ll_run_waiting_add(struct ll_strbuf *text, const struct ll_queue_waits *waits,
			const struct ll_queue_why_told *why);

/* Adds by which rule it waits: "guarantee of research on whole: 2 cards kept, 0 left, 1 wanted". If loadlined does not
 * tell that, what it waits for. */
void ll_run_waiting_add_why(struct ll_strbuf *text, const struct ll_queue_waits *waits,
			    const struct ll_queue_why_told *why);

/* Adds when it starts: "starts about 14:05", or how many jobs ahead have no time. */
void ll_run_waiting_add_start(struct ll_strbuf *text, uint64_t start_s, uint32_t untimed);

#endif
