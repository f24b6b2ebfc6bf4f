#include "daemon/arbiter/cards.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/arbiter/card_state.h"
#include "daemon/arbiter/choose.h"
#include "daemon/arbiter/classes.h"
#include "daemon/arbiter/decisions.h"
#include "daemon/arbiter/how_shared.h"
#include "daemon/arbiter/time_on_card.h"
#include "daemon/arbiter/virtual_time.h"

enum { NUMBER_BITS = 64, NUMBERS_MOST = 1 << 20 };

/* The GPU time that may be charged for the time before the job joined. */
#define FIRST_ALLOWED_NS LL_NS_PER_S

/* How long a death on a card is kept after the card's last job has left. */
#define DEATH_KEPT_NS LL_NS_PER_S

/* ---- the loop ---- */

static void set_timer(struct ll_cards *cards)
{
	uint64_t due_ns = UINT64_MAX;
	for (const struct ll_served_card *card = cards->cards; card; card = card->next)
		due_ns = card->due_ns < due_ns ? card->due_ns : due_ns;
	if (due_ns == UINT64_MAX)
		due_ns = 0;
	if (due_ns == cards->timer_ns)
		return;
	const struct itimerspec when = {
	    .it_value = {.tv_sec = (time_t)(due_ns / LL_NS_PER_S), .tv_nsec = (long)(due_ns % LL_NS_PER_S)}};
	timerfd_settime(cards->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
	cards->timer_ns = due_ns;
}

void ll_cards_settle(struct ll_cards *cards, uint64_t now_ns)
{
	ll_cards_decide(cards, now_ns);
	set_timer(cards);
	if (cards->is_unsettled) {
		uv_check_stop(&cards->check);
		uv_idle_stop(&cards->idle);
		cards->is_unsettled = false;
	}
}

static void on_check(uv_check_t *check)
{
	ll_cards_settle(check->data, ll_now_ns());
}

static void on_idle(uv_idle_t *idle)
{
	(void)idle;
}

static void on_timer(uv_poll_t *poll, int status, int events)
{
	struct ll_cards *cards = poll->data;
	uint64_t expirations;
	(void)status;
	(void)events;
	if (read(cards->timer_fd, &expirations, sizeof expirations) < 0)
		return; /* it was set again meanwhile */
	cards->timer_ns = 0;
	ll_cards_settle(cards, ll_now_ns());
}

void ll_card_request_decision(struct ll_served_card *card)
{
	struct ll_cards *cards = card->cards;
	if (cards->is_unsettled)
		return;
	cards->is_unsettled = true;
	uv_check_start(&cards->check, on_check);
	uv_idle_start(&cards->idle, on_idle);
}

static void note_changed(struct ll_served_card *card)
{
	card->is_changed = true;
	ll_card_request_decision(card);
}

static void drop_card(struct ll_served_card *card)
{
	struct ll_served_card **link = &card->cards->cards;
	while (*link && *link != card)
		link = &(*link)->next;
	if (*link)
		*link = card->next;
	set_timer(card->cards);
	ll_share_card_fini(&card->share);
	free(card->share.decisions);
	free(card->numbers);
	free(card);
}

int ll_cards_init(struct ll_cards *cards, uv_loop_t *loop)
{
	*cards = (struct ll_cards){.loop = loop};
	cards->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (cards->timer_fd < 0)
		return -errno;
	int rc = uv_poll_init(loop, &cards->timer, cards->timer_fd);
	if (rc) {
		close(cards->timer_fd);
		return rc;
	}
	uv_check_init(loop, &cards->check);
	uv_idle_init(loop, &cards->idle);
	cards->timer.data = cards->check.data = cards->idle.data = cards;
	rc = uv_poll_start(&cards->timer, UV_READABLE, on_timer);
	uv_unref((uv_handle_t *)&cards->timer);
	uv_unref((uv_handle_t *)&cards->check);
	uv_unref((uv_handle_t *)&cards->idle);
	if (rc)
		ll_cards_fini(cards);
	return rc;
}

void ll_cards_fini(struct ll_cards *cards)
{
	while (cards->cards)
		drop_card(cards->cards);
	uv_close((uv_handle_t *)&cards->timer, NULL);
	uv_close((uv_handle_t *)&cards->check, NULL);
	uv_close((uv_handle_t *)&cards->idle, NULL);
	close(cards->timer_fd);
}

/* ---- cards and jobs ---- */

static struct ll_served_card *find_card(const struct ll_cards *cards, const char *uuid)
{
	struct ll_served_card *card = cards->cards;
	while (card && strcmp(card->uuid, uuid) != 0)
		card = card->next;
	return card;
}

const struct ll_decisions *ll_cards_decisions(const struct ll_cards *cards, const char *uuid)
{
	const struct ll_served_card *card = find_card(cards, uuid);
	return card ? card->share.decisions : NULL;
}

/* A card without jobs is kept for a while: the next job must know that the driver still frees memory. */
static bool is_needed(const struct ll_served_card *card, uint64_t now_ns)
{
	return card->share.jobs || (card->death_ns && now_ns - card->death_ns < DEATH_KEPT_NS);
}

static void drop_unneeded(struct ll_cards *cards, uint64_t now_ns)
{
	struct ll_served_card *next;
	for (struct ll_served_card *card = cards->cards; card; card = next) {
		next = card->next;
		if (!is_needed(card, now_ns))
			drop_card(card);
	}
}

static struct ll_served_card *get_card(struct ll_cards *cards, const char *uuid)
{
	struct ll_served_card *card = find_card(cards, uuid);
	if (card)
		return card;
	drop_unneeded(cards, ll_now_ns());
	card = calloc(1, sizeof *card);
	if (!card)
		return NULL;
	card->share.decisions = calloc(1, sizeof *card->share.decisions);
	if (!card->share.decisions) {
		free(card);
		return NULL;
	}
	strncpy(card->uuid, uuid, sizeof card->uuid - 1);
	card->cards = cards;
	card->due_ns = UINT64_MAX;
	card->next = cards->cards;
	cards->cards = card;
	return card;
}

static unsigned rank_of(const struct ll_limits *limits)
{
	return limits->priority == LL_LIMIT_CLASS_HIGH  ? LL_PRIORITY_HIGH
	       : limits->priority == LL_LIMIT_CLASS_LOW ? LL_PRIORITY_LOW
							: LL_PRIORITY_NORMAL;
}

static void set_limits(struct ll_share_job *share, const struct ll_limits *limits)
{
	share->weight_permille = limits->weight_permille ? limits->weight_permille : LL_DEFAULT_WEIGHT_PERMILLE;
	share->cap_permille = limits->compute_permille;
	share->slowdown_permille = limits->slowdown_permille ? limits->slowdown_permille : LL_DEFAULT_SLOWDOWN_PERMILLE;
	share->is_by_space = limits->space_permille;
	share->sharing = (enum ll_limit_sharing)limits->sharing;
}

/* The first of the card's jobs that has a value decides. */
static void choose_forced(struct ll_share_card *card)
{
	const struct ll_share_job *job = card->jobs;
	while (job && !job->sharing)
		job = job->next;
	bool gave_visits = card->forced == LL_LIMIT_SHARING_VISITS;
	card->forced = job ? job->sharing : LL_LIMIT_SHARING_MEASURED;
	if (!gave_visits && card->forced == LL_LIMIT_SHARING_VISITS)
		ll_share_even_out(card);
}

static void write_death(const struct ll_card_job *job, uint64_t death_ns)
{
	atomic_store(&job->orders->cards[job->index].death_ns, death_ns);
}

int ll_cards_join(struct ll_cards *cards, const struct ll_card_join *join, struct ll_card_job **ret_job)
{
	struct ll_served_card *card = get_card(cards, join->uuid);
	struct ll_card_job *job = card ? calloc(1, sizeof *job) : NULL;
	if (!job)
		return -ENOMEM;
	*job = (struct ll_card_job){.card = card, .page = join->page, .orders = join->orders, .index = join->index};
	job->share.id = join->id;
	job->share.tenant = join->tenant;
	job->share.uid = join->uid;
	job->share.word = &join->page->card_words[join->index];
	job->share.rank = rank_of(&join->limits);
	job->charged_ns = atomic_load(&join->page->cards[join->index].gpu_time_ns);
	job->allowed_ns = FIRST_ALLOWED_NS;
	job->allowed_at_ns = ll_now_ns();
	job->samples[0] = job->samples[1] = (struct ll_card_sample){job->allowed_at_ns, job->charged_ns};
	job->uid = join->uid;
	job->limits = join->limits;
	set_limits(&job->share, &join->limits);
	ll_share_add_job(&card->share, &job->share);
	choose_forced(&card->share);
	write_death(job, card->death_ns);
	cards->joins++;
	*ret_job = job;
	return 0;
}

void ll_card_job_leave(struct ll_card_job *job)
{
	if (!job)
		return;
	struct ll_served_card *card = job->card;
	ll_share_remove_job(&job->share);
	choose_forced(&card->share);
	card->cards->joins++;
	free(job);
	card->due_ns = UINT64_MAX;
	note_changed(card);
	drop_unneeded(card->cards, ll_now_ns());
}

void ll_card_job_set_limits(struct ll_card_job *job, const struct ll_limits *limits)
{
	job->limits = *limits;
	set_limits(&job->share, limits);
	choose_forced(&job->card->share);
	ll_share_set_rank(&job->share, rank_of(limits), ll_now_ns());
	note_changed(job->card);
}

void ll_card_job_set_weight(struct ll_card_job *job, uint32_t weight_permille)
{
	if (job->share.weight_permille == weight_permille)
		return;
	job->share.weight_permille = weight_permille;
	note_changed(job->card);
}

void ll_card_job_note_death(struct ll_card_job *job, uint64_t now_ns)
{
	job->card->death_ns = now_ns;
	for (struct ll_share_job *share = job->card->share.jobs; share; share = share->next) {
		const struct ll_card_job *other = ll_card_job_of(share);
		write_death(other, now_ns);
		LL_SHARE_EACH_OF(share, claim)
		ll_page_wake(&other->page->slots[ll_card_claim_of(claim)->slot].wake_count);
	}
}

/* "Lately" is two to four seconds if decisions are made for the card, otherwise longer. */
#define SAMPLE_NS (2 * LL_NS_PER_S)
/* loadlined tells the job about the card from now on. */
#define RECENT_LEAST_NS (LL_NS_PER_S / 5)

static uint64_t gpu_time_of(const struct ll_card_job *job)
{
	return atomic_load_explicit(&job->page->cards[job->index].gpu_time_ns, memory_order_relaxed);
}

void ll_card_job_sample(struct ll_card_job *job, uint64_t now_ns)
{
	if (now_ns < job->samples[1].at_ns + SAMPLE_NS)
		return;
	job->samples[0] = job->samples[1];
	job->samples[1] = (struct ll_card_sample){now_ns, gpu_time_of(job)};
}

static void read_recent(const struct ll_card_job *job, uint64_t now_ns, struct ll_card_job_view *view)
{
	enum { PERMILLE = 1000 };
	const struct ll_card_sample *sample = &job->samples[0];
	uint64_t had_ns = gpu_time_of(job) > sample->gpu_time_ns ? gpu_time_of(job) - sample->gpu_time_ns : 0;
	uint64_t ns = ll_share_elapsed_ns(sample->at_ns, now_ns);
	if (ns < RECENT_LEAST_NS)
		return;
	double part = had_ns < ns ? (double)had_ns / (double)ns : 1;
	view->recent_ns = ns;
	view->recent_permille = (unsigned)(PERMILLE * part + 0.5);
}

void ll_card_job_read_how(const struct ll_card_job *job, uint64_t now_ns, struct ll_share_how *ret_how)
{
	*ret_how = ll_share_how_shared(&job->share, now_ns);
}

void ll_card_job_read(struct ll_card_job *job, struct ll_card_job_view *ret_view)
{
	struct ll_card_claim_view claim_view;
	*ret_view = (struct ll_card_job_view){
	    .gpu_time_ns = atomic_load(&job->page->cards[job->index].gpu_time_ns),
	    .virtual_time_ns = job->share.virtual_ns,
	    .tokens_ns = ll_share_tokens_ns(&job->share, ll_now_ns()),
	    .sharing = ll_share_sharing(&job->card->share, ll_now_ns()),
	    .visits_permille = ll_share_visits_permille(&job->card->share),
	    .held_permille = ll_share_held_permille(&job->share),
	    .slowdown_permille = ll_share_slowdown_permille(&job->share),
	    .slice_us = job->share.time.slice_us,
	    .program = ll_card_job_program(job),
	    .others = job->others,
	    .company_ns = job->company_ns,
	    .company_launches = job->company_launches,
	};
	read_recent(job, ll_now_ns(), ret_view);
	ll_card_job_sample(job, ll_now_ns());
	LL_SHARE_EACH_OF(&job->share, claim)
	{
		ll_card_claim_read(ll_card_claim_of(claim), &claim_view);
		ret_view->is_holder |= claim_view.is_holder;
		ret_view->is_held |= claim_view.is_held;
	}
}

/* ---- claims ---- */

static bool has_number(const struct ll_served_card *card, unsigned number)
{
	size_t word = number / NUMBER_BITS;
	return word < card->number_words && card->numbers[word] >> number % NUMBER_BITS & 1;
}

static unsigned least_number(const struct ll_served_card *card)
{
	unsigned number = 0;
	while (has_number(card, number))
		number++;
	return number;
}

static int take_number(struct ll_served_card *card, unsigned number)
{
	size_t words = number / NUMBER_BITS + 1;
	if (words > card->number_words) {
		uint64_t *numbers = realloc(card->numbers, words * sizeof *numbers);
		if (!numbers)
			return -ENOMEM;
		memset(numbers + card->number_words, 0, (words - card->number_words) * sizeof *numbers);
		card->numbers = numbers;
		card->number_words = words;
	}
	card->numbers[number / NUMBER_BITS] |= UINT64_C(1) << number % NUMBER_BITS;
	return 0;
}

static void give_number(struct ll_served_card *card, unsigned number)
{
	card->numbers[number / NUMBER_BITS] &= ~(UINT64_C(1) << number % NUMBER_BITS);
}

/* The number in the slot may have any value. */
static unsigned choose_number(const struct ll_served_card *card, uint32_t said)
{
	bool is_good = said && said <= NUMBERS_MOST && !has_number(card, said - 1);
	return is_good ? said - 1 : least_number(card);
}

static bool is_ordered_off(const struct ll_orders_slot *orders)
{
	return !atomic_load(&orders->window_us) &&
	       atomic_load(&orders->window_period_us) == LL_CARD_SUSPENDED_NS / LL_NS_PER_US;
}

int ll_card_claim_add(struct ll_card_job *job, unsigned slot, const char *first_card, struct ll_card_claim **ret_claim)
{
	struct ll_served_card *card = job->card;
	_Atomic uint32_t *number = &job->page->slots[slot].number;
	struct ll_card_claim *claim = calloc(1, sizeof *claim);
	if (!claim)
		return -ENOMEM;
	claim->job = job;
	claim->slot = slot;
	claim->number = choose_number(card, atomic_load(number));
	claim->first_joins = UINT64_MAX;
	claim->is_suspended = is_ordered_off(&job->orders->slots[slot]);
	if (first_card && strcmp(first_card, card->uuid) != 0)
		strncpy(claim->first_card, first_card, sizeof claim->first_card - 1);
	int rc = take_number(card, claim->number);
	if (!rc && (rc = ll_share_add_claim(&job->share, &claim->share)))
		give_number(card, claim->number);
	if (rc) {
		free(claim);
		return rc;
	}
	atomic_store(number, claim->number + 1);
	card->cards->gang_claims += claim->first_card[0] != 0;
	claim->has_sent_wake = card->is_woken = true;
	note_changed(card);
	*ret_claim = claim;
	return 0;
}

void ll_card_claim_remove(struct ll_card_claim *claim)
{
	if (!claim)
		return;
	struct ll_served_card *card = claim->job->card;
	ll_share_remove_claim(&claim->share, ll_now_ns());
	ll_card_untell(claim);
	give_number(card, claim->number);
	card->cards->gang_claims -= claim->first_card[0] != 0;
	note_changed(card);
	free(claim);
}

unsigned ll_card_claim_number(const struct ll_card_claim *claim)
{
	return claim->number;
}

void ll_card_claim_wake(struct ll_card_claim *claim)
{
	claim->has_sent_wake = claim->job->card->is_woken = true;
	ll_card_request_decision(claim->job->card);
}

int ll_card_claim_suspend(struct ll_card_claim *claim, bool is_suspended)
{
	enum ll_time_lever lever = atomic_load(&claim->job->page->slots[claim->slot].time_lever);
	if (is_suspended && lever != LL_TIME_LEVER_WORKS)
		return lever == LL_TIME_LEVER_UNKNOWN ? -EAGAIN : -EOPNOTSUPP;
	claim->is_suspended = is_suspended;
	ll_card_tell(claim, ll_now_ns());
	ll_card_claim_wake(claim);
	return 0;
}

void ll_card_claim_read(const struct ll_card_claim *claim, struct ll_card_claim_view *ret_view)
{
	const struct ll_share_claim *share = &claim->share;
	bool is_wanting = share->want_since_ns, is_holder = ll_share_has_turn(share);
	*ret_view = (struct ll_card_claim_view){
	    .is_wanting = is_wanting,
	    .is_holder = is_holder,
	    .is_held = is_wanting &&
		       (ll_share_is_held(share->job) ||
			(!is_holder && share->job->card->holder && !share->look.is_sliced && !share->look.is_alone)),
	    .is_unresponsive = is_wanting && ll_share_is_unresponsive(share, ll_now_ns()),
	    .is_suspended = claim->is_suspended,
	    .is_off = atomic_load(&claim->job->page->slots[claim->slot].is_off_card),
	};
}

bool ll_card_claim_has_wanted(const struct ll_card_claim *claim, uint64_t within_ns)
{
	const struct ll_share_claim *share = &claim->share;
	return share->want_since_ns || (share->wanted_ns && ll_now_ns() - share->wanted_ns <= within_ns);
}
