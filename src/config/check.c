#include "config/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "config/sums.h"
#include "config/value.h"

struct check {
	const struct ll_config_policy *policy;
	struct ll_config_findings *findings;
	int64_t now_s;
};

#define NS_PER_S UINT64_C(1000000000)
#define KNOWN(number) ((number) == LL_CONFIG_NONE ? 0 : (number))

static double gib(uint64_t bytes)
{
	return (double)bytes / (double)(UINT64_C(1) << 30);
}

/* ---- groups of cards ---- */

const struct ll_config_group *ll_config_group_find(const struct ll_config_policy *policy, const char *name)
{
	for (size_t i = 0; name && i < policy->cards.count; i++) {
		const struct ll_config_group *group = &policy->cards.items[i];
		if (group->name && strcmp(group->name, name) == 0)
			return group;
	}
	return NULL;
}

static bool is_same_card(const struct ll_config_card *a, const struct ll_config_card *b)
{
	return a->index == b->index && (a->slice == b->slice || a->slice < 0 || b->slice < 0);
}

/* Adds a fault for the first card that two groups have. */
static void check_overlap(const struct check *check, const struct ll_config_group *group,
			  const struct ll_config_group *later)
{
	for (size_t i = 0; i < group->cards.count; i++) {
		for (size_t j = 0; j < later->cards.count; j++) {
			const struct ll_config_card *one = &group->cards.items[i], *other = &later->cards.items[j];
			if (!is_same_card(one, other))
				continue;
			struct ll_config_mark mark = ll_config_value_mark(later->from, "cards");
			if (one->slice == other->slice)
				ll_config_fault(check->findings, mark, "cards %s: card %u is in group %s too",
						later->name, other->index, group->name);
			else
				ll_config_fault(check->findings, mark,
						"cards %s: card %u is whole in one group and by MIG slices in another",
						later->name, other->index);
			return;
		}
	}
}

static void check_groups(const struct check *check)
{
	for (size_t i = 0; i < check->policy->cards.count; i++) {
		const struct ll_config_group *group = &check->policy->cards.items[i];
		if (group->give == LL_CONFIG_BY_CARD && group->by >= 0)
			ll_config_fault(check->findings, ll_config_value_mark(group->from, "by"),
					"cards %s: by is for cards with give: memory", group->name);
		for (size_t j = 0; j < group->cards.count; j++) {
			const struct ll_config_card *card = &group->cards.items[j];
			if (j && card->slice >= 0 && group->cards.items[j - 1].index == card->index &&
			    group->cards.items[j - 1].slice < 0)
				ll_config_fault(check->findings, ll_config_value_mark(group->from, "cards"),
						"cards %s: card %u is there whole and by MIG slices", group->name,
						card->index);
		}
		for (size_t j = 0; group->name && j < i; j++) {
			if (check->policy->cards.items[j].name)
				check_overlap(check, &check->policy->cards.items[j], group);
		}
	}
}

/* Returns the group that `of` of a map names. Adds a fault if there is none. */
static const struct ll_config_group *need_group(const struct check *check, const struct ll_config_value *from,
						const char *of)
{
	const struct ll_config_group *group = ll_config_group_find(check->policy, of);
	if (group || !of)
		return group;
	struct ll_nearest nearest = {.word = of};
	for (size_t i = 0; i < check->policy->cards.count; i++) {
		if (check->policy->cards.items[i].name)
			ll_nearest_offer(&nearest, check->policy->cards.items[i].name);
	}
	if (nearest.name)
		ll_config_fault(check->findings, ll_config_value_mark(from, "of"),
				"of: no group of cards '%s': did you mean '%s'?", of, nearest.name);
	else
		ll_config_fault(check->findings, ll_config_value_mark(from, "of"), "of: no group of cards '%s'", of);
	return NULL;
}

/* ---- tenants ---- */

