#include "daemon/arbiter/decide.h"

#include "daemon/arbiter/act.h"
#include "daemon/arbiter/choose.h"
#include "daemon/arbiter/classes.h"
#include "daemon/arbiter/contender.h"
#include "daemon/arbiter/time_on_card.h"
#include "daemon/arbiter/virtual_time.h"
#include "rules/share/tokens.h"
#include "rules/share/visits.h"

static void add_wanting(struct ll_share_claim *claim, uint64_t now_ns)
{
	struct ll_share_claim **end = &claim->job->card->wanting;
	while (*end)
		end = &(*end)->next_wanting;
	*end = claim;
	claim->next_wanting = NULL;
	claim->want_since_ns = now_ns;
	if (!claim->came_ns)
		claim->came_ns = now_ns;
}

static void remove_wanting(struct ll_share_claim *claim)
{
	struct ll_share_claim **link = &claim->job->card->wanting;
	while (*link && *link != claim)
		link = &(*link)->next_wanting;
	if (*link)
		*link = claim->next_wanting;
	claim->want_since_ns = 0;
}

void ll_share_want(struct ll_share_claim *claim, uint64_t now_ns)
{
	struct ll_share_scan scan;
	ll_share_scan_card(claim->job, claim, now_ns, &scan);
	ll_share_come_back(claim->job, &scan);
	add_wanting(claim, now_ns);
	if (ll_share_is_held(claim->job) ||
	    (scan.count && !ll_share_has_turn(claim) && ll_share_needs_visits(claim->job->card, now_ns)))
		ll_share_shut_word(claim->job);
}

void ll_share_return(struct ll_share_claim *claim, uint64_t now_ns)
{
	struct ll_share_scan scan;
	ll_share_scan_card(claim->job, claim, now_ns, &scan);
	ll_share_come_back(claim->job, &scan);
}

static void give_away(struct ll_share_claim *holder, uint64_t now_ns)
{
	struct ll_share_scan scan;
	ll_share_scan_card(holder->job, holder, now_ns, &scan);
	size_t best = ll_visits_next(scan.contenders, scan.count);
	if (best < scan.count)
		ll_share_pass(scan.claims[best], ll_visits_is_service(NULL, scan.contenders, scan.count, best), now_ns);
	else
		ll_share_free_turn(holder->job->card, now_ns);
}

void ll_share_rest(struct ll_share_claim *claim, uint64_t now_ns)
{
	remove_wanting(claim);
	if (claim->job->card->holder == claim && !ll_share_leave_to_sibling(claim, now_ns))
		give_away(claim, now_ns);
	ll_share_open_word_at_rest(claim->job);
}

/* Reads the present visit. *ret_visited: the holder, if it wants the card. */
static struct ll_visits_present read_present(const struct ll_share_card *card, uint64_t now_ns,
					     struct ll_contender *ret_visited)
{
	if (!card->holder || !ll_share_read(card->holder, now_ns, ret_visited))
		return (struct ll_visits_present){.visited = NULL};
	uint64_t visited_ns = ll_share_elapsed_ns(card->turn_since_ns, now_ns);
	return (struct ll_visits_present){
	    .visited = ret_visited,
	    .visited_ns = visited_ns,
	    .is_service = card->is_service,
	    .is_unresponsive = visited_ns > LL_SHARE_UNRESPONSIVE_NS && ll_share_is_unresponsive(card->holder, now_ns),
	};
}

static void try_take(struct ll_share_claim *claim, const struct ll_contender *self, const struct ll_share_scan *scan,
		     uint64_t now_ns)
{
	struct ll_contender visited;
	struct ll_visits_present present = read_present(claim->job->card, now_ns, &visited);
	if (ll_visits_takes(&present, self, scan->contenders, scan->count))
		ll_share_pass(claim, ll_visits_has_higher(scan->contenders, scan->count, self), now_ns);
}

