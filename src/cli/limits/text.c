#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/common/daemon.h"
#include "cli/common/table.h"
#include "cli/limits/limits.h"
#include "cli/status/status.h"
#include "hold/command/words.h"

enum { CELL_SIZE = 128, LEAST_TENANT = 9, LEAST_NAME = 12, LEAST_COMMAND = 10 };

static const struct ll_table_column columns_of_jobs[] = {
    {.heading = N_("job")},
    {.heading = N_("tenant"), .least = LEAST_TENANT},
    {.heading = N_("class")},
    {.heading = N_("memory"), .is_second = true},
    {.heading = N_("promised"), .is_second = true},
    {.heading = N_("compute"), .is_second = true},
    {.heading = N_("weight"), .is_second = true, .may_go = true},
    {.heading = N_("command"), .least = LEAST_COMMAND, .is_second = true},
};

static const struct ll_table_column columns_of_uses[] = {
    {.heading = N_("card")},
    {.heading = N_("tenant"), .least = LEAST_TENANT},
    {.heading = N_("memory used")},
    {.heading = N_("left")},
    {.heading = N_("share")},
    {.heading = N_("time")},
    {.heading = N_("claims"), .may_go = true},
};

static const struct ll_table_column columns_of_cards[] = {
    {.heading = N_("card")},
    {.heading = N_("name"), .least = LEAST_NAME},
    {.heading = N_("util")},
    {.heading = N_("memory free")},
    {.heading = N_("promised")},
    {.heading = N_("can be promised")},
    {.heading = N_("jobs"), .may_go = true},
};

/* bytes: LL_MEMORY_UNKNOWN. */
static void add_bytes(struct ll_table *table, uint64_t bytes)
{
	LL_SCOPE_STRBUF struct ll_strbuf cell = LL_STRBUF_INIT;
	if (bytes != LL_MEMORY_UNKNOWN)
		ll_hold_add_bytes(&cell, bytes);
	ll_table_add(table, cell.buf);
	table->cells.failed |= cell.failed;
}

static void add_percent(struct ll_table *table, bool is_known, double percent)
{
	char cell[CELL_SIZE];
	snprintf(cell, sizeof cell, "%g %%", percent);
	ll_table_add(table, is_known ? cell : "");
}

static void add_uint(struct ll_table *table, uint64_t number)
{
	char cell[CELL_SIZE];
	snprintf(cell, sizeof cell, "%" PRIu64, number);
	ll_table_add(table, cell);
}

/* Adds the table, unless it has headings alone, and frees it. */
static void end_table(struct ll_strbuf *text, struct ll_table *table, unsigned columns)
{
	if (table->cell_count > table->column_count) {
		ll_strbuf_addc(text, '\n');
		ll_table_print(table, columns, text);
	}
	text->failed |= table->cells.failed;
	ll_table_fini(table);
}

/* ---- what may I ---- */

static void add_job(struct ll_table *table, const struct ll_job_facts *facts)
{
	const struct ll_limits *limits = &facts->limits;
	char cell[CELL_SIZE];
	snprintf(cell, sizeof cell, "%" PRIx64, facts->token[0]);
	ll_table_add(table, cell);
	ll_table_add(table, facts->tenant);
	ll_table_add(table, ll_priority_name(ll_priority_of_class(limits->priority)));
	add_bytes(table, limits->memory_bytes ? limits->memory_bytes : LL_MEMORY_UNKNOWN);
	add_bytes(table, limits->request_bytes ? limits->request_bytes : LL_MEMORY_UNKNOWN);
	if (limits->space_permille)
		snprintf(cell, sizeof cell, _("%g %% of the SMs"), limits->space_permille / 10.0);
	else
		snprintf(cell, sizeof cell, "%g %%", limits->compute_permille / 10.0);
	ll_table_add(table, limits->space_permille || limits->compute_permille ? cell : "");
	snprintf(cell, sizeof cell, "%g", limits->weight_permille ? limits->weight_permille / 1000.0 : 1.0);
	ll_table_add(table, cell);
	ll_table_add(table, facts->command);
}

static void add_membership(struct ll_strbuf *text, const struct ll_limits_view *view)
{
	const struct ll_policy *policy = &view->daemon.policy;
	bool has_one = false;
	for (size_t i = 0; i < policy->tenant_count; i++) {
		const struct ll_message_policy_tenant *row = &policy->tenants[i];
		if (!(row->flags & LL_POLICY_IS_MINE))
			continue;
		if (!has_one)
			ll_strbuf_addf(text, _("user %s: in the tenants "), view->user);
		ll_strbuf_addf(text, "%s%s%s", has_one ? ", " : "", row->name,
			       row->flags & LL_POLICY_IS_FIRST ? _(" (a job without --tenant is there)") : "");
		has_one = true;
	}
	if (has_one)
		ll_strbuf_addc(text, '\n');
	else
		ll_strbuf_addf(text, _("user %s: in no tenant of this machine\n"), view->user);
}

