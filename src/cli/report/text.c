#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "base/utf8.h"
#include "cli/common/json_line.h"
#include "cli/common/table.h"
#include "cli/common/user.h"
#include "cli/report/parts.h"

enum { CELL_SIZE = 160, LEAST_KEY = 16, COLUMNS = 9 };

#define S_PER_H 3600.0
#define BYTES_PER_GIB 1073741824.0
#define JOULES_PER_KWH 3.6e6

const char *const ll_report_by_words[] = {"tenant", "user", "job", "project", "card", "day", NULL};

/* ---- keys and totals ---- */

static void read_key(enum ll_use_by by, const struct ll_use_sum *sum, char *ret_text, size_t size)
{
	uint64_t uid;
	if (by == LL_USE_BY_USER && ll_parse_uint(sum->key, 0, UINT32_MAX, &uid, NULL) == 0)
		ll_user_name((uid_t)uid, ret_text, size);
	else
		snprintf(ret_text, size, "%s", sum->key);
	ll_utf8_clean(ret_text);
}

void ll_report_add_key(struct ll_strbuf *out, enum ll_use_by by, const struct ll_use_sum *sum)
{
	char text[CELL_SIZE];
	read_key(by, sum, text, sizeof text);
	if (sum->number)
		ll_strbuf_addf(out, "%" PRIu64, sum->number);
	else
		ll_strbuf_adds(out, *text ? text : _("(none)"));
}

static double add_known(double one, double other)
{
	return isnan(one) ? other : isnan(other) ? one : one + other;
}

void ll_report_total(const struct ll_use_report *report, struct ll_use_sum *ret_total)
{
	*ret_total = (struct ll_use_sum){.joules = NAN, .lent_s = NAN, .borrowed_s = NAN};
	for (size_t i = 0; i < report->count; i++) {
		const struct ll_use_sum *sum = &report->sums[i];
		ret_total->granted_s += sum->granted_s;
		ret_total->used_s += sum->used_s;
		ret_total->idle_held_s += sum->idle_held_s;
		ret_total->memory_byte_s += sum->memory_byte_s;
		ret_total->joules = add_known(ret_total->joules, sum->joules);
		ret_total->lent_s = add_known(ret_total->lent_s, sum->lent_s);
		ret_total->borrowed_s = add_known(ret_total->borrowed_s, sum->borrowed_s);
	}
}

/* ---- a table ---- */

static void add_amount(struct ll_table *table, double amount)
{
	char cell[CELL_SIZE];
	snprintf(cell, sizeof cell, "%.2f", amount);
	ll_table_add(table, isnan(amount) ? "" : cell);
}

static void add_sum(struct ll_table *table, const char *key, const struct ll_use_sum *sum,
		    const struct ll_use_prices *prices)
{
	ll_table_add(table, key);
	add_amount(table, sum->granted_s / S_PER_H);
	add_amount(table, sum->used_s / S_PER_H);
	add_amount(table, sum->idle_held_s / S_PER_H);
	add_amount(table, sum->memory_byte_s / BYTES_PER_GIB / S_PER_H);
	add_amount(table, sum->joules / JOULES_PER_KWH);
	if (ll_use_prices_are_set(prices))
		add_amount(table, ll_use_cost(prices, sum));
	add_amount(table, sum->lent_s / S_PER_H);
	add_amount(table, sum->borrowed_s / S_PER_H);
}

void ll_report_add_cost_heading(struct ll_strbuf *out, const struct ll_use_prices *prices)
{
	ll_strbuf_addf(out, "%s%s%s", _("cost"), prices->currency[0] ? " " : "", prices->currency);
}

static const char *heading_of(enum ll_use_by by)
{
	static const char *const headings[LL_USE_BYS] = {N_("tenant"),  N_("user"), N_("job"),
							 N_("project"), N_("card"), N_("day")};
	return headings[by];
}

