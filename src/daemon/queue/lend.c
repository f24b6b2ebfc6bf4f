/*
 * What guarantees leave idle is lent to waiting jobs, and comes back when a job is due (rules/queue/lend.h).
 *
 * A borrower runs in class low, and its memory can leave the card from its first allocation. When it is recalled, the
 * whole job sleeps (residency.h). A job for which others were recalled has its place at once, and starts when they have
 * left: nobody else gets that room.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/core/connection.h"
#include "daemon/core/server.h"
#include "daemon/machine/machine.h"
#include "daemon/policy/policy.h"
#include "daemon/queue/state.h"
#include "daemon/residency/residency.h"

/* A job whose memory could not leave so often is stopped, if it may be. */
enum { TRIES = 3 };
/* A start has failed if the job ended within this time, with another status than 0. From the third one in a row on, the
 * user recalls nobody for a while, twice as long each time. */
#define FAILED_NS (10 * LL_NS_PER_S)
#define BAN_NS (60 * LL_NS_PER_S)
enum { FAILED_STARTS = 3, BAN_DOUBLINGS_MAX = 6 };
/* So many waiting jobs are looked at for a loan, the first in the order of the queue. */
enum { LOOKS_MAX = 256 };

_Static_assert((int)LL_CONFIG_STEP_EVICT_IDLE == LL_LEND_EVICT_IDLE && (int)LL_CONFIG_STEP_EVICT == LL_LEND_EVICT &&
		   (int)LL_CONFIG_STEP_STOP == LL_LEND_STOP && (int)LL_CONFIG_STEP_KILL == LL_LEND_KILL &&
		   (int)LL_CONFIG_STEP_COMPUTE == LL_LEND_STAY,
	       "a word of the configuration is a step; compute always comes back");

static const struct ll_config_reclaim *reclaim_of(const struct ll_admission *admission)
{
	return &ll_department_policy(admission->department)->reclaim;
}

bool ll_lending_is_on(const struct ll_admission *admission)
{
	const struct ll_config_reclaim *reclaim = reclaim_of(admission);
	return reclaim->steps.count && !reclaim->does_observe;
}

/* What was lent comes back under any later configuration. */
static uint32_t steps_of(const struct ll_config_reclaim *reclaim)
{
	uint32_t steps = 0;
	for (size_t i = 0; i < reclaim->steps.count; i++)
		steps |= 1U << reclaim->steps.items[i];
	return reclaim->steps.count ? steps : 1U << LL_LEND_EVICT | 1U << LL_LEND_STOP;
}

static struct ll_job *job_of(const struct ll_admission *admission, const struct ll_admission_entry *entry)
{
	return entry->job_number ? ll_books_find_number(admission->books, entry->job_number) : NULL;
}

/* Fills in what the rules read. lend->jobs is in the order of the queue's running jobs. -ENOMEM. */
static int read_lend(struct ll_admission *admission, uint64_t now_ns, struct ll_lend *ret_lend)
{
	const struct ll_queue *queue = &admission->queue;
	const struct ll_config_policy *policy = ll_department_policy(admission->department);
	const struct ll_config_reclaim *reclaim = &policy->reclaim;
	struct ll_lend_job *jobs = realloc(admission->lend_jobs, (queue->running_count + 1) * sizeof *jobs);
	if (!jobs)
		return -ENOMEM;
	admission->lend_jobs = jobs;
	for (size_t i = 0; i < queue->running_count; i++) {
		const struct ll_admission_entry *entry = ll_admission_entry_of(queue->jobs[i]);
		const struct ll_job *job = queue->jobs[i]->is_lent ? job_of(admission, entry) : NULL;
		uint64_t worked_ns = job ? ll_job_last_work_ns(job) : UINT64_MAX;
		uint64_t least_ns = reclaim->min_runtime_ns == LL_CONFIG_NONE ? 0 : reclaim->min_runtime_ns;
		jobs[i] = (struct ll_lend_job){
		    .job = queue->jobs[i],
		    .state = entry->loan.state,
		    .is_pooled = entry->loan.is_pooled,
		    .is_idle = worked_ns < now_ns && now_ns - worked_ns >= reclaim->idle_after_ns,
		    .is_spared = now_ns - entry->loan.since_ns < least_ns,
		};
	}
	uint64_t pool_bytes = policy->host_memory.for_eviction_bytes;
	*ret_lend =
	    (struct ll_lend){.queue = queue,
			     .jobs = jobs,
			     .count = queue->running_count,
			     .now_ns = now_ns,
			     .steps = steps_of(reclaim),
			     .pool_bytes = policy->host_memory.from && pool_bytes != LL_CONFIG_NONE ? pool_bytes : 0,
			     .keep_free_bytes = admission->described.keep_free_bytes};
	return 0;
}