static void add_heading(struct ll_strbuf *text, const struct ll_limits_view *view)
{
	if (view->is_inside && view->jobs[0].is_as_begun)
		ll_strbuf_adds(
		    text, _("this job, with the limits with which it began: loadlined does not tell those of now\n"));
	else if (view->is_inside)
		ll_strbuf_adds(text, _("this job, with its limits on each card\n"));
	else if (view->daemon.welcome.policy_since_s)
		add_membership(text, view);
	else
		ll_strbuf_addf(
		    text,
		    _("user %s: no limits of users are in force, since this machine has no configuration; each "
		      "job has those of its `loadline run`, on each card\n"),
		    view->user);
	if (!view->is_inside && !view->job_count && view->daemon.answer != LL_DAEMON_SILENT)
		ll_strbuf_adds(text, _("no job of this user runs\n"));
}

static void add_jobs(struct ll_strbuf *text, const struct ll_limits_view *view, unsigned columns)
{
	struct ll_table table;
	ll_table_init(&table, columns_of_jobs, sizeof columns_of_jobs / sizeof *columns_of_jobs);
	for (size_t i = 0; i < view->job_count; i++)
		add_job(&table, &view->jobs[i].row->job);
	end_table(text, &table, columns);
}

/* ---- what the configuration says of the user ---- */

static const struct ll_table_column columns_of_tenants[] = {
    {.heading = N_("tenant"), .least = LEAST_TENANT},
    {.heading = N_("amount")},
    {.heading = N_("each user may have")},
    {.heading = N_("you have")},
    {.heading = N_("left")},
};

static const struct ll_table_column columns_of_parts[] = {
    {.heading = N_("tenant"), .least = LEAST_TENANT},
    {.heading = N_("cards")},
    {.heading = N_("amount")},
    {.heading = N_("guaranteed")},
    {.heading = N_("limit")},
    {.heading = N_("asked for by all")},
};

static const struct ll_table_column columns_of_loans[] = {
    {.heading = N_("tenant"), .least = LEAST_TENANT},
    {.heading = N_("cards")},
    {.heading = N_("you may borrow now")},
    {.heading = N_("you borrow")},
};

static void add_amount(struct ll_table *table, char kind, uint64_t amount)
{
	LL_SCOPE_STRBUF struct ll_strbuf cell = LL_STRBUF_INIT;
	if (amount != UINT64_MAX)
		ll_policy_add_amount(&cell, kind, amount);
	ll_table_add(table, cell.length ? cell.buf : "");
	table->cells.failed |= cell.failed;
}

static void add_tenant(struct ll_table *table, const struct ll_message_policy_tenant *row)
{
	struct ll_policy_amount amounts[LL_POLICY_AMOUNTS];
	ll_policy_user_amounts(row, amounts);
	for (size_t i = 0; i < LL_POLICY_AMOUNTS; i++) {
		if (amounts[i].limit == UINT64_MAX && !amounts[i].used)
			continue;
		ll_table_add(table, row->name);
		ll_table_add(table, _(amounts[i].name));
		add_amount(table, amounts[i].kind, amounts[i].limit);
		add_amount(table, amounts[i].kind, amounts[i].used);
		add_amount(table, amounts[i].kind, ll_policy_left(&amounts[i]));
	}
}

static void add_part(struct ll_table *table, const struct ll_message_policy_part *part)
{
	const struct {
		const char *name;
		char kind;
		uint64_t guaranteed, limit, used;
	} rows[] = {
	    {N_("whole cards"), 'n', part->guaranteed_cards, part->limit_cards, part->used_cards},
	    {N_("memory"), 'm', part->guaranteed_memory_bytes, part->limit_memory_bytes, part->used_memory_bytes},
	    {N_("compute"), 'c', part->guaranteed_compute_permille, part->limit_compute_permille,
	     part->used_compute_permille},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (rows[i].guaranteed == UINT64_MAX && rows[i].limit == UINT64_MAX)
			continue;
		ll_table_add(table, part->tenant);
		ll_table_add(table, part->group);
		ll_table_add(table, _(rows[i].name));
		add_amount(table, rows[i].kind, rows[i].guaranteed);
		add_amount(table, rows[i].kind, rows[i].limit);
		add_amount(table, rows[i].kind, part->is_known ? rows[i].used : UINT64_MAX);
	}
}

static void add_classes(struct ll_strbuf *text, const struct ll_message_policy_tenant *row)
{
	bool has_one = false;
	ll_strbuf_addf(text, _("tenant %s: weight %" PRIu64 ", classes"), row->name, row->weight);
	for (uint32_t class = 0; class <= LL_LIMIT_CLASS_LOW; class ++) {
		if (!(row->classes & 1U << class))
			continue;
		ll_strbuf_addf(text, "%s%s", has_one ? ", " : " ", ll_priority_name(ll_priority_of_class(class)));
		has_one = true;
	}
	ll_strbuf_addc(text, '\n');
}

