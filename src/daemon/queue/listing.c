/* What users see of the queue. */
#include <string.h>

#include "base/clock.h"
#include "daemon/core/connection.h"
#include "daemon/core/server.h"
#include "daemon/policy/policy.h"
#include "daemon/queue/state.h"

uint64_t ll_admission_second(uint64_t at_ns)
{
	uint64_t now_ns = ll_now_ns(), wall_ns = ll_wall_ns();
	if (at_ns == LL_QUEUE_NONE)
		return 0;
	return (at_ns >= now_ns ? wall_ns + (at_ns - now_ns) : wall_ns - (now_ns - at_ns)) / LL_NS_PER_S;
}

static struct ll_queue_waits wait_for_job(const struct ll_admission_entry *other, uint32_t kind, bool is_seen)
{
	struct ll_queue_waits waits = {.kind = kind, .uid = UINT32_MAX};
	if (!is_seen)
		return waits;
	waits.number = other->queued.number;
	waits.uid = other->uid;
	waits.until_s = ll_admission_second(ll_queue_end_ns(&other->queued));
	return waits;
}

struct ll_queue_waits ll_admission_waits(const struct ll_admission *admission, const struct ll_admission_entry *entry,
					 bool sees_others)
{
	if (entry->is_paused)
		return (struct ll_queue_waits){.kind = entry->pause_is_operators ? LL_QUEUE_WAITS_FOR_OPERATOR
										 : LL_QUEUE_WAITS_FOR_OWNER};
	if (entry->after) {
		const struct ll_admission_entry *other = ll_admission_find(admission, entry->after);
		struct ll_queue_waits waits = {.kind = LL_QUEUE_WAITS_AFTER, .uid = UINT32_MAX};
		if (other)
			waits = wait_for_job(other, LL_QUEUE_WAITS_AFTER, sees_others || other->uid == entry->uid);
		waits.number = entry->after;
		return waits;
	}
	if (ll_admission_owes(admission, entry))
		return (struct ll_queue_waits){.kind = LL_QUEUE_WAITS_FOR_UNUSED};
	const struct ll_queue_job *blocker = ll_queue_blocker(&admission->queue, &entry->queued);
	const struct ll_admission_entry *other = blocker ? ll_admission_find(admission, blocker->number) : NULL;
	if (!other)
		return (struct ll_queue_waits){.kind = LL_QUEUE_WAITS_FOR_ROOM};
	return wait_for_job(other, LL_QUEUE_WAITS_FOR_JOB, sees_others || other->uid == entry->uid);
}

/* ---- by which rule it waits ---- */

_Static_assert((int)LL_QUEUE_RULE_USER_LIMIT == LL_QUEUE_WHY_USER_LIMIT &&
		   (int)LL_QUEUE_RULE_TENANT_LIMIT == LL_QUEUE_WHY_TENANT_LIMIT &&
		   (int)LL_QUEUE_RULE_GUARANTEE == LL_QUEUE_WHY_GUARANTEE &&
		   (int)LL_QUEUE_RULE_ROOM == LL_QUEUE_WHY_ROOM &&
		   (int)LL_QUEUE_RULE_RESERVED == LL_QUEUE_WHY_RESERVED &&
		   (int)LL_QUEUE_RULE_OUT_OF_USE == LL_QUEUE_WHY_OUT_OF_USE &&
		   (int)LL_QUEUE_RULE_ORDER == LL_QUEUE_WHY_ORDER,
	       "the rules of rules/queue are told as they are");
_Static_assert((int)LL_QUEUE_OF_CARDS == LL_QUEUE_WHAT_CARDS && (int)LL_QUEUE_OF_MEMORY == LL_QUEUE_WHAT_MEMORY &&
		   (int)LL_QUEUE_OF_COMPUTE == LL_QUEUE_WHAT_COMPUTE && (int)LL_QUEUE_OF_JOBS == LL_QUEUE_WHAT_JOBS,
	       "and so are the amounts");

/* The reason of a drained or a lost card; empty: an operator drained it, or it is another window. */
static const char *reason_of(const struct ll_admission *admission, const struct ll_queue_interval *interval)
{
	unsigned index = admission->described.cards[interval->card].index;
	if (interval->tenant == LL_QUEUE_NOBODY && !interval->begin_ns && interval->end_ns == LL_QUEUE_NONE)
		return "lost";
	for (size_t i = 0;
	     interval->tenant == LL_QUEUE_NOBODY && interval->end_ns == LL_QUEUE_NONE && i < admission->drain_count;
	     i++) {
		if (admission->drains[i].index == index)
			return admission->drains[i].reason;
	}
	return "";
}