static void tell_reclaim(const struct ll_admission *admission, const struct ll_admission_entry *entry, const char *what,
			 const struct ll_admission_entry *other)
{
	struct ll_event_about about = {
	    .job = job_of(admission, entry), .tenant = entry->tenant, .has_uid = true, .uid = entry->uid};
	const struct ll_config_policy *policy = ll_department_policy(admission->department);
	bool sees_others = policy && policy->visibility.others != LL_CONFIG_SEE_NOTHING;
	char of[LL_NAME_SIZE + 48] = "";
	if (other && !sees_others)
		snprintf(of, sizeof of, " another job");
	else if (other)
		snprintf(of, sizeof of, " job %" PRIu64 " of tenant %s", other->queued.number, other->tenant);
	ll_events_tell(admission->server, LL_EVENT_RECLAIM, &about, "job %" PRIu64 " %s%s", entry->queued.number, what,
		       of);
}

/* ---- limits of a borrower ---- */

/* The job has these limits from now on; they are told to its processes if it runs. */
static void set_class(struct ll_admission *admission, struct ll_admission_entry *entry, uint32_t priority)
{
	struct ll_job *job = job_of(admission, entry);
	entry->limits.priority = priority;
	if (!job)
		return;
	job->facts.limits.priority = priority;
	ll_promises_apply(admission->server, job);
	ll_weights_settle(admission->server);
}

uint32_t ll_lending_class(const struct ll_admission_entry *entry)
{
	return entry->queued.is_lent ? entry->loan.own_class : entry->limits.priority;
}

/* ---- a borrower leaves ---- */

/* With a signal that the job wishes before its end, that comes now, and the signal of the stop so long after it, but
 * within the time of one more grace. */
static void stop_borrower(struct ll_admission *admission, struct ll_admission_entry *entry, bool is_at_once)
{
	struct ll_job *job = job_of(admission, entry);
	uint64_t before_ns = entry->signal_before_s * LL_NS_PER_S, most_ns = ll_job_stop_grace_ns(admission->server);
	bool wishes_signal = entry->signal && !entry->is_signaled && !is_at_once;
	if (!job || entry->stop.why)
		return;
	ll_admission_stop_job(admission->server, job, LL_LENDING_STOP_WHY);
	/* The grace is over already. */
	if (is_at_once)
		entry->stop.since_ns = 1;
	if (wishes_signal) {
		ll_job_stop_warn(admission->server, job, entry->signal, LL_LENDING_STOP_WHY);
		entry->queued.duration_ns += before_ns < most_ns ? before_ns : most_ns;
	}
	if (!reclaim_of(admission)->stop.requeue)
		return;
	entry->loan.is_requeued = entry->can_restart;
	tell_reclaim(admission, entry,
		     entry->can_restart ? "goes back into the queue, and is started again when it has room"
					: "is not started again: `loadline submit` alone can do that",
		     NULL);
}

static void recall_borrower(struct ll_admission *admission, struct ll_admission_entry *entry, enum ll_lend_step step,
			    const struct ll_admission_entry *owner)
{
	struct ll_job *job = job_of(admission, entry);
	entry->loan.state = LL_LEND_LEAVING;
	entry->loan.step = step;
	entry->loan.since_ns = ll_now_ns();
	entry->loan.owner = owner->queued.number;
	entry->loan.recalls++;
	entry->loan.all_recalls++;
	entry->loan.tries = 0;
	entry->loan.is_blamed = false;
	tell_reclaim(admission, entry,
		     step >= LL_LEND_STOP
			 ? "is stopped, because its room was lent and is needed for"
			 : "sleeps, and comes back when there is room: its memory was lent and is needed for",
		     owner);
	if (step >= LL_LEND_STOP)
		stop_borrower(admission, entry, step == LL_LEND_KILL);
	else if (job)
		ll_residency_recall(admission->server, job);
}

