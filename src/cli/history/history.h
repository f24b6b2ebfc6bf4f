/*
 * history.h - asks loadlined for jobs that have ended.
 */
#ifndef LOADLINE_CLI_HISTORY_H
#define LOADLINE_CLI_HISTORY_H

#include <stddef.h>

#include "protocol/message.h"
#include "protocol/message_rows.h"

struct ll_err;

struct ll_history_answer {
	struct ll_message_history_row *rows; /* the last one that ended first; the caller frees them */
	size_t count;
	struct ll_message_report_end end;
};

/* Asks the loadlined of this place. -ENOENT: none with accounts serves. */
int ll_history_ask(const struct ll_message_history *asked, struct ll_history_answer *ret_answer, struct ll_err *err);

#endif
