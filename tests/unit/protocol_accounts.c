/* Memory over time, from sums of moments; waits; what ended processes leave in the card's account. */
#include "test.h"

#include <string.h>

#include "base/clock.h"
#include "protocol/accounts.h"

#define S LL_NS_PER_S

static struct ll_page page;

static struct ll_page_slot *take_slot(unsigned index, unsigned card, uint64_t taken_ns)
{
	struct ll_page_slot *slot = &page.slots[index];
	memset((void *)slot, 0, sizeof *slot);
	slot->card = card;
	slot->taken_ns = taken_ns;
	slot->token = index + 1;
	page.slot_end = index + 1 > page.slot_end ? index + 1 : page.slot_end;
	return slot;
}

static void charge(struct ll_page_slot *slot, uint64_t units, uint64_t now_ns)
{
	slot->memory = LL_MEMORY_WORD(0, LL_MEMORY_USED(slot->memory) + units);
	ll_accounts_note_charge(slot, units, now_ns);
}

static void release(struct ll_page_slot *slot, uint64_t units, uint64_t now_ns)
{
	slot->memory = LL_MEMORY_WORD(0, LL_MEMORY_USED(slot->memory) - units);
	ll_accounts_note_release(slot, units, now_ns);
}

static uint64_t held(const struct ll_page_slot *slot, uint64_t now_ns)
{
	struct ll_accounts accounts;
	ll_accounts_read(slot, now_ns, &accounts);
	return accounts.held_unit_ms;
}

TEST(test_the_area_is_that_of_the_steps)
{
	struct ll_page_slot *slot = take_slot(0, 0, 100 * S);
	assert_int_equal(held(slot, 200 * S), 0);
	charge(slot, 10, 101 * S);
	assert_int_equal(held(slot, 103 * S), 10 * 2000);
	charge(slot, 30, 104 * S);
	release(slot, 20, 105 * S);
	assert_int_equal(held(slot, 110 * S), 10 * 3000 + 40 * 1000 + 20 * 5000);
	release(slot, 20, 110 * S);
	assert_int_equal(held(slot, 110 * S), 170000);
	assert_int_equal(held(slot, 1000 * S), 170000);
}

/* A card of 140 GiB for eleven months. */
TEST(test_much_memory_for_long_does_not_overflow)
{
	const uint64_t ms = UINT64_C(334) * 24 * 3600 * 1000, units = (UINT64_C(140) << 30) / LL_MEMORY_UNIT;
	struct ll_page_slot *slot = take_slot(0, 0, S);
	charge(slot, units, S);
	assert_int_equal(held(slot, S + ms * LL_NS_PER_MS), units * ms);
}

/* One that was killed between its two words leaves no area below nothing. */
TEST(test_half_a_change_is_no_huge_area)
{
	struct ll_page_slot *slot = take_slot(0, 0, S);
	ll_accounts_note_charge(slot, 1000, 10 * S);
	assert_int_equal(held(slot, 20 * S), 0);
}

TEST(test_a_card_has_those_who_live_and_those_who_ended)
{
	struct ll_accounts sum;
	memset((void *)&page, 0, sizeof page);
	struct ll_page_slot *one = take_slot(0, 1, S), *two = take_slot(1, 1, S), *elsewhere = take_slot(2, 0, S);
	charge(one, 5, S);
	charge(two, 7, S);
	charge(elsewhere, 100, S);
	ll_accounts_note_wait(one, LL_WAIT_CAP, 3);
	ll_accounts_note_wait(two, LL_WAIT_CAP, 4);
	ll_accounts_note_wait(two, LL_WAIT_MOVE, 9);
	ll_accounts_end(&page, two, 2 * S);
	two->token = 0;
	ll_accounts_read_card(&page, 1, 3 * S, &sum);
	assert_int_equal(sum.held_unit_ms, 5 * 2000 + 7 * 1000);
	assert_int_equal(sum.waited_ns[LL_WAIT_TURN], 0);
	assert_int_equal(sum.waited_ns[LL_WAIT_CAP], 7);
	assert_int_equal(sum.waited_ns[LL_WAIT_MOVE], 9);
}
