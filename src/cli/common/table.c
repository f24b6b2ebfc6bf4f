#include "cli/common/table.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/translate.h"
#include "base/utf8.h"

enum { GAP = 2, INDENT = 2 };

/* A line of each row: some of the columns. */
struct line {
	bool has[LL_TABLE_COLUMNS];
	size_t widths[LL_TABLE_COLUMNS];
	size_t indent;
};

void ll_table_init(struct ll_table *table, const struct ll_table_column *columns, size_t count)
{
	*table = (struct ll_table){.columns = columns, .column_count = count, .cells = LL_STRBUF_INIT};
	for (size_t i = 0; i < count; i++)
		ll_table_add(table, _(columns[i].heading));
}

void ll_table_fini(struct ll_table *table)
{
	ll_strbuf_fini(&table->cells);
}

void ll_table_add(struct ll_table *table, const char *text)
{
	const char *shown = *text ? text : "-";
	ll_strbuf_add(&table->cells, shown, strlen(shown) + 1);
	table->cell_count++;
}

static size_t count_rows(const struct ll_table *table)
{
	return table->cells.failed || !table->column_count ? 0 : table->cell_count / table->column_count;
}

/* ---- widths ---- */

static void measure(const struct ll_table *table, struct line *line)
{
	const char *cell = table->cells.buf;
	memset(line->widths, 0, sizeof line->widths);
	for (size_t row = 0; row < count_rows(table); row++) {
		for (size_t i = 0; i < table->column_count; i++) {
			size_t width = ll_utf8_columns(cell);
			line->widths[i] = width > line->widths[i] ? width : line->widths[i];
			cell += strlen(cell) + 1;
		}
	}
}

static size_t width_of(const struct ll_table *table, const struct line *line)
{
	size_t width = 0;
	for (size_t i = 0; i < table->column_count; i++) {
		if (line->has[i])
			width += (width ? GAP : line->indent) + line->widths[i];
	}
	return width;
}

/* Makes the widest column that may be cut one narrower. Returns false if there is none. */
static bool narrow_one(const struct ll_table *table, struct line *line)
{
	size_t *widest = NULL;
	for (size_t i = 0; i < table->column_count; i++) {
		size_t least = table->columns[i].least, *width = &line->widths[i];
		if (line->has[i] && least && *width > least && (!widest || *width > *widest))
			widest = width;
	}
	if (widest)
		(*widest)--;
	return widest;
}

static bool narrow(const struct ll_table *table, struct line *line, size_t width)
{
	while (width_of(table, line) > width) {
		if (!narrow_one(table, line))
			return false;
	}
	return true;
}

static bool leave_out_one(const struct ll_table *table, struct line *line)
{
	for (size_t i = table->column_count; i-- > 0;) {
		if (line->has[i] && table->columns[i].may_go) {
			line->has[i] = false;
			return true;
		}
	}
	return false;
}

static bool fit(const struct ll_table *table, struct line *line, size_t width)
{
	do {
		measure(table, line);
		if (!width || narrow(table, line, width))
			return true;
	} while (leave_out_one(table, line));
	return false;
}

/* Returns how many lines each row has. */
static size_t arrange(const struct ll_table *table, size_t width, struct line lines[2])
{
	lines[0] = lines[1] = (struct line){.indent = 0};
	for (size_t i = 0; i < table->column_count; i++)
		lines[0].has[i] = true;
	if (fit(table, &lines[0], width))
		return 1;
	for (size_t i = 0; i < table->column_count; i++) {
		lines[0].has[i] = !table->columns[i].is_second;
		lines[1].has[i] = table->columns[i].is_second;
	}
	lines[1].indent = INDENT;
	fit(table, &lines[0], width);
	fit(table, &lines[1], width);
	return 2;
}

bool ll_table_fits(const struct ll_table *table, size_t width)
{
	struct line line = {.indent = 0};
	for (size_t i = 0; i < table->column_count; i++)
		line.has[i] = true;
	measure(table, &line);
	return !width || width_of(table, &line) <= width;
}

/* ---- output ---- */

static size_t add_cut(struct ll_strbuf *out, const char *cell, const char *tail, size_t width)
{
	tail = tail ? _(tail) : NULL;
	size_t length = strlen(cell), tail_length = tail ? strlen(tail) : 0;
	bool has_tail = tail_length && length > tail_length && strcmp(cell + length - tail_length, tail) == 0;
	size_t tail_width = has_tail ? ll_utf8_columns(tail) : 0;
	if (!has_tail || ll_utf8_columns(cell) <= width || width <= tail_width)
		return ll_utf8_add(out, cell, width);
	size_t used = ll_utf8_add(out, cell, width - tail_width);
	while (used && out->buf[out->length - 1] == ' ') { /* the tail has one */
		out->buf[--out->length] = '\0';
		used--;
	}
	return used + ll_utf8_add(out, tail, tail_width);
}

static void add_blanks(struct ll_strbuf *out, size_t count)
{
	while (count--)
		ll_strbuf_addc(out, ' ');
}

static size_t last_column(const struct ll_table *table, const struct line *line)
{
	size_t last = 0;
	for (size_t i = 0; i < table->column_count; i++)
		last = line->has[i] ? i : last;
	return last;
}

/* A second line that says nothing is left out. */
static bool is_needed(const struct ll_table *table, const struct line *line, const char *cells)
{
	bool is_needed = !line->indent;
	for (size_t i = 0; i < table->column_count; i++, cells += strlen(cells) + 1)
		is_needed |= line->has[i] && strcmp(cells, "-") != 0;
	return is_needed;
}

static void add_line(const struct ll_table *table, const struct line *line, const char *cells, struct ll_strbuf *out)
{
	size_t last = last_column(table, line);
	add_blanks(out, line->indent);
	for (size_t i = 0; i <= last; i++, cells += strlen(cells) + 1) {
		if (!line->has[i])
			continue;
		size_t used = add_cut(out, cells, table->columns[i].tail, line->widths[i]);
		add_blanks(out, i < last ? line->widths[i] - used + GAP : 0);
	}
	ll_strbuf_addc(out, '\n');
}

void ll_table_print(const struct ll_table *table, size_t width, struct ll_strbuf *out)
{
	struct line lines[2];
	size_t count = arrange(table, width, lines);
	const char *cells = table->cells.buf;
	for (size_t row = 0; row < count_rows(table); row++) {
		for (size_t i = 0; i < count; i++) {
			if (is_needed(table, &lines[i], cells))
				add_line(table, &lines[i], cells, out);
		}
		for (size_t i = 0; i < table->column_count; i++)
			cells += strlen(cells) + 1;
	}
}

size_t ll_table_terminal_width(void)
{
	struct winsize size;
	return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}