static void check_part(const struct check *check, const struct ll_config_part *part,
		       const struct ll_config_group *group)
{
	struct ll_config_findings *findings = check->findings;
	bool has_memory = part->memory_bytes != LL_CONFIG_NONE, has_compute = part->compute_permille != LL_CONFIG_NONE;
	bool has_cards = part->cards != LL_CONFIG_NONE;
	if (group->give == LL_CONFIG_BY_CARD && (has_memory || has_compute))
		ll_config_fault(findings, ll_config_value_mark(part->from, has_memory ? "memory" : "compute"),
				"group %s gives whole cards: write cards: N", group->name);
	else if (group->give == LL_CONFIG_BY_MEMORY && has_cards)
		ll_config_fault(findings, ll_config_value_mark(part->from, "cards"),
				"group %s gives memory: write memory: and compute:", group->name);
	else if (!has_memory && !has_compute && !has_cards && !part->from->has_bad)
		ll_config_fault(findings, part->from->mark, "group %s: how much of it?", group->name);
}

static const struct ll_config_part *find_part(const struct ll_config_parts *parts, const char *of, size_t before)
{
	for (size_t i = 0; i < parts->count && i < before; i++) {
		if (parts->items[i].of && strcmp(parts->items[i].of, of) == 0)
			return &parts->items[i];
	}
	return NULL;
}

static void check_parts(const struct check *check, const struct ll_config_parts *parts)
{
	for (size_t i = 0; i < parts->count; i++) {
		const struct ll_config_part *part = &parts->items[i];
		const struct ll_config_group *group = need_group(check, part->from, part->of);
		if (group && find_part(parts, part->of, i))
			ll_config_fault(check->findings, ll_config_value_mark(part->from, "of"),
					"of: group '%s' is there twice", part->of);
		else if (group)
			check_part(check, part, group);
	}
}

/* A limit is not below the guarantee. */
static void check_limits(const struct check *check, const struct ll_config_tenant *tenant)
{
	for (size_t i = 0; i < tenant->limit.count; i++) {
		const struct ll_config_part *limit = &tenant->limit.items[i];
		const struct ll_config_part *guarantee =
		    limit->of ? find_part(&tenant->guarantee, limit->of, SIZE_MAX) : NULL;
		if (!guarantee)
			continue;
		const char *key = KNOWN(guarantee->cards) > limit->cards                         ? "cards"
				  : KNOWN(guarantee->memory_bytes) > limit->memory_bytes         ? "memory"
				  : KNOWN(guarantee->compute_permille) > limit->compute_permille ? "compute"
												 : NULL;
		if (key)
			ll_config_fault(check->findings, ll_config_value_mark(limit->from, key),
					"%s: the limit of tenant %s in group %s is below its guarantee", key,
					tenant->name ? tenant->name : "?", limit->of);
	}
}

static bool has_class(const struct ll_config_tenant *tenant, int class)
{
	for (size_t i = 0; i < tenant->classes.count; i++) {
		if (tenant->classes.items[i] == class)
			return true;
	}
	return false;
}

static void check_tenant(const struct check *check, const struct ll_config_tenant *tenant)
{
	uint64_t memory_bytes = 0;
	check_parts(check, &tenant->guarantee);
	check_parts(check, &tenant->limit);
	check_limits(check, tenant);
	if (has_class(tenant, LL_CONFIG_HIGH) && !tenant->guarantee.count)
		ll_config_fault(check->findings, ll_config_value_mark(tenant->from, "classes"),
				"classes: high is for jobs within the guarantee, and tenant %s has none",
				tenant->name ? tenant->name : "?");
	for (size_t i = 0; i < tenant->guarantee.count; i++)
		memory_bytes += KNOWN(tenant->guarantee.items[i].memory_bytes);
	if (KNOWN(tenant->keep_free_bytes) > memory_bytes)
		ll_config_fault(check->findings, ll_config_value_mark(tenant->from, "keep-free"),
				"keep-free: %.4g GiB, and the guarantee has %.4g GiB of memory",
				gib(tenant->keep_free_bytes), gib(memory_bytes));
	const struct ll_config_people *members = &tenant->members;
	if (members->from && !members->users.count && !members->groups.count && !members->slurm_accounts.count &&
	    !members->kubernetes_namespaces.count)
		ll_config_warn(check->findings, members->from->mark, "members: nobody is in tenant %s",
			       tenant->name ? tenant->name : "?");
}

