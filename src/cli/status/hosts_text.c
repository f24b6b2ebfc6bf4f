/* The answers of several machines as two tables. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/translate.h"
#include "base/utf8.h"
#include "cli/status/hosts.h"
#include "cli/status/rows.h"

enum { CELL = LL_STATUS_CELL_SIZE, LEAST_HOST = 8, LEAST_NAME = 20, LEAST_MODE = 7 };

static const char simulated[] = N_(" (simulated)");

static const struct ll_table_column columns_of_cards[] = {
    {.heading = N_("host"), .least = LEAST_HOST},
    {.heading = N_("card")},
    {.heading = N_("name"), .least = LEAST_NAME, .tail = simulated},
    {.heading = N_("util"), .is_second = true},
    {.heading = N_("memory"), .is_second = true},
    {.heading = N_("power"), .is_second = true},
    {.heading = N_("temp"), .is_second = true},
    {.heading = N_("mode"), .least = LEAST_MODE},
    {.heading = N_("claims"), .may_go = true},
};

/* ---- members ---- */

/* Copies the text, cleaned, perhaps cut; empty: there is none. Returns it. */
static const char *text_of(const json_t *line, const char *key, char *ret_text, size_t size)
{
	const char *text = json_string_value(json_object_get(line, key));
	snprintf(ret_text, size, "%s", text ? text : "");
	ll_utf8_clean(ret_text);
	return ret_text;
}

/* NaN: there is none. */
static double number_of(const json_t *line, const char *key)
{
	const json_t *number = json_object_get(line, key);
	return json_is_number(number) ? json_number_value(number) : (double)NAN;
}

static bool is_true(const json_t *line, const char *key)
{
	return json_is_true(json_object_get(line, key));
}

static uint64_t bytes_of(const json_t *line, const char *key, uint64_t unknown)
{
	double bytes = number_of(line, key);
	return bytes >= 0 && bytes < 1e18 ? (uint64_t)bytes : unknown;
}

static uint64_t ns_of(const json_t *line, const char *key)
{
	double seconds = number_of(line, key);
	return seconds >= 0 && seconds < 1e9 ? (uint64_t)(seconds * (double)LL_NS_PER_S) : LL_AGE_UNKNOWN;
}

/* ---- cards ---- */

static void add_number(struct ll_table *table, double value, const char *unit)
{
	char cell[CELL];
	snprintf(cell, sizeof cell, "%.0f %s", value, unit);
	ll_table_add(table, isnan(value) ? "" : cell);
}

static void add_of(struct ll_table *table, double value, double most, const char *unit)
{
	char cell[CELL];
	snprintf(cell, sizeof cell, "%.0f/%.0f %s", value, most, unit);
	if (isnan(most))
		add_number(table, value, unit);
	else
		ll_table_add(table, isnan(value) ? "" : cell);
}

static void add_card(struct ll_table *table, const struct ll_status_host *host, const json_t *line)
{
	const double gib = 1 << 30;
	char cell[CELL], name[CELL];
	double slice = number_of(line, "slice");
	ll_table_add(table, host->name);
	snprintf(cell, sizeof cell, isnan(slice) ? "%.0f" : "%.0f:%.0f", number_of(line, "card"), slice);
	ll_table_add(table, cell);
	text_of(line, "name", name, sizeof name / 2);
	snprintf(cell, sizeof cell, "%s%s", *name ? name : _("does not answer"),
		 is_true(line, "simulated") ? _(simulated) : "");
	ll_table_add(table, cell);
	add_number(table, number_of(line, "util_percent"), "%");
	add_of(table, number_of(line, "memory_bytes") / gib, number_of(line, "memory_total_bytes") / gib, "GiB");
	add_of(table, number_of(line, "power_watts"), number_of(line, "power_limit_watts"), "W");
	add_number(table, number_of(line, "temperature_celsius"), "C");
	if (is_true(line, "mig"))
		snprintf(cell, sizeof cell, "MIG");
	else
		text_of(line, json_is_string(json_object_get(line, "fault")) ? "fault" : "compute_mode", cell,
			sizeof cell);
	ll_table_add(table, cell);
	snprintf(cell, sizeof cell, "%.0f", number_of(line, "claims"));
	ll_table_add(table, cell);
}

/* ---- claims ---- */

static bool read_last(const json_t *line, bool is_card_busy, struct ll_status_last *ret_last)
{
	char name[CELL];
	uint64_t ago_ns = ns_of(line, "last_kernel_seconds");
	text_of(line, "last_kernel", name, sizeof name);
	for (unsigned kind = LL_LAST_UNKNOWN; kind <= LL_LAST_NEVER; kind++) {
		*ret_last = (struct ll_status_last){.kind = (enum ll_last_kernel)kind, .ago_ns = ago_ns};
		bool is_told = kind == LL_LAST_AGO || kind == LL_LAST_AT_LEAST ? ago_ns != LL_AGE_UNKNOWN : true;
		if (!is_told || strcmp(ll_status_last_name(ret_last), name) != 0)
			continue;
		ret_last->is_card_busy = kind == LL_LAST_UNKNOWN && is_card_busy;
		return true;
	}
	return false;
}

