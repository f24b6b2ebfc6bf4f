/* The machine as the queue reads it, made of the configuration and of the cards that the sensor reports. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "daemon/machine/machine.h"
#include "daemon/queue/state.h"

enum { DAYS_AHEAD = 14, INTERVALS_AT_FIRST = 16, DAY_S = 86400, DAYS_OF_WEEK = 7 };
#define REFRESH_NS (600 * LL_NS_PER_S)
#define CLOCK_JUMP_NS LL_NS_PER_S

bool ll_admission_is_possible(const struct ll_admission *admission)
{
	const struct ll_config_policy *policy = ll_department_policy(admission->department);
	return admission->is_system && policy && policy->cards.count && ll_machine_card_count(admission->server);
}

/* ---- times ---- */

static uint64_t wall_ahead_ns(void)
{
	return ll_wall_ns() - ll_now_ns();
}

/* A moment on the clock of the plan. What was before the start of that clock is its start. */
static uint64_t plan_ns(const struct ll_admission_machine *described, int64_t at_s)
{
	uint64_t ahead_ns = described->wall_ahead_ns;
	uint64_t at_ns = at_s > 0 ? (uint64_t)at_s * LL_NS_PER_S : 0;
	return at_ns > ahead_ns ? at_ns - ahead_ns : 0;
}

/* ---- intervals ---- */

struct interval_times {
	uint64_t begin_ns, end_ns;
};

static int add_interval(struct ll_admission_machine *described, uint32_t card, uint32_t tenant,
			struct interval_times times)
{
	struct ll_queue_machine *machine = &described->machine;
	if (machine->interval_count == described->interval_room) {
		size_t room = described->interval_room ? 2 * described->interval_room : INTERVALS_AT_FIRST;
		struct ll_queue_interval *intervals = realloc(described->intervals, room * sizeof *intervals);
		if (!intervals)
			return -ENOMEM;
		described->intervals = intervals;
		described->interval_room = room;
		machine->intervals = intervals;
	}
	described->intervals[machine->interval_count++] =
	    (struct ll_queue_interval){card, tenant, times.begin_ns, times.end_ns};
	return 0;
}

static int add_maintenance(struct ll_admission_machine *described, const struct ll_config_maintenance *window)
{
	int rc = 0;
	uint64_t begin_ns = plan_ns(described, window->begin.at_s);
	struct interval_times times = {
	    begin_ns, plan_ns(described, window->begin.at_s + (int64_t)(window->for_ns / LL_NS_PER_S))};
	for (uint32_t card = 0; card < described->machine.card_count && !rc; card++) {
		for (size_t i = 0; i < window->cards.count && !rc; i++) {
			const struct ll_config_card *named = &window->cards.items[i];
			const struct ll_admission_card *own = &described->cards[card];
			if (named->index == own->index && (named->slice < 0 || named->slice == own->slice))
				rc = add_interval(described, card, LL_QUEUE_NOBODY, times);
		}
	}
	return rc;
}

/* The last cards of the group: the first ones fill up first. */
static int reserve_cards(struct ll_admission_machine *described, const struct ll_config_reservation *reservation,
			 uint32_t group, uint32_t tenant, int64_t begin_s)
{
	int rc = 0;
	uint64_t missing = reservation->cards;
	struct interval_times times = {plan_ns(described, begin_s),
				       plan_ns(described, begin_s + (int64_t)(reservation->for_ns / LL_NS_PER_S))};
	for (uint32_t card = (uint32_t)described->machine.card_count; card-- > 0 && missing && !rc;) {
		if (described->queue_cards[card].group != group)
			continue;
		rc = add_interval(described, card, tenant, times);
		missing--;
	}
	return rc;
}

