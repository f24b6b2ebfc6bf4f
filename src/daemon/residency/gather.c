#include "daemon/residency/evictable.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"

#define WAIT_NS (10 * LL_NS_PER_S)
#define FIRST_WAIT_NS (250 * LL_NS_PER_MS)
#define PAUSE_NS (20 * LL_NS_PER_MS)

enum phase {
	PHASE_STOPPING,
	PHASE_PAUSING,  /* one process could not stop: the others are told to go on, and run for a moment */
	PHASE_EVICTING, /* all were quiet */
};

struct ll_gather {
	struct ll_gather *next;
	enum ll_gather_end end;
	enum phase phase;
	bool is_by_hand;
	uint64_t most_ns;  /* limit of the last attempt, and of all attempts before it together */
	uint64_t wait_ns;  /* of the present attempt */
	uint64_t spent_ns; /* on former attempts */
	uint64_t begun_ns;
	uint64_t pause_until_ns; /* 0: some processes have not gone on yet */
};

/* ---- members ---- */

/* Returns the next member after `after`; NULL: the first one. Returns NULL after the last one. */
static struct ll_evictable *next_member(const struct ll_residency_books *books, const struct ll_gather *gather,
					const struct ll_evictable *after)
{
	struct ll_evictable *evictable = after ? after->next : books->evictables;
	while (evictable && evictable->gather != gather)
		evictable = evictable->next;
	return evictable;
}

#define LL_GATHER_EACH(member, books, gather)                                                                          \
	for (struct ll_evictable *member = next_member(books, gather, NULL); member;                                   \
	     member = next_member(books, gather, member))

static void release_member(struct ll_evictable *evictable)
{
	evictable->gather = NULL;
	evictable->rule.is_gathering = false;
}

static void free_gather(struct ll_residency_books *books, struct ll_gather *gather)
{
	struct ll_gather **at = &books->gathers;
	for (struct ll_evictable *evictable = books->evictables; evictable; evictable = evictable->next) {
		if (evictable->gather == gather)
			release_member(evictable);
	}
	while (*at != gather)
		at = &(*at)->next;
	*at = gather->next;
	free(gather);
}

static bool is_asked(const struct ll_evictable *evictable)
{
	return evictable->rule.state == LL_RESIDENCY_STOPPING || evictable->rule.state == LL_RESIDENCY_SUSPENDING;
}

/* The members that were stopped go on. A process that was suspended by hand before stays suspended. with_evicted:
 * processes whose memory is off the card already are resumed too. */
static void resume_members(struct ll_residency_books *books, const struct ll_gather *gather, bool with_evicted,
			   uint64_t now_ns)
{
	LL_GATHER_EACH (member, books, gather) {
		enum ll_residency state = member->rule.state;
		bool is_stopped = state == LL_RESIDENCY_SUSPENDED && !member->was_stopped;
		bool is_evicted = state == LL_RESIDENCY_EVICTING || state == LL_RESIDENCY_AWAY;
		if (is_stopped || (is_asked(member) && !member->is_late) || (with_evicted && is_evicted))
			ll_evictable_resume(member, now_ns);
	}
}

/* ---- the end ---- */

/* Ends the gather as failed. The members get no new request for a while. culprit: the process that failed; NULL: a new
 * wish ends the gather. */
static void end_badly(struct ll_residency_books *books, struct ll_gather *gather, const struct ll_evictable *culprit,
		      const char *why, uint64_t now_ns)
{
	for (struct ll_evictable *member = books->evictables; member; member = member->next) {
		if (member->gather != gather)
			continue;
		release_member(member);
		member->rule.retry_ns = 0;
		if (culprit && !gather->is_by_hand)
			ll_evictable_put_off(member, gather->begun_ns, now_ns);
		if (!gather->is_by_hand)
			continue;
		ll_evictable_revert_wish(member);
		ll_move_requests_end(books, member, member == culprit ? -EBUSY : -ECANCELED, why);
	}
	free_gather(books, gather);
}

/* ---- stopping ---- */

static void look_at_stopping(struct ll_residency_books *books, struct ll_gather *gather, uint64_t now_ns)
{
	bool are_all_quiet = true;
	LL_GATHER_EACH (member, books, gather) {
		bool is_resuming = member->rule.state == LL_RESIDENCY_RESUMING;
		if (member->rule.state == LL_RESIDENCY_HERE) {
			member->quiet_ns = gather->wait_ns;
			if (gather->end == LL_GATHER_EVICT)
				ll_evictable_gather(member, now_ns);
			else
				ll_evictable_suspend(member, now_ns);
		} else if (is_resuming && gather->end == LL_GATHER_EVICT && !member->rule.is_torn) {
			ll_evictable_stay(member);
		}
		are_all_quiet &= !is_asked(member) && member->rule.state != LL_RESIDENCY_RESUMING;
	}
	if (!are_all_quiet)
		return;
	if (gather->end == LL_GATHER_EVICT)
		gather->phase = PHASE_EVICTING;
	for (struct ll_evictable *member = books->evictables; member; member = member->next) {
		if (member->gather != gather)
			continue;
		bool is_to_go = gather->end == LL_GATHER_EVICT && member->rule.state == LL_RESIDENCY_SUSPENDED;
		member->rule.is_gathering = false;
		if (gather->end == LL_GATHER_EVICT)
			member->rule.retry_ns = member->quiet_ns = 0;
		else
			member->gather = NULL;
		if (is_to_go)
			ll_evictable_evict(member, now_ns);
		else if (ll_evictable_is_as_wished(member))
			ll_move_requests_end(books, member, 0, "");
	}
	if (gather->end == LL_GATHER_SUSPEND)
		free_gather(books, gather);
}

