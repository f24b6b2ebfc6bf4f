/*
 * measured.h - for `run --by auto`: whether earlier runs of this program, beside the programs that the card has now,
 * were faster by slices or by space (earlier/records.h).
 */
#ifndef LOADLINE_CLI_RUN_MEASURED_H
#define LOADLINE_CLI_RUN_MEASURED_H

#include <stdbool.h>

#include "cli/common/other_way.h"
#include "protocol/client.h"

/* A way is better if it completed so many times as many launches a second. */
#define LL_MEASURED_BETTER 1.1

struct ll_run_measured {
	const struct ll_earlier_record *record; /* of the better way; points into what was searched */
	double times;                           /* its launches a second, of those the other way */
	char date[LL_DATE_SIZE];                /* of its end */
};

/*
 * program: ll_program_under. uid: whose programs count; the file has no others. The programs on the card are those that
 * had work within 10 s. They must share the card the way that is better: of a program by space beside others by slices
 * nothing was measured. False: that is not so, or nothing is known, or neither way is better.
 */
bool ll_run_measured_find(const struct ll_earlier *earlier, const struct ll_list *list, const char *uuid,
			  uint64_t program, uid_t uid, struct ll_run_measured *ret_measured);

/* Adds "beside infer.py it completed 1.42 times as many launches a second so on 2026-11-26 as by space". */
void ll_run_measured_add(struct ll_strbuf *text, const struct ll_run_measured *measured);

#endif