/* ---- guarantees in a group ---- */

/* The sum of one amount over the tenants, what the group has, and the guarantee with which the sum is above that. */
struct sum {
	uint64_t sum, room;
	const struct ll_config_part *over;
	const char *key;
};

static void add_amount(struct sum *sum, const struct ll_config_part *part, uint64_t amount)
{
	if (amount == LL_CONFIG_NONE)
		return;
	if (__builtin_add_overflow(sum->sum, amount, &sum->sum))
		sum->sum = UINT64_MAX;
	if (sum->sum > sum->room && !sum->over)
		sum->over = part;
}

static void check_memory(const struct check *check, const struct ll_config_group *group, uint64_t room_bytes)
{
	struct sum sum = {.room = room_bytes};
	for (size_t i = 0; i < check->policy->tenants.count; i++) {
		const struct ll_config_part *part =
		    find_part(&check->policy->tenants.items[i].guarantee, group->name, SIZE_MAX);
		if (part)
			add_amount(&sum, part, part->memory_bytes);
	}
	if (sum.over)
		ll_config_fault(check->findings, ll_config_value_mark(sum.over->from, "memory"),
				"guarantees in group %s: %.4g GiB, and its cards have %.4g GiB: %.4g GiB too much",
				group->name, gib(sum.sum), gib(sum.room), gib(sum.sum - sum.room));
}

static void check_fit(const struct check *check, const struct ll_config_group *group)
{
	struct sum cards = {.room = group->cards.count}, compute = {.room = 1000 * group->cards.count};
	for (size_t i = 0; i < check->policy->tenants.count; i++) {
		const struct ll_config_part *part =
		    find_part(&check->policy->tenants.items[i].guarantee, group->name, SIZE_MAX);
		if (part)
			add_amount(&cards, part, part->cards);
		if (part)
			add_amount(&compute, part, part->compute_permille);
	}
	if (cards.over && group->give == LL_CONFIG_BY_CARD)
		ll_config_fault(check->findings, ll_config_value_mark(cards.over->from, "cards"),
				"guarantees in group %s: %llu cards, and it has %llu: %llu too many", group->name,
				(unsigned long long)cards.sum, (unsigned long long)cards.room,
				(unsigned long long)(cards.sum - cards.room));
	if (compute.over && group->give == LL_CONFIG_BY_MEMORY)
		ll_config_fault(check->findings, ll_config_value_mark(compute.over->from, "compute"),
				"guarantees in group %s: compute %g%%, and its cards have %g%%: %g%% too much",
				group->name, (double)compute.sum / 10, (double)compute.room / 10,
				(double)(compute.sum - compute.room) / 10);
}

/* ---- times ---- */

static void check_past(const struct check *check, const struct ll_config_value *from, const char *name,
		       const struct ll_config_time *begin, uint64_t for_ns)
{
	if (begin->is_given && !begin->is_daily && begin->at_s + (int64_t)(KNOWN(for_ns) / NS_PER_S) < check->now_s)
		ll_config_warn(check->findings, ll_config_value_mark(from, "from"), "%s: is past", name);
}

static void check_reservation(const struct check *check, const struct ll_config_reservation *reservation)
{
	const struct ll_config_policy *policy = check->policy;
	const struct ll_config_group *group = need_group(check, reservation->from, reservation->of);
	struct ll_nearest nearest = {.word = reservation->tenant ? reservation->tenant : ""};
	bool has_tenant = !reservation->tenant;
	for (size_t i = 0; i < policy->tenants.count && !has_tenant; i++) {
		const char *name = policy->tenants.items[i].name;
		has_tenant = name && strcmp(name, reservation->tenant) == 0;
		if (name)
			ll_nearest_offer(&nearest, name);
	}
	if (!has_tenant && nearest.name)
		ll_config_fault(check->findings, ll_config_value_mark(reservation->from, "tenant"),
				"tenant: no tenant '%s': did you mean '%s'?", reservation->tenant, nearest.name);
	else if (!has_tenant)
		ll_config_fault(check->findings, ll_config_value_mark(reservation->from, "tenant"),
				"tenant: no tenant '%s'", reservation->tenant);
	if (group && group->cards.count && KNOWN(reservation->cards) > group->cards.count)
		ll_config_fault(check->findings, ll_config_value_mark(reservation->from, "cards"),
				"cards: %llu, and group %s has %zu", (unsigned long long)reservation->cards,
				group->name, group->cards.count);
	if (reservation->begin.is_given && reservation->begin.is_daily && reservation->every < 0)
		ll_config_fault(check->findings, ll_config_value_mark(reservation->from, "from"),
				"from: a time of day needs every: DAY");
	else if (reservation->begin.is_given && !reservation->begin.is_daily && reservation->every >= 0)
		ll_config_fault(check->findings, ll_config_value_mark(reservation->from, "from"),
				"from: with every it is a time of day, such as \"09:00\"");
	else if (reservation->name)
		check_past(check, reservation->from, reservation->name, &reservation->begin, reservation->for_ns);
}