static void add_budget(struct ll_strbuf *text, const struct ll_message_policy_budget *budget)
{
	static const char *const periods[] = {N_("day"), N_("week"), N_("month")};
	char moment[LL_MOMENT_SIZE];
	double left = budget->gpu_hours - budget->granted_hours;
	ll_strbuf_addf(text, _("tenant %s: budget %.6g GPU hours a %s"), budget->tenant, budget->gpu_hours,
		       _(periods[budget->per]));
	if (budget->is_known) {
		ll_policy_moment(budget->end_s, moment);
		ll_strbuf_addf(text, _(", %.2f granted, %.2f left until %s"), budget->granted_hours,
			       left > 0 ? left : 0, moment);
	}
	if (budget->is_known && left <= 0)
		ll_strbuf_adds(text, budget->borrow_only ? _("; new jobs are refused (borrow-only acts as refuse)")
							 : _("; new jobs are refused"));
	ll_strbuf_addc(text, '\n');
}

static void add_policy(struct ll_strbuf *text, const struct ll_limits_view *view, unsigned columns)
{
	const struct ll_policy *policy = &view->daemon.policy;
	struct ll_table table;
	for (size_t i = 0; i < policy->tenant_count; i++)
		add_classes(text, &policy->tenants[i]);
	for (size_t i = 0; i < policy->budget_count; i++)
		add_budget(text, &policy->budgets[i]);
	ll_table_init(&table, columns_of_tenants, sizeof columns_of_tenants / sizeof *columns_of_tenants);
	for (size_t i = 0; i < policy->tenant_count; i++)
		add_tenant(&table, &policy->tenants[i]);
	end_table(text, &table, columns);
	ll_table_init(&table, columns_of_parts, sizeof columns_of_parts / sizeof *columns_of_parts);
	for (size_t i = 0; i < policy->part_count; i++)
		add_part(&table, &policy->parts[i]);
	end_table(text, &table, columns);
	ll_table_init(&table, columns_of_loans, sizeof columns_of_loans / sizeof *columns_of_loans);
	for (size_t i = 0; i < policy->loan_count; i++) {
		ll_table_add(&table, policy->loans[i].tenant);
		ll_table_add(&table, policy->loans[i].group);
		add_amount(&table, 'm', policy->loans[i].lendable_bytes);
		add_amount(&table, 'm', policy->loans[i].borrowed_bytes);
	}
	end_table(text, &table, columns);
}

/* ---- what have I ---- */

static void add_use(struct ll_table *table, const struct ll_limits_view *view, const struct ll_status_card *card,
		    const struct ll_status_job *use)
{
	char cell[CELL_SIZE];
	ll_table_add(table, card->card->label);
	ll_table_add(table, use->told.job.tenant);
	add_bytes(table, use->row.used_bytes);
	add_bytes(table, ll_limits_left_bytes(view, card, use));
	add_percent(table, use->row.recent_ns, round(use->row.recent_permille / 10.0));
	snprintf(cell, sizeof cell, "%.1f s", (double)use->row.gpu_time_ns / (double)LL_NS_PER_S);
	ll_table_add(table, cell);
	add_uint(table, use->row.claims);
}

static void add_uses(struct ll_strbuf *text, const struct ll_limits_view *view, unsigned columns)
{
	struct ll_table table;
	ll_table_init(&table, columns_of_uses, sizeof columns_of_uses / sizeof *columns_of_uses);
	for (size_t i = 0; i < view->card_count; i++) {
		for (size_t k = 0; k < view->job_count; k++) {
			const struct ll_status_job *use = ll_limits_use(&view->cards[i], &view->jobs[k]);
			if (use)
				add_use(&table, view, &view->cards[i], use);
		}
	}
	end_table(text, &table, columns);
}

/* ---- what is left ---- */

static void add_cards(struct ll_strbuf *text, const struct ll_limits_view *view, unsigned columns)
{
	struct ll_table table;
	ll_table_init(&table, columns_of_cards, sizeof columns_of_cards / sizeof *columns_of_cards);
	for (size_t i = 0; i < view->card_count; i++) {
		const struct ll_status_card *card = &view->cards[i];
		ll_table_add(&table, card->card->label);
		ll_table_add(&table, card->card->name[0] ? card->card->name : _("does not answer"));
		add_percent(&table, !isnan(card->util_percent), round(card->util_percent));
		add_bytes(&table, ll_limits_free_bytes(view, card));
		add_bytes(&table, ll_limits_promised_bytes(view, card));
		add_bytes(&table, ll_limits_promisable_bytes(view, card));
		add_uint(&table, card->job_count);
	}
	end_table(text, &table, columns);
}

void ll_limits_add_text(struct ll_strbuf *text, const struct ll_limits_view *view, unsigned columns)
{
	add_heading(text, view);
	if (!view->is_inside)
		add_policy(text, view, columns);
	add_jobs(text, view, columns);
	add_uses(text, view, columns);
	add_cards(text, view, columns);
	ll_status_add_daemon(text, &view->daemon);
}
