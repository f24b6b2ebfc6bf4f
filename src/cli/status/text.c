#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/status/status.h"

enum { COLUMNS = 8, CELL_SIZE = 128, NAME = 1, MODE = 6, LEAST_LETTERS = 4, GAP = 2 };

struct row {
	char cells[COLUMNS][CELL_SIZE];
};

static const struct row header = {{"card", "name", "util", "memory", "power", "temp", "mode", "claims"}};

static void put_number(char cell[CELL_SIZE], double value, const char *unit)
{
	if (isnan(value))
		snprintf(cell, CELL_SIZE, "-");
	else
		snprintf(cell, CELL_SIZE, "%.0f %s", value, unit);
}

static void put_memory(char cell[CELL_SIZE], const struct ll_status_card *status)
{
	const double gib = 1 << 30;
	if (status->has_memory)
		snprintf(cell, CELL_SIZE, "%.1f of %.1f GiB", (double)status->memory.used_bytes / gib,
			 (double)status->memory.total_bytes / gib);
	else
		snprintf(cell, CELL_SIZE, "-");
}

static void put_power(char cell[CELL_SIZE], const struct ll_status_card *status)
{
	if (isnan(status->power_watts) || isnan(status->power_limit_watts))
		put_number(cell, status->power_watts, "W");
	else
		snprintf(cell, CELL_SIZE, "%.0f of %.0f W", status->power_watts, status->power_limit_watts);
}

static const char *mode_text(const struct ll_status_card *status)
{
	if (status->card->fault)
		return strerror(-status->card->fault);
	if (status->card->has_slices)
		return "MIG";
	return status->has_mode ? ll_compute_mode_text(status->mode) : "-";
}

static void fill_row(struct row *row, const struct ll_status_card *status)
{
	const char *name = status->card->name[0] ? status->card->name : "does not answer";
	snprintf(row->cells[0], CELL_SIZE, "%s", status->card->label);
	snprintf(row->cells[1], CELL_SIZE, "%s%s", name, status->is_simulated ? " (simulated)" : "");
	put_number(row->cells[2], status->util_percent, "%");
	put_memory(row->cells[3], status);
	put_power(row->cells[4], status);
	put_number(row->cells[5], status->celsius, "C");
	snprintf(row->cells[6], CELL_SIZE, "%s", mode_text(status));
	snprintf(row->cells[7], CELL_SIZE, "%zu", status->claim_count);
}

static void widen_columns(size_t widths[COLUMNS], const struct row *row)
{
	for (size_t i = 0; i < COLUMNS; i++) {
		size_t length = strlen(row->cells[i]);
		widths[i] = length > widths[i] ? length : widths[i];
	}
}

static void add_row(struct ll_strbuf *text, const struct row *row, const size_t widths[COLUMNS])
{
	for (size_t i = 0; i + 1 < COLUMNS; i++)
		ll_strbuf_addf(text, "%-*.*s  ", (int)widths[i], (int)widths[i], row->cells[i]);
	ll_strbuf_addf(text, "%s\n", row->cells[COLUMNS - 1]);
}

static void narrow_column(size_t *width, size_t *excess)
{
	size_t spare = *width > LEAST_LETTERS ? *width - LEAST_LETTERS : 0;
	size_t taken = spare < *excess ? spare : *excess;
	*width -= taken;
	*excess -= taken;
}

/* Cuts names and modes to fit, because their beginnings identify them. A number that is cut would be another number. */
static void fit_columns(size_t widths[COLUMNS], unsigned columns)
{
	size_t width = (COLUMNS - 1) * GAP;
	for (size_t i = 0; i < COLUMNS; i++)
		width += widths[i];
	size_t excess = columns && width > columns ? width - columns : 0;
	narrow_column(&widths[NAME], &excess);
	narrow_column(&widths[MODE], &excess);
}

void ll_status_add_text(struct ll_strbuf *text, const struct ll_status_card *cards, size_t count, unsigned columns)
{
	struct row row = header;
	size_t widths[COLUMNS] = {0};
	widen_columns(widths, &header);
	for (size_t i = 0; i < count; i++) {
		fill_row(&row, &cards[i]);
		widen_columns(widths, &row);
	}
	fit_columns(widths, columns);
	add_row(text, &header, widths);
	for (size_t i = 0; i < count; i++) {
		fill_row(&row, &cards[i]);
		add_row(text, &row, widths);
		ll_status_add_claims(text, &cards[i]);
	}
}