static void write_state(struct ll_status_row *row, const json_t *line)
{
	char text[CELL];
	double percent = number_of(line, "target_percent"), watts = number_of(line, "target_watts");
	if (json_object_get(line, "process"))
		snprintf(row->state, sizeof row->state, "%s",
			 is_true(line, "mps_server")       ? _("MPS server")
			 : is_true(line, "older_loadline") ? _("older loadline")
							   : _("ungoverned"));
	else if (json_object_get(line, "tenant_row"))
		snprintf(row->state, sizeof row->state, "%s", _("off the card"));
	else if (*text_of(line, "waits_for", text, sizeof text / 2))
		snprintf(row->state, sizeof row->state, _("waits for %s"), text);
	else if (is_true(line, "over_cap"))
		snprintf(row->state, sizeof row->state, "%s", _("waits for time"));
	else if (*text_of(line, "state", text, sizeof text / 2) && watts > 0)
		snprintf(row->state, sizeof row->state, "%s %.0f W", _(text), watts);
	else if (*text && percent > 0)
		snprintf(row->state, sizeof row->state, "%s %g %%", _(text), percent);
	else
		snprintf(row->state, sizeof row->state, "%s", *text ? _(text) : "");
}

static void add_row(struct ll_table *table, const struct ll_status_host *host, const json_t *card, const json_t *line)
{
	char user[CELL], command[LL_STATUS_COMMAND_SIZE], tenant[CELL], class[CELL];
	struct ll_status_row row = {.host = host->name, .user = user, .command = command, .tenant = tenant};
	bool is_synthetic = is_true(line, "synthetic");
	double slice = number_of(card, "slice"), share = number_of(line, "share_percent");
	text_of(line, "user", user, sizeof user);
	text_of(line, "command", command, sizeof command);
	text_of(line, json_object_get(line, "process") ? "started_in_tenant" : "tenant", tenant, sizeof tenant);
	if (is_synthetic)
		row.tenant = _(LL_STATUS_SYNTHETIC);
	if (!*text_of(line, "claim", row.claim, sizeof row.claim))
		snprintf(row.claim, sizeof row.claim, isnan(slice) ? "%.0f/-" : "%.0f:%.0f/-", number_of(card, "card"),
			 slice);
	if (!json_object_get(line, "tenant_row") && json_object_get(line, "pid_is_local") != json_false())
		snprintf(row.pid, sizeof row.pid, "%.0f", number_of(line, "pid"));
	write_state(&row, line);
	row.job_number = bytes_of(line, json_object_get(line, "tenant_row") ? "tenant_row" : "job_number", 0);
	row.age_ns = ns_of(line, "process_age_seconds");
	row.has_last = !is_synthetic && read_last(line, number_of(card, "util_percent") > 0, &row.last);
	row.memory_bytes = bytes_of(line, "memory_bytes", LL_MEMORY_UNKNOWN);
	row.limit_bytes = bytes_of(line, "memory_limit_bytes", 0);
	row.seconds = number_of(line, is_synthetic ? "synthetic_busy_seconds" : "gpu_seconds");
	double cap = number_of(line, "compute_cap_percent"), space = number_of(line, "mps_compute_percent");
	row.is_by_space = isnan(cap) && !isnan(space);
	row.cap_percent = !isnan(cap) ? cap : row.is_by_space ? space : 0;
	if (!is_synthetic && *text_of(line, "class", class, sizeof class) && strcmp(class, "normal") != 0)
		row.class = class;
	row.has_share = !isnan(share);
	row.share_percent = row.has_share ? share : 0;
	ll_status_row_add(table, &row);
}

/* ---- both ---- */

static void add_host(struct ll_table *cards, struct ll_table *rows, const struct ll_status_host *host)
{
	const json_t *card = NULL;
	json_t *line;
	size_t i;
	json_array_foreach(host->lines, i, line)
	{
		if (json_object_get(line, "card")) {
			card = line;
			add_card(cards, host, line);
		} else if (json_object_get(line, "claim") || json_object_get(line, "process") ||
			   json_object_get(line, "tenant_row")) {
			add_row(rows, host, card, line);
		}
	}
}

void ll_status_hosts_add_text(struct ll_strbuf *text, const struct ll_status_host *hosts, size_t count,
			      unsigned columns)
{
	struct ll_table cards, rows;
	ll_table_init(&cards, columns_of_cards, sizeof columns_of_cards / sizeof *columns_of_cards);
	ll_status_rows_init(&rows, true);
	for (size_t i = 0; i < count; i++)
		add_host(&cards, &rows, &hosts[i]);
	if (cards.cell_count > cards.column_count)
		ll_table_print(&cards, columns, text);
	if (rows.cell_count > rows.column_count) {
		ll_strbuf_addc(text, '\n');
		ll_table_print(&rows, columns, text);
	}
	text->failed |= cards.cells.failed || rows.cells.failed;
	ll_table_fini(&cards);
	ll_table_fini(&rows);
	for (size_t i = 0; i < count; i++) {
		if (hosts[i].reason[0])
			ll_strbuf_addf(text, _("host %s: %s\n"), hosts[i].name, hosts[i].reason);
		else if (hosts[i].is_older)
			ll_strbuf_addf(text, _("host %s: an older loadline, which does not tell all\n"), hosts[i].name);
	}
}
