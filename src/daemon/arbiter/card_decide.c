/* Decisions for a card: the posts of the claims are copied into the rule's state, the rule decides, and the decision is
 * sent to the claims. This file also computes when to decide again. */
#include <string.h>

#include "base/clock.h"
#include "daemon/arbiter/card_state.h"
#include "daemon/arbiter/choose.h"
#include "daemon/arbiter/decide.h"
#include "daemon/arbiter/gang.h"
#include "daemon/arbiter/time_on_card.h"
#include "rules/share/tokens.h"

/* While others wait, the holder is looked at every TICK_NS, and all other claims every ALL_NS. */
#define TICK_NS LL_NS_PER_MS
#define ALL_NS (10 * LL_NS_PER_MS)
/* When no claim is held, the next look follows after this time. A program that is stopped no longer counts after it. */
#define CALM_NS (100 * LL_NS_PER_MS)
/* A launch that was refused for a debt goes on when the account holds this much (shim/time/flow_tick.c). */
#define IN_HAND_NS INT64_C(1000000)
/* The turn may pass from one claim to the next within one decision; the number of rounds is limited. */
enum { MOST_ROUNDS = 4 };
#define PAIR_PAUSE_NS UINT64_C(100)

/* ---- reading the page ---- */

/* A job cannot use the card for longer than the time that has passed. The margin is for clocks; the first second is for
 * a kernel that began before the job joined. */
static uint64_t allowed_launch_ns(struct ll_card_job *job, uint64_t now_ns)
{
	uint64_t ns = ll_share_elapsed_ns(job->allowed_at_ns, now_ns);
	job->allowed_at_ns = now_ns;
	job->allowed_ns += ns + ns / 20;
	return job->allowed_ns;
}

static void charge_job(struct ll_card_job *job, uint64_t now_ns)
{
	uint64_t count_ns = atomic_load_explicit(&job->page->cards[job->index].gpu_time_ns, memory_order_relaxed);
	uint64_t new_ns = count_ns > job->charged_ns ? count_ns - job->charged_ns : 0;
	uint64_t most_ns = allowed_launch_ns(job, now_ns);
	if (new_ns > most_ns)
		new_ns = most_ns;
	job->charged_ns = count_ns;
	job->allowed_ns -= new_ns;
	if (new_ns)
		ll_share_charge(&job->share, new_ns);
	ll_card_job_sample(job, now_ns);
}

#define LOAD(field) atomic_load_explicit(&slot->field, memory_order_relaxed)

static struct ll_share_said read_slot(struct ll_card_claim *claim)
{
	const struct ll_page_slot *slot = &claim->job->page->slots[claim->slot];
	claim->post = atomic_load_explicit(&slot->post, memory_order_acquire);
	claim->want_ns = LOAD(want_since_ns);
	uint32_t flags = LOAD(post_flags);
	return (struct ll_share_said){
	    .at_ns = LOAD(posted_ns),
	    .activity_ns = LOAD(activity_ns),
	    .queued_ns = LOAD(queued_ns),
	    .running_ns = LOAD(running_ns),
	    .completed_launches = LOAD(completed_launches),
	    .queued_launches = LOAD(queued_launches),
	    .lever = LOAD(time_lever) <= LL_TIME_LEVER_FAILS ? LOAD(time_lever) : LL_TIME_LEVER_UNKNOWN,
	    .launch_mode = LOAD(launch_mode) <= LL_LAUNCH_MODE_LAST ? LOAD(launch_mode) : LL_LAUNCH_MODE_UNKNOWN,
	    .is_wanting = claim->want_ns && !claim->is_suspended,
	    .is_on_card = flags & LL_POST_ON_CARD,
	    .queue_is_empty = flags & LL_POST_QUEUE_EMPTY,
	    .overruns = flags & LL_POST_OVERRUNS,
	    .has_launched = flags & LL_POST_LAUNCHED,
	    .is_off = LOAD(is_off_card),
	};
}

static void read_post(struct ll_card_claim *claim, uint64_t now_ns)
{
	struct ll_share_claim *share = &claim->share;
	bool was_paused = share->paused_since_ns;
	struct ll_share_said said = read_slot(claim);
	claim->job->card->is_changed |= ll_share_post(share, &said, now_ns);
	claim->has_sent_wake |= was_paused && !share->paused_since_ns;
}

static void read_page(struct ll_served_card *card, uint64_t now_ns)
{
	for (struct ll_share_job *job = card->share.jobs; job; job = job->next)
		charge_job(ll_card_job_of(job), now_ns);
	LL_SHARE_EACH(&card->share, share)
	{
		struct ll_card_claim *claim = ll_card_claim_of(share);
		if (card->is_changed || claim->has_sent_wake || share->want_since_ns)
			read_post(claim, now_ns);
	}
}

/* ---- gangs ---- */

static struct ll_card_job *find_job(const struct ll_cards *cards, const char *uuid, uint64_t id)
{
	const struct ll_served_card *card = cards->cards;
	while (card && strcmp(card->uuid, uuid) != 0)
		card = card->next;
	struct ll_share_job *job = card ? card->share.jobs : NULL;
	while (job && job->id != id)
		job = job->next;
	return job ? ll_card_job_of(job) : NULL;
}

