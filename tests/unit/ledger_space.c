/* Programs that are clients of MPS: they wait for nobody, but for a program by time that needs visits. */
#include "test.h"

#include "turn_card.h"

/* A client of MPS. */
static struct program *add_by_space(struct card *card, enum ll_priority priority, unsigned weight_permille)
{
	struct program *program = &card->programs[card->count++];
	struct ll_tenant_wish wish = {.id = card->count,
				      .name = "space",
				      .priority = priority,
				      .weight_permille = weight_permille,
				      .space_permille = 250};
	program->claim = take_claim_of_new(card->fixture->ledger, &wish);
	ll_turn_want(program->claim, card->now_ns);
	return program;
}

static void test_clients_of_mps_wait_for_nobody_while_they_are_equal(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *a = add_by_space(card, LL_PRIORITY_NORMAL, 1000),
		       *b = add_by_space(card, LL_PRIORITY_NORMAL, 1000);
	ll_turn_set_pace(a->claim, LL_PACE_WAITS);
	for (unsigned i = 0; i < 100; i++) {
		step(card);
		assert_true(a->look.may_launch && a->look.is_alone);
		assert_true(b->look.may_launch && b->look.is_alone);
		/* To the card they are one program: what each has is not cut into slices by the other. */
		assert_int_equal(a->look.sharing, 0);
	}
	assert_true(ll_turn_open_gate(a->claim, LL_GATE_OPEN, card->now_ns));
	assert_true(ll_turn_open_gate(b->claim, LL_GATE_OPEN, card->now_ns));
	/* Their time is counted all the same. */
	struct ll_tenant_info tenants[4];
	ll_account_charge(a->claim, card->now_ns - LL_NS_PER_MS, card->now_ns, LL_NS_PER_MS);
	assert_int_equal(ll_tenant_list(card->fixture->ledger, tenants, 4), 2);
	assert_int_equal(tenants[0].space_permille, 250);
	assert_true(tenants[0].gpu_time_ns >= LL_NS_PER_MS);
	release_all(card);
}

/* A higher class bounds what the lower one queues, and nobody waits. */
static void test_weights_and_classes_keep_no_client_of_mps_waiting(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *heavy = add_by_space(card, LL_PRIORITY_NORMAL, 7000),
		       *low = add_by_space(card, LL_PRIORITY_LOW, 300),
		       *high = add_by_space(card, LL_PRIORITY_HIGH, 1000);
	for (unsigned i = 0; i < 100; i++) {
		step(card);
		assert_true(heavy->look.may_launch && low->look.may_launch && high->look.may_launch);
		assert_true(high->look.is_alone && !low->look.is_alone);
		assert_int_equal(high->look.queue_bound_ns, 0);
		assert_true(low->look.queue_bound_ns && heavy->look.queue_bound_ns);
	}
	release_all(card);
}

/* The card gives all clients of MPS together the slices of one program. */
static void test_clients_of_mps_take_turns_with_a_program_that_waits_for_each_kernel(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *by_time = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	struct program *by_space = add_by_space(card, LL_PRIORITY_NORMAL, 1000);
	ll_turn_set_pace(by_time->claim, LL_PACE_WAITS);
	ll_turn_set_pace(by_space->claim, LL_PACE_AHEAD);
	run_for(card, TEN_S);
	assert_near(percent_of(by_time, TEN_S), 50, 1);
	assert_near(percent_of(by_space, TEN_S), 50, 1);
	ll_turn_set_pace(by_time->claim, LL_PACE_AHEAD);
	step(card);
	assert_true(by_time->look.is_sliced && by_space->look.is_sliced);
	release_all(card);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TURN_TEST(clients_of_mps_wait_for_nobody_while_they_are_equal),
	    TURN_TEST(weights_and_classes_keep_no_client_of_mps_waiting),
	    TURN_TEST(clients_of_mps_take_turns_with_a_program_that_waits_for_each_kernel),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
