/*
 * message_report.h - LL_MESSAGE_REPORT and LL_MESSAGE_HISTORY (message.h) and their replies.
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
	uint64_t number; /* 0: none, or not known */
};

/* What a granted GPU hour and a GiB hour of memory cost. */
struct ll_message_report_prices {
	struct ll_message_header header;
	double gpu_hour, gib_hour;
	char currency[LL_NAME_SIZE]; /* empty: not said */
};

/* Of HISTORY too. */
struct ll_message_report_end {
	struct ll_message_header header;
	uint32_t rows;
	uint32_t is_of_one_user; /* only the user's own jobs are in the sums */
	uint32_t has_more;       /* jobs than HISTORY asked for */
	uint32_t unused;
};

/* ---- jobs that have ended: struct ll_history_query and struct ll_past_job (accounts/history.h) ---- */

enum { LL_HISTORY_CARDS_SIZE = 96, LL_HISTORY_HOWS = 9 };

struct ll_message_history {
	struct ll_message_header header;
	int64_t since_s, until_s;
	uint32_t has_uid, uid;
	uint32_t how, most;
	char tenant[LL_NAME_SIZE]; /* empty: any */
};

struct ll_message_history_row {
	struct ll_message_header header;
	uint64_t number;
	int64_t came_s, began_s, ended_s;
	uint64_t memory_bytes, compute_permille, time_ns, used_ns;
	double memory_byte_s;
	uint32_t uid, by_uid;
	uint32_t how, status;
	uint32_t card_count, class;
	char tenant[LL_NAME_SIZE], command[LL_COMMAND_SIZE], name[LL_NAME_SIZE], project[LL_NAME_SIZE];
	char cards[LL_HISTORY_CARDS_SIZE], why[LL_HISTORY_CARDS_SIZE];
};

#endif