static struct ll_visit read_visit(const struct ll_share_claim *claim, const struct ll_contender *self,
				  const struct ll_share_scan *scan, uint64_t now_ns)
{
	const struct ll_share_card *card = claim->job->card;
	uint64_t others_busy_ns = claim->job->others_busy_ns;
	return (struct ll_visit){
	    .self = self,
	    .visited_ns = ll_share_elapsed_ns(card->turn_since_ns, now_ns),
	    .queue_empty_ns =
		claim->queue_empty_since_ns ? ll_share_elapsed_ns(claim->queue_empty_since_ns, now_ns) : 0,
	    .draining_ns = claim->ending_since_ns ? now_ns - claim->ending_since_ns : 0,
	    .queued_ns = scan->siblings_queued_ns + claim->said.queued_ns,
	    .is_service = card->is_service,
	    .queue_is_empty = claim->queue_empty_since_ns,
	    .has_busy_sibling = scan->has_busy_sibling,
	    .is_overrunning = claim->said.overruns,
	    .yields_to_gang = claim->gang.yields_to_gang,
	    .had_work_elsewhere = others_busy_ns,
	    .has_work_elsewhere = ll_share_is_fresh(others_busy_ns, now_ns),
	};
}

/* Without the pause the claim would take the turn back from the lower class at its next look, although it has no work.
 */
static void give_turn(struct ll_share_claim *claim, const struct ll_share_scan *scan,
		      const struct ll_visit_verdict *verdict, uint64_t now_ns)
{
	if (verdict->loses_credit)
		ll_share_limit_credit(claim->job, scan);
	claim->ended_empty = verdict->ended_empty;
	if (verdict->is_paused)
		claim->paused_since_ns = now_ns;
	ll_share_pass(scan->claims[verdict->next], verdict->is_service, now_ns);
}

/* The claim has the turn. Returns whether it may go on launching. */
static bool hold_turn(struct ll_share_claim *claim, const struct ll_contender *self, const struct ll_share_scan *scan,
		      uint64_t now_ns)
{
	struct ll_visit visit = read_visit(claim, self, scan, now_ns);
	struct ll_visit_verdict verdict = ll_visits_decide(&visit, scan->contenders, scan->count);
	if (verdict.act != LL_VISIT_DRAINS)
		claim->ending_since_ns = 0;
	else if (!claim->ending_since_ns)
		claim->ending_since_ns = now_ns;
	if (verdict.tells_cards)
		claim->job->ending_ns = now_ns;
	if (verdict.act == LL_VISIT_GIVES)
		give_turn(claim, scan, &verdict, now_ns);
	return verdict.may_launch;
}

/* The card's time slices serve all claims that want it. A program's cap, or a higher class, limits only its own
 * launches. */
static void decide_slices(struct ll_share_claim *claim, const struct ll_contender *self,
			  const struct ll_share_scan *scan, bool has_superior, uint64_t now_ns)
{
	struct ll_turn_look *look = &claim->look;
	claim->ending_since_ns = 0;
	ll_share_open_word(claim->job);
	claim->want_since_ns = now_ns;
	ll_share_forgive(claim->job, scan);
	look->may_launch = self->has_tokens;
	look->is_alone = !self->has_cap && !has_superior;
	look->is_sliced = scan->count;
	look->waiting_claims = 0;
	look->sharing = ll_share_count(claim->job, scan, 0);
	look->queue_bound_ns = has_superior ? LL_QUEUE_BENEATH_NS : 0;
	look->is_holder = ll_share_has_turn(claim);
}

/* The job is taken off the card at the end of its window, so nothing holds its launches. Those of a job with a cap are
 * timed one by one: its account says whether it reaches its cap. */
static void decide_windowed(struct ll_share_claim *claim, const struct ll_share_scan *scan, uint64_t now_ns)
{
	struct ll_turn_look *look = &claim->look;
	bool is_alone = claim->job->is_windowed;
	*look = (struct ll_turn_look){.may_launch = true,
				      .is_alone = !claim->job->cap_permille,
				      .tokens_ns = INT64_MAX,
				      .tokens_most_ns = INT64_MAX,
				      .sharing = is_alone ? 0 : ll_share_count_unwindowed(claim->job, scan)};
	claim->ending_since_ns = 0;
	if (ll_share_has_turn(claim))
		ll_share_free_turn(claim->job->card, now_ns);
	ll_share_open_word(claim->job);
	if (claim->want_since_ns)
		claim->want_since_ns = now_ns;
	ll_share_forgive(claim->job, scan);
}