/* Those of yesterday, which may last yet, and of the next days. */
static int reserve_each_day(struct ll_admission_machine *described, const struct ll_config_reservation *reservation,
			    uint32_t group, uint32_t tenant)
{
	int rc = 0;
	time_t now_s = time(NULL);
	for (int i = -1; i <= DAYS_AHEAD && !rc; i++) {
		struct tm day;
		time_t at_s = now_s + (time_t)i * DAY_S;
		if (!localtime_r(&at_s, &day))
			continue;
		/* Monday is 0 in the configuration, and Sunday in struct tm. */
		int every = reservation->every, weekday = (day.tm_wday + DAYS_OF_WEEK - 1) % DAYS_OF_WEEK;
		if (every != LL_CONFIG_EVERY_DAY && !(every == LL_CONFIG_WEEKDAYS ? weekday < 5 : weekday == every))
			continue;
		day.tm_hour = day.tm_min = 0;
		day.tm_sec = (int)reservation->begin.at_s;
		day.tm_isdst = -1;
		rc = reserve_cards(described, reservation, group, tenant, (int64_t)mktime(&day));
	}
	return rc;
}

static uint32_t tenant_of(const struct ll_admission_machine *described, const char *name)
{
	uint32_t last = (uint32_t)described->machine.tenant_count - 1;
	for (uint32_t i = 0; i < last; i++) {
		if (strcmp(described->names[i], name) == 0)
			return i;
	}
	return last;
}

static uint32_t group_named(const struct ll_config_policy *policy, const char *name)
{
	uint32_t group = 0;
	while (group < policy->cards.count && strcmp(policy->cards.items[group].name, name) != 0)
		group++;
	return group;
}

static int add_intervals(struct ll_admission *admission, struct ll_admission_machine *described,
			 const struct ll_config_policy *policy)
{
	int rc = 0;
	for (size_t i = 0; i < policy->reservations.count && !rc; i++) {
		const struct ll_config_reservation *reservation = &policy->reservations.items[i];
		uint32_t group = group_named(policy, reservation->of);
		uint32_t tenant = tenant_of(described, reservation->tenant);
		if (group < policy->cards.count)
			rc = reservation->every >= 0
				 ? reserve_each_day(described, reservation, group, tenant)
				 : reserve_cards(described, reservation, group, tenant, reservation->begin.at_s);
	}
	for (size_t i = 0; i < policy->maintenance.count && !rc; i++)
		rc = add_maintenance(described, &policy->maintenance.items[i]);
	for (size_t i = 0; i < admission->drain_count; i++) {
		const struct ll_admission_drain *drain = &admission->drains[i];
		uint64_t since_ns = plan_ns(described, (int64_t)drain->since_s);
		for (uint32_t card = 0; card < described->machine.card_count && !rc; card++) {
			if (described->cards[card].index == drain->index)
				rc = add_interval(described, card, LL_QUEUE_NOBODY,
						  (struct interval_times){since_ns, LL_QUEUE_NONE});
		}
	}
	for (uint32_t card = 0; card < described->machine.card_count && !rc; card++) {
		const struct ll_machine_card *its =
		    ll_machine_card_find(admission->server, described->cards[card].uuid);
		if (!its || its->is_lost)
			rc = add_interval(described, card, LL_QUEUE_NOBODY, (struct interval_times){0, LL_QUEUE_NONE});
	}
	return rc;
}

/* ---- cards, groups, tenants ---- */

static uint32_t group_of(const struct ll_config_policy *policy, const struct ll_machine_card *card)
{
	uint32_t group = 0;
	for (; group < policy->cards.count; group++) {
		const struct ll_config_cards *cards = &policy->cards.items[group].cards;
		for (size_t i = 0; i < cards->count; i++) {
			if (cards->items[i].index == card->index && cards->items[i].slice == card->slice)
				return group;
		}
	}
	return group;
}

