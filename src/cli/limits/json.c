#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/common/daemon.h"
#include "cli/common/table.h"
#include "cli/limits/limits.h"
#include "cli/status/status.h"

enum { ID_SIZE = 24 };

static const char *id_of(const struct ll_limits_job *job, char ret_id[ID_SIZE])
{
	snprintf(ret_id, ID_SIZE, "%" PRIx64, job->row->job.token[0]);
	return ret_id;
}

static json_t *bytes_or_null(uint64_t bytes)
{
	return bytes != LL_MEMORY_UNKNOWN ? json_integer((json_int_t)bytes) : json_null();
}

/* ---- what the configuration says of the user ---- */

static json_t *amount_or_null(char kind, uint64_t amount)
{
	if (amount == UINT64_MAX)
		return json_null();
	return kind == 'c' ? ll_json_real((double)amount / 10, 1) : json_integer((json_int_t)amount);
}

enum amount { ALLOWED, USED, LEFT };

static json_t *amounts_object(const struct ll_message_policy_tenant *row, enum amount which)
{
	static const char *const names[] = {"jobs", "memory_bytes", "compute_percent", "whole_cards"};
	struct ll_policy_amount amounts[LL_POLICY_AMOUNTS];
	json_t *object = json_object();
	ll_policy_user_amounts(row, amounts);
	for (size_t i = 0; object && i < LL_POLICY_AMOUNTS; i++) {
		const struct ll_policy_amount *amount = &amounts[i];
		uint64_t value = which == USED      ? amount->used
				 : which == ALLOWED ? amount->limit
						    : ll_policy_left(amount);
		json_object_set_new(object, names[i], amount_or_null(amount->kind, value));
	}
	return object;
}

static json_t *part_amounts(uint64_t cards, uint64_t memory_bytes, uint64_t compute_permille)
{
	return json_pack("{s:o, s:o, s:o}", "cards", amount_or_null('n', cards), "memory_bytes",
			 amount_or_null('m', memory_bytes), "compute_percent", amount_or_null('c', compute_permille));
}

static json_t *parts_array(const struct ll_policy *policy, const char *tenant)
{
	json_t *array = json_array();
	for (size_t i = 0; array && i < policy->part_count; i++) {
		const struct ll_message_policy_part *part = &policy->parts[i];
		if (strcmp(part->tenant, tenant) != 0)
			continue;
		json_t *used = part->is_known ? part_amounts(part->used_cards, part->used_memory_bytes,
							     part->used_compute_permille)
					      : json_null();
		json_array_append_new(
		    array,
		    json_pack("{s:o, s:o, s:o, s:o}", "of", ll_json_text(part->group), "guarantee",
			      part_amounts(part->guaranteed_cards, part->guaranteed_memory_bytes,
					   part->guaranteed_compute_permille),
			      "limit",
			      part_amounts(part->limit_cards, part->limit_memory_bytes, part->limit_compute_permille),
			      "used", used));
	}
	return array;
}

static json_t *loans_array(const struct ll_policy *policy, const char *tenant)
{
	json_t *array = json_array();
	for (size_t i = 0; array && i < policy->loan_count; i++) {
		const struct ll_message_policy_loan *loan = &policy->loans[i];
		if (strcmp(loan->tenant, tenant) == 0)
			json_array_append_new(array, json_pack("{s:o, s:I, s:I}", "of", ll_json_text(loan->group),
							       "may_borrow_bytes", (json_int_t)loan->lendable_bytes,
							       "borrowed_bytes", (json_int_t)loan->borrowed_bytes));
	}
	return array;
}

static json_t *classes_array(uint32_t classes)
{
	json_t *array = json_array();
	for (uint32_t class = 0; array && class <= LL_LIMIT_CLASS_LOW; class ++) {
		if (classes & 1U << class)
			json_array_append_new(array, json_string(ll_priority_name(ll_priority_of_class(class))));
	}
	return array;
}

static json_t *budget_object(const struct ll_message_policy_budget *budget)
{
	enum { DIGITS = 6 };
	static const char *const periods[] = {"day", "week", "month"};
	if (!budget)
		return json_null();
	double left = budget->gpu_hours - budget->granted_hours;
	return json_pack("{s:o, s:s, s:s, s:o, s:o, s:o}", "gpu_hours", ll_json_real(budget->gpu_hours, DIGITS), "per",
			 periods[budget->per], "then", budget->borrow_only ? "borrow-only" : "refuse",
			 "granted_gpu_hours",
			 budget->is_known ? ll_json_real(budget->granted_hours, DIGITS) : json_null(), "left_gpu_hours",
			 budget->is_known ? ll_json_real(left > 0 ? left : 0, DIGITS) : json_null(), "ends",
			 ll_json_number(budget->is_known, (uint64_t)budget->end_s));
}

