/*
 * table.h - a table of texts that fits the width of a terminal.
 *
 * A column is as wide as its widest cell. If the table is too wide, cells of the columns that may be cut are cut,
 * between characters; then columns that may be missing go; and if that does not do, each row takes two lines, where the
 * second one says something.
 */
#ifndef LOADLINE_CLI_COMMON_TABLE_H
#define LOADLINE_CLI_COMMON_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

struct ll_err;
struct ll_strbuf;

enum { LL_TABLE_COLUMNS = 16 }; /* at most */

struct ll_table_column {
	const char *heading;
	size_t least;     /* cells may be cut to this width; 0: never */
	const char *tail; /* the end of a cell that stays if the cell is cut; NULL: none */
	bool may_go;
	bool is_second; /* on the second line, where there are two */
};

struct ll_table {
	const struct ll_table_column *columns;
	size_t column_count;
	struct ll_strbuf cells; /* NUL-ended, row by row; the headings are the first row */
	size_t cell_count;
};

/* columns stay the caller's. */
void ll_table_init(struct ll_table *table, const struct ll_table_column *columns, size_t count);
void ll_table_fini(struct ll_table *table);

/* Adds the next cell, row by row. An empty text is shown as "-". */
void ll_table_add(struct ll_table *table, const char *text);

/* Whether it fits as it is. width 0: everything does. */
bool ll_table_fits(const struct ll_table *table, size_t width);

/* Adds its lines. width 0: nothing is cut. */
void ll_table_print(const struct ll_table *table, size_t width, struct ll_strbuf *out);

/* The columns of standard output; 0: it is no terminal. */
size_t ll_table_terminal_width(void);

/*
 * Rows of a listing, by one description of their columns: a table, JSON lines and CSV.
 *
 * A command has a struct for a row: the row that loadlined sent, and what is made of it. Each field that is shown is
 * described by a column:
 *
 *     struct line {
 *             struct ll_message_queue_row row;
 *             const char *user;
 *     };
 *     static const struct ll_row_column columns[] = {
 *         {.heading = N_("job"), .key = "number", LL_ROW_NUMBER(struct line, row.number)},
 *         {.heading = N_("user"), .key = "user", LL_ROW_TEXT(struct line, user), .least = 6},
 *         {.heading = N_("since"), .key = "since", LL_ROW_MOMENT(struct line, row.since_s), .may_lack = true},
 *         LL_ROW_END,
 *     };
 */

enum ll_row_kind {
	LL_ROW_KIND_TEXT,    /* const char * */
	LL_ROW_KIND_CHARS,   /* an array of char */
	LL_ROW_KIND_NUMBER,  /* uint64_t or uint32_t */
	LL_ROW_KIND_BYTES,   /* uint64_t; in the table "16 GiB" */
	LL_ROW_KIND_MOMENT,  /* uint64_t or int64_t seconds since 1970; in the table the time of day, with the date of
				another day */
	LL_ROW_KIND_REAL,    /* double; NAN: it is not known */
	LL_ROW_KIND_SECONDS, /* uint64_t nanoseconds, shown as a real number, as is the next */
	LL_ROW_KIND_PERCENT, /* uint64_t or uint32_t permille */
	LL_ROW_KIND_STATUS,  /* int64_t; a negative one is not known */
	LL_ROW_KIND_FLAG,    /* bool; nothing in a table */
	LL_ROW_KIND_JSON,    /* json_t *, which the JSON line takes; nothing in a table or CSV */
};

struct ll_row_column {
	const char *heading; /* in the table, translated; NULL: the table has not this column */
	const char *key;     /* of JSON and CSV; NULL: they have not this column */
	enum ll_row_kind kind;
	size_t offset, size;
	bool may_lack; /* "" and 0 are not known: "-" in the table, null in JSON, empty in CSV */
	int decimals;  /* of a real number */
	size_t least;  /* as in table.h, with the two below */
	bool may_go, is_second;
};

