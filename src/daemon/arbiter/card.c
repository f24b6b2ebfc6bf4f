#include "daemon/arbiter/card.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/arbiter/act.h"
#include "daemon/arbiter/decide.h"
#include "daemon/arbiter/virtual_time.h"

enum { FIRST_CAPACITY = 16 };

/* A program that waits for each launch reports an empty queue this long after its last work. A program that launches
 * ahead reports it at once. */
#define QUEUE_EMPTY_SAID_NS UINT64_C(150000)

void ll_share_card_fini(struct ll_share_card *card)
{
	free(card->contenders);
	free(card->others);
	card->contenders = NULL;
	card->others = NULL;
	card->capacity = 0;
}

/* The arrays of a pass have room for all claims. */
static int make_room(struct ll_share_card *card)
{
	if (card->claim_count < card->capacity)
		return 0;
	size_t capacity = card->capacity ? 2 * card->capacity : FIRST_CAPACITY;
	struct ll_contender *contenders = realloc(card->contenders, capacity * sizeof *contenders);
	if (!contenders)
		return -ENOMEM;
	card->contenders = contenders;
	struct ll_share_claim **others = realloc(card->others, capacity * sizeof(struct ll_share_claim *));
	if (!others)
		return -ENOMEM;
	card->others = others;
	card->capacity = capacity;
	return 0;
}

void ll_share_add_job(struct ll_share_card *card, struct ll_share_job *job)
{
	struct ll_share_job **end = &card->jobs;
	while (*end)
		end = &(*end)->next;
	*end = job;
	job->card = card;
	job->next = NULL;
	ll_share_open_word(job);
}

void ll_share_remove_job(struct ll_share_job *job)
{
	struct ll_share_job **link = &job->card->jobs;
	while (*link && *link != job)
		link = &(*link)->next;
	if (*link)
		*link = job->next;
	ll_share_open_word(job);
}

void ll_share_set_rank(struct ll_share_job *job, unsigned rank, uint64_t now_ns)
{
	if (job->rank == rank)
		return;
	job->rank = rank;
	ll_share_enter_class(job, now_ns);
}

int ll_share_add_claim(struct ll_share_job *job, struct ll_share_claim *claim)
{
	int rc = make_room(job->card);
	if (rc)
		return rc;
	struct ll_share_claim **end = &job->claims;
	while (*end)
		end = &(*end)->next;
	*end = claim;
	claim->job = job;
	claim->next = NULL;
	job->card->claim_count++;
	return 0;
}

void ll_share_remove_claim(struct ll_share_claim *claim, uint64_t now_ns)
{
	struct ll_share_claim **link = &claim->job->claims;
	if (claim->want_since_ns)
		ll_share_rest(claim, now_ns);
	while (*link && *link != claim)
		link = &(*link)->next;
	if (*link)
		*link = claim->next;
	claim->job->card->claim_count--;
}

bool ll_share_is_unresponsive(const struct ll_share_claim *claim, uint64_t now_ns)
{
	return ll_share_elapsed_ns(claim->said.at_ns, now_ns) > LL_SHARE_UNRESPONSIVE_NS;
}

static void note_queue_empty(struct ll_share_claim *claim)
{
	const struct ll_share_said *said = &claim->said;
	if (!said->queue_is_empty)
		claim->queue_empty_since_ns = 0;
	else if (!claim->queue_empty_since_ns)
		claim->queue_empty_since_ns =
		    said->at_ns - (said->launch_mode == LL_LAUNCH_MODE_ASYNC ? 0 : QUEUE_EMPTY_SAID_NS);
}

static void note_pause(struct ll_share_claim *claim, uint64_t now_ns)
{
	bool has_launched = claim->said.has_launched && claim->said.at_ns > claim->paused_since_ns;
	if (has_launched || now_ns - claim->paused_since_ns >= LL_SHARE_PAUSE_NS)
		claim->paused_since_ns = 0;
}

/* Whether the claim now counts as another contender for the other claims. */
static bool post_differs(const struct ll_share_said *a, const struct ll_share_said *b)
{
	return a->is_wanting != b->is_wanting || a->launch_mode != b->launch_mode || a->is_on_card != b->is_on_card ||
	       a->overruns != b->overruns;
}

bool ll_share_post(struct ll_share_claim *claim, const struct ll_share_said *said, uint64_t now_ns)
{
	bool is_new = post_differs(&claim->said, said);
	bool was_wanting = claim->want_since_ns;
	claim->said = *said;
	if (claim->said.at_ns > now_ns)
		claim->said.at_ns = now_ns;
	note_queue_empty(claim);
	if (claim->paused_since_ns)
		note_pause(claim, now_ns);
	if (said->is_wanting && !was_wanting)
		ll_share_want(claim, now_ns);
	else if (!said->is_wanting && was_wanting)
		ll_share_rest(claim, now_ns);
	bool is_unresponsive = said->is_wanting && ll_share_is_unresponsive(claim, now_ns);
	if (said->is_wanting && claim->was_unresponsive && !is_unresponsive)
		ll_share_return(claim, now_ns);
	is_new |= claim->was_unresponsive != is_unresponsive;
	claim->was_unresponsive = is_unresponsive;
	return is_new;
}
