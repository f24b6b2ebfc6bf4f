/* What a job asks of the queue, checked by the configuration. */
#include "daemon/queue/state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "daemon/policy/policy.h"

/* ---- class high ---- */

/* Class high is for the guarantee of the tenant alone: a job that is beyond it by itself is refused, and one that is
 * beyond it together with others waits for them. */

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

static void add_use(struct ll_job_sum *use, const struct ll_config_group *group, const struct ll_admission_entry *entry,
		    uint64_t cards)
{
	bool gives_cards = group->give == LL_CONFIG_BY_CARD;
	use->jobs++;
	use->cards += gives_cards ? cards : 0;
	use->memory_bytes += gives_cards ? 0 : cards * entry->limits.memory_bytes;
	use->compute_permille += gives_cards ? 0 : cards * entry->queued.compute_permille;
}

/* Of the jobs that have their place, and of those that came before and may get theirs. */
static struct ll_job_sum sum_high(const struct ll_admission *admission, const struct ll_admission_entry *than,
				  const struct ll_config_group *group, size_t index)
{
	struct ll_job_sum sum = {0};
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
	const struct ll_config_policy *policy = ll_department_policy(admission->department);
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

int ll_admission_check_high_now(const struct ll_admission *admission, const struct ll_admission_entry *entry,
				struct ll_err *err)
{
	const struct ll_config_tenant *tenant = ll_department_find(admission->department, entry->tenant);
	return entry->limits.priority == LL_LIMIT_CLASS_HIGH && tenant
		   ? check_groups(admission, tenant, entry, true, err)
		   : 0;
}

/* ---- a request ---- */

static int read_time(const struct ll_config_policy *policy, const struct ll_config_tenant *tenant,
		     const struct ll_message_admit *admit, struct ll_admission_entry *entry, struct ll_err *err)
{
	uint64_t most_ns = tenant->each_user.max_time_ns;
	uint64_t time_ns = admit->time_ns;
	if (time_ns && !ll_admission_allows_time(tenant, time_ns))
		return ll_err_set(err, -EACCES, "time: %.4g h asked for, %.4g h allowed for each user",
				  (double)time_ns / (3600.0 * LL_NS_PER_S), (double)most_ns / (3600.0 * LL_NS_PER_S));
	if (!time_ns && policy->defaults.time_ns != LL_CONFIG_NONE)
		time_ns = policy->defaults.time_ns;
	time_ns = time_ns && time_ns < most_ns ? time_ns : most_ns;
	entry->has_end = time_ns != LL_CONFIG_NONE && time_ns;
	if (!admit->time_ns && policy->defaults.time_ns == LL_CONFIG_NONE && most_ns == LL_CONFIG_NONE)
		entry->has_end = false;
	entry->queued.has_time = admit->time_ns;
	entry->queued.duration_ns = entry->has_end ? time_ns : LL_ADMISSION_GUESS_NS;
	entry->signal = admit->signal;
	entry->signal_before_s = admit->signal_before_s;
	if (entry->signal && !entry->has_end)
		return ll_err_set(err, -EACCES, "signal: nothing ends the job before it ends itself: it has no time");
	if (entry->signal && entry->signal_before_s * LL_NS_PER_S >= time_ns)
		return ll_err_set(err, -EACCES, "signal: %u s before the end of %.4g s", entry->signal_before_s,
				  (double)time_ns / LL_NS_PER_S);
	return 0;
}

static uint64_t count_waiting(const struct ll_admission *admission, const struct ll_admission_entry *than)
{
	uint64_t count = 0;
	for (const struct ll_admission_entry *entry = admission->entries; entry; entry = entry->next)
		count += entry != than && ll_admission_is_waiting(entry) && entry->uid == than->uid &&
			 strcmp(entry->tenant, than->tenant) == 0;
	return count;
}

/* The plan has LL_QUEUE_PLANNED_MAX of them, and each is told its place and its reason: with so many, a look takes some
 * tens of ms. */
enum { WAITING_MAX = 4000 };

static bool has_room(const struct ll_admission *admission, const struct ll_admission_entry *than)
{
	struct ll_subordinates *subordinates = admission->subordinates;
	uint32_t owner = ll_subordinates_owner(subordinates, than->uid);
	struct ll_fair_room room = {.size = WAITING_MAX};
	for (const struct ll_admission_entry *entry = admission->entries; entry; entry = entry->next) {
		if (entry != than && ll_admission_is_waiting(entry))
			ll_fair_room_count(&room, ll_subordinates_find(subordinates, entry->uid) == owner, 1);
	}
	return than->uid == 0 || ll_fair_room_permits(&room, 1);
}

static const char *text_of_fault(enum ll_queue_fault fault)
{
	switch (fault) {
	case LL_QUEUE_NO_CARDS:
		return "cards: no group has so many cards that the job may have";
	case LL_QUEUE_TOO_LARGE:
		return "no card has so much memory or compute";
	case LL_QUEUE_BEYOND_LIMIT:
		return "more than the tenant's limit: it would never start";
	case LL_QUEUE_BEYOND_USER:
		return "more than each user of the tenant may have: it would never start";
	case LL_QUEUE_ALL_GUARANTEED:
		return "more than the tenant's guarantee, and the rest is guaranteed to others: it would never start";
	default:
		return "";
	}
}

/* Says what was asked for and what is allowed, where the limits of a user are what forbids the job. */
static int explain_fault(const struct ll_config_tenant *tenant, const struct ll_admission_entry *entry,
			 enum ll_queue_fault fault, struct ll_err *err)
{
	const struct ll_job_sum none = {0};
	uint64_t cards = entry->queued.card_count ? entry->queued.card_count : 1;
	int rc = fault == LL_QUEUE_BEYOND_USER ? ll_allowance_check(tenant, &none, cards, &entry->limits, err) : 0;
	return rc ? rc : ll_err_set(err, -EACCES, "%s", text_of_fault(fault));
}

/* Fills in what the configuration says about the request. */
static int read_limits(const struct ll_config_policy *policy, const struct ll_config_tenant *tenant,
		       const struct ll_message_admit *admit, struct ll_admission_entry *entry, struct ll_err *err)
{
	const struct ll_job_sum none = {0};
	entry->limits = admit->limits;
	entry->has_memory = admit->limits.memory_bytes;
	entry->has_compute = admit->limits.compute_permille || admit->limits.space_permille;
	ll_allowance_complete(policy, tenant, &none, admit->said, &entry->limits);
	if (!entry->limits.memory_bytes && policy->defaults.memory_bytes == LL_CONFIG_NONE && !admit->card_count &&
	    !(admit->flags & LL_ADMIT_HAS_CARDS))
		return ll_err_set(err, -EACCES, "memory: not said, and the configuration has no defaults.memory");
	return read_time(policy, tenant, admit, entry, err);
}

int ll_admission_check_now(const struct ll_admission *admission, const struct ll_admission_entry *entry,
			   struct ll_err *err)
{
	struct ll_err why = {0};
	const struct ll_config_tenant *tenant =
	    ll_department_tenant(admission->department, entry->uid, entry->tenant, &why);
	if (!tenant) /* a lookup that fails later ends no wait */
		return why.code == -EACCES ? ll_err_set(err, why.code, "%s", why.text) : 0;
	int rc = ll_spending_check(admission->server, tenant, entry->has_project, err);
	return rc ? rc : ll_allowance_check_class(tenant, entry->limits.priority, err);
}

int ll_admission_read_request(struct ll_admission *admission, const struct ll_message_admit *admit,
			      struct ll_admission_entry *entry, struct ll_err *err)
{
	const struct ll_department *department = admission->department;
	const struct ll_config_policy *policy = ll_department_policy(department);
	const struct ll_config_tenant *tenant = ll_department_tenant(department, entry->uid, admit->tenant, err);
	if (!tenant)
		return -EACCES;
	ll_message_text_set(entry->tenant, sizeof entry->tenant, tenant->name);
	ll_message_text_set(entry->command, sizeof entry->command, admit->command);
	ll_message_text_set(entry->name, sizeof entry->name, admit->name);
	entry->has_named_cards = admit->flags & LL_ADMIT_HAS_CARDS;
	entry->card_mask = admit->card_mask;
	entry->slice = admit->slice;
	entry->takes_no_wait = admit->flags & LL_ADMIT_NO_WAIT;
	entry->after = admit->after;
	entry->must_be_ok = admit->after && admit->flags & LL_ADMIT_AFTER_OK;
	entry->tells_status = admit->flags & LL_ADMIT_TELLS_STATUS;
	entry->can_restart = admit->flags & LL_ADMIT_CAN_RESTART;
	entry->queued.uid = entry->uid;
	entry->queued.card_count = admit->card_count;
	entry->has_count = admit->card_count;
	uint64_t wait_ns = admit->wait_ns ? admit->wait_ns : policy->queue.wait_ns;
	uint64_t now_ns = ll_now_ns();
	entry->wait_until_ns = wait_ns < LL_QUEUE_NONE - now_ns ? now_ns + wait_ns : LL_QUEUE_NONE;
	entry->has_project = admit->flags & LL_ADMIT_HAS_PROJECT;
	int rc = read_limits(policy, tenant, admit, entry, err);
	if (!rc)
		rc = ll_admission_check_now(admission, entry, err);
	if (!rc)
		rc = ll_admission_check_after(admission, entry, err);
	if (rc)
		return rc;
	const struct ll_admission_entry *former =
	    admit->again ? ll_admission_former_find(admission, admit->again) : NULL;
	bool is_back = former && former->uid == entry->uid;
	if (count_waiting(admission, entry) >= tenant->each_user.queued && !entry->takes_no_wait && !is_back)
		return ll_err_set(err, -EACCES, "queued: %" PRIu64 " jobs of each user may wait",
				  tenant->each_user.queued);
	if (!has_room(admission, entry))
		return ll_err_set(err, -EACCES, "the queue is full: no more jobs of this user may wait");
	ll_admission_place_wish(admission, entry);
	enum ll_queue_fault fault = ll_queue_check(&admission->described.machine, &entry->queued);
	if (entry->queued.card_count > LL_QUEUE_CARDS_OF_JOB)
		return ll_err_set(err, -EACCES, "cards: a job of the queue has at most %d", LL_QUEUE_CARDS_OF_JOB);
	/* All of it may be lent one day. */
	bool may_borrow = fault == LL_QUEUE_ALL_GUARANTEED && ll_lending_is_on(admission) &&
			  entry->limits.priority != LL_LIMIT_CLASS_HIGH && !entry->limits.space_permille;
	if (fault && !may_borrow)
		return explain_fault(tenant, entry, fault, err);
	return entry->limits.priority == LL_LIMIT_CLASS_HIGH ? check_groups(admission, tenant, entry, false, err) : 0;
}

/* ---- what a job takes ---- */

/* What a job takes of its cards, and what it may have of them: the same at its start and at each change. */

enum { WHOLE_PERMILLE = 1000 };
#define GIB ((double)(UINT64_C(1) << 30))

static uint64_t larger_of(uint64_t one, uint64_t other)
{
	return one > other ? one : other;
}

void ll_admission_size(const struct ll_admission_machine *described, struct ll_admission_entry *entry)
{
	const struct ll_limits *limits = &entry->limits;
	struct ll_queue_job *job = &entry->queued;
	uint64_t cards = entry->uuid_count ? ll_admission_mask(described, entry) : job->allowed;
	job->compute_permille = limits->compute_permille ? limits->compute_permille : limits->space_permille;
	job->memory_bytes = limits->memory_bytes;
	for (uint32_t card = 0; !limits->memory_bytes && card < described->machine.card_count; card++) {
		const struct ll_queue_card *its = &described->queue_cards[card];
		if (cards >> card & 1 && !described->groups[its->group].is_whole)
			job->memory_bytes = larger_of(job->memory_bytes, its->memory_bytes);
	}
}

bool ll_admission_allows_time(const struct ll_config_tenant *tenant, uint64_t time_ns)
{
	return !tenant || tenant->each_user.max_time_ns == LL_CONFIG_NONE || time_ns <= tenant->each_user.max_time_ns;
}

bool ll_admission_may_last(struct ll_admission *admission, const struct ll_admission_entry *entry, uint64_t time_ns)
{
	struct ll_queue_job wanted = entry->queued;
	wanted.duration_ns = time_ns;
	return ll_admission_is_waiting(entry) || !admission->has_queue ||
	       ll_queue_may_change(&admission->queue, &entry->queued, &wanted, ll_now_ns());
}

/* ---- limits of a job that has its place ---- */

static struct ll_admission_entry *find_place(const struct ll_admission *admission, const struct ll_job *job)
{
	struct ll_admission_entry *entry =
	    admission && admission->has_queue ? ll_admission_find(admission, job->number) : NULL;
	return entry && entry->job_number == job->number && entry->uuid_count ? entry : NULL;
}

/* With limits that take no less than its place has: what a job does not use now is not given to others. 0 is no limit,
 * which takes all. */
static void raise_limits(const struct ll_admission_machine *described, struct ll_admission_entry *entry,
			 const struct ll_limits *limits)
{
	struct ll_limits *own = &entry->limits;
	if (!limits->memory_bytes || (own->memory_bytes && limits->memory_bytes > own->memory_bytes))
		own->memory_bytes = limits->memory_bytes;
	if (own->compute_permille)
		own->compute_permille = limits->compute_permille
					    ? (uint32_t)larger_of(own->compute_permille, limits->compute_permille)
					    : WHOLE_PERMILLE;
	own->priority = limits->priority;
	ll_admission_size(described, entry);
}

static int explain_change(const struct ll_admission_entry *entry, const struct ll_queue_job *wanted, struct ll_err *err)
{
	const struct ll_queue_job *had = &entry->queued;
	if (wanted->memory_bytes > had->memory_bytes)
		return ll_err_set(
		    err, -EACCES,
		    "memory: %.4g GiB asked for, the job's place on a card has %.4g GiB, and no more is left",
		    (double)wanted->memory_bytes / GIB, (double)had->memory_bytes / GIB);
	return ll_err_set(err, -EACCES,
			  "compute: %g%% asked for, the job's place on a card has %g%%, and no more is left",
			  (double)wanted->compute_permille / 10, (double)had->compute_permille / 10);
}

int ll_admission_check_limits(struct ll_admission *admission, const struct ll_job *job, const struct ll_limits *limits,
			      struct ll_err *err)
{
	const struct ll_admission_entry *entry = find_place(admission, job);
	if (!entry)
		return 0;
	if (entry->queued.is_lent && limits->priority != entry->limits.priority)
		return ll_err_set(err, -EACCES,
				  "class: the job borrows, and is of class low until it has room of its own");
	struct ll_admission_entry wanted = *entry;
	raise_limits(&admission->described, &wanted, limits);
	wanted.queued.allowed = entry->queued.planned.cards;
	bool is_more = wanted.queued.memory_bytes > entry->queued.memory_bytes ||
		       wanted.queued.compute_permille > entry->queued.compute_permille;
	if (is_more && !ll_queue_may_change(&admission->queue, &entry->queued, &wanted.queued, ll_now_ns()))
		return explain_change(entry, &wanted.queued, err);
	bool is_high = is_more || limits->priority != entry->limits.priority;
	return is_high ? ll_admission_check_high_now(admission, &wanted, err) : 0;
}

void ll_admission_set_limits(struct ll_admission *admission, const struct ll_job *job)
{
	struct ll_admission_entry *entry = find_place(admission, job);
	if (!entry)
		return;
	raise_limits(&admission->described, entry, &job->facts.limits);
	ll_queue_changed(&admission->queue);
	ll_admission_wake(admission);
}

/* ---- places that nobody took ---- */

/* Places that nobody took. Such a place keeps others away, and is in no account: it costs its user ten times its time,
 * in which no job of the user starts. */

enum { PRICE = 10 };

static struct ll_admission_unused *find_user(const struct ll_admission *admission, uint32_t owner)
{
	for (size_t i = 0; i < admission->unused_count; i++) {
		if (admission->unused[i].owner == owner)
			return &admission->unused[i];
	}
	return NULL;
}

/* A user who owes nothing any more makes room. Without memory the place costs nothing. */
static struct ll_admission_unused *add_user(struct ll_admission *admission, uint32_t owner, uint64_t now_ns)
{
	struct ll_admission_unused *unused = admission->unused;
	for (size_t i = 0; i < admission->unused_count; i++) {
		if (unused[i].until_ns > now_ns)
			continue;
		unused[i].owner = owner;
		return &unused[i];
	}
	unused = realloc(unused, (admission->unused_count + 1) * sizeof *unused);
	if (!unused)
		return NULL;
	admission->unused = unused;
	unused += admission->unused_count++;
	*unused = (struct ll_admission_unused){.owner = owner};
	return unused;
}

void ll_admission_note_unused(struct ll_admission *admission, const struct ll_admission_entry *entry)
{
	uint64_t now_ns = ll_now_ns();
	if (!entry->uuid_count || entry->has_run || ll_admission_is_reserved(entry) || now_ns <= entry->begin_ns)
		return;
	uint32_t owner = ll_subordinates_owner(admission->subordinates, entry->uid);
	struct ll_admission_unused *user = find_user(admission, owner);
	user = user ? user : add_user(admission, owner, now_ns);
	if (!user)
		return;
	user->until_ns = user->until_ns > now_ns ? user->until_ns : now_ns;
	user->until_ns += PRICE * (now_ns - entry->begin_ns);
}

bool ll_admission_owes(const struct ll_admission *admission, const struct ll_admission_entry *entry)
{
	uint32_t owner = ll_subordinates_find(admission->subordinates, entry->uid);
	const struct ll_admission_unused *user = find_user(admission, owner);
	return user && user->until_ns > ll_now_ns();
}