static bool is_last_attempt(const struct ll_gather *gather)
{
	return gather->spent_ns + gather->wait_ns >= gather->most_ns;
}

static void look_at_pause(struct ll_residency_books *books, struct ll_gather *gather, uint64_t now_ns)
{
	bool are_all_on = true;
	LL_GATHER_EACH (member, books, gather)
		are_all_on &= member->rule.state == LL_RESIDENCY_HERE || member->rule.state == LL_RESIDENCY_AWAY ||
			      member->rule.state == LL_RESIDENCY_SUSPENDED || member->rule.is_silent ||
			      member->rule.lacks_room;
	if (are_all_on && !gather->pause_until_ns)
		gather->pause_until_ns = now_ns + PAUSE_NS;
	if (!gather->pause_until_ns || now_ns < gather->pause_until_ns)
		return;
	gather->spent_ns += gather->wait_ns;
	gather->wait_ns += gather->wait_ns / 4;
	if (is_last_attempt(gather))
		gather->wait_ns = gather->most_ns;
	gather->phase = PHASE_STOPPING;
	look_at_stopping(books, gather, now_ns);
}

void ll_gather_look(struct ll_residency_books *books, struct ll_gather *gather, uint64_t now_ns)
{
	bool are_all_evicted = true;
	LL_GATHER_EACH (member, books, gather)
		are_all_evicted &= member->rule.state != LL_RESIDENCY_EVICTING && !is_asked(member);
	if (gather->phase == PHASE_STOPPING)
		look_at_stopping(books, gather, now_ns);
	else if (gather->phase == PHASE_PAUSING)
		look_at_pause(books, gather, now_ns);
	else if (are_all_evicted)
		free_gather(books, gather);
}

void ll_gather_fail(struct ll_residency_books *books, struct ll_evictable *evictable, uint64_t now_ns)
{
	struct ll_gather *gather = evictable->gather;
	if (gather->phase == PHASE_PAUSING)
		return;
	if (gather->phase == PHASE_STOPPING && !is_last_attempt(gather) && !evictable->is_late) {
		ll_debug("claim %u cannot stop: the others go on for a moment",
			 ll_card_claim_number(evictable->claim->share));
		resume_members(books, gather, false, now_ns);
		gather->phase = PHASE_PAUSING;
		gather->pause_until_ns = 0;
		return;
	}
	/* All were quiet, and one eviction failed. The other members stay evicted, because a person requested it. */
	if (gather->phase == PHASE_EVICTING && gather->is_by_hand) {
		ll_evictable_revert_wish(evictable);
		ll_move_requests_end(books, evictable, -EBUSY, evictable->why);
		ll_gather_forget(books, evictable, now_ns);
		return;
	}
	resume_members(books, gather, gather->phase == PHASE_EVICTING, now_ns);
	end_badly(books, gather, evictable, evictable->why, now_ns);
}

void ll_gather_remove(struct ll_residency_books *books, struct ll_evictable *evictable, uint64_t now_ns)
{
	struct ll_gather *gather = evictable->gather;
	if (gather->phase == PHASE_EVICTING) {
		ll_gather_forget(books, evictable, now_ns);
		return;
	}
	resume_members(books, gather, false, now_ns);
	end_badly(books, gather, NULL, "another command has asked for something else meanwhile", now_ns);
}

void ll_gather_forget(struct ll_residency_books *books, struct ll_evictable *evictable, uint64_t now_ns)
{
	struct ll_gather *gather = evictable->gather;
	release_member(evictable);
	if (next_member(books, gather, NULL))
		ll_gather_look(books, gather, now_ns);
	else
		free_gather(books, gather);
}

/* ---- timer ---- */

void ll_gathers_tick(struct ll_residency_books *books, uint64_t now_ns)
{
	for (struct ll_gather *gather = books->gathers, *next; gather; gather = next) {
		next = gather->next;
		ll_gather_look(books, gather, now_ns);
	}
}

uint64_t ll_gathers_due_ns(const struct ll_residency_books *books)
{
	uint64_t due_ns = UINT64_MAX;
	for (const struct ll_gather *gather = books->gathers; gather; gather = gather->next) {
		bool is_pause = gather->phase == PHASE_PAUSING && gather->pause_until_ns;
		if (is_pause && gather->pause_until_ns < due_ns)
			due_ns = gather->pause_until_ns;
	}
	return due_ns;
}

/* ---- members join and leave ---- */

struct ll_gather *ll_gather_new(struct ll_residency_books *books, enum ll_gather_end end, bool is_by_hand,
				uint64_t wait_ns, uint64_t now_ns)
{
	struct ll_gather *gather = calloc(1, sizeof *gather);
	if (!gather)
		return NULL;
	gather->end = end;
	gather->is_by_hand = is_by_hand;
	gather->most_ns = wait_ns ? wait_ns : WAIT_NS;
	gather->wait_ns = gather->most_ns < FIRST_WAIT_NS ? gather->most_ns : FIRST_WAIT_NS;
	gather->begun_ns = now_ns;
	gather->next = books->gathers;
	books->gathers = gather;
	return gather;
}

void ll_gather_add(struct ll_gather *gather, struct ll_evictable *evictable)
{
	evictable->gather = gather;
	evictable->rule.is_gathering = true;
	evictable->was_stopped = evictable->rule.state == LL_RESIDENCY_SUSPENDED;
}

void ll_gathers_fini(struct ll_residency_books *books)
{
	while (books->gathers)
		free_gather(books, books->gathers);
}