/* The claim is alone on the card, or has visits in turn with others. */
static void decide_turn(struct ll_share_claim *claim, struct ll_contender *self, const struct ll_share_scan *scan,
			uint64_t now_ns)
{
	struct ll_turn_look *look = &claim->look;
	if (!ll_share_has_turn(claim) && !self->is_paused) {
		claim->ending_since_ns = 0;
		try_take(claim, self, scan, now_ns);
	}
	if (ll_share_has_turn(claim)) {
		claim->want_since_ns = now_ns; /* its wait begins again when it loses the turn */
		self->waited_ns = 0;
		ll_share_open_words_of_unresponsive(claim->job->card, now_ns);
		look->may_launch = hold_turn(claim, self, scan, now_ns);
	}
	look->is_holder = ll_share_has_turn(claim);
	look->turn_since_ns = claim->job->card->turn_since_ns;
	if ((look->is_holder && !claim->ending_since_ns) || !scan->count)
		ll_share_open_word(claim->job);
	else
		ll_share_shut_word(claim->job);
}

/* The claim waits, on the card if it can, for its class's part of the time. */
static void decide_held(struct ll_share_claim *claim, const struct ll_contender *self, const struct ll_share_scan *scan,
			uint64_t now_ns)
{
	struct ll_turn_look *look = &claim->look;
	claim->ending_since_ns = 0;
	if (ll_share_has_turn(claim)) /* otherwise the time would be charged to it */
		ll_share_free_turn(claim->job->card, now_ns);
	ll_share_shut_word(claim->job);
	look->waiting_claims = (unsigned)scan->count;
	look->queue_bound_ns = LL_QUEUE_BENEATH_NS;
	look->is_exclusive = self->waits_on_card;
	look->sharing = 0;
}

static void read_account(struct ll_share_job *job, uint64_t now_ns, struct ll_turn_look *look)
{
	unsigned cap = job->cap_permille;
	look->tokens_ns = ll_share_earn(job, now_ns);
	look->tokens_most_ns = cap ? ll_tokens_most_ns(cap) : INT64_MAX;
	look->tokens_at_ns = cap ? now_ns : 0;
}

void ll_share_look(struct ll_share_claim *claim, uint64_t now_ns)
{
	struct ll_share_job *job = claim->job;
	struct ll_turn_look *look = &claim->look;
	struct ll_contender self;
	struct ll_share_scan scan;
	*look = (struct ll_turn_look){0};
	read_account(job, now_ns, look);
	ll_share_scan_card(job, claim, now_ns, &scan);
	if (job->card->has_windows) {
		decide_windowed(claim, &scan, now_ns);
		return;
	}
	look->awaited = (struct ll_gang_work){.seen_ns = job->others_said_ns, .launches = job->others_launches};
	look->waiting_claims = (unsigned)scan.count;
	look->is_above = ll_share_has_beneath(job->card, job->rank, now_ns);
	look->sharing = ll_share_count(job, &scan, LL_VISIT_DRAINED_NS + 1);
	if (!ll_share_read(claim, now_ns, &self)) {
		ll_share_open_word_at_rest(job);
		return;
	}
	if (ll_share_is_held(job)) {
		decide_held(claim, &self, &scan, now_ns);
		return;
	}
	if (!self.has_tokens) {
		job->empty_ns = now_ns;
		ll_share_limit_credit(job, &scan);
	}
	bool has_superior = ll_share_has_superior(job, now_ns) && !job->card->has_class_slices;
	bool needs_visits = scan.count && ll_share_needs_visits(job->card, now_ns);
	if (!needs_visits && (scan.count || has_superior)) {
		decide_slices(claim, &self, &scan, has_superior, now_ns);
		return;
	}
	decide_turn(claim, &self, &scan, now_ns);
	claim->overruns = claim->said.overruns && !look->is_holder;
	look->is_exclusive = self.waits_on_card && scan.count;
	if (look->is_exclusive) /* a process whose launches end within its visit is held */
		look->sharing = ll_share_count_overruns(&scan) + claim->overruns;
	look->is_alone = look->may_launch && !self.has_cap && scan.count == 0;
}

bool ll_share_is_free(const struct ll_share_claim *claim, uint64_t now_ns)
{
	const struct ll_share_job *job = claim->job;
	bool has_others = false;
	if (job->card->has_windows)
		return !job->cap_permille;
	if (job->cap_permille || (ll_share_has_superior(job, now_ns) && !job->card->has_class_slices))
		return false;
	LL_SHARE_EACH_WANTING(job->card, other)
	{
		has_others |= other->job != job && !ll_share_is_unresponsive(other, now_ns);
	}
	return !has_others || !ll_share_would_need_visits(claim, now_ns);
}