static void describe_cards(const struct ll_server *server, const struct ll_config_policy *policy,
			   struct ll_admission_machine *described)
{
	size_t count = 0;
	const struct ll_machine_card *card;
	for (size_t place = 0; count < LL_QUEUE_CARDS_MAX && (card = ll_machine_card(server, place)); place++) {
		uint32_t group = group_of(policy, card);
		if (group == policy->cards.count || card->has_slices)
			continue;
		uint64_t bytes = card->usable_bytes ? card->usable_bytes : card->memory_bytes;
		described->queue_cards[count] = (struct ll_queue_card){bytes, group, card->numa_node};
		described->cards[count].index = card->index;
		described->cards[count].slice = card->slice;
		ll_message_text_set(described->cards[count].uuid, LL_CARD_UUID_SIZE, card->uuid);
		count++;
	}
	described->machine.card_count = count;
	described->machine.cards = described->queue_cards;
}

_Static_assert(LL_CONFIG_NONE == LL_QUEUE_NONE, "a limit that there is not, in the queue too");

/* Parts of a group; missing: in place of what the part, or the group, does not have. */
static void describe_parts(const struct ll_config_policy *policy, const struct ll_config_parts *parts, uint64_t missing,
			   struct ll_queue_amount *amounts)
{
	for (size_t group = 0; group < policy->cards.count; group++)
		amounts[group] = (struct ll_queue_amount){missing, missing, missing};
	for (size_t i = 0; i < parts->count; i++) {
		const struct ll_config_part *part = &parts->items[i];
		uint32_t group = group_named(policy, part->of);
		if (group == policy->cards.count)
			continue;
		amounts[group] = (struct ll_queue_amount){
		    part->cards == LL_CONFIG_NONE ? missing : part->cards,
		    part->memory_bytes == LL_CONFIG_NONE ? missing : part->memory_bytes,
		    part->compute_permille == LL_CONFIG_NONE ? missing : part->compute_permille,
		};
	}
}

static void describe_tenant(const struct ll_config_policy *policy, const struct ll_config_tenant *tenant, size_t at,
			    struct ll_admission_machine *described)
{
	size_t groups = policy->cards.count;
	struct ll_queue_amount *guarantees = described->amounts + 2 * at * groups;
	struct ll_queue_amount *limits = guarantees + groups;
	const struct ll_config_each_user *each = tenant ? &tenant->each_user : NULL;
	const struct ll_config_parts none = {0, NULL};
	describe_parts(policy, tenant ? &tenant->guarantee : &none, 0, guarantees);
	describe_parts(policy, tenant ? &tenant->limit : &none, LL_QUEUE_NONE, limits);
	described->tenants[at] = (struct ll_queue_tenant){
	    .guarantees = guarantees,
	    .limits = limits,
	    .weight = tenant && tenant->weight != LL_CONFIG_NONE ? tenant->weight : 1,
	    .each_user = {{LL_QUEUE_NONE, LL_QUEUE_NONE, LL_QUEUE_NONE}, LL_QUEUE_NONE},
	};
	ll_message_text_set(described->names[at], LL_NAME_SIZE, tenant ? tenant->name : "");
	if (tenant && tenant->keep_free_bytes != LL_CONFIG_NONE)
		described->keep_free_bytes[at] = tenant->keep_free_bytes;
	if (each)
		described->tenants[at].each_user = (struct ll_queue_user_limits){
		    {each->cards, each->memory_bytes, each->compute_permille}, each->running};
}

static int allocate_arrays(const struct ll_config_policy *policy, struct ll_admission_machine *described)
{
	size_t tenants = policy->tenants.count + 1, groups = policy->cards.count;
	described->groups = calloc(groups, sizeof *described->groups);
	described->tenants = calloc(tenants, sizeof *described->tenants);
	described->names = calloc(tenants, sizeof *described->names);
	described->amounts = calloc(2 * tenants * groups, sizeof *described->amounts);
	described->keep_free_bytes = calloc(tenants, sizeof *described->keep_free_bytes);
	described->machine.group_count = groups;
	described->machine.tenant_count = tenants;
	described->machine.groups = described->groups;
	described->machine.tenants = described->tenants;
	return described->groups && described->tenants && described->names && described->amounts &&
		       described->keep_free_bytes
		   ? 0
		   : -ENOMEM;
}

