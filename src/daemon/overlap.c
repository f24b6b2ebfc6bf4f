#include "daemon/overlap.h"

#include <string.h>

#include "base/clock.h"
#include "daemon/account.h"

#define LATE_NS (400 * LL_NS_PER_MS)
#define LATE_FINE_NS (10 * LL_NS_PER_MS)
#define WORKING_NS (3 * LL_NS_PER_S)
#define NS_MASK ((UINT64_C(1) << LL_BUSY_NUMBER_SHIFT) - 1)

#define FINE_OF_LONG (LL_BUSY_LONG_BIN_NS / LL_BUSY_BIN_NS)

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

static const struct ll_busy_bins *bins_of(const struct ll_account *account)
{
	return &account->card->job->pages.page->cards[account->card->index].busy;
}

/* The time that is counted in a bin; 0 if the word belongs to another bin by now. */
static uint64_t read_word(uint64_t word, uint64_t number, uint64_t bin_ns)
{
	uint64_t ns = word >> LL_BUSY_NUMBER_SHIFT == number ? word & NS_MASK : 0;
	return ns < bin_ns ? ns : bin_ns;
}

static uint64_t surplus_ns(uint64_t ns, uint64_t sum_ns, uint64_t bin_ns)
{
	return sum_ns > bin_ns ? ns - ns * bin_ns / sum_ns : 0;
}

/* ---- short bins ---- */

static void share_fine_bin(const struct group *group, uint64_t number)
{
	uint64_t each_ns[COMPARED], sum_ns = 0;
	for (unsigned i = 0; i < group->count; i++) {
		each_ns[i] =
		    read_word(bins_of(group->accounts[i])->words[number % LL_BUSY_BINS], number, LL_BUSY_BIN_NS);
		sum_ns += each_ns[i];
	}
	for (unsigned i = 0; i < group->count && sum_ns > LL_BUSY_BIN_NS; i++) {
		uint64_t ns = surplus_ns(each_ns[i], sum_ns, LL_BUSY_BIN_NS);
		group->accounts[i]->shared_ns += ns;
		group->accounts[i]->fine_ns[number / FINE_OF_LONG % LL_BUSY_LONG_BINS] += (uint32_t)ns;
	}
}

void ll_overlap_read_fine(struct ll_overlap *overlap, struct ll_account *accounts, uint64_t now_ns)
{
	struct group group;
	uint64_t until = (now_ns - LATE_FINE_NS) / LL_BUSY_BIN_NS, oldest = now_ns / LL_BUSY_BIN_NS - LL_BUSY_BINS + 2;
	uint64_t from = overlap->next > oldest ? overlap->next : oldest;
	for (struct ll_account *first = accounts; first; first = first->next) {
		if (!is_working(first, now_ns) || first->compared_fine == until)
			continue;
		find_group(first, now_ns, &group);
		for (uint64_t number = from; group.count > 1 && number < until; number++)
			share_fine_bin(&group, number);
		for (unsigned i = 0; i < group.count; i++)
			group.accounts[i]->compared_fine = until;
	}
	overlap->next = until;
}

/* ---- long bins ---- */

/* What the short bins have found is subtracted before. */
static void share_long_bin(const struct group *group, uint64_t number)
{
	uint64_t each_ns[COMPARED], sum_ns = 0, index = number % LL_BUSY_LONG_BINS;
	for (unsigned i = 0; i < group->count; i++) {
		struct ll_account *account = group->accounts[i];
		each_ns[i] = read_word(bins_of(account)->long_words[index], number, LL_BUSY_LONG_BIN_NS);
		each_ns[i] -= account->fine_ns[index] < each_ns[i] ? account->fine_ns[index] : each_ns[i];
		account->fine_ns[index] = 0;
		sum_ns += each_ns[i];
	}
	for (unsigned i = 0; i < group->count; i++)
		group->accounts[i]->shared_ns += surplus_ns(each_ns[i], sum_ns, LL_BUSY_LONG_BIN_NS);
}

bool ll_overlap_read(struct ll_overlap *overlap, struct ll_account *accounts, uint64_t now_ns)
{
	struct group group;
	bool is_shared = false;
	uint64_t until = (now_ns - LATE_NS) / LL_BUSY_LONG_BIN_NS;
	uint64_t from = overlap->next_long;
	if (until - from > LL_BUSY_LONG_BINS * 3 / 4)
		from = until - LL_BUSY_LONG_BINS * 3 / 4;
	for (struct ll_account *first = accounts; first; first = first->next) {
		if (!is_working(first, now_ns) || first->compared_long == until)
			continue;
		find_group(first, now_ns, &group);
		is_shared |= group.count > 1;
		for (uint64_t number = from; number < until; number++)
			share_long_bin(&group, number);
		for (unsigned i = 0; i < group.count; i++)
			group.accounts[i]->compared_long = until;
	}
	overlap->next_long = until;
	return is_shared;
}
