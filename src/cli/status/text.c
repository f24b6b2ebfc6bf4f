#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/translate.h"
#include "cli/common/table.h"
#include "cli/status/status.h"

enum { CELL_SIZE = 128, LEAST_NAME = 20, LEAST_MODE = 7 };

static const char simulated[] = N_(" (simulated)");

/* The claims are counted in the rows below, too. */
static const struct ll_table_column columns_of_cards[] = {
    {.heading = N_("card")},
    {.heading = N_("name"), .least = LEAST_NAME, .tail = simulated},
    {.heading = N_("util"), .is_second = true},
    {.heading = N_("memory"), .is_second = true},
    {.heading = N_("power"), .is_second = true},
    {.heading = N_("temp"), .is_second = true},
    {.heading = N_("mode"), .least = LEAST_MODE},
    {.heading = N_("claims"), .may_go = true},
};

static void add_number(struct ll_table *table, double value, const char *unit)
{
	char cell[CELL_SIZE];
	snprintf(cell, sizeof cell, "%.0f %s", value, unit);
	ll_table_add(table, isnan(value) ? "" : cell);
}

static void add_memory(struct ll_table *table, const struct ll_status_card *status, bool is_short)
{
	char cell[CELL_SIZE];
	const double gib = 1 << 30;
	snprintf(cell, sizeof cell, is_short ? "%.0f/%.0f GiB" : _("%.1f of %.1f GiB"),
		 (double)status->memory.used_bytes / gib, (double)status->memory.total_bytes / gib);
	ll_table_add(table, status->has_memory ? cell : "");
}

static void add_power(struct ll_table *table, const struct ll_status_card *status, bool is_short)
{
	char cell[CELL_SIZE];
	snprintf(cell, sizeof cell, is_short ? "%.0f/%.0f W" : _("%.0f of %.0f W"), status->power_watts,
		 status->power_limit_watts);
	if (isnan(status->power_watts) || isnan(status->power_limit_watts))
		add_number(table, status->power_watts, "W");
	else
		ll_table_add(table, cell);
}

static const char *mode_text(const struct ll_status_card *status, bool is_short, char cell[CELL_SIZE])
{
	if (status->card->fault)
		return strerror(-status->card->fault);
	if (status->is_drained) {
		snprintf(cell, CELL_SIZE, "%s%s%s", _("drained"), status->drained[0] ? ": " : "", status->drained);
		return cell;
	}
	if (status->card->has_slices)
		return "MIG";
	if (is_short && status->has_mode && status->mode == LL_MODE_EXCLUSIVE_PROCESS)
		return _("exclusive");
	return status->has_mode ? _(ll_compute_mode_text(status->mode)) : "";
}

static void add_card(struct ll_table *table, const struct ll_status_card *status, bool is_short)
{
	char cell[CELL_SIZE];
	const char *name = status->card->name[0] ? status->card->name : _("does not answer");
	ll_table_add(table, status->card->label);
	snprintf(cell, sizeof cell, "%s%s", name, status->is_simulated ? _(simulated) : "");
	ll_table_add(table, cell);
	add_number(table, status->util_percent, "%");
	add_memory(table, status, is_short);
	add_power(table, status, is_short);
	add_number(table, status->celsius, "C");
	ll_table_add(table, mode_text(status, is_short, cell));
	snprintf(cell, sizeof cell, "%zu", status->claim_count);
	ll_table_add(table, cell);
}

static void make_table(struct ll_table *table, const struct ll_status_card *cards, size_t count, bool is_short)
{
	ll_table_init(table, columns_of_cards, sizeof columns_of_cards / sizeof *columns_of_cards);
	for (size_t i = 0; i < count; i++)
		add_card(table, &cards[i], is_short);
}

/* Numbers are short if the long ones do not fit. */
static void add_cards(struct ll_strbuf *text, const struct ll_status_card *cards, size_t count, unsigned columns)
{
	struct ll_table table;
	make_table(&table, cards, count, false);
	if (!ll_table_fits(&table, columns)) {
		ll_table_fini(&table);
		make_table(&table, cards, count, true);
	}
	ll_table_print(&table, columns, text);
	text->failed |= table.cells.failed;
	ll_table_fini(&table);
}

/* Adds the text's lines, and after each but the first the card's own lines. */
static void add_claims_below(struct ll_strbuf *text, const char *lines, const struct ll_status_card *cards)
{
	bool is_heading = true;
	while (*lines) {
		size_t length = strcspn(lines, "\n") + 1;
		ll_strbuf_add(text, lines, length);
		if (!is_heading)
			ll_status_add_claims(text, cards++);
		is_heading = false;
		lines += length;
	}
}

void ll_status_add_text(struct ll_strbuf *text, const struct ll_status_card *cards, size_t count, unsigned columns,
			bool is_long)
{
	LL_SCOPE_STRBUF struct ll_strbuf lines = LL_STRBUF_INIT;
	if (!is_long) {
		add_cards(text, cards, count, columns);
		ll_status_add_rows(text, cards, count, columns);
		return;
	}
	add_cards(&lines, cards, count, 0);
	text->failed |= lines.failed;
	add_claims_below(text, lines.buf, cards);
}
