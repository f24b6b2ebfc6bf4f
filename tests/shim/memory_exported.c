/* Memory that processes of one tenant share is charged once, as long as anything holds it, whoever lets go or dies
 * first. */
#include "exporting.h"

#include <signal.h>

TEST_RUN_BY(each_way, what_its_maker_frees_first_is_charged_until_the_last_holder_lets_go)
{
	start_tenant(8 * GIB, 2);
	uint64_t used_bytes = card_used();
	make();
	take(1);
	take(2);
	close_descriptor();
	CHECK_EQUAL(charged_beyond(3), made_bytes());
	tell(0, UNMAKE, 0);
	CHECK_EQUAL(charged_beyond(3), SHARED_BYTES);
	tell(1, LET_GO, 0);
	CHECK_EQUAL(charged_beyond(3), SHARED_BYTES);
	CHECK(card_used() - used_bytes >= SHARED_BYTES - MIB);
	tell(2, LET_GO, 0);
	look(0);
	CHECK_EQUAL(charged_beyond(3), 0);
	CHECK_EQUAL(card_used(), used_bytes);
}

TEST_RUN_BY(each_way, what_its_maker_frees_last_is_given_back_at_once)
{
	start_tenant(8 * GIB, 1);
	make();
	take(1);
	close_descriptor();
	tell(1, LET_GO, 0);
	CHECK_EQUAL(charged_beyond(2), made_bytes());
	tell(0, UNMAKE, 0);
	CHECK_EQUAL(charged_beyond(2), 0);
}

TEST_RUN_BY(each_way, what_a_process_took_twice_it_holds_until_it_let_go_twice)
{
	start_tenant(8 * GIB, 1);
	make();
	take(1);
	CHECK_EQUAL(take_as(1, 1), 0);
	close_descriptor();
	tell(0, UNMAKE, 0);
	tell(1, LET_GO, 1);
	CHECK_EQUAL(charged_beyond(2), SHARED_BYTES);
	tell(1, LET_GO, 0);
	look(0);
	CHECK_EQUAL(charged_beyond(2), 0);
}

/* Each round the maker frees and the taker keeps: one of eight rounds is too much. */
TEST_RUN_BY(each_way, what_a_process_keeps_of_another_counts_against_the_limit)
{
	uint64_t limit_bytes = 2 * CONTEXT_BYTES + 5 * SHARED_BYTES + 28 * MIB;
	start_tenant(limit_bytes, 1);
	unsigned rounds = 0;
	while (rounds < 8 && tell(0, MAKE, 0) == 0 && take_as(1, 0) == 0) {
		close_descriptor();
		tell(0, UNMAKE, 0);
		rounds++;
		CHECK(charged() <= limit_bytes);
		CHECK(card_used() <= limit_bytes);
	}
	CHECK_EQUAL(rounds, 5);
}

/* ---- the dead ---- */

TEST_RUN_BY(each_way, a_killed_maker_s_memory_is_charged_to_who_holds_it)
{
	start_tenant(8 * GIB, 1);
	make();
	take(1);
	close_descriptor();
	kill_it(0);
	look(1);
	CHECK_EQUAL(charged_beyond(1), SHARED_BYTES);
	tell(1, LET_GO, 0);
	CHECK_EQUAL(charged_beyond(1), 0);
}

TEST_RUN_BY(each_way, nobody_gets_what_a_killed_maker_s_memory_still_takes)
{
	uint64_t limit_bytes = 3 * CONTEXT_BYTES + made_bytes();
	start_tenant(limit_bytes, 2);
	make();
	take(1);
	close_descriptor();
	CHECK(kill(pids[1], SIGSTOP) == 0); /* the holder does nothing for it */
	kill_it(0);
	uint64_t room = limit_bytes - 2 * CONTEXT_BYTES - SHARED_BYTES;
	CHECK_EQUAL(tell(2, ALLOCATE, room + 2 * MIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(charged_beyond(2), SHARED_BYTES);
	CHECK_EQUAL(tell(2, ALLOCATE, room), LL_CUDA_SUCCESS);
	CHECK_EQUAL(charged(), limit_bytes);
	CHECK(kill(pids[1], SIGCONT) == 0);
	tell(1, LET_GO, 0);
	look(2);
	CHECK_EQUAL(charged(), limit_bytes - SHARED_BYTES);
}

TEST_RUN_BY(each_way, a_killed_taker_leaves_nothing_charged)
{
	start_tenant(8 * GIB, 1);
	make();
	take(1);
	close_descriptor();
	tell(0, UNMAKE, 0);
	CHECK_EQUAL(charged_beyond(2), SHARED_BYTES);
	kill_it(1);
	look(0);
	CHECK_EQUAL(charged_beyond(1), 0);
}

TEST_IN_WORLD(NULL, a_process_looks_by_itself)
{
	way = &ways[0];
	start_tenant(8 * GIB, 2);
	make();
	take(1);
	close_descriptor();
	kill_it(0);
	WAIT_FOR(charged_beyond(2) == SHARED_BYTES);
	tell(1, LET_GO, 0);
	WAIT_FOR(charged_beyond(2) == 0);
}

/* What nobody holds any more is room for who asks, before its carrier looks by itself. */
TEST_RUN_BY(each_way, what_the_last_holder_lets_go_is_room_at_once)
{
	start_tenant(2 * CONTEXT_BYTES + made_bytes(), 1);
	make();
	take(1);
	close_descriptor();
	tell(0, UNMAKE, 0);
	tell(1, LET_GO, 0);
	CHECK_EQUAL(tell(1, ALLOCATE, made_bytes()), 0);
}
