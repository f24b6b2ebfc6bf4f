#include "cli/common/policy.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/strbuf.h"
#include "base/translate.h"

void ll_policy_moment(uint64_t seconds, char ret_text[LL_MOMENT_SIZE])
{
	time_t at = (time_t)seconds;
	struct tm tm;
	ret_text[0] = '\0';
	if (localtime_r(&at, &tm))
		strftime(ret_text, LL_MOMENT_SIZE, "%Y-%m-%d %H:%M:%S", &tm);
}

void ll_policy_add_state(struct ll_strbuf *text, const struct ll_message_welcome *welcome)
{
	char since[LL_MOMENT_SIZE];
	if (!welcome->policy_refused_s)
		return;
	ll_policy_moment(welcome->policy_refused_s, since);
	ll_strbuf_addf(text, _("the configuration on the disk is not in force since %s: %s\n"), since,
		       welcome->policy_fault);
}

void ll_policy_add_amount(struct ll_strbuf *text, char kind, uint64_t amount)
{
	if (kind == 'm')
		ll_strbuf_addf(text, "%.4g GiB", (double)amount / (double)(UINT64_C(1) << 30));
	else if (kind == 'c')
		ll_strbuf_addf(text, "%g %%", (double)amount / 10);
	else
		ll_strbuf_addf(text, "%" PRIu64, amount);
}

uint64_t ll_policy_left(const struct ll_policy_amount *amount)
{
	if (amount->limit == UINT64_MAX)
		return UINT64_MAX;
	return amount->limit > amount->used ? amount->limit - amount->used : 0;
}

void ll_policy_user_amounts(const struct ll_message_policy_tenant *row, struct ll_policy_amount ret[LL_POLICY_AMOUNTS])
{
	const struct ll_policy_amount amounts[LL_POLICY_AMOUNTS] = {
	    {N_("jobs"), 'n', row->user_running, row->used_jobs},
	    {N_("memory"), 'm', row->user_memory_bytes, row->used_memory_bytes},
	    {N_("compute"), 'c', row->user_compute_permille, row->used_compute_permille},
	    {N_("whole cards"), 'n', row->user_cards, row->used_cards},
	};
	memcpy(ret, amounts, sizeof amounts);
}

/* ---- tenants with jobs ---- */

static void add_item(struct ll_strbuf *text, bool *has_one, char kind, uint64_t amount)
{
	if (amount == UINT64_MAX)
		return;
	ll_strbuf_adds(text, *has_one ? ", " : " ");
	ll_policy_add_amount(text, kind, amount);
	*has_one = true;
}

static void add_part(struct ll_strbuf *text, const struct ll_message_policy_part *part)
{
	bool has_one = false;
	if (part->guaranteed_cards == UINT64_MAX && part->guaranteed_memory_bytes == UINT64_MAX &&
	    part->guaranteed_compute_permille == UINT64_MAX)
		return;
	ll_strbuf_addf(text, _("; guaranteed in %s:"), part->group);
	add_item(text, &has_one, 'n', part->guaranteed_cards);
	add_item(text, &has_one, 'm', part->guaranteed_memory_bytes);
	add_item(text, &has_one, 'c', part->guaranteed_compute_permille);
	if (!part->is_known)
		return;
	ll_strbuf_adds(text, _(", asked for there:"));
	has_one = false;
	add_item(text, &has_one, 'n', part->gives_cards ? part->used_cards : UINT64_MAX);
	add_item(text, &has_one, 'm', part->gives_cards ? UINT64_MAX : part->used_memory_bytes);
	add_item(text, &has_one, 'c', part->gives_cards ? UINT64_MAX : part->used_compute_permille);
}

static void add_excess(struct ll_strbuf *text, const struct ll_message_policy_tenant *row)
{
	struct ll_policy_amount amounts[LL_POLICY_AMOUNTS];
	bool has_one = false;
	ll_policy_user_amounts(row, amounts);
	for (size_t i = 0; i < LL_POLICY_AMOUNTS; i++) {
		if (amounts[i].limit == UINT64_MAX || amounts[i].used <= amounts[i].limit)
			continue;
		if (!has_one)
			ll_strbuf_addf(text, _("tenant %s: you have more than each user may have now:"), row->name);
		ll_strbuf_addf(text, "%s %s ", has_one ? "," : "", _(amounts[i].name));
		ll_policy_add_amount(text, amounts[i].kind, amounts[i].used);
		ll_strbuf_adds(text, _(" of "));
		ll_policy_add_amount(text, amounts[i].kind, amounts[i].limit);
		has_one = true;
	}
	if (has_one)
		ll_strbuf_adds(text, _("; no job is ended\n"));
}

void ll_policy_add_tenants(struct ll_strbuf *text, const struct ll_policy *policy)
{
	for (size_t i = 0; i < policy->tenant_count; i++) {
		const struct ll_message_policy_tenant *row = &policy->tenants[i];
		if (!row->jobs)
			continue;
		ll_strbuf_addf(text, ll_translate_count("tenant %s: %u job", "tenant %s: %u jobs", (unsigned)row->jobs),
			       row->name, (unsigned)row->jobs);
		for (size_t k = 0; k < policy->part_count; k++) {
			if (strcmp(policy->parts[k].tenant, row->name) == 0)
				add_part(text, &policy->parts[k]);
		}
		ll_strbuf_addc(text, '\n');
		add_excess(text, row);
	}
}