static void check_maintenance(const struct check *check, const struct ll_config_maintenance *window)
{
	if (window->begin.is_given && window->begin.is_daily)
		ll_config_fault(check->findings, ll_config_value_mark(window->from, "from"),
				"from: a window has a day, such as \"2026-12-12 22:00\"");
	else if (window->name)
		check_past(check, window->from, window->name, &window->begin, window->for_ns);
}

/* ---- all of it ---- */

/* SIGTERM asks a program to end. The others end it by accident, if it does not handle them. */
static void check_warn(const struct check *check)
{
	const struct ll_config_warn_signal *warn = &check->policy->reclaim.warn;
	const char *name = warn->from && warn->signal >= 0 ? ll_config_signals[warn->signal] : "TERM";
	if (strcmp(name, "TERM") != 0)
		ll_config_warn(
		    check->findings, ll_config_value_mark(warn->from, "signal"),
		    "warn: SIG%s ends each program that does not handle it before its time is over; leave it "
		    "out: a job that wants a signal asks by `run --signal`",
		    name);
}

static bool has_step(const struct ll_config_reclaim *reclaim, enum ll_config_step step)
{
	for (size_t i = 0; i < reclaim->steps.count; i++) {
		if (reclaim->steps.items[i] == (int)step)
			return true;
	}
	return false;
}

/* What is written and does nothing. */
static void check_lending(const struct check *check)
{
	const struct ll_config_reclaim *reclaim = &check->policy->reclaim;
	const struct ll_config_host_memory *host = &check->policy->host_memory;
	bool may_stop = has_step(reclaim, LL_CONFIG_STEP_STOP) || has_step(reclaim, LL_CONFIG_STEP_KILL);
	bool may_evict = has_step(reclaim, LL_CONFIG_STEP_EVICT);
	bool has_pool = host->from && KNOWN(host->for_eviction_bytes);
	if (!reclaim->from || reclaim->from->has_bad)
		return;
	struct ll_config_mark mark = ll_config_value_mark(reclaim->from, "steps");
	if (!reclaim->steps.count && reclaim->does_observe)
		ll_config_warn(check->findings, ll_config_value_mark(reclaim->from, "observe"),
			       "observe: without steps nothing is lent, and nothing is told");
	if (reclaim->steps.count && !may_stop && !may_evict)
		ll_config_warn(check->findings, mark,
			       "steps: without evict, stop or kill no memory comes back, so none is lent");
	else if (may_evict && !may_stop && !has_pool)
		ll_config_warn(check->findings, mark,
			       "steps: with evict alone memory is lent within host-memory: for-eviction, and that is "
			       "not given: none is lent");
	if (KNOWN(reclaim->max_sleep_ns) && reclaim->steps.count && !may_stop)
		ll_config_warn(check->findings, ll_config_value_mark(reclaim->from, "max-sleep"),
			       "max-sleep: neither stop nor kill is among the steps, so nothing follows");
	if (reclaim->stop.requeue && !may_stop)
		ll_config_warn(check->findings, ll_config_value_mark(reclaim->stop.from, "requeue"),
			       "requeue: neither stop nor kill is among the steps, so no job is stopped for an owner");
}

