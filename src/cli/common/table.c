#include "cli/common/table.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "base/strbuf.h"
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

enum { MOMENT_SIZE = 32 };

void ll_moment_add(struct ll_strbuf *text, uint64_t seconds)
{
	char moment[MOMENT_SIZE] = "";
	time_t at = (time_t)seconds, now = time(NULL);
	struct tm then, today;
	if (!localtime_r(&at, &then) || !localtime_r(&now, &today))
		return;
	bool is_today = then.tm_yday == today.tm_yday && then.tm_year == today.tm_year;
	strftime(moment, sizeof moment, is_today ? "%H:%M" : "%Y-%m-%d %H:%M", &then);
	ll_strbuf_adds(text, moment);
}

void ll_wall_time_add(struct ll_strbuf *text, uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / LL_NS_PER_S);
	struct tm tm;
	char words[MOMENT_SIZE];
	gmtime_r(&seconds, &tm);
	strftime(words, sizeof words, "%Y-%m-%dT%H:%M:%S", &tm);
	ll_strbuf_addf(text, "%s.%03uZ", words, (unsigned)(wall_ns % LL_NS_PER_S / LL_NS_PER_MS));
}

void ll_bytes_add(struct ll_strbuf *text, uint64_t bytes)
{
	static const double gib = (double)(UINT64_C(1) << 30), mib = (double)(UINT64_C(1) << 20);
	if ((double)bytes >= gib || !bytes)
		ll_strbuf_addf(text, "%.4g GiB", (double)bytes / gib);
	else
		ll_strbuf_addf(text, "%.4g MiB", (double)bytes / mib);
}

/* ---- a field ---- */

static bool has_column(const struct ll_row_column *column)
{
	return column->heading || column->key;
}

static const void *field_of(const struct ll_row_column *column, const void *row)
{
	return (const char *)row + column->offset;
}

static const char *text_of(const struct ll_row_column *column, const void *row)
{
	const void *field = field_of(column, row);
	const char *text = column->kind == LL_ROW_KIND_CHARS ? field : *(const char *const *)field;
	return text ? text : "";
}

static uint64_t number_of(const struct ll_row_column *column, const void *row)
{
	const void *field = field_of(column, row);
	return column->size == sizeof(uint32_t) ? *(const uint32_t *)field : *(const uint64_t *)field;
}

static double real_of(const struct ll_row_column *column, const void *row)
{
	switch (column->kind) {
	case LL_ROW_KIND_SECONDS:
		return (double)number_of(column, row) / (double)LL_NS_PER_S;
	case LL_ROW_KIND_PERCENT:
		return (double)number_of(column, row) / 10;
	default:
		return *(const double *)field_of(column, row);
	}
}

static bool is_lacking(const struct ll_row_column *column, const void *row)
{
	switch (column->kind) {
	case LL_ROW_KIND_TEXT:
	case LL_ROW_KIND_CHARS:
		return column->may_lack && !*text_of(column, row);
	case LL_ROW_KIND_REAL:
		return isnan(real_of(column, row));
	case LL_ROW_KIND_MOMENT:
		return column->may_lack && (int64_t)number_of(column, row) <= 0;
	case LL_ROW_KIND_STATUS:
		return (int64_t)number_of(column, row) < 0;
	case LL_ROW_KIND_FLAG:
		return false;
	case LL_ROW_KIND_JSON:
		return !*(json_t *const *)field_of(column, row);
	default:
		return column->may_lack && !number_of(column, row);
	}
}

/* ---- a table ---- */

static void add_cell(const struct ll_row_column *column, const void *row, struct ll_table *table)
{
	LL_SCOPE_STRBUF struct ll_strbuf cell = LL_STRBUF_INIT;
	if (is_lacking(column, row)) {
		ll_table_add(table, "");
		return;
	}
	switch (column->kind) {
	case LL_ROW_KIND_TEXT:
	case LL_ROW_KIND_CHARS:
		ll_strbuf_adds(&cell, text_of(column, row));
		break;
	case LL_ROW_KIND_BYTES:
		ll_bytes_add(&cell, number_of(column, row));
		break;
	case LL_ROW_KIND_MOMENT:
		ll_moment_add(&cell, number_of(column, row));
		break;
	case LL_ROW_KIND_REAL:
	case LL_ROW_KIND_SECONDS:
	case LL_ROW_KIND_PERCENT:
		ll_strbuf_addf(&cell, "%.*f", column->decimals, real_of(column, row));
		break;
	case LL_ROW_KIND_NUMBER:
	case LL_ROW_KIND_STATUS:
		ll_strbuf_addf(&cell, "%" PRIu64, number_of(column, row));
		break;
	case LL_ROW_KIND_FLAG:
	case LL_ROW_KIND_JSON:
		break;
	}
	ll_table_add(table, cell.failed || !cell.buf ? "?" : cell.buf);
}

void ll_rows_add_table(const struct ll_row_column *columns, const void *rows, size_t row_size, size_t count,
		       size_t width, struct ll_strbuf *out)
{
	struct ll_table_column shown[LL_TABLE_COLUMNS];
	struct ll_table table;
	size_t shown_count = 0;
	for (const struct ll_row_column *column = columns; has_column(column); column++) {
		if (column->heading && shown_count < LL_TABLE_COLUMNS)
			shown[shown_count++] = (struct ll_table_column){.heading = column->heading,
									.least = column->least,
									.may_go = column->may_go,
									.is_second = column->is_second};
	}
	ll_table_init(&table, shown, shown_count);
	for (size_t i = 0; i < count; i++) {
		for (const struct ll_row_column *column = columns; has_column(column); column++) {
			if (column->heading)
				add_cell(column, (const char *)rows + i * row_size, &table);
		}
	}
	ll_table_print(&table, width, out);
	out->failed |= table.cells.failed;
	ll_table_fini(&table);
}