static void free_description(struct ll_admission_machine *described)
{
	free(described->groups);
	free(described->tenants);
	free(described->names);
	free(described->amounts);
	free(described->keep_free_bytes);
	free(described->intervals);
	memset(described, 0, sizeof *described);
}

static int make_description(struct ll_admission *admission, struct ll_admission_machine *described)
{
	const struct ll_config_policy *policy = ll_department_policy(admission->department);
	int rc = allocate_arrays(policy, described);
	described->wall_ahead_ns = wall_ahead_ns();
	if (rc)
		return rc;
	for (size_t i = 0; i < policy->cards.count; i++)
		described->groups[i].is_whole = policy->cards.items[i].give == LL_CONFIG_BY_CARD;
	for (size_t i = 0; i <= policy->tenants.count; i++)
		describe_tenant(policy, i < policy->tenants.count ? &policy->tenants.items[i] : NULL, i, described);
	describe_cards(admission->server, policy, described);
	return add_intervals(admission, described, policy);
}

/* ---- what a job may have ---- */

/* The whole cards of groups of which the tenant is guaranteed some, if it is guaranteed nothing of a group by memory.
 */
static uint64_t own_whole_cards(const struct ll_admission_machine *described, uint32_t tenant, uint64_t whole)
{
	const struct ll_queue_amount *guarantees = described->tenants[tenant].guarantees;
	uint64_t own = 0;
	for (uint32_t card = 0; card < described->machine.card_count; card++) {
		const struct ll_queue_amount *guarantee = &guarantees[described->queue_cards[card].group];
		if (guarantee->memory_bytes || guarantee->compute_permille)
			return 0;
		if (guarantee->cards)
			own |= whole & UINT64_C(1) << card;
	}
	return own;
}

/* Without cards of its own choice a job that says how much memory it wants gets shared cards, and one that says how
 * many cards, and no memory, gets whole ones. One that says neither gets shared ones if it can, or whole ones of its
 * tenant if that has no others: the plan takes what the tenant is guaranteed first. */
void ll_admission_place_wish(const struct ll_admission *admission, struct ll_admission_entry *entry)
{
	const struct ll_admission_machine *described = &admission->described;
	struct ll_queue_job *job = &entry->queued;
	uint64_t shared = 0, whole = 0;
	for (uint32_t card = 0; card < described->machine.card_count; card++) {
		bool is_whole = described->groups[described->queue_cards[card].group].is_whole;
		const struct ll_admission_card *own = &described->cards[card];
		bool is_in_mask = own->index < LL_QUEUE_CARDS_MAX && entry->card_mask >> own->index & 1;
		if (!entry->has_named_cards || (is_in_mask && (entry->slice < 0 || entry->slice == own->slice)))
			*(is_whole ? &whole : &shared) |= UINT64_C(1) << card;
	}
	job->tenant = tenant_of(described, entry->tenant);
	job->allowed = shared | whole;
	job->within = 0;
	if (!job->card_count)
		job->card_count = entry->has_named_cards ? (uint32_t)__builtin_popcountll(job->allowed) : 1;
	bool has_choice = !entry->has_named_cards && shared && whole;
	if (has_choice)
		job->allowed = entry->has_count && !entry->has_memory ? whole : shared;
	ll_admission_size(described, entry);
	bool is_free = has_choice && !entry->has_count && !entry->has_memory;
	if (is_free && ll_queue_check(&described->machine, job) != LL_QUEUE_FITS) {
		job->allowed = whole;
		ll_admission_size(described, entry);
	} else if (is_free) {
		job->within = own_whole_cards(described, job->tenant, whole);
	}
	job->allowed |= job->within;
}

uint64_t ll_admission_mask(const struct ll_admission_machine *described, const struct ll_admission_entry *entry)
{
	uint64_t mask = 0;
	for (uint32_t i = 0; i < entry->uuid_count; i++) {
		for (uint32_t card = 0; card < described->machine.card_count; card++)
			mask |= (uint64_t)(strcmp(described->cards[card].uuid, entry->uuids[i]) == 0) << card;
	}
	return mask;
}

