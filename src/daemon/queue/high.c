/* Class high is for the guarantee of the tenant alone: a job that is beyond it by itself is refused, and one that is
 * beyond it together with others waits for them. */
#include <string.h>

#include "base/err.h"
#include "daemon/core/server.h"
#include "daemon/policy/allowance.h"
#include "daemon/queue/state.h"

static bool is_in_group(const struct ll_admission_machine *described, uint64_t cards, size_t group, uint64_t *ret_count)
{
	*ret_count = 0;
	for (uint32_t card = 0; card < described->machine.card_count; card++)
		*ret_count += described->queue_cards[card].group == group && cards >> card & 1;
	return *ret_count;
}

static uint64_t cards_of(const struct ll_admission_entry *entry)
{
	return entry->queued.card_count ? entry->queued.card_count : 1;
}

static void add_use(struct ll_use *use, const struct ll_config_group *group, const struct ll_admission_entry *entry,
		    uint64_t cards)
{
	bool gives_cards = group->give == LL_CONFIG_BY_CARD;
	use->jobs++;
	use->cards += gives_cards ? cards : 0;
	use->memory_bytes += gives_cards ? 0 : cards * entry->limits.memory_bytes;
	use->compute_permille += gives_cards ? 0 : cards * entry->queued.compute_permille;
}

/* Of the jobs that have their place, and of those that came before and may get theirs. */
static struct ll_use sum_high(const struct ll_admission *admission, const struct ll_admission_entry *than,
			      const struct ll_config_group *group, size_t index)
{
	struct ll_use sum = {0};
	for (const struct ll_admission_entry *entry = admission->entries; entry; entry = entry->next) {
		bool is_waiting = ll_admission_is_waiting(entry);
		uint64_t count;
		if (entry->queued.number == than->queued.number || entry->limits.priority != LL_LIMIT_CLASS_HIGH ||
		    strcmp(entry->tenant, than->tenant) != 0 ||
		    (is_waiting && (entry->queued.is_held || entry->queued.number > than->queued.number)))
			continue;
		uint64_t cards = is_waiting ? entry->queued.allowed : entry->queued.planned.cards;
		if (is_in_group(&admission->described, cards, index, &count))
			add_use(&sum, group, entry, is_waiting ? cards_of(entry) : count);
	}
	return sum;
}

static int check_groups(const struct ll_admission *admission, const struct ll_config_tenant *tenant,
			const struct ll_admission_entry *entry, bool has_others, struct ll_err *err)
{
	const struct ll_config_policy *policy = ll_department_policy(&admission->server->department);
	int rc = 0;
	for (size_t i = 0; i < policy->cards.count; i++) {
		struct ll_allowance_group ask = {.group = &policy->cards.items[i], .is_high = true};
		uint64_t count;
		if (!is_in_group(&admission->described, entry->queued.allowed, i, &count))
			continue;
		add_use(&ask.job, ask.group, entry, cards_of(entry));
		if (has_others)
			ask.high = sum_high(admission, entry, ask.group, i);
		rc = ll_allowance_check_group(tenant, &ask, err);
		if (!rc)
			return 0;
	}
	return rc;
}

int ll_admission_check_high(const struct ll_admission *admission, const struct ll_config_tenant *tenant,
			    const struct ll_admission_entry *entry, struct ll_err *err)
{
	return entry->limits.priority == LL_LIMIT_CLASS_HIGH ? check_groups(admission, tenant, entry, false, err) : 0;
}

int ll_admission_check_high_now(const struct ll_admission *admission, const struct ll_admission_entry *entry,
				struct ll_err *err)
{
	const struct ll_config_tenant *tenant = ll_department_find(&admission->server->department, entry->tenant);
	return entry->limits.priority == LL_LIMIT_CLASS_HIGH && tenant
		   ? check_groups(admission, tenant, entry, true, err)
		   : 0;
}

bool ll_admission_waits_for_high(const struct ll_admission *admission, const struct ll_admission_entry *entry)
{
	return ll_admission_check_high_now(admission, entry, NULL) != 0;
}