/* ---- JSON ---- */

static json_t *value_of(const struct ll_row_column *column, const void *row)
{
	if (is_lacking(column, row))
		return json_null();
	switch (column->kind) {
	case LL_ROW_KIND_TEXT:
	case LL_ROW_KIND_CHARS:
		return ll_json_text(text_of(column, row));
	case LL_ROW_KIND_REAL:
	case LL_ROW_KIND_SECONDS:
	case LL_ROW_KIND_PERCENT:
		return ll_json_real(real_of(column, row), column->decimals);
	case LL_ROW_KIND_FLAG:
		return json_boolean(*(const bool *)field_of(column, row));
	case LL_ROW_KIND_JSON:
		return *(json_t *const *)field_of(column, row);
	default:
		return json_integer((json_int_t)number_of(column, row));
	}
}

json_t *ll_row_json(const struct ll_row_column *columns, const void *row)
{
	json_t *object = json_object();
	bool has_failed = !object;
	for (const struct ll_row_column *column = columns; has_column(column); column++) {
		if (column->key)
			has_failed |= json_object_set_new(object, column->key, value_of(column, row)) != 0;
	}
	if (has_failed)
		json_decref(object);
	return has_failed ? NULL : object;
}

/* ---- CSV ---- */

static void add_field(const struct ll_row_column *column, const void *row, struct ll_strbuf *out)
{
	if (is_lacking(column, row))
		return;
	switch (column->kind) {
	case LL_ROW_KIND_TEXT:
	case LL_ROW_KIND_CHARS:
		ll_strbuf_add_csv(out, text_of(column, row));
		break;
	case LL_ROW_KIND_REAL:
	case LL_ROW_KIND_SECONDS:
	case LL_ROW_KIND_PERCENT:
		ll_strbuf_addf(out, "%.*f", column->decimals, real_of(column, row));
		break;
	case LL_ROW_KIND_FLAG:
		ll_strbuf_adds(out, *(const bool *)field_of(column, row) ? "true" : "false");
		break;
	default:
		ll_strbuf_addf(out, "%" PRIu64, number_of(column, row));
		break;
	}
}

static bool is_in_csv(const struct ll_row_column *column)
{
	return column->key && column->kind != LL_ROW_KIND_JSON;
}

void ll_rows_add_csv(const struct ll_row_column *columns, const void *rows, size_t row_size, size_t count,
		     struct ll_strbuf *out)
{
	const char *between = "";
	for (const struct ll_row_column *column = columns; has_column(column); column++) {
		if (is_in_csv(column))
			ll_strbuf_addf(out, "%s%s", between, column->key);
		between = is_in_csv(column) ? "," : between;
	}
	ll_strbuf_addc(out, '\n');
	for (size_t i = 0; i < count; i++) {
		between = "";
		for (const struct ll_row_column *column = columns; has_column(column); column++) {
			if (!is_in_csv(column))
				continue;
			ll_strbuf_adds(out, between);
			add_field(column, (const char *)rows + i * row_size, out);
			between = ",";
		}
		ll_strbuf_addc(out, '\n');
	}
}

/* With 17 digits 0.1 would print as 0.10000000000000001. */
enum { DIGITS = 15 };

int ll_json_line(json_t *object, struct ll_err *err)
{
	if (!object)
		return ll_err_set(err, -ENOMEM, "JSON line: out of memory");
	int rc = json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));
	json_decref(object);
	if (rc == 0 && putchar('\n') != EOF && fflush(stdout) == 0)
		return 0;
	ll_err_set(err, -EIO, "standard output: %s", strerror(errno));
	return ll_err_exit_with(err, LL_EXIT_FAILED);
}

json_t *ll_json_text(const char *text)
{
	json_t *value = json_string(text);
	char *copy = value ? NULL : strdup(text);
	if (value || !copy)
		return value;
	ll_utf8_clean(copy);
	value = json_string(copy);
	free(copy);
	return value;
}

json_t *ll_json_number(bool is_known, uint64_t number)
{
	return is_known ? json_integer((json_int_t)number) : json_null();
}

json_t *ll_json_known(bool is_known, const char *text)
{
	return is_known ? ll_json_text(text) : json_null();
}

json_t *ll_json_percent(unsigned permille)
{
	return permille ? ll_json_real(permille / 10.0, 1) : json_null();
}

json_t *ll_json_times(unsigned permille)
{
	return permille ? ll_json_real(permille / 1000.0, 3) : json_null();
}

json_t *ll_json_real(double value, int decimals)
{
	if (!isfinite(value))
		return json_null();
	double scale = pow(10, decimals);
	double rounded = round(value * scale) / scale;
	return json_real(isfinite(rounded) ? rounded : value);
}

int ll_print_text(const struct ll_strbuf *text, struct ll_err *err)
{
	if (text->failed)
		return ll_err_set(err, -ENOMEM, "standard output: out of memory");
	if (fwrite(text->buf, 1, text->length, stdout) == text->length && fflush(stdout) == 0)
		return 0;
	ll_err_set(err, -EIO, "standard output: %s", strerror(errno));
	return ll_err_exit_with(err, LL_EXIT_FAILED);
}