static json_t *tenant_object(const struct ll_policy *policy, const struct ll_message_policy_tenant *row)
{
	return json_pack("{s:o, s:b, s:b, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "tenant", ll_json_text(row->name),
			 "member", (row->flags & LL_POLICY_IS_MINE) != 0, "first",
			 (row->flags & LL_POLICY_IS_FIRST) != 0, "weight", (json_int_t)row->weight, "classes",
			 classes_array(row->classes), "limits", amounts_object(row, ALLOWED), "used",
			 amounts_object(row, USED), "left", amounts_object(row, LEFT), "parts",
			 parts_array(policy, row->name), "loans", loans_array(policy, row->name), "budget",
			 budget_object(ll_policy_budget(policy, row->name)));
}

static json_t *user_limits(const struct ll_limits_view *view)
{
	const struct ll_policy *policy = &view->daemon.policy;
	json_t *array = view->daemon.welcome.policy_since_s ? json_array() : json_null();
	for (size_t i = 0; array && i < policy->tenant_count; i++)
		json_array_append_new(array, tenant_object(policy, &policy->tenants[i]));
	return array;
}

static json_t *user_object(const struct ll_limits_view *view)
{
	char id[ID_SIZE];
	return json_pack("{s:o, s:i, s:o, s:o}", "user", ll_json_text(view->user), "uid", (int)view->uid, "user_limits",
			 user_limits(view), "inside_job",
			 view->is_inside ? json_string(id_of(&view->jobs[0], id)) : json_null());
}

static json_t *job_object(const struct ll_limits_job *job)
{
	char id[ID_SIZE];
	const struct ll_job_facts *facts = &job->row->job;
	return json_pack("{s:s, s:o, s:o, s:b, s:o}", "job", id_of(job, id), "tenant", ll_json_text(facts->tenant),
			 "command", ll_json_known(facts->command[0], facts->command), "as_it_began", job->is_as_begun,
			 "limits", ll_status_limits_json(&facts->limits));
}

static json_t *use_object(const struct ll_limits_view *view, const struct ll_status_card *card,
			  const struct ll_limits_job *job, const struct ll_status_job *use)
{
	char id[ID_SIZE];
	return json_pack(
	    "{s:s, s:s, s:s, s:o, s:I, s:o, s:o, s:o, s:o, s:i}", "use", id_of(job, id), "on_card", card->card->label,
	    "uuid", card->card->uuid, "tenant", ll_json_text(use->told.job.tenant), "memory_bytes",
	    (json_int_t)use->row.used_bytes, "memory_limit_bytes",
	    bytes_or_null(use->told.job.limits.memory_bytes ? use->told.job.limits.memory_bytes : LL_MEMORY_UNKNOWN),
	    "memory_left_bytes", bytes_or_null(ll_limits_left_bytes(view, card, use)), "share_percent",
	    use->row.recent_ns ? ll_json_real(use->row.recent_permille / 10.0, 1) : json_null(), "gpu_seconds",
	    ll_json_real((double)use->row.gpu_time_ns / (double)LL_NS_PER_S, 6), "claims", (int)use->row.claims);
}

static json_t *card_object(const struct ll_limits_view *view, const struct ll_status_card *card)
{
	uint64_t promised = ll_limits_promised_bytes(view, card);
	return json_pack("{s:i, s:o, s:s, s:o, s:b, s:o, s:o, s:o, s:o, s:o}", "card", (int)card->card->index, "slice",
			 card->card->is_mig ? json_integer(card->card->slice) : json_null(), "uuid", card->card->uuid,
			 "name", ll_json_known(card->card->name[0], card->card->name), "simulated", card->is_simulated,
			 "util_percent", ll_json_real(card->util_percent, 1), "memory_free_bytes",
			 bytes_or_null(ll_limits_free_bytes(view, card)), "memory_promised_bytes",
			 bytes_or_null(promised), "memory_promisable_bytes",
			 bytes_or_null(ll_limits_promisable_bytes(view, card)), "jobs",
			 promised == LL_MEMORY_UNKNOWN ? json_null() : json_integer((json_int_t)card->job_count));
}

static int print_card(const struct ll_limits_view *view, const struct ll_status_card *card, struct ll_err *err)
{
	int rc = ll_json_line(card_object(view, card), err);
	for (size_t i = 0; !rc && i < view->job_count; i++) {
		const struct ll_status_job *use = ll_limits_use(card, &view->jobs[i]);
		if (use)
			rc = ll_json_line(use_object(view, card, &view->jobs[i], use), err);
	}
	return rc;
}

int ll_limits_print_json(const struct ll_limits_view *view, struct ll_err *err)
{
	int rc = ll_json_line(user_object(view), err);
	for (size_t i = 0; !rc && i < view->job_count; i++)
		rc = ll_json_line(job_object(&view->jobs[i]), err);
	for (size_t i = 0; !rc && i < view->card_count; i++)
		rc = print_card(view, &view->cards[i], err);
	return rc ? rc : ll_status_print_daemon_json(&view->daemon, err);
}
