#include "daemon/policy/policy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "daemon/accounts/accounts.h"
#include "daemon/core/server.h"
#include "daemon/machine/machine.h"

#define WARN_PART 0.8
#define S_PER_H 3600.0

enum { NO_PROJECTS = 0, REQUIRED_PROJECTS = 2 }; /* struct ll_config_accounts */

static int64_t now_s(void)
{
	return (int64_t)(ll_wall_ns() / LL_NS_PER_S);
}

/* Whether the sums are those of the present periods. A clock that was set back leaves the period, too. */
static bool is_present(const struct ll_spending *spending)
{
	const struct ll_spent *spent = &spending->spent;
	int64_t now = now_s();
	return spending->is_known && now >= spent->begin_s[LL_SPENT_DAY] && now < spent->end_s[LL_SPENT_DAY];
}

/* ---- reading ---- */

bool ll_spending_is_wanted(const struct ll_spending *spending, const struct ll_server *server)
{
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	bool has_budget = false;
	for (size_t i = 0; policy && i < policy->tenants.count; i++)
		has_budget = has_budget || policy->tenants.items[i].budget.from;
	return has_budget && !is_present(spending);
}

void ll_spending_begin_read(struct ll_spending *spending, const struct ll_server *server)
{
	spending->is_reading = ll_spending_is_wanted(spending, server);
	spending->has_read = false;
	if (spending->is_reading)
		ll_spent_set_periods(&spending->reading, now_s());
}

int ll_spending_read(struct ll_spending *spending, struct ll_use_database *database, struct ll_err *err)
{
	int rc = spending->is_reading ? ll_spent_read(&spending->reading, database, err) : 0;
	spending->has_read = spending->is_reading && !rc;
	return rc;
}

void ll_spending_end_read(struct ll_spending *spending, const struct ll_server *server)
{
	if (spending->has_read) {
		ll_spent_fini(&spending->spent);
		spending->spent = spending->reading;
		spending->reading = (struct ll_spent){0};
		spending->is_known = true;
		ll_spending_tell(spending, server);
	}
	ll_spent_fini(&spending->reading);
	spending->is_reading = spending->has_read = false;
}

void ll_spending_add(struct ll_spending *spending, const char *tenant, uint64_t granted_ns)
{
	double granted_s[LL_SPENT_PERIODS];
	for (int period = 0; period < LL_SPENT_PERIODS; period++)
		granted_s[period] = (double)granted_ns / (double)LL_NS_PER_S;
	if (!spending->is_known || !granted_ns)
		return;
	if (!is_present(spending) || ll_spent_add(&spending->spent, tenant, granted_s))
		spending->is_known = false;
}

void ll_spending_fini(struct ll_spending *spending)
{
	ll_spent_fini(&spending->spent);
	ll_spent_fini(&spending->told);
	ll_spent_fini(&spending->reading);
}

/* ---- a tenant's budget ---- */

static const char *const period_words[LL_SPENT_PERIODS] = {"day", "week", "month"};

static double used_s(const struct ll_spending *spending, const struct ll_config_tenant *tenant)
{
	return ll_spent_s(&spending->spent, tenant->name, (enum ll_spent_period)tenant->budget.per);
}

static void tell_tenant(struct ll_spending *spending, const struct ll_server *server,
			const struct ll_config_tenant *tenant)
{
	const struct ll_config_budget *budget = &tenant->budget;
	enum ll_spent_period period = (enum ll_spent_period)budget->per;
	double used_h = used_s(spending, tenant) / S_PER_H, part = used_h >= budget->gpu_hours ? 1 : WARN_PART;
	double told = ll_spent_s(&spending->told, tenant->name, period), more[LL_SPENT_PERIODS] = {0};
	const struct ll_event_about about = {.tenant = tenant->name};
	if (used_h < WARN_PART * budget->gpu_hours || told >= part)
		return;
	more[period] = part - told;
	if (ll_spent_add(&spending->told, tenant->name, more))
		return;
	ll_events_tell(server, LL_EVENT_BUDGET, &about, "tenant %s was granted %.4g of the %.4g GPU hours of this %s%s",
		       tenant->name, used_h, budget->gpu_hours, period_words[period],
		       part < 1 ? "" : ": new jobs are refused");
}

void ll_spending_tell(struct ll_spending *spending, const struct ll_server *server)
{
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	if (!is_present(spending) || !policy)
		return;
	for (int period = 0; period < LL_SPENT_PERIODS; period++) {
		bool is_over = spending->told.begin_s[period] != spending->spent.begin_s[period];
		for (size_t i = 0; is_over && i < spending->told.count; i++)
			spending->told.tenants[i].granted_s[period] = 0;
		spending->told.begin_s[period] = spending->spent.begin_s[period];
	}
	for (size_t i = 0; i < policy->tenants.count; i++) {
		if (policy->tenants.items[i].budget.from)
			tell_tenant(spending, server, &policy->tenants.items[i]);
	}
}

static int check_budget(const struct ll_spending *spending, const struct ll_config_tenant *tenant, struct ll_err *err)
{
	const struct ll_config_budget *budget = &tenant->budget;
	char end[16];
	if (!budget->from || !is_present(spending) || used_s(spending, tenant) < budget->gpu_hours * S_PER_H)
		return 0;
	time_t end_s = spending->spent.end_s[budget->per];
	struct tm parts;
	localtime_r(&end_s, &parts);
	strftime(end, sizeof end, "%Y-%m-%d", &parts);
	/* The reason of a refusal is short (LL_REASON_SIZE). */
	return ll_err_set(err, -EACCES, "budget: %.4g GPU hours a %s, %.4g granted; anew on %s%s", budget->gpu_hours,
			  period_words[budget->per], used_s(spending, tenant) / S_PER_H, end,
			  budget->then == LL_CONFIG_BORROW_ONLY ? " (borrow-only acts as refuse)" : "");
}

int ll_spending_check(const struct ll_server *server, const struct ll_config_tenant *tenant, bool has_project,
		      struct ll_err *err)
{
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	const struct ll_spending *spending = ll_accounting_spending(server->accounting);
	if (policy && policy->accounts.projects == REQUIRED_PROJECTS && !has_project)
		return ll_err_set(err, -EACCES, "project: each job names one here: loadline run --project NAME");
	if (policy && policy->accounts.projects == NO_PROJECTS && has_project)
		return ll_err_set(err, -EACCES, "project: the configuration has no projects");
	return spending ? check_budget(spending, tenant, err) : 0;
}

bool ll_spending_describe(const struct ll_server *server, const struct ll_config_tenant *tenant,
			  union ll_message *ret_message)
{
	const struct ll_spending *spending = ll_accounting_spending(server->accounting);
	if (!tenant->budget.from)
		return false;
	ll_message_init(ret_message, LL_MESSAGE_POLICY_BUDGET);
	struct ll_message_policy_budget *row = &ret_message->policy_budget;
	row->gpu_hours = tenant->budget.gpu_hours;
	row->per = (uint32_t)tenant->budget.per;
	row->is_known = spending && is_present(spending);
	row->borrow_only = tenant->budget.then == LL_CONFIG_BORROW_ONLY;
	if (row->is_known) {
		row->granted_hours = used_s(spending, tenant) / S_PER_H;
		row->end_s = (uint64_t)spending->spent.end_s[tenant->budget.per];
	}
	ll_message_text_set(row->tenant, sizeof row->tenant, tenant->name);
	return true;
}