uint64_t ll_admission_indices(const struct ll_admission_machine *described, uint64_t cards)
{
	uint64_t indices = 0;
	for (uint32_t card = 0; card < described->machine.card_count; card++) {
		if (cards >> card & 1 && described->cards[card].index < LL_QUEUE_CARDS_MAX)
			indices |= UINT64_C(1) << described->cards[card].index;
	}
	return indices;
}

/* ---- the queue of a description ---- */

/* The jobs, and the use of their users, move to the queue of the new description. */
static int fill_queue(struct ll_admission *admission, struct ll_queue *queue)
{
	int rc = 0;
	queue->charged_ns = admission->queue.charged_ns;
	for (struct ll_admission_entry *entry = admission->entries; entry && !rc; entry = entry->next) {
		struct ll_queue_job *job = &entry->queued;
		ll_admission_place_wish(admission, entry);
		rc = entry->uuid_count ? ll_queue_add_running(queue, job, entry->begin_ns,
							      ll_admission_mask(&admission->described, entry))
				       : ll_queue_add(queue, job);
	}
	return rc;
}

static void replace_queue(struct ll_admission *admission, const struct ll_admission_machine *old, struct ll_queue *next)
{
	const struct ll_admission_machine *new = &admission->described;
	const struct ll_queue *from = &admission->queue;
	if (admission->has_queue) {
		for (size_t i = 0; i + 1 < old->machine.tenant_count; i++)
			next->tenant_use_ns[tenant_of(new, old->names[i])] += from->tenant_use_ns[i];
		for (size_t i = 0; i < from->user_count; i++)
			ll_queue_add_use(next, tenant_of(new, old->names[from->users[i].tenant]), from->users[i].uid,
					 from->users[i].use_ns);
		ll_queue_fini(&admission->queue);
	}
	admission->queue = *next;
	admission->has_queue = true;
	ll_admission_former_count(admission, ll_department_policy(admission->department)->queue.half_life_ns);
}

static bool is_outdated(const struct ll_admission *admission)
{
	const struct ll_server *server = admission->server;
	uint64_t ahead_ns = wall_ahead_ns();
	uint64_t had_ns = admission->described.wall_ahead_ns;
	uint64_t jump_ns = ahead_ns > had_ns ? ahead_ns - had_ns : had_ns - ahead_ns;
	return !admission->has_queue || admission->is_outdated || jump_ns > CLOCK_JUMP_NS ||
	       admission->department->number != admission->policy_number ||
	       ll_machine_card_changes(server) != admission->machine_changes ||
	       ll_now_ns() - admission->described_ns > REFRESH_NS;
}

int ll_admission_describe(struct ll_admission *admission)
{
	struct ll_admission_machine old = admission->described, next = {0};
	struct ll_queue queue;
	if (!is_outdated(admission))
		return 0;
	int rc = make_description(admission, &next);
	if (rc) {
		free_description(&next);
		return rc;
	}
	admission->described = next;
	admission->described.machine.cards = admission->described.queue_cards;
	rc = ll_queue_init(&queue, &admission->described.machine);
	if (!rc)
		rc = fill_queue(admission, &queue);
	if (rc) { /* the jobs are in the new queue already */
		ll_queue_fini(&queue);
		free_description(&old);
		ll_admission_undescribe(admission);
		return rc;
	}
	replace_queue(admission, &old, &queue);
	free_description(&old);
	admission->queue.has_backfill = ll_department_policy(admission->department)->queue.backfill;
	admission->policy_number = admission->department->number;
	admission->machine_changes = ll_machine_card_changes(admission->server);
	admission->described_ns = ll_now_ns();
	admission->is_outdated = false;
	admission->must_arrange = true;
	return 0;
}

void ll_admission_undescribe(struct ll_admission *admission)
{
	if (admission->has_queue)
		ll_queue_fini(&admission->queue);
	admission->has_queue = false;
	free_description(&admission->described);
}
