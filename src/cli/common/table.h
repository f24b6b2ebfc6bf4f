/*
 * table.h - a table of texts that fits the width of a terminal.
 *
 * A column is as wide as its widest cell. If the table is too wide, cells of the columns that may be cut are cut,
 * between characters; then columns that may be missing go; and if that does not do, each row takes two lines, where the
 * second one says something.
 */
#ifndef LOADLINE_CLI_COMMON_TABLE_H
#define LOADLINE_CLI_COMMON_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

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

#endif