/* Sleep has not helped, or not for long enough. Without a harder step the job goes on as before. */
static void go_further(struct ll_admission *admission, struct ll_admission_entry *entry, const char *why)
{
	uint32_t steps = steps_of(reclaim_of(admission));
	bool may_stop = steps & (1U << LL_LEND_STOP), may_kill = steps & (1U << LL_LEND_KILL);
	if (entry->loan.is_blamed)
		return;
	entry->loan.is_blamed = true;
	tell_reclaim(admission, entry, why, NULL);
	if (!may_stop && !may_kill)
		return;
	entry->loan.step = may_stop ? LL_LEND_STOP : LL_LEND_KILL;
	stop_borrower(admission, entry, !may_stop);
}

/* It runs, and has not registered with this loadlined yet. */
static bool is_unknown(const struct ll_admission_entry *entry)
{
	return entry->has_run && !entry->job_number;
}

/* A process that begins while its job sleeps has to leave too, so the recall is repeated. */
static void watch_leaving(struct ll_admission *admission, struct ll_admission_entry *entry, uint64_t now_ns)
{
	struct ll_job *job = job_of(admission, entry);
	uint64_t max_sleep_ns = reclaim_of(admission)->max_sleep_ns;
	if (is_unknown(entry))
		return;
	if (entry->loan.step >= LL_LEND_STOP) { /* it may not have registered when it was recalled */
		stop_borrower(admission, entry, entry->loan.step == LL_LEND_KILL);
		return;
	}
	enum ll_recall_state state = job ? ll_residency_recall(admission->server, job) : LL_RECALL_AWAY;
	if (state == LL_RECALL_FAILED && ++entry->loan.tries >= TRIES)
		go_further(admission, entry, "cannot sleep");
	if (entry->loan.state == LL_LEND_LEAVING && state == LL_RECALL_AWAY) {
		entry->loan.state = LL_LEND_ASLEEP;
		entry->loan.since_ns = now_ns;
		entry->queued.is_asleep = true;
	}
	if (entry->loan.state == LL_LEND_ASLEEP && max_sleep_ns != LL_CONFIG_NONE &&
	    now_ns - entry->loan.since_ns >= max_sleep_ns)
		go_further(admission, entry, "has slept for max-sleep");
}

/* ---- a place of its own ---- */

/* The room is there: the job starts, or wakes up. */
static void use_place(struct ll_admission *admission, struct ll_admission_entry *entry, uint64_t now_ns)
{
	struct ll_job *job = job_of(admission, entry);
	bool has_slept = entry->queued.is_asleep;
	entry->loan.state = LL_LEND_RUNS;
	entry->loan.step = LL_LEND_STAY;
	entry->loan.owner = 0;
	if (has_slept) { /* sleep is no part of its time */
		entry->queued.duration_ns += now_ns - entry->loan.since_ns;
		entry->loan.slept_ns += now_ns - entry->loan.since_ns;
		entry->queued.is_asleep = false;
	}
	entry->loan.since_ns = now_ns;
	ll_queue_changed(&admission->queue);
	if (!entry->has_run)
		ll_admission_tell_place(admission, entry, now_ns);
	else if (job)
		ll_residency_return(admission->server, job);
	if (has_slept)
		tell_reclaim(admission, entry, "goes on: there is room for its memory again", NULL);
}

/* ---- claims ---- */

static struct ll_lend_ban *ban_of(const struct ll_admission *admission, uint32_t uid)
{
	for (size_t i = 0; i < admission->ban_count; i++) {
		if (admission->bans[i].uid == uid)
			return &admission->bans[i];
	}
	return NULL;
}

