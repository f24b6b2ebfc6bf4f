/*
 * other_way.h - what programs that share a card now did the other way, by slices or by space, in an earlier run
 * (earlier/records.h).
 */
#ifndef LOADLINE_CLI_COMMON_OTHER_WAY_H
#define LOADLINE_CLI_COMMON_OTHER_WAY_H

#include <stdbool.h>

#include "earlier/records.h"

struct ll_strbuf;

enum { LL_DATE_SIZE = 16 };

/* Writes the day on which that run ended, such as "2026-11-26". False: it is no date. */
bool ll_earlier_date(const struct ll_earlier_record *record, char ret_date[LL_DATE_SIZE]);

struct ll_other_way {
	const struct ll_earlier_record *record; /* of the earlier run; points into what was searched */
	double times;                           /* its launches a second, of those now */
	char date[LL_DATE_SIZE];                /* of its end, such as "2026-11-26" */
};

/*
 * Searches a run of the job of this row, which shares its card by this way now, beside the same others the other way.
 * Now is this run if it has been beside them for long enough, otherwise the last run that was. False: one of the two
 * is not known, or completed nothing.
 */
bool ll_other_way_find(const struct ll_earlier *earlier, const struct ll_message_card_row *row, enum ll_way way,
		       struct ll_other_way *ret_other);

/* Adds a sentence, such as "train.py beside infer.py: by space it completed 1.42 times as many launches a second on
 * 2026-11-26; programs that share by space share a fault domain". */
void ll_other_way_add(struct ll_strbuf *text, const struct ll_other_way *other);

/* Reads the user's file for these cards. sim_folder: as ll_earlier_folder. No record if it cannot be read. NULL: no
 * memory. The caller frees it. */
struct ll_earlier *ll_other_way_read(const char *sim_folder);

#endif