/* Returns the job on its first card; NULL: the job is not there. */
static struct ll_share_job *first_of(struct ll_card_claim *claim)
{
	const struct ll_cards *cards = claim->job->card->cards;
	if (claim->first_joins != cards->joins)
		claim->first = find_job(cards, claim->first_card, claim->share.job->id);
	claim->first_joins = cards->joins;
	return claim->first && claim->first != claim->job ? &claim->first->share : NULL;
}

/* Both cards must be decided about again soon. */
static void note_exchange(struct ll_card_claim *claim)
{
	claim->job->card->has_exchange = claim->first->card->has_exchange = true;
}

static void look_at_gangs(struct ll_served_card *card, uint64_t now_ns)
{
	LL_SHARE_EACH(&card->share, share)
	{
		struct ll_card_claim *claim = ll_card_claim_of(share);
		if (claim->first_card[0] && ll_share_look_first(share, first_of(claim), now_ns))
			note_exchange(claim);
	}
}

/* ---- decisions ---- */

/* A debt is also paid off while its job rests: the job does not want the card before that. */
static bool earns_tokens(const struct ll_share_job *job)
{
	int64_t half_ns = job->cap_permille ? ll_tokens_most_ns(job->cap_permille) / 2 : 0;
	return job->cap_permille && job->tokens_ns < (half_ns < IN_HAND_NS ? half_ns : IN_HAND_NS);
}

static bool is_due(const struct ll_served_card *card, const struct ll_card_claim *claim)
{
	const struct ll_share_claim *share = &claim->share;
	const struct ll_share_job *job = share->job;
	return card->is_changed || claim->has_sent_wake || card->share.holder == share ||
	       (share->want_since_ns && (job->cap_permille || card->has_exchange)) || earns_tokens(job);
}

static void look_at_claim(struct ll_share_claim *share, uint64_t now_ns)
{
	ll_share_look(share, now_ns);
	ll_card_claim_of(share)->has_looked = true;
}

/* Looks at the claims that are due. Returns true if the turn has changed or the holder is about to give it away; then
 * all claims are looked at. */
static bool look_at_claims(struct ll_served_card *card, uint64_t now_ns)
{
	struct ll_share_claim *holder = card->share.holder;
	bool was_ending = holder && holder->ending_since_ns;
	if (holder)
		look_at_claim(holder, now_ns);
	LL_SHARE_EACH(&card->share, share)
	{
		if (share != holder && is_due(card, ll_card_claim_of(share)))
			look_at_claim(share, now_ns);
	}
	return card->share.holder != holder || (holder && was_ending != !!holder->ending_since_ns);
}

static void decide_card(struct ll_served_card *card, uint64_t now_ns)
{
	for (int i = 0; i < MOST_ROUNDS && look_at_claims(card, now_ns); i++)
		card->is_changed = true;
}

/* Writes the orders of the claims that were looked at. That includes claims for which nothing more is due, such as one
 * whose debt is paid. */
static void tell_claims(struct ll_served_card *card, uint64_t now_ns)
{
	LL_SHARE_EACH(&card->share, share)
	{
		struct ll_card_claim *claim = ll_card_claim_of(share);
		if (claim->has_looked || is_due(card, claim))
			ll_card_tell(claim, now_ns);
		claim->has_sent_wake = claim->has_looked = false;
	}
	card->is_woken = card->is_changed = false;
}

/* ---- when to decide again ---- */

static uint64_t sooner_ns(uint64_t due_ns, uint64_t at_ns, uint64_t now_ns)
{
	return at_ns > now_ns && at_ns < due_ns ? at_ns : due_ns;
}

/* Returns when a visit ends if nothing changes, by the times of the rule (rules/share/visits.h). */
static uint64_t visit_due_ns(const struct ll_share_card *card, uint64_t now_ns)
{
	const struct ll_share_claim *holder = card->holder;
	uint64_t due_ns = now_ns + TICK_NS, since_ns = card->turn_since_ns;
	if (!holder)
		return due_ns;
	due_ns = sooner_ns(due_ns, since_ns + LL_VISIT_SERVICE_NS, now_ns);
	due_ns = sooner_ns(due_ns, since_ns + LL_VISIT_SHORT_NS, now_ns);
	due_ns = sooner_ns(due_ns, since_ns + LL_VISIT_QUANTUM_NS, now_ns);
	LL_SHARE_EACH_OF(holder->job, claim)
	{
		if (!claim->want_since_ns || !claim->queue_empty_since_ns)
			continue;
		due_ns = sooner_ns(due_ns, claim->queue_empty_since_ns + LL_VISIT_GRACE_AHEAD_NS, now_ns);
		due_ns = sooner_ns(due_ns, claim->queue_empty_since_ns + LL_VISIT_GRACE_WAITS_NS, now_ns);
	}
	return due_ns;
}

struct crowd {
	unsigned jobs; /* number of jobs that want the card, at most 2 */
	bool has_unresponsive, has_capped;
};