void ll_lending_note_end(struct ll_admission *admission, const struct ll_admission_entry *entry)
{
	struct ll_lend_ban *ban = ban_of(admission, entry->uid);
	uint64_t now_ns = ll_now_ns();
	bool is_short = now_ns - entry->begin_ns < FAILED_NS;
	bool has_failed = !entry->has_run || (is_short && entry->has_status && entry->status);
	if (!entry->loan.has_recalled)
		return;
	if (!ban && has_failed) {
		ban = realloc(admission->bans, (admission->ban_count + 1) * sizeof *ban);
		if (!ban)
			return;
		admission->bans = ban;
		ban += admission->ban_count++;
		*ban = (struct ll_lend_ban){.uid = entry->uid};
	}
	if (!ban)
		return;
	ban->failures = has_failed ? ban->failures + 1 : 0;
	if (ban->failures >= FAILED_STARTS) {
		unsigned doublings = ban->failures - FAILED_STARTS;
		ban->until_ns = now_ns + (BAN_NS << (doublings < BAN_DOUBLINGS_MAX ? doublings : BAN_DOUBLINGS_MAX));
		tell_reclaim(admission, entry,
			     "failed as the ones before: for a while no borrower is recalled for its user", NULL);
	}
}

static bool may_recall(const struct ll_admission *admission, const struct ll_admission_entry *entry, uint64_t now_ns)
{
	const struct ll_lend_ban *ban = ban_of(admission, entry->uid);
	return !ban || now_ns >= ban->until_ns;
}

/* The victims of the claim leave. Returns false, and touches nobody, if the job would not fit then. */
static bool claim_room(struct ll_admission *admission, struct ll_lend *lend, struct ll_admission_entry *entry)
{
	size_t victims = 0;
	if (!ll_lend_claim(lend, &entry->queued))
		return false;
	for (size_t i = 0; i < lend->count; i++)
		victims += lend->jobs[i].step != LL_LEND_STAY;
	if (victims && !may_recall(admission, entry, lend->now_ns))
		return false;
	for (size_t i = 0; i < lend->count; i++) {
		if (lend->jobs[i].step)
			recall_borrower(admission, ll_admission_entry_of(lend->jobs[i].job), lend->jobs[i].step, entry);
	}
	entry->loan.has_recalled |= victims != 0;
	entry->loan.state = ll_lend_is_there(lend, &entry->queued) ? LL_LEND_RUNS : LL_LEND_RESERVED;
	return true;
}

bool ll_lending_claim(struct ll_admission *admission, struct ll_admission_entry *entry, uint64_t now_ns)
{
	struct ll_queue *queue = &admission->queue;
	struct ll_lend lend;
	bool is_any_lent = false;
	for (size_t i = 0; i < queue->running_count; i++)
		is_any_lent |= queue->jobs[i]->is_lent;
	if (!is_any_lent)
		return true;
	if (read_lend(admission, now_ns, &lend))
		return false;
	uint64_t cards = ll_queue_start_among(queue, &entry->queued, ll_lend_free_cards(&lend, &entry->queued), now_ns);
	if (cards && cards != entry->queued.planned.cards) {
		entry->queued.planned.cards = cards;
		ll_queue_changed(queue);
	}
	return claim_room(admission, &lend, entry);
}

/* A borrower for which the plan has room is one no more. If it sleeps, it claims that room. */
static void make_rightful(struct ll_admission *admission, struct ll_admission_entry *entry, uint64_t now_ns)
{
	struct ll_queue_job wanted = entry->queued;
	struct ll_lend lend;
	wanted.overtook = LL_QUEUE_NONE;
	if (!ll_queue_may_change(&admission->queue, &entry->queued, &wanted, now_ns))
		return;
	if (entry->queued.is_asleep && (read_lend(admission, now_ns, &lend) || !claim_room(admission, &lend, entry)))
		return;
	set_class(admission, entry, entry->loan.own_class);
	entry->queued.is_lent = entry->loan.is_pooled = false;
	entry->queued.overtook = admission->books->last_job;
	entry->loan.recalls = 0;
	ll_queue_changed(&admission->queue);
	tell_reclaim(admission, entry, "borrows no more: its tenant has room for it", NULL);
	if (entry->queued.is_asleep && entry->loan.state == LL_LEND_RUNS)
		use_place(admission, entry, now_ns);
}

