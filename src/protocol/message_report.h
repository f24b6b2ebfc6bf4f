/*
 * message_report.h - LL_MESSAGE_REPORT (message.h) and its replies.
 */
#ifndef LOADLINE_PROTOCOL_MESSAGE_REPORT_H
#define LOADLINE_PROTOCOL_MESSAGE_REPORT_H

#include "protocol/message_header.h"

enum { LL_REPORT_KEY_SIZE = 96 };

struct ll_message_report {
	struct ll_message_header header;
	int64_t since_s, until_s; /* struct ll_use_query */
	uint32_t by;              /* enum ll_use_by */
	uint32_t unused;
};

/* struct ll_use_sum. NAN: unknown. */
struct ll_message_report_row {
	struct ll_message_header header;
	double granted_s, used_s, idle_held_s, memory_byte_s, joules, lent_s, borrowed_s;
	char key[LL_REPORT_KEY_SIZE];
};

/* What a granted GPU hour and a GiB hour of memory cost. */
struct ll_message_report_prices {
	struct ll_message_header header;
	double gpu_hour, gib_hour;
	char currency[LL_NAME_SIZE]; /* empty: not said */
};

struct ll_message_report_end {
	struct ll_message_header header;
	uint32_t rows;
	uint32_t is_of_one_user; /* only the user's own jobs are in the sums */
};

#endif