static struct crowd count_crowd(const struct ll_share_card *card)
{
	struct crowd crowd = {0};
	const struct ll_share_job *one = NULL;
	LL_SHARE_EACH_WANTING(card, claim)
	{
		crowd.has_unresponsive |= claim->was_unresponsive;
		crowd.has_capped |= claim->job->cap_permille;
		if (one != claim->job && crowd.jobs < 2)
			crowd.jobs++;
		one = one ? one : claim->job;
	}
	for (const struct ll_share_job *job = card->jobs; job; job = job->next)
		crowd.has_capped |= job->claims && earns_tokens(job);
	return crowd;
}

/* The pause between two decisions for all claims. Such a decision costs about 5 ns for each pair of a claim and a claim
 * that wants the card, and must not take more than a twentieth of the time: with 64 claims that all want the card, one
 * in 0.4 ms. The holder, and each claim that sends WAKE, are looked at without a pause. */
static uint64_t pause_ns(const struct ll_served_card *card)
{
	uint64_t wanting = 0;
	LL_SHARE_EACH_WANTING(&card->share, claim)
	wanting += claim != NULL;
	uint64_t ns = wanting * card->share.claim_count * PAIR_PAUSE_NS;
	return ns < ALL_NS ? ns : ALL_NS;
}

static uint64_t find_due_ns(struct ll_served_card *card, uint64_t now_ns)
{
	struct crowd crowd = count_crowd(&card->share);
	bool has_visits = crowd.jobs > 1 && ll_share_needs_visits(&card->share, now_ns);
	uint64_t due_ns = UINT64_MAX;
	if (has_visits)
		due_ns = visit_due_ns(&card->share, now_ns);
	else if (crowd.jobs > 1)
		due_ns = now_ns + CALM_NS;
	if (crowd.has_capped && !card->share.has_windows)
		due_ns = sooner_ns(due_ns, now_ns + TICK_NS, now_ns);
	if (crowd.has_unresponsive)
		due_ns = sooner_ns(due_ns, now_ns + ALL_NS, now_ns);
	if (card->is_late)
		due_ns = sooner_ns(due_ns, card->all_ns + pause_ns(card), now_ns);
	due_ns = sooner_ns(due_ns, card->choice_ns, now_ns);
	if (card->has_exchange)
		due_ns = sooner_ns(due_ns, now_ns + LL_GANG_LOOK_NS, now_ns);
	if (ll_card_beat(card, now_ns))
		due_ns = sooner_ns(due_ns, card->beat_ns + LL_BEAT_NS, now_ns);
	return due_ns;
}

/* ---- a whole decision ---- */

static bool is_card_due(const struct ll_served_card *card, uint64_t now_ns)
{
	return card->is_woken || card->is_changed || now_ns >= card->due_ns;
}

static bool is_any_due(const struct ll_cards *cards, uint64_t now_ns)
{
	for (const struct ll_served_card *card = cards->cards; card; card = card->next) {
		if (is_card_due(card, now_ns))
			return true;
	}
	return false;
}

/* Chooses how the card is shared. If that has changed, all claims are looked at. */
static void choose_how(struct ll_served_card *card, uint64_t now_ns)
{
	bool is_new;
	card->choice_ns = ll_share_choose(&card->share, now_ns, &is_new);
	if (is_new)
		card->all_ns = 0;
	card->is_changed |= is_new;
}

/* Chooses whether this decision looks at all claims, or leaves that to a later one. */
static void choose_claims(struct ll_served_card *card, uint64_t now_ns)
{
	bool is_wanted = card->is_changed || card->is_late || now_ns >= card->all_ns + ALL_NS;
	card->is_changed = is_wanted && now_ns >= card->all_ns + pause_ns(card);
	card->is_late = is_wanted && !card->is_changed;
	if (card->is_changed)
		card->all_ns = now_ns;
}

/* Cards with gangs are decided about together, because a report of a card is valid only for a moment. */
static void choose_sharing(struct ll_cards *cards, uint64_t now_ns)
{
	bool with_gangs = cards->gang_claims && is_any_due(cards, now_ns);
	for (struct ll_served_card *card = cards->cards; card; card = card->next) {
		card->is_chosen = is_card_due(card, now_ns) || (with_gangs && card->share.wanting);
	}
}

#define EACH_CHOSEN(cards, card)                                                                                       \
	for (struct ll_served_card * (card) = (cards)->cards; (card); (card) = (card)->next)                           \
		if ((card)->is_chosen)

void ll_cards_decide(struct ll_cards *cards, uint64_t now_ns)
{
	choose_sharing(cards, now_ns);
	EACH_CHOSEN(cards, card)
	{
		card->has_exchange = false;
		read_page(card, now_ns);
		choose_how(card, now_ns);
		choose_claims(card, now_ns);
	}
	EACH_CHOSEN(cards, card)
	look_at_gangs(card, now_ns);
	EACH_CHOSEN(cards, card)
	{
		decide_card(card, now_ns);
		tell_claims(card, now_ns);
		card->due_ns = find_due_ns(card, now_ns);
	}
}