#define LL_ROW_IS_(type, field, want) __builtin_types_compatible_p(__typeof__(((type *)0)->field), want)
#define LL_ROW_FIELD_(type, field, want, other)                                                                        \
	.size = sizeof((type *)0)->field,                                                                              \
	.offset = offsetof(type, field) +                                                                              \
		  0 * sizeof(char[LL_ROW_IS_(type, field, want) || LL_ROW_IS_(type, field, other) ? 1 : -1])
#define LL_ROW_TEXT(type, field) .kind = LL_ROW_KIND_TEXT, LL_ROW_FIELD_(type, field, const char *, const char *)
#define LL_ROW_CHARS(type, field) .kind = LL_ROW_KIND_CHARS, LL_ROW_FIELD_(type, field, char[], char[])
#define LL_ROW_NUMBER(type, field) .kind = LL_ROW_KIND_NUMBER, LL_ROW_FIELD_(type, field, uint64_t, uint32_t)
#define LL_ROW_BYTES(type, field) .kind = LL_ROW_KIND_BYTES, LL_ROW_FIELD_(type, field, uint64_t, uint64_t)
#define LL_ROW_MOMENT(type, field) .kind = LL_ROW_KIND_MOMENT, LL_ROW_FIELD_(type, field, uint64_t, int64_t)
#define LL_ROW_REAL(type, field) .kind = LL_ROW_KIND_REAL, LL_ROW_FIELD_(type, field, double, double)
#define LL_ROW_SECONDS(type, field) .kind = LL_ROW_KIND_SECONDS, LL_ROW_FIELD_(type, field, uint64_t, uint64_t)
#define LL_ROW_PERCENT(type, field) .kind = LL_ROW_KIND_PERCENT, LL_ROW_FIELD_(type, field, uint64_t, uint32_t)
#define LL_ROW_STATUS(type, field) .kind = LL_ROW_KIND_STATUS, LL_ROW_FIELD_(type, field, int64_t, int64_t)
#define LL_ROW_FLAG(type, field) .kind = LL_ROW_KIND_FLAG, LL_ROW_FIELD_(type, field, bool, bool)
#define LL_ROW_JSON(type, field) .kind = LL_ROW_KIND_JSON, LL_ROW_FIELD_(type, field, json_t *, json_t *)
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

/* Adds "2026-01-31T12:00:00.250Z". */
void ll_wall_time_add(struct ll_strbuf *text, uint64_t wall_ns);

/* Adds an amount of memory: "16 GiB", "512 MiB". */
void ll_bytes_add(struct ll_strbuf *text, uint64_t bytes);

/*
 * Prints JSON lines on stdout: one compact object per line. Each line is flushed, so that a reader of a
 * pipe gets it at once.
 *
 *     return ll_json_line(json_pack("{s:s, s:i, s:o}", "event", "sample", "card", 0,
 *                                   "util_percent", ll_json_real(util, 1)), err);
 */

/* Prints the object and takes over the caller's reference, also on failure. NULL, which json_pack returns on failure,
 * gives -ENOMEM.
 */
int ll_json_line(json_t *object, struct ll_err *err);

/* Makes a string of a text that somebody else wrote: what is not UTF-8 becomes '?'. NULL: out of memory. */
json_t *ll_json_text(const char *text);

/* null if it is not known. */
json_t *ll_json_number(bool is_known, uint64_t number);
json_t *ll_json_known(bool is_known, const char *text);

/* 250 permille as 25.0 percent, and 1250 as 1.25 times; 0, which means none, is null. */
json_t *ll_json_percent(unsigned permille);
json_t *ll_json_times(unsigned permille);

/* Returns value rounded to this many decimals (0.1 prints as 0.1). NaN and infinities become null, because JSON has no
 * such numbers. */
json_t *ll_json_real(double value, int decimals);

/*
 * Prints a text on standard output, and says why it could not.
 */

/* Prints the text, with what standard output has buffered before, and flushes it. -ENOMEM if the text could not be
 * made; -EIO, with exit status 1, if it cannot be written. */
int ll_print_text(const struct ll_strbuf *text, struct ll_err *err);

#endif
