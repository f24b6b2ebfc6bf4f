/*
 * records.h - what earlier runs did beside others: how many launches a second a program completed while the same other
 * programs wanted the card, by slices and by space (--by). So `status`, `doctor` and `run --by auto` can say what is
 * better for these programs on this card, and promise nothing by their kind.
 *
 * A record is of one card, one program under its limits, one set of other programs, and one way. A later run takes the
 * place of an earlier one. There are at most LL_EARLIER_RECORDS: the oldest makes room.
 *
 * As text it is a first line, and one line for each record, whose fields are separated by tabs:
 *
 *     loadline earlier 1
 *     ENDED_S CARD PROGRAM OTHERS WAY SECONDS LAUNCHES NAME NAMES_OF_OTHERS
 */
#ifndef LOADLINE_EARLIER_RECORDS_H
#define LOADLINE_EARLIER_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/company.h"
#include "protocol/message.h"

struct ll_strbuf;

enum { LL_EARLIER_RECORDS = 200 };

/* What is shorter says too little. */
#define LL_EARLIER_LEAST_NS UINT64_C(5000000000)

struct ll_earlier_record {
	uint64_t ended_s; /* the end of that run, or when it was last noted; seconds since 1970 */
	uint64_t program, others;
	enum ll_way way;
	uint64_t ns, launches;
	char card[LL_CARD_UUID_SIZE];
	char name[LL_PROGRAM_NAME_SIZE];
	char others_names[LL_COMPANY_NAMES_SIZE];
};

struct ll_earlier {
	struct ll_earlier_record records[LL_EARLIER_RECORDS];
	size_t count;
};

/* Keeps it in place of an earlier one of the same, or of the oldest. */
void ll_earlier_put(struct ll_earlier *earlier, const struct ll_earlier_record *record);

/* NULL: there is none. */
const struct ll_earlier_record *ll_earlier_find(const struct ll_earlier *earlier, const char *card, uint64_t program,
						uint64_t others, enum ll_way way);

/* Adds the text. */
void ll_earlier_format(struct ll_strbuf *text, const struct ll_earlier *earlier);

/* -EBADMSG: the text is no whole text of these. */
int ll_earlier_parse(const char *text, struct ll_earlier *ret_earlier);

static inline double ll_earlier_rate(uint64_t launches, uint64_t ns)
{
	return ns ? (double)launches * 1e9 / (double)ns : 0;
}

#endif
