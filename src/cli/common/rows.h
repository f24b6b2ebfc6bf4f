/*
 * rows.h - rows of a listing, by one description of their columns: a table, JSON lines and CSV.
 *
 * A command has a struct for a row, and describes each field by a column:
 *
 *     struct line {
 *             uint64_t number, since_s;
 *             char user[64];
 *     };
 *     static const struct ll_row_column columns[] = {
 *         {.heading = N_("job"), .key = "number", LL_ROW_NUMBER(struct line, number)},
 *         {.heading = N_("user"), .key = "user", LL_ROW_TEXT(struct line, user), .least = 6},
 *         {.heading = N_("since"), .key = "since", LL_ROW_MOMENT(struct line, since_s), .may_lack = true},
 *         LL_ROW_END,
 *     };
 */
#ifndef LOADLINE_CLI_COMMON_ROWS_H
#define LOADLINE_CLI_COMMON_ROWS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

enum ll_row_kind {
	LL_ROW_KIND_TEXT,   /* const char * */
	LL_ROW_KIND_NUMBER, /* uint64_t */
	LL_ROW_KIND_BYTES,  /* uint64_t; in the table "16 GiB" */
	LL_ROW_KIND_MOMENT, /* uint64_t seconds since 1970; in the table the time of day, with the date of another day
			     */
	LL_ROW_KIND_REAL,   /* double; NAN: it is not known */
	LL_ROW_KIND_STATUS, /* int64_t; a negative one is not known */
	LL_ROW_KIND_FLAG,   /* bool; nothing in a table */
	LL_ROW_KIND_JSON,   /* json_t *, which the JSON line takes; nothing in a table or CSV */
};

struct ll_row_column {
	const char *heading; /* in the table, translated; NULL: the table has not this column */
	const char *key;     /* of JSON and CSV; NULL: they have not this column */
	enum ll_row_kind kind;
	size_t offset;
	bool may_lack; /* "" and 0 are not known: "-" in the table, null in JSON, empty in CSV */
	int decimals;  /* of a real number */
	size_t least;  /* as in table.h, with the two below */
	bool may_go, is_second;
};

#define LL_ROW_FIELD_(type, field, want)                                                                               \
	(offsetof(type, field) +                                                                                       \
	 0 * sizeof(char[__builtin_types_compatible_p(__typeof__(((type *)0)->field), want) ? 1 : -1]))
#define LL_ROW_TEXT(type, field) .kind = LL_ROW_KIND_TEXT, .offset = LL_ROW_FIELD_(type, field, const char *)
#define LL_ROW_NUMBER(type, field) .kind = LL_ROW_KIND_NUMBER, .offset = LL_ROW_FIELD_(type, field, uint64_t)
#define LL_ROW_BYTES(type, field) .kind = LL_ROW_KIND_BYTES, .offset = LL_ROW_FIELD_(type, field, uint64_t)
#define LL_ROW_MOMENT(type, field) .kind = LL_ROW_KIND_MOMENT, .offset = LL_ROW_FIELD_(type, field, uint64_t)
#define LL_ROW_REAL(type, field) .kind = LL_ROW_KIND_REAL, .offset = LL_ROW_FIELD_(type, field, double)
#define LL_ROW_STATUS(type, field) .kind = LL_ROW_KIND_STATUS, .offset = LL_ROW_FIELD_(type, field, int64_t)
#define LL_ROW_FLAG(type, field) .kind = LL_ROW_KIND_FLAG, .offset = LL_ROW_FIELD_(type, field, bool)
#define LL_ROW_JSON(type, field) .kind = LL_ROW_KIND_JSON, .offset = LL_ROW_FIELD_(type, field, json_t *)
#define LL_ROW_END                                                                                                     \
	{                                                                                                              \
		.heading = NULL                                                                                        \
	}

/* Adds the rows as a table that fits the columns of the terminal; 0: as wide as it is. */
void ll_rows_add_table(const struct ll_row_column *columns, const void *rows, size_t row_size, size_t count,
		       size_t width, struct ll_strbuf *out);

/* The object of one row. NULL: out of memory. */
json_t *ll_row_json(const struct ll_row_column *columns, const void *row);

/* Adds a line of the keys, and one for each row. */
void ll_rows_add_csv(const struct ll_row_column *columns, const void *rows, size_t row_size, size_t count,
		     struct ll_strbuf *out);

/* Adds a moment as a table shows it. */
void ll_moment_add(struct ll_strbuf *text, uint64_t seconds);

/* Adds an amount of memory: "16 GiB", "512 MiB". */
void ll_bytes_add(struct ll_strbuf *text, uint64_t bytes);

#endif