/* What the sizes of a card take of it, up to the entry `last`. of: the group of the card. A size without a group is of
 * each card, and one without an amount of memory takes all of it, as nobody else may then have any. */
static void sum_sizes(const struct check *check, const char *of, size_t last, uint64_t *ret_memory,
		      uint64_t *ret_compute)
{
	*ret_memory = *ret_compute = 0;
	for (size_t i = 0; i <= last; i++) {
		const struct ll_config_kubernetes *size = &check->policy->kubernetes.items[i];
		bool is_whole = size->memory_permille == LL_CONFIG_NONE && size->compute_permille == LL_CONFIG_NONE;
		is_whole |= size->claims && size->compute_permille == LL_CONFIG_NONE;
		if ((size->of && of && strcmp(size->of, of) != 0) || size->from->has_bad)
			continue;
		*ret_memory += size->count * (size->memory_permille == LL_CONFIG_NONE ? 1000 : size->memory_permille);
		*ret_compute += size->count * (is_whole ? 1000 : KNOWN(size->compute_permille));
	}
}

/* Names the first entry with which a card has more than there is. */
static bool check_size_fits(const struct check *check, const char *of, size_t index)
{
	const struct ll_config_kubernetes *size = &check->policy->kubernetes.items[index];
	uint64_t memory, compute;
	sum_sizes(check, of, index, &memory, &compute);
	if (memory > 1000)
		ll_config_fault(check->findings, size->from->mark,
				"the sizes of a card take %g%% of its memory: %g%% too much", (double)memory / 10,
				(double)(memory - 1000) / 10);
	else if (compute > 1000)
		ll_config_fault(check->findings, size->from->mark,
				"the sizes of a card take %g%% of its compute: %g%% too much", (double)compute / 10,
				(double)(compute - 1000) / 10);
	return memory <= 1000 && compute <= 1000;
}

/* Sizes have sockets and devices of their own, which are named after what follows the domain. */
static void check_size_name(const struct check *check, size_t index)
{
	const struct ll_config_kubernetes *size = &check->policy->kubernetes.items[index];
	const char *name = size->resource ? strrchr(size->resource, '/') : NULL;
	for (size_t i = 0; name && i < index; i++) {
		const char *other = check->policy->kubernetes.items[i].resource;
		if (other && strrchr(other, '/') && strcmp(strrchr(other, '/'), name) == 0)
			ll_config_fault(check->findings, ll_config_value_mark(size->from, "resource"),
					"resource: '%s' and '%s' have one name in two domains", other, size->resource);
	}
}

static void check_kubernetes(const struct check *check)
{
	const struct ll_config_policy *policy = check->policy;
	bool fits = true, has_namespaces = false;
	for (size_t i = 0; i < policy->tenants.count; i++)
		has_namespaces |= policy->tenants.items[i].members.kubernetes_namespaces.count != 0;
	if (policy->kubernetes.count && !has_namespaces)
		ll_config_warn(check->findings, ll_config_value_mark(policy->from, "kubernetes"),
			       "kubernetes: no tenant has kubernetes-namespaces among its members, so no pod starts");
	for (size_t i = 0; i < policy->kubernetes.count; i++) {
		const struct ll_config_kubernetes *size = &policy->kubernetes.items[i];
		const struct ll_config_group *group = need_group(check, size->from, size->of);
		bool is_part =
		    size->claims || size->memory_permille != LL_CONFIG_NONE || size->compute_permille != LL_CONFIG_NONE;
		if (size->claims && size->count > 1)
			ll_config_fault(check->findings, size->from->mark,
					"claims: a card has one such part; count is of sizes");
		if (group && group->give == LL_CONFIG_BY_CARD && is_part)
			ll_config_fault(check->findings, size->from->mark, "group %s gives whole cards, no part of one",
					group->name);
		else if (group && group->give == LL_CONFIG_BY_MEMORY && !is_part && !size->from->has_bad)
			ll_config_fault(check->findings, size->from->mark, "group %s: how much of it?", group->name);
		check_size_name(check, i);
		/* Sizes of all cards stand beside those of each group. */
		for (size_t j = 0; fits && !size->of && j < policy->cards.count; j++)
			fits = check_size_fits(check, policy->cards.items[j].name, i);
		if (fits && (size->of || !policy->cards.count))
			fits = check_size_fits(check, size->of, i);
	}
}