void ll_lending_settle(struct ll_admission *admission, uint64_t now_ns)
{
	struct ll_lend lend;
	for (struct ll_admission_entry *entry = admission->entries, *next; entry; entry = next) {
		next = entry->next;
		if (entry->loan.state == LL_LEND_LEAVING || entry->loan.state == LL_LEND_ASLEEP)
			watch_leaving(admission, entry, now_ns);
		if (entry->queued.is_lent && entry->loan.state != LL_LEND_LEAVING && entry->loan.step < LL_LEND_STOP &&
		    !is_unknown(entry))
			make_rightful(admission, entry, now_ns);
	}
	for (struct ll_admission_entry *entry = admission->entries; entry; entry = entry->next) {
		if (entry->loan.state == LL_LEND_RESERVED && !is_unknown(entry) &&
		    !read_lend(admission, now_ns, &lend) && ll_lend_is_there(&lend, &entry->queued))
			use_place(admission, entry, now_ns);
	}
}

/* ---- loans ---- */

static void wake_sleepers(struct ll_admission *admission, uint64_t now_ns)
{
	struct ll_lend lend;
	for (struct ll_admission_entry *entry = admission->entries; entry; entry = entry->next) {
		if (entry->loan.state == LL_LEND_ASLEEP && entry->loan.step < LL_LEND_STOP && !is_unknown(entry) &&
		    now_ns - entry->loan.since_ns >= ll_lend_pause_ns(entry->loan.recalls) &&
		    !read_lend(admission, now_ns, &lend) && ll_lend_may_return(&lend, &entry->queued))
			use_place(admission, entry, now_ns);
	}
}

/* A share of SMs (`by: space`) does not come back by time slices, and class high is for the guarantee. */
static bool may_borrow(const struct ll_admission *admission, const struct ll_admission_entry *entry)
{
	return !entry->queued.is_held && !entry->limits.space_permille &&
	       entry->limits.priority != LL_LIMIT_CLASS_HIGH && !ll_admission_check_now(admission, entry, NULL);
}

static void lend_place(struct ll_admission *admission, struct ll_admission_entry *entry, uint64_t cards, bool is_pooled,
		       uint64_t now_ns)
{
	entry->queued.planned = (struct ll_queue_slot){now_ns, cards};
	entry->queued.is_lent = true;
	entry->loan.is_pooled = is_pooled;
	entry->loan.own_class = entry->limits.priority;
	entry->loan.since_ns = now_ns;
	entry->limits.priority = LL_LIMIT_CLASS_LOW;
	entry->limits.flags |= LL_LIMIT_EVICTABLE;
	ll_admission_admit(admission, entry, now_ns);
	ll_admission_tell_place(admission, entry, now_ns);
	ll_queue_changed(&admission->queue);
}

void ll_lending_lend(struct ll_admission *admission, uint64_t now_ns)
{
	const struct ll_config_reclaim *reclaim = reclaim_of(admission);
	struct ll_queue *queue = &admission->queue;
	struct ll_lend lend;
	size_t looks = 0;
	wake_sleepers(admission, now_ns);
	for (size_t i = queue->running_count; reclaim->steps.count && i < queue->count && looks < LOOKS_MAX; i++) {
		struct ll_admission_entry *entry = ll_admission_entry_of(queue->jobs[i]);
		bool is_pooled = false;
		bool is_early = now_ns - entry->loan.since_ns < ll_lend_pause_ns(entry->loan.recalls);
		if (is_early || !may_borrow(admission, entry) || read_lend(admission, now_ns, &lend))
			continue;
		looks++;
		uint64_t cards = ll_lend_borrow(&lend, &entry->queued, &is_pooled);
		if (cards && !reclaim->does_observe) {
			lend_place(admission, entry, cards, is_pooled, now_ns);
		} else if (cards && !entry->loan.told_ns) {
			tell_reclaim(admission, entry, "would start now with what others do not use (reclaim: observe)",
				     NULL);
			entry->loan.told_ns = now_ns;
		}
	}
}

/* ---- what others ask ---- */

void ll_lending_note_start(struct ll_admission *admission, const struct ll_admission_entry *entry)
{
	if (entry->queued.is_lent)
		tell_reclaim(admission, entry, "borrows what others do not use: class low, and it may have to sleep",
			     NULL);
}

