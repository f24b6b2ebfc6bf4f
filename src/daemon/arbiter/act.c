#include "daemon/arbiter/act.h"

void ll_share_count_visit(struct ll_share_card *card, uint64_t now_ns)
{
	if (card->holder)
		card->holder->job->visited_ns += ll_share_elapsed_ns(card->visit_counted_ns, now_ns);
	card->visit_counted_ns = now_ns;
}

void ll_share_pass(struct ll_share_claim *to, bool is_service, uint64_t now_ns)
{
	struct ll_share_card *card = to->job->card;
	struct ll_share_claim *from = card->holder;
	ll_share_count_visit(card, now_ns);
	card->holder = to;
	card->is_service = is_service;
	card->turn_since_ns = now_ns;
	if (from && from->job != to->job)
		ll_share_shut_word(from->job);
	ll_share_open_word(to->job);
}

void ll_share_free_turn(struct ll_share_card *card, uint64_t now_ns)
{
	ll_share_count_visit(card, now_ns);
	card->holder = NULL;
	card->is_service = false;
	card->turn_since_ns = now_ns;
}

bool ll_share_leave_to_sibling(struct ll_share_claim *holder, uint64_t now_ns)
{
	LL_SHARE_EACH_OF(holder->job, claim)
	{
		if (claim != holder && claim->want_since_ns && !ll_share_is_unresponsive(claim, now_ns)) {
			holder->job->card->holder = claim;
			return true;
		}
	}
	return false;
}

enum { STEP_TRIES = 16 };

/* Both steps raise the word: a shut word is even, an open one odd. The number of tries is limited, so that a program
 * that writes its word all the time cannot block the caller. */
static void step_word(_Atomic uint32_t *word, uint32_t from)
{
	uint32_t value = atomic_load(word);
	for (int i = 0; i < STEP_TRIES && (value & LL_VISIT_WORD_OPEN) == from; i++) {
		if (atomic_compare_exchange_strong(word, &value, value + 1))
			return;
	}
}

void ll_share_open_word(struct ll_share_job *job)
{
	step_word(job->word, 0);
}

void ll_share_shut_word(struct ll_share_job *job)
{
	step_word(job->word, LL_VISIT_WORD_OPEN);
}

void ll_share_open_word_at_rest(struct ll_share_job *job)
{
	LL_SHARE_EACH_OF(job, claim)
	{
		if (claim->want_since_ns)
			return;
	}
	ll_share_open_word(job);
}

void ll_share_open_words_of_unresponsive(struct ll_share_card *card, uint64_t now_ns)
{
	LL_SHARE_EACH_WANTING(card, claim)
	{
		if (claim->said.is_on_card && ll_share_is_unresponsive(claim, now_ns))
			ll_share_open_word(claim->job);
	}
}