static void check_others(const struct check *check)
{
	const struct ll_config_policy *policy = check->policy;
	check_warn(check);
	check_lending(check);
	for (size_t i = 0; i < policy->notify.count; i++) {
		const struct ll_config_notify *notify = &policy->notify.items[i];
		const struct ll_config_value *to = ll_config_value_get(notify->from, "to");
		const struct ll_config_value *command = ll_config_value_get(notify->from, "command");
		if (!to == !command && !notify->from->has_bad)
			ll_config_fault(check->findings, notify->from->mark, "notify: either to or command");
	}
	check_kubernetes(check);
}

void ll_config_check(const struct ll_config_policy *policy, int64_t now_s, struct ll_config_findings *findings)
{
	struct check check = {.policy = policy, .findings = findings, .now_s = now_s};
	check_groups(&check);
	for (size_t i = 0; i < policy->tenants.count; i++)
		check_tenant(&check, &policy->tenants.items[i]);
	for (size_t i = 0; i < policy->cards.count; i++) {
		if (policy->cards.items[i].name && policy->cards.items[i].cards.count)
			check_fit(&check, &policy->cards.items[i]);
	}
	for (size_t i = 0; i < policy->reservations.count; i++)
		check_reservation(&check, &policy->reservations.items[i]);
	ll_config_check_sums(policy, findings);
	for (size_t i = 0; i < policy->maintenance.count; i++)
		check_maintenance(&check, &policy->maintenance.items[i]);
	check_others(&check);
}

/* ---- on a machine ---- */

static const struct ll_config_machine_card *find_card(const struct ll_config_machine *machine,
						      const struct ll_config_card *card)
{
	for (size_t i = 0; i < machine->count; i++) {
		if (machine->cards[i].index == card->index && machine->cards[i].slice == card->slice)
			return &machine->cards[i];
	}
	return NULL;
}

static void add_card(struct ll_strbuf *out, unsigned index, int slice)
{
	ll_strbuf_addf(out, "%s%u", out->length ? ", " : "", index);
	if (slice >= 0)
		ll_strbuf_addf(out, ":%d", slice);
}

/* Returns the memory of a list's cards; 0: a card's is unknown. */
static uint64_t check_cards(const struct check *check, const struct ll_config_machine *machine,
			    const struct ll_config_cards *cards, struct ll_config_mark mark, bool is_group)
{
	LL_SCOPE_STRBUF struct ll_strbuf missing = LL_STRBUF_INIT;
	uint64_t memory_bytes = 0;
	bool is_known = true;
	for (size_t i = 0; i < cards->count; i++) {
		const struct ll_config_card *card = &cards->items[i];
		const struct ll_config_machine_card *found = find_card(machine, card);
		if (!found)
			add_card(&missing, card->index, card->slice);
		else if (found->has_slices && is_group)
			ll_config_fault(check->findings, mark,
					"cards: card %u is in MIG mode: name its slices, such as \"%u:0\"", card->index,
					card->index);
		is_known = is_known && found && found->memory_bytes;
		memory_bytes += found ? found->memory_bytes : 0;
	}
	if (missing.length)
		ll_config_fault(check->findings, mark, "cards: not on this machine: %s", missing.buf);
	return is_known ? memory_bytes : 0;
}

static bool is_in_group(const struct ll_config_policy *policy, const struct ll_config_machine_card *card)
{
	const struct ll_config_card named = {card->index, card->slice};
	for (size_t i = 0; i < policy->cards.count; i++) {
		const struct ll_config_cards *cards = &policy->cards.items[i].cards;
		for (size_t j = 0; j < cards->count; j++) {
			if (is_same_card(&cards->items[j], &named))
				return true;
		}
	}
	return false;
}

