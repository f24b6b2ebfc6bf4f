#include "cli/common/rows.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/scope.h"
#include "base/utf8.h"
#include "cli/common/json_line.h"
#include "cli/common/table.h"

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
	const char *text = *(const char *const *)field_of(column, row);
	return text ? text : "";
}

static uint64_t number_of(const struct ll_row_column *column, const void *row)
{
	return *(const uint64_t *)field_of(column, row);
}

static bool is_lacking(const struct ll_row_column *column, const void *row)
{
	switch (column->kind) {
	case LL_ROW_KIND_TEXT:
		return column->may_lack && !*text_of(column, row);
	case LL_ROW_KIND_REAL:
		return isnan(*(const double *)field_of(column, row));
	case LL_ROW_KIND_STATUS:
		return *(const int64_t *)field_of(column, row) < 0;
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
		ll_strbuf_adds(&cell, text_of(column, row));
		break;
	case LL_ROW_KIND_BYTES:
		ll_bytes_add(&cell, number_of(column, row));
		break;
	case LL_ROW_KIND_MOMENT:
		ll_moment_add(&cell, number_of(column, row));
		break;
	case LL_ROW_KIND_REAL:
		ll_strbuf_addf(&cell, "%.*f", column->decimals, *(const double *)field_of(column, row));
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
		return ll_json_text(text_of(column, row));
	case LL_ROW_KIND_REAL:
		return ll_json_real(*(const double *)field_of(column, row), column->decimals);
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
		ll_strbuf_add_csv(out, text_of(column, row));
		break;
	case LL_ROW_KIND_REAL:
		ll_strbuf_addf(out, "%.*f", column->decimals, *(const double *)field_of(column, row));
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
