#include "daemon/accounts/overlap.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/accounts/account.h"

#define LATE_NS (400 * LL_NS_PER_MS)
#define WORKING_NS (3 * LL_NS_PER_S)

/* So many jobs of one card are compared. */
enum { COMPARED = 64 };

struct group {
	struct ll_account *accounts[COMPARED];
	unsigned count;
};

static bool is_working(const struct ll_account *account, uint64_t now_ns)
{
	return account->card && now_ns - account->worked_ns < WORKING_NS;
}

/* Finds the accounts of the same card that have had GPU time lately, the first one included. */
static void find_group(struct ll_account *first, uint64_t now_ns, struct group *ret_group)
{
	ret_group->count = 0;
	for (struct ll_account *account = first; account && ret_group->count < COMPARED; account = account->next) {
		if (is_working(account, now_ns) && account->card_hash == first->card_hash &&
		    strcmp(account->key.card, first->key.card) == 0)
			ret_group->accounts[ret_group->count++] = account;
	}
}

/* The samples of a word; 0 if the word belongs to another time by now. */
static uint64_t read_word(const struct ll_account *account, uint64_t number)
{
	const struct ll_page_card *card = &account->card->job->pages.page->cards[account->card->index];
	uint64_t word = card->samples.words[number % LL_WORK_WORDS];
	return (uint16_t)(word >> LL_WORK_SAMPLES) == (uint16_t)number ? word & LL_WORK_BITS : 0;
}

/* By space (MPS) contexts of several jobs are on the card at once, without switches. */
static bool is_by_space(const struct ll_account *account)
{
	return account->card->job->facts.limits.space_permille;
}

/* Takes off what each job counted at one moment beyond its own part. */
static void share_sample(const struct group *group, const uint64_t words[COMPARED], unsigned sample)
{
	unsigned jobs = 0;
	for (unsigned i = 0; i < group->count; i++)
		jobs += words[i] >> sample & 1;
	for (unsigned i = 0; i < group->count; i++) {
		if (words[i] >> sample & 1)
			group->accounts[i]->shared_ns += LL_WORK_SAMPLE_NS - LL_WORK_SAMPLE_NS / jobs;
	}
}

static void share_word(const struct group *group, uint64_t number)
{
	uint64_t words[COMPARED], one = 0, several = 0;
	for (unsigned i = 0; i < group->count; i++) {
		words[i] = is_by_space(group->accounts[i]) ? read_word(group->accounts[i], number) : 0;
		several |= one & words[i];
		one |= words[i];
	}
	for (; several; several &= several - 1)
		share_sample(group, words, (unsigned)__builtin_ctzll(several));
}

/* ---- no more than has passed ---- */

static struct ll_overlap_card *find_card(struct ll_overlap *overlap, const struct ll_account *account, uint64_t now_ns)
{
	struct ll_overlap_card *oldest = overlap->cards;
	for (struct ll_overlap_card *card = overlap->cards; card < overlap->cards + LL_OVERLAP_CARDS; card++) {
		if (strcmp(card->uuid, account->key.card) == 0)
			return card;
		if (card->looked_ns < oldest->looked_ns)
			oldest = card;
	}
	*oldest = (struct ll_overlap_card){.looked_ns = now_ns};
	snprintf(oldest->uuid, sizeof oldest->uuid, "%s", account->key.card);
	oldest->room_ns = now_ns - account->born_ns;
	return oldest;
}

/* Work that is reported late has the room of the time before. */
static void bound_group(struct ll_overlap *overlap, const struct group *group, const uint64_t *found_ns,
			uint64_t now_ns)
{
	uint64_t fresh_ns[COMPARED], sum_ns = 0;
	struct ll_overlap_card *card = find_card(overlap, group->accounts[0], now_ns);
	card->room_ns += now_ns - card->looked_ns;
	card->looked_ns = now_ns;
	for (unsigned i = 0; i < group->count; i++) {
		struct ll_account *account = group->accounts[i];
		uint64_t used_ns = account->last.used_ns, looked_ns = account->looked_ns;
		uint64_t gross_ns = used_ns > looked_ns ? used_ns - looked_ns : 0;
		fresh_ns[i] = gross_ns > found_ns[i] ? gross_ns - found_ns[i] : 0;
		account->looked_ns = looked_ns + gross_ns;
		sum_ns += fresh_ns[i];
	}
	uint64_t above_ns = sum_ns > card->room_ns ? sum_ns - card->room_ns : 0;
	card->room_ns -= sum_ns - above_ns;
	for (unsigned i = 0; i < group->count && above_ns; i++)
		group->accounts[i]->shared_ns += (uint64_t)((double)fresh_ns[i] * ((double)above_ns / (double)sum_ns));
}

static void look_at_group(struct ll_overlap *overlap, const struct group *group, uint64_t from, uint64_t until,
			  uint64_t now_ns)
{
	uint64_t found_ns[COMPARED];
	for (unsigned i = 0; i < group->count; i++)
		found_ns[i] = group->accounts[i]->shared_ns;
	for (uint64_t number = from; group->count > 1 && number < until; number++)
		share_word(group, number);
	for (unsigned i = 0; i < group->count; i++) {
		found_ns[i] = group->accounts[i]->shared_ns - found_ns[i];
		group->accounts[i]->compared = until;
	}
	bound_group(overlap, group, found_ns, now_ns);
}

void ll_overlap_read(struct ll_overlap *overlap, struct ll_account *accounts, uint64_t now_ns)
{
	struct group group;
	uint64_t until = (now_ns - LATE_NS) / LL_WORK_WORD_NS, from = overlap->next;
	if (until - from > LL_WORK_WORDS * 3 / 4)
		from = until - LL_WORK_WORDS * 3 / 4;
	for (struct ll_account *first = accounts; first; first = first->next) {
		if (!is_working(first, now_ns) || first->compared == until)
			continue;
		find_group(first, now_ns, &group);
		look_at_group(overlap, &group, from, until, now_ns);
	}
	overlap->next = until;
}