/* Whose limit, guarantee or reservation it is; or why the card is out of use. */
static const char *name_of_why(const struct ll_admission *admission, const struct ll_queue_why *why,
			       const struct ll_admission_entry *entry)
{
	const struct ll_queue_machine *machine = &admission->described.machine;
	if (why->rule == LL_QUEUE_RULE_USER_LIMIT || why->rule == LL_QUEUE_RULE_TENANT_LIMIT)
		return entry->tenant;
	if (why->tenant != LL_QUEUE_NOBODY)
		return admission->described.names[why->tenant];
	for (size_t i = 0; why->rule == LL_QUEUE_RULE_OUT_OF_USE && i < machine->interval_count; i++) {
		const struct ll_queue_interval *interval = &machine->intervals[i];
		if (interval->card == why->card && interval->begin_ns == why->begin_ns &&
		    interval->end_ns == why->end_ns && interval->tenant == LL_QUEUE_NOBODY)
			return reason_of(admission, interval);
	}
	return "";
}

struct ll_queue_why_told ll_admission_why(const struct ll_admission *admission, const struct ll_admission_entry *entry,
					  bool sees_others)
{
	const struct ll_config_policy *policy = ll_department_policy(&admission->server->department);
	struct ll_queue_why_told told = {.uid = UINT32_MAX};
	struct ll_queue_why why;
	if (entry->is_paused || entry->after)
		return told;
	if (ll_admission_check_high_now(admission, entry, NULL) != 0) {
		told.rule = LL_QUEUE_WHY_HIGH;
		ll_message_text_set(told.of, sizeof told.of, entry->tenant);
		return told;
	}
	ll_queue_explain(&admission->queue, &entry->queued, &why);
	told.rule = why.rule;
	told.what = why.what;
	told.wanted = why.wanted;
	told.used = why.used;
	told.most = why.most;
	told.left = why.left;
	if (why.rule == LL_QUEUE_RULE_RESERVED || why.rule == LL_QUEUE_RULE_OUT_OF_USE) {
		told.begin_s = why.begin_ns > ll_now_ns() ? ll_admission_second(why.begin_ns) : 0;
		told.end_s = ll_admission_second(why.end_ns);
	}
	ll_message_text_set(told.of, sizeof told.of, name_of_why(admission, &why, entry));
	if (policy && why.group < policy->cards.count)
		ll_message_text_set(told.cards, sizeof told.cards, policy->cards.items[why.group].name);
	const struct ll_admission_entry *ahead = why.number ? ll_admission_find(admission, why.number) : NULL;
	if (ahead && (sees_others || ahead->uid == entry->uid)) {
		told.number = ahead->queued.number;
		told.uid = ahead->uid;
		told.begin_s = ll_admission_second(why.begin_ns);
	}
	/* What others have, and which of them, is in the amounts and names of some rules. */
	if (!sees_others && (told.rule == LL_QUEUE_WHY_TENANT_LIMIT || told.rule == LL_QUEUE_WHY_GUARANTEE))
		told.used = LL_QUEUE_NOT_TOLD;
	if (!sees_others && told.rule == LL_QUEUE_WHY_GUARANTEE)
		ll_message_text_set(told.of, sizeof told.of, "");
	told.left = sees_others ? told.left : LL_QUEUE_NOT_TOLD;
	return told;
}

/* ---- rows ---- */