void ll_report_add_text(struct ll_strbuf *out, const struct ll_use_report *report, enum ll_use_by by,
			const struct ll_use_prices *prices, unsigned columns)
{
	LL_SCOPE_STRBUF struct ll_strbuf cost = LL_STRBUF_INIT;
	bool has_prices = ll_use_prices_are_set(prices);
	ll_report_add_cost_heading(&cost, prices);
	const struct ll_table_column all[COLUMNS] = {
	    {.heading = heading_of(by), .least = LEAST_KEY},
	    {.heading = N_("granted h")},
	    {.heading = N_("used h")},
	    {.heading = N_("idle held h")},
	    {.heading = N_("memory GiB h")},
	    {.heading = N_("energy kWh"), .may_go = true},
	    {.heading = has_prices ? cost.buf : N_("lent h"), .may_go = !has_prices},
	    {.heading = has_prices ? N_("lent h") : N_("borrowed h"), .may_go = true},
	    {.heading = N_("borrowed h"), .may_go = true},
	};
	struct ll_table table;
	struct ll_use_sum total;
	ll_table_init(&table, all, has_prices ? COLUMNS : COLUMNS - 1);
	for (size_t i = 0; i < report->count; i++) {
		LL_SCOPE_STRBUF struct ll_strbuf key = LL_STRBUF_INIT;
		ll_report_add_key(&key, by, &report->sums[i]);
		add_sum(&table, key.buf, &report->sums[i], prices);
	}
	ll_report_total(report, &total);
	if (report->count > 1)
		add_sum(&table, _("total"), &total, prices);
	ll_table_print(&table, columns, out);
	ll_table_fini(&table);
}

/* ---- CSV ---- */

static void add_field(struct ll_strbuf *out, double amount)
{
	if (isnan(amount))
		ll_strbuf_addc(out, ',');
	else
		ll_strbuf_addf(out, ",%.3f", amount);
}

void ll_report_add_csv(struct ll_strbuf *out, const struct ll_use_report *report, enum ll_use_by by,
		       const struct ll_use_prices *prices)
{
	char key[CELL_SIZE];
	ll_strbuf_addf(out,
		       "%s,granted_seconds,used_seconds,idle_held_seconds,memory_byte_seconds,joules,lent_seconds,"
		       "borrowed_seconds%s%s\n",
		       ll_report_by_words[by], ll_use_prices_are_set(prices) ? ",cost" : "",
		       by == LL_USE_BY_JOB ? ",number" : "");
	for (size_t i = 0; i < report->count; i++) {
		const struct ll_use_sum *sum = &report->sums[i];
		read_key(by, sum, key, sizeof key);
		ll_strbuf_add_csv(out, key);
		add_field(out, sum->granted_s);
		add_field(out, sum->used_s);
		add_field(out, sum->idle_held_s);
		add_field(out, sum->memory_byte_s);
		add_field(out, sum->joules);
		add_field(out, sum->lent_s);
		add_field(out, sum->borrowed_s);
		if (ll_use_prices_are_set(prices))
			add_field(out, ll_use_cost(prices, sum));
		if (by == LL_USE_BY_JOB)
			ll_strbuf_addc(out, ',');
		if (by == LL_USE_BY_JOB && sum->number)
			ll_strbuf_addf(out, "%" PRIu64, sum->number);
		ll_strbuf_addc(out, '\n');
	}
}

/* ---- JSON ---- */

static int print_json(const struct ll_use_sum *sum, enum ll_use_by by, const struct ll_use_prices *prices,
		      struct ll_err *err)
{
	enum { MS = 3 };
	char key[CELL_SIZE];
	read_key(by, sum, key, sizeof key);
	json_t *line = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", ll_report_by_words[by], ll_json_text(key),
				 "granted_seconds", ll_json_real(sum->granted_s, MS), "used_seconds",
				 ll_json_real(sum->used_s, MS), "idle_held_seconds", ll_json_real(sum->idle_held_s, MS),
				 "memory_byte_seconds", json_integer(llround(sum->memory_byte_s)), "joules",
				 ll_json_real(sum->joules, MS), "lent_seconds", ll_json_real(sum->lent_s, MS),
				 "borrowed_seconds", ll_json_real(sum->borrowed_s, MS));
	if (line && ll_use_prices_are_set(prices)) {
		json_object_set_new(line, "cost", ll_json_real(ll_use_cost(prices, sum), MS));
		json_object_set_new(line, "currency",
				    prices->currency[0] ? ll_json_text(prices->currency) : json_null());
	}
	if (line && by == LL_USE_BY_JOB)
		json_object_set_new(line, "number", sum->number ? json_integer((json_int_t)sum->number) : json_null());
	uint64_t uid;
	if (line && by == LL_USE_BY_USER && ll_parse_uint(sum->key, 0, UINT32_MAX, &uid, NULL) == 0)
		json_object_set_new(line, "uid", json_integer((json_int_t)uid));
	return ll_json_line(line, err);
}

int ll_report_print_json(const struct ll_use_report *report, enum ll_use_by by, const struct ll_use_prices *prices,
			 struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; i < report->count && !rc; i++)
		rc = print_json(&report->sums[i], by, prices, err);
	return rc;
}
