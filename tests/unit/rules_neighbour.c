/* To which card memory goes, and when it has to go on. */
#include "rules/residency/neighbour.h"
#include "test.h"

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

/* An H100 on which nobody has anything. */
static struct ll_neighbour_view idle_card(void)
{
	return (struct ll_neighbour_view){.free_bytes = 79 * GIB, .used_bytes = 4 * MIB};
}

TEST(test_memory_goes_to_the_card_with_the_most_room)
{
	struct ll_neighbour_view cards[] = {idle_card(), idle_card(), idle_card()};
	assert_int_equal(ll_neighbour_choose(cards, 3, 16 * GIB), 0);
	cards[2].free_bytes++;
	assert_int_equal(ll_neighbour_choose(cards, 3, 16 * GIB), 2);
	assert_int_equal(ll_neighbour_choose(cards, 0, 16 * GIB), 0);
}

TEST(test_a_card_that_somebody_uses_is_left_alone)
{
	struct ll_neighbour_view cards[] = {idle_card(), idle_card(), idle_card()};
	cards[0].is_claimed = true;
	cards[1].used_bytes = LL_NEIGHBOUR_QUIET_BYTES + 1;
	assert_int_equal(ll_neighbour_choose(cards, 3, GIB), 2);
	assert_int_equal(ll_neighbour_choose(cards, 2, GIB), 2);
	cards[1].used_bytes--;
	assert_int_equal(ll_neighbour_choose(cards, 2, GIB), 1);
}

TEST(test_there_is_room_for_all_of_it_and_for_a_program_that_begins)
{
	struct ll_neighbour_view card = idle_card();
	card.free_bytes = 16 * GIB + LL_NEIGHBOUR_RESERVE_BYTES;
	assert_int_equal(ll_neighbour_choose(&card, 1, 16 * GIB), 0);
	assert_int_equal(ll_neighbour_choose(&card, 1, 16 * GIB + 1), 1);
	card.free_bytes = LL_NEIGHBOUR_RESERVE_BYTES;
	assert_int_equal(ll_neighbour_choose(&card, 1, 1), 1);
}

TEST(test_what_is_on_its_way_there_has_its_room_already)
{
	struct ll_neighbour_view cards[] = {idle_card(), idle_card()};
	cards[0].moved_bytes = 40 * GIB;
	assert_int_equal(ll_neighbour_choose(cards, 2, 16 * GIB), 1);
	assert_int_equal(ll_neighbour_choose(cards, 1, 37 * GIB), 0);
	assert_int_equal(ll_neighbour_choose(cards, 1, 38 * GIB), 1);
	cards[0].used_bytes = 40 * GIB; /* it has come */
	cards[0].free_bytes = 39 * GIB;
	assert_int_equal(ll_neighbour_choose(cards, 1, 37 * GIB), 0);
	assert_int_equal(ll_neighbour_choose(cards, 1, 38 * GIB), 1);
}

TEST(test_a_card_is_wanted_when_somebody_claims_it_or_has_memory_there)
{
	struct ll_neighbour_view card = idle_card();
	assert_false(ll_neighbour_is_wanted(&card));
	card.moved_bytes = 16 * GIB;
	card.used_bytes = 16 * GIB + LL_NEIGHBOUR_QUIET_BYTES;
	assert_false(ll_neighbour_is_wanted(&card));
	card.used_bytes++;
	assert_true(ll_neighbour_is_wanted(&card));
	card = idle_card();
	card.is_claimed = true;
	assert_true(ll_neighbour_is_wanted(&card));
}