static void fill_row(const struct ll_admission *admission, const struct ll_admission_entry *entry, bool sees_others,
		     struct ll_message_queue_row *row)
{
	const struct ll_queue_job *job = &entry->queued;
	bool is_waiting = !entry->uuid_count;
	row->number = job->number;
	row->job_number = entry->job_number;
	row->memory_bytes = entry->limits.memory_bytes;
	row->compute_permille =
	    entry->limits.compute_permille ? entry->limits.compute_permille : entry->limits.space_permille;
	row->time_ns = job->has_time || entry->has_end ? job->duration_ns : 0;
	row->since_s = is_waiting ? entry->came_s : ll_admission_second(entry->begin_ns);
	row->start_s = ll_admission_second(job->planned.begin_ns);
	row->end_s = is_waiting || entry->has_end ? ll_admission_second(ll_queue_end_ns(job)) : 0;
	const struct ll_admission_machine *described = &admission->described;
	uint32_t count = (uint32_t)described->machine.card_count;
	for (uint32_t card = 0; card < count && row->place_count < LL_QUEUE_CARDS_OF_JOB; card++) {
		const struct ll_admission_card *own = &described->cards[card];
		if (job->planned.cards >> card & 1)
			row->places[row->place_count++] =
			    (struct ll_queue_place){(uint16_t)own->index, (int16_t)own->slice};
	}
	row->uid = entry->uid;
	row->position = is_waiting ? (uint32_t)ll_queue_position(&admission->queue, job) : 0;
	row->untimed = is_waiting ? (uint32_t)ll_queue_untimed_ahead(&admission->queue, job) : 0;
	row->flags = is_waiting ? 0U : entry->job_number ? LL_QUEUE_IS_RUNNING : LL_QUEUE_IS_ADMITTED;
	row->flags |= (entry->is_paused ? LL_QUEUE_IS_PAUSED : 0U) | (entry->after ? LL_QUEUE_IS_AFTER : 0U) |
		      (job->has_time ? LL_QUEUE_HAS_TIME : 0U) | (job->is_lent ? LL_QUEUE_IS_LENT : 0U);
	bool is_recalled = entry->loan.state == LL_LEND_LEAVING || job->is_asleep;
	row->flags |= (is_recalled ? LL_QUEUE_IS_RECALLED : 0U) |
		      (entry->loan.state == LL_LEND_RESERVED ? LL_QUEUE_IS_RESERVED : 0U);
	row->recalled_for = is_recalled && sees_others ? entry->loan.owner : 0;
	row->card_count = job->card_count;
	if (is_waiting) {
		row->waits = ll_admission_waits(admission, entry, sees_others);
		row->why = ll_admission_why(admission, entry, sees_others);
	}
	ll_message_text_set(row->tenant, sizeof row->tenant, entry->tenant);
	ll_message_text_set(row->command, sizeof row->command, entry->command);
	ll_message_text_set(row->name, sizeof row->name, entry->name);
}

/* ---- windows ---- */

static bool is_same_window(const struct ll_admission *admission, const struct ll_queue_interval *one,
			   const struct ll_queue_interval *other)
{
	return one->tenant == other->tenant && one->begin_ns == other->begin_ns && one->end_ns == other->end_ns &&
	       strcmp(reason_of(admission, one), reason_of(admission, other)) == 0;
}

/* A window of several cards has an interval for each: the first stands for all. */
static bool is_first_of_window(const struct ll_admission *admission, size_t at)
{
	const struct ll_queue_interval *intervals = admission->described.machine.intervals;
	for (size_t i = 0; i < at; i++) {
		if (is_same_window(admission, &intervals[at], &intervals[i]))
			return false;
	}
	return intervals[at].end_ns > ll_now_ns();
}

static void fill_window(const struct ll_admission *admission, size_t at, struct ll_message_queue_window *window)
{
	const struct ll_queue_machine *machine = &admission->described.machine;
	const struct ll_queue_interval *own = &machine->intervals[at];
	uint64_t cards = 0;
	for (size_t i = at; i < machine->interval_count; i++) {
		if (is_same_window(admission, own, &machine->intervals[i]))
			cards |= UINT64_C(1) << machine->intervals[i].card;
	}
	window->begin_s = own->begin_ns ? ll_admission_second(own->begin_ns) : 0;
	window->end_s = ll_admission_second(own->end_ns);
	window->card_mask = ll_admission_indices(&admission->described, cards);
	ll_message_text_set(window->name, sizeof window->name, reason_of(admission, own));
	if (own->tenant != LL_QUEUE_NOBODY)
		ll_message_text_set(window->tenant, sizeof window->tenant, admission->described.names[own->tenant]);
}

void ll_list_queue(struct ll_connection *connection)
{
	const struct ll_admission *admission = connection->server->admission;
	bool sees_others = ll_rights_see_others(connection);
	union ll_message row;
	for (const struct ll_admission_entry *entry = admission->entries; entry; entry = entry->next) {
		ll_message_init(&row, LL_MESSAGE_QUEUE_ROW);
		fill_row(admission, entry, sees_others, &row.queue_row);
		ll_connection_row(connection, &row);
	}
	for (size_t i = 0; i < admission->described.machine.interval_count; i++) {
		if (!is_first_of_window(admission, i))
			continue;
		ll_message_init(&row, LL_MESSAGE_QUEUE_WINDOW);
		fill_window(admission, i, &row.queue_window);
		ll_connection_row(connection, &row);
	}
	ll_message_init(&row, LL_MESSAGE_QUEUE_END);
	ll_connection_row(connection, &row);
}
