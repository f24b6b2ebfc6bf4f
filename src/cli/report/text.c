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
#include "cli/common/table.h"
#include "cli/common/user.h"
#include "cli/report/parts.h"

enum { CELL_SIZE = 160, LEAST_KEY = 16, COLUMNS = 10 };

/* Where the cost is in a table, and the first amount that may be missing there. */
enum { COST_BEFORE = 5, FIRST_TO_GO = 4 };

#define S_PER_H 3600.0
#define BYTE_S_PER_GIB_H (1073741824.0 * S_PER_H)
#define JOULES_PER_KWH 3.6e6

#define AMOUNT(field) offsetof(struct ll_use_sum, field)
const struct ll_report_amount ll_report_amounts[LL_REPORT_AMOUNTS] = {
    {"granted_seconds", N_("granted h"), S_PER_H, AMOUNT(granted_s)},
    {"used_seconds", N_("used h"), S_PER_H, AMOUNT(used_s)},
    {"idle_held_seconds", N_("idle held h"), S_PER_H, AMOUNT(idle_held_s)},
    {"memory_byte_seconds", N_("memory GiB h"), BYTE_S_PER_GIB_H, AMOUNT(memory_byte_s)},
    {"joules", N_("energy kWh"), JOULES_PER_KWH, AMOUNT(joules)},
    {"lent_seconds", N_("lent h"), S_PER_H, AMOUNT(lent_s)},
    {"borrowed_seconds", N_("borrowed h"), S_PER_H, AMOUNT(borrowed_s)},
    {"borrowed_memory_byte_seconds", N_("borrowed GiB h"), BYTE_S_PER_GIB_H, AMOUNT(borrowed_byte_s)},
};

double ll_report_amount(const struct ll_report_amount *amount, const struct ll_use_sum *sum)
{
	return *(const double *)(const void *)((const char *)sum + amount->offset);
}

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

void ll_report_total(const struct ll_use_report *report, struct ll_use_sum *ret_total)
{
	*ret_total = (struct ll_use_sum){.joules = NAN, .lent_s = NAN, .borrowed_s = NAN, .borrowed_byte_s = NAN};
	for (size_t i = 0; i < report->count; i++)
		ll_use_sum_add(ret_total, &report->sums[i]);
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
	for (size_t i = 0; i < LL_REPORT_AMOUNTS; i++) {
		if (i == COST_BEFORE && ll_use_prices_are_set(prices))
			add_amount(table, ll_use_cost(prices, sum));
		add_amount(table, ll_report_amount(&ll_report_amounts[i], sum) / ll_report_amounts[i].unit);
	}
}

void ll_report_add_cost_heading(struct ll_strbuf *out, const struct ll_use_prices *prices)
{
	ll_strbuf_addf(out, "%s%s%s", _("cost"), prices->currency[0] ? " " : "", prices->currency);
}

void ll_report_add_text(struct ll_strbuf *out, const struct ll_use_report *report, enum ll_use_by by,
			const struct ll_use_prices *prices, unsigned columns)
{
	static const char *const headings[LL_USE_BYS] = {N_("tenant"),  N_("user"), N_("job"),
							 N_("project"), N_("card"), N_("day")};
	LL_SCOPE_STRBUF struct ll_strbuf cost = LL_STRBUF_INIT;
	bool has_prices = ll_use_prices_are_set(prices);
	ll_report_add_cost_heading(&cost, prices);
	struct ll_table_column all[COLUMNS] = {{.heading = headings[by], .least = LEAST_KEY}};
	size_t count = 1;
	for (size_t i = 0; i < LL_REPORT_AMOUNTS; i++) {
		if (i == COST_BEFORE && has_prices)
			all[count++] = (struct ll_table_column){.heading = cost.buf};
		all[count++] =
		    (struct ll_table_column){.heading = ll_report_amounts[i].heading, .may_go = i >= FIRST_TO_GO};
	}
	struct ll_table table;
	struct ll_use_sum total;
	ll_table_init(&table, all, count);
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
	ll_strbuf_adds(out, ll_report_by_words[by]);
	for (size_t i = 0; i < LL_REPORT_AMOUNTS; i++)
		ll_strbuf_addf(out, ",%s", ll_report_amounts[i].key);
	ll_strbuf_addf(out, "%s%s\n", ll_use_prices_are_set(prices) ? ",cost" : "",
		       by == LL_USE_BY_JOB ? ",number" : "");
	for (size_t i = 0; i < report->count; i++) {
		const struct ll_use_sum *sum = &report->sums[i];
		read_key(by, sum, key, sizeof key);
		ll_strbuf_add_csv(out, key);
		for (size_t k = 0; k < LL_REPORT_AMOUNTS; k++)
			add_field(out, ll_report_amount(&ll_report_amounts[k], sum));
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
	json_t *line = json_pack("{s:o}", ll_report_by_words[by], ll_json_text(key));
	for (size_t i = 0; line && i < LL_REPORT_AMOUNTS; i++) {
		const struct ll_report_amount *amount = &ll_report_amounts[i];
		double value = ll_report_amount(amount, sum);
		bool is_of_memory = amount->unit == BYTE_S_PER_GIB_H;
		json_object_set_new(line, amount->key,
				    is_of_memory && !isnan(value) ? json_integer(llround(value))
								  : ll_json_real(value, MS));
	}
	if (line && ll_use_prices_are_set(prices)) {
		json_object_set_new(line, "cost", ll_json_real(ll_use_cost(prices, sum), MS));
		json_object_set_new(line, "currency", ll_json_known(prices->currency[0], prices->currency));
	}
	if (line && by == LL_USE_BY_JOB)
		json_object_set_new(line, "number", ll_json_number(sum->number, sum->number));
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