uint32_t ll_lending_of(const struct ll_server *server, const struct ll_job *job)
{
	const struct ll_admission_entry *entry =
	    server->admission ? ll_admission_find(server->admission, job->number) : NULL;
	if (!entry || entry->job_number != job->number)
		return 0;
	bool is_recalled = entry->loan.state == LL_LEND_LEAVING || entry->queued.is_asleep;
	return (entry->queued.is_lent ? LL_QUEUE_IS_LENT : 0U) | (is_recalled ? LL_QUEUE_IS_RECALLED : 0U);
}

bool ll_lending_is_recalled(const struct ll_server *server, const struct ll_job *job)
{
	return ll_lending_of(server, job) & LL_QUEUE_IS_RECALLED;
}

/* The most memory that a job of the tenant's user could borrow now, on one card of the group. */
static uint64_t lendable_bytes(const struct ll_lend *lend, struct ll_queue_job *job, uint32_t group)
{
	const struct ll_queue_machine *machine = lend->queue->machine;
	uint64_t least = 0, most = 0;
	bool is_pooled;
	job->allowed = 0;
	for (uint32_t card = 0; card < machine->card_count; card++) {
		bool is_of_group = machine->cards[card].group == group;
		job->allowed |= (uint64_t)is_of_group << card;
		most =
		    is_of_group && machine->cards[card].memory_bytes > most ? machine->cards[card].memory_bytes : most;
	}
	for (job->memory_bytes = most; least < most; job->memory_bytes = least + (most - least + 1) / 2) {
		if (ll_lend_borrow(lend, job, &is_pooled))
			least = job->memory_bytes;
		else if (machine->groups[group].is_whole)
			return 0;
		else
			most = job->memory_bytes - 1;
	}
	return least;
}

static uint64_t borrowed_bytes(const struct ll_lend *lend, const struct ll_queue_job *like, uint32_t group)
{
	const struct ll_queue_machine *machine = lend->queue->machine;
	uint64_t bytes = 0;
	for (size_t i = 0; i < lend->count; i++) {
		const struct ll_queue_job *job = lend->jobs[i].job;
		bool is_its = job->is_lent && lend->jobs[i].state == LL_LEND_RUNS && job->user == like->user;
		for (uint32_t card = 0; is_its && card < machine->card_count; card++) {
			const struct ll_queue_card *its = &machine->cards[card];
			if (job->planned.cards >> card & 1 && its->group == group)
				bytes += machine->groups[group].is_whole ? its->memory_bytes : job->memory_bytes;
		}
	}
	return bytes;
}

void ll_lending_list(struct ll_connection *connection)
{
	struct ll_admission *admission = connection->server->admission;
	const struct ll_department *department = &connection->server->department;
	const struct ll_config_policy *policy = ll_department_policy(department);
	union ll_message message;
	struct ll_lend lend;
	if (policy)
		ll_admission_refresh(connection->server);
	if (!policy || !admission->has_queue || !ll_lending_is_on(admission))
		return;
	struct ll_queue *queue = &admission->queue;
	for (uint32_t tenant = 0; tenant < policy->tenants.count; tenant++) {
		struct ll_queue_job job = {.tenant = tenant, .uid = connection->uid, .card_count = 1, .duration_ns = 1};
		if (!ll_department_has(department, &policy->tenants.items[tenant].members, job.uid) ||
		    ll_queue_add_use(queue, tenant, job.uid, 0) || read_lend(admission, ll_now_ns(), &lend))
			continue;
		while (queue->users[job.user].tenant != tenant || queue->users[job.user].uid != job.uid)
			job.user++;
		for (uint32_t group = 0; group < policy->cards.count; group++) {
			ll_message_init(&message, LL_MESSAGE_POLICY_LOAN);
			message.policy_loan.borrowed_bytes = borrowed_bytes(&lend, &job, group);
			message.policy_loan.lendable_bytes = lendable_bytes(&lend, &job, group);
			ll_message_text_set(message.policy_loan.tenant, LL_NAME_SIZE,
					    policy->tenants.items[tenant].name);
			ll_message_text_set(message.policy_loan.group, LL_NAME_SIZE, policy->cards.items[group].name);
			ll_connection_row(connection, &message);
		}
	}
}