static void check_left_out(const struct check *check, const struct ll_config_machine *machine)
{
	LL_SCOPE_STRBUF struct ll_strbuf left = LL_STRBUF_INIT;
	for (size_t i = 0; i < machine->count; i++) {
		const struct ll_config_machine_card *card = &machine->cards[i];
		if (!card->has_slices && !is_in_group(check->policy, card))
			add_card(&left, card->index, card->slice);
	}
	if (left.length)
		ll_config_fault(check->findings, ll_config_value_mark(check->policy->from, "cards"),
				"cards: of this machine, and in no group: %s", left.buf);
}

static bool has_bad_group(const struct ll_config_policy *policy)
{
	for (size_t i = 0; i < policy->cards.count; i++) {
		if (policy->cards.items[i].from->has_bad)
			return true;
	}
	return ll_config_value_get(policy->from, "cards")->has_bad;
}

void ll_config_check_machine(const struct ll_config_policy *policy, const struct ll_config_machine *machine,
			     struct ll_config_findings *findings)
{
	struct check check = {.policy = policy, .findings = findings};
	for (size_t i = 0; i < policy->cards.count; i++) {
		const struct ll_config_group *group = &policy->cards.items[i];
		uint64_t room_bytes =
		    check_cards(&check, machine, &group->cards, ll_config_value_mark(group->from, "cards"), true);
		if (room_bytes && group->name && group->give == LL_CONFIG_BY_MEMORY)
			check_memory(&check, group, room_bytes);
	}
	for (size_t i = 0; i < policy->maintenance.count; i++) {
		const struct ll_config_maintenance *window = &policy->maintenance.items[i];
		check_cards(&check, machine, &window->cards, ll_config_value_mark(window->from, "cards"), false);
	}
	/* A group that has a fault may be the one that has the card. */
	if (policy->from && policy->cards.count && !has_bad_group(policy))
		check_left_out(&check, machine);
}

/* ---- in force ---- */

static bool has_word(const struct ll_strbuf *out, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = out->length ? out->buf : NULL; at; at = strstr(at, ", ")) {
		at += *at == ',' ? 2 : 0;
		if (strncmp(at, word, length) == 0 && (at[length] == ',' || !at[length]))
			return true;
	}
	return false;
}

static void add_idle_below(const struct ll_config_value *value, const char *path, struct ll_strbuf *out, size_t *count);

static void add_idle(const struct ll_config_value *item, const char *path, struct ll_strbuf *out, size_t *count)
{
	LL_SCOPE_STRBUF struct ll_strbuf name = LL_STRBUF_INIT;
	ll_strbuf_addf(&name, "%s.%s", path, item->key->name);
	if (!item->key->is_idle)
		add_idle_below(item, name.buf, out, count);
	else if (item->mark.file && !has_word(out, name.buf))
		ll_strbuf_addf(out, "%s%s", (*count)++ ? ", " : "", name.buf);
}

/* Adds the keys of a map, or of a list of maps, that nothing acts on, each once: "tenants.budget". */
static void add_idle_below(const struct ll_config_value *value, const char *path, struct ll_strbuf *out, size_t *count)
{
	if (value->key->kind != LL_CONFIG_MAP)
		return;
	for (size_t i = 0; i < value->count; i++) {
		if (value->is_list)
			add_idle_below(value->items[i], path, out, count);
		else if (value->items[i])
			add_idle(value->items[i], path, out, count);
	}
}

size_t ll_config_add_idle_keys(const struct ll_config_value *root, struct ll_strbuf *out)
{
	size_t count = 0;
	for (size_t i = 0; i < root->count; i++) {
		const struct ll_config_value *value = root->items[i];
		if (value && value->mark.file && !value->key->is_in_force)
			ll_strbuf_addf(out, "%s%s", count++ ? ", " : "", value->key->name);
		else if (value && value->mark.file)
			add_idle_below(value, value->key->name, out, &count);
	}
	return count;
}

void ll_config_check_force(const struct ll_config_value *root, struct ll_config_findings *findings)
{
	LL_SCOPE_STRBUF struct ll_strbuf names = LL_STRBUF_INIT;
	struct ll_config_mark mark = {root->mark.file, 0, 0};
	if (ll_config_add_idle_keys(root, &names))
		ll_config_warn(findings, mark, "accepted, not in force in this version: %s", names.buf);
}
