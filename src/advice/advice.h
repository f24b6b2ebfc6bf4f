/*
 * advice.h - what earlier runs did beside others: how many launches a second a program completed while the same other
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
#ifndef LOADLINE_ADVICE_ADVICE_H
#define LOADLINE_ADVICE_ADVICE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/client.h"
#include "protocol/company.h"
#include "protocol/message.h"

struct ll_strbuf;
struct ll_err;

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

/*
 * The file of what earlier runs did, one for each user: "earlier" in ${XDG_STATE_HOME}/loadline,
 * where XDG_STATE_HOME is ~/.local/state if it is not set; for simulated cards in the folder of their world.
 *
 * The monitors of the user's jobs write it, one at a time, and it is replaced as a whole. A damaged one is put aside
 * ("earlier.damaged"), which `loadline doctor` tells, and another is begun.
 */

#define LL_EARLIER_FILE "earlier"
#define LL_EARLIER_DAMAGED LL_EARLIER_FILE ".damaged"

/* The folder. sim_folder: of the simulated world; NULL or empty: real cards. -ENOENT: there is neither XDG_STATE_HOME
 * nor HOME. -ENAMETOOLONG. */
int ll_earlier_folder(const char *sim_folder, char ret_path[PATH_MAX], struct ll_err *err);

/* Makes the folder, with those above it, which only the user may enter. -EPERM: it is another user's, or the home is.
 * Other errors: it cannot be made. */
int ll_earlier_folder_open(const char *path, int *ret_fd, struct ll_err *err);

/* Reads what is there. No file or no folder is no record. -EBADMSG: the file is damaged. */
int ll_earlier_read(const char *folder, struct ll_earlier *ret_earlier, struct ll_err *err);

/* Adds the records to those in the file, if there are any. */
int ll_earlier_note(const char *folder, const struct ll_earlier_record *records, size_t count, struct ll_err *err);

/* Whether a damaged file was put aside. */
bool ll_earlier_has_damaged(const char *folder);

/*
 * What programs that share a card now did the other way, by slices or by space, in an earlier run.
 */

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

/*
 * For `run --by auto`: whether earlier runs of this program, beside the programs that the card has now,
 * were faster by slices or by space.
 */

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
