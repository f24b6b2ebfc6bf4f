/* Programs that need no turns: who has an open gate, and who shuts it by coming. */
#include "test.h"

#include "base/clock.h"
#include "control/visits.h"
#include "ledger/account.h"
#include "ledger/handle.h"
#include "ledger/turn.h"
#include "ledger_fixture.h"

enum { MOST = 8 };

struct program {
	struct ll_claim *claim;
	struct ll_turn turn;
	struct ll_turn_look look;
};

struct card {
	struct fixture *fixture;
	struct program programs[MOST];
	size_t count;
	uint64_t now_ns, tenants;
};

static struct card *new_card(void **state)
{
	static struct card card;
	card = (struct card){.fixture = *state, .now_ns = LL_NS_PER_S};
	open_ledger(card.fixture);
	return &card;
}

/* Comes and wants the card. */
static struct program *add(struct card *card, enum ll_priority priority, unsigned weight_permille,
			   unsigned cap_permille)
{
	struct program *program = &card->programs[card->count++];
	struct ll_tenant_wish wish = {.id = ++card->tenants,
				      .name = "test",
				      .priority = priority,
				      .weight_permille = weight_permille,
				      .compute_cap_permille = cap_permille};
	*program = (struct program){.claim = take_claim_of_new(card->fixture->ledger, &wish)};
	ll_turn_want(program->claim, card->now_ns);
	return program;
}

static void release_all(struct card *card)
{
	for (size_t i = 0; i < card->count; i++)
		ll_claim_release(card->programs[i].claim);
}

/* Another process of the same tenant. */
static struct program *add_process(struct card *card, const struct program *of)
{
	struct program *program = &card->programs[card->count++];
	*program = (struct program){.claim = take_claim_of(card->fixture->ledger, of->claim->tenant_row - 1)};
	ll_turn_want(program->claim, card->now_ns);
	return program;
}

static void look_of_all(struct card *card)
{
	for (size_t i = 0; i < card->count; i++)
		ll_turn_look(card->programs[i].claim, &card->programs[i].turn, card->now_ns, 0,
			     &card->programs[i].look);
}

static bool is_open(const struct program *program)
{
	return atomic_load(ll_turn_gate(program->claim)) == LL_GATE_OPEN;
}

/* As each does by itself in flow.c. */
static void open_gates(struct card *card)
{
	look_of_all(card);
	for (size_t i = 0; i < card->count; i++) {
		if (card->programs[i].look.is_alone)
			ll_turn_open_gate(card->programs[i].claim, LL_GATE_OPEN, card->now_ns);
	}
}

/* Whatever their weights and their numbers of processes, as soon as it is known how they launch. */
static void test_gates_are_open_while_nobody_waits_for_each_launch(void **state)
{
	struct card *card = new_card(state);
	for (unsigned i = 0; i < 4; i++) {
		struct program *program =
		    i == 3 ? add_process(card, &card->programs[0]) : add(card, LL_PRIORITY_NORMAL, 1000 + i, 0);
		open_gates(card);
		assert_int_equal(is_open(program), i == 0);
		ll_turn_set_pace(program->claim, LL_PACE_AHEAD);
		open_gates(card);
		for (unsigned k = 0; k <= i; k++) {
			assert_true(is_open(&card->programs[k]));
			assert_true(card->programs[k].look.may_launch);
			assert_int_equal(card->programs[k].look.is_sliced, i > 0);
			assert_int_equal(card->programs[k].look.sharing, i == 3 ? 2 : i);
		}
	}
	/* one that rests and comes back shuts nobody out */
	ll_turn_rest(card->programs[1].claim, card->now_ns);
	ll_turn_want(card->programs[1].claim, card->now_ns);
	assert_true(is_open(&card->programs[0]));
	assert_true(is_open(&card->programs[2]));
	release_all(card);
}

static uint64_t virtual_ns_of(const struct program *program)
{
	const struct ll_ledger_file *file = program->claim->ledger->file;
	return atomic_load(&file->tenants[program->claim->tenant_row - 1].virtual_time_ns);
}

/* Slices serve all alike, whatever each makes of them, and accounts are estimates there. When visits begin, nobody
 * waits until the others have had as much. */
static void test_nobody_owes_what_slices_gave(void **state)
{
	struct card *card = new_card(state);
	struct program *little = add(card, LL_PRIORITY_NORMAL, 1000, 0), *much = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	for (size_t i = 0; i < card->count; i++)
		ll_turn_set_pace(card->programs[i].claim, LL_PACE_AHEAD);
	open_gates(card);
	for (int i = 0; i < 10; i++) {
		ll_account_charge(much->claim, card->now_ns, card->now_ns + 100 * LL_NS_PER_MS, 100 * LL_NS_PER_MS);
		ll_account_charge(little->claim, card->now_ns, card->now_ns + 20 * LL_NS_PER_MS, 20 * LL_NS_PER_MS);
		card->now_ns += 100 * LL_NS_PER_MS;
		look_of_all(card);
		assert_true(much->look.is_sliced);
	}
	assert_in_range(virtual_ns_of(much) - virtual_ns_of(little), 0, 20 * LL_NS_PER_MS);
	release_all(card);
}

static void test_who_waits_for_each_launch_brings_visits(void **state)
{
	struct card *card = new_card(state);
	for (int i = 0; i < 2; i++)
		ll_turn_set_pace(add(card, LL_PRIORITY_NORMAL, 1000, 0)->claim, LL_PACE_AHEAD);
	open_gates(card);
	assert_true(is_open(&card->programs[0]) && is_open(&card->programs[1]));
	ll_turn_set_pace(add(card, LL_PRIORITY_NORMAL, 1000, 0)->claim, LL_PACE_WAITS);
	assert_false(is_open(&card->programs[0]) || is_open(&card->programs[1]));
	look_of_all(card);
	unsigned may_launch = 0;
	for (size_t k = 0; k < card->count; k++) {
		may_launch += card->programs[k].look.may_launch;
		assert_false(card->programs[k].look.is_sliced || card->programs[k].look.is_alone);
	}
	assert_true(may_launch <= 1);
	release_all(card);
}

static void test_a_cap_shuts_its_own_gate_alone(void **state)
{
	struct card *card = new_card(state);
	struct program *capped = add(card, LL_PRIORITY_NORMAL, 1000, 500),
		       *other = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	for (size_t i = 0; i < card->count; i++)
		ll_turn_set_pace(card->programs[i].claim, LL_PACE_AHEAD);
	open_gates(card);
	card->now_ns += 10 * LL_NS_PER_MS; /* the account is empty at first */
	open_gates(card);
	assert_true(is_open(other) && !is_open(capped));
	assert_true(capped->look.is_sliced && capped->look.may_launch && !capped->look.is_alone);
	ll_account_charge(capped->claim, card->now_ns, card->now_ns + LL_NS_PER_S, LL_NS_PER_S);
	open_gates(card);
	assert_false(capped->look.may_launch);
	assert_true(is_open(other) && other->look.may_launch);
	release_all(card);
}

/* While the higher class rests too: its next launch shall not find a long queue. */
static void test_beneath_a_higher_class_the_queue_is_bounded(void **state)
{
	struct card *card = new_card(state);
	struct program *high = add(card, LL_PRIORITY_HIGH, 1000, 0), *low = add(card, LL_PRIORITY_LOW, 1000, 0);
	for (size_t i = 0; i < card->count; i++)
		ll_turn_set_pace(card->programs[i].claim, LL_PACE_AHEAD);
	open_gates(card);
	assert_true(is_open(high) && !is_open(low) && low->look.may_launch);
	assert_int_equal(high->look.queue_bound_ns, 0);
	assert_int_equal(low->look.queue_bound_ns, LL_QUEUE_BENEATH_NS);
	ll_turn_rest(high->claim, card->now_ns);
	open_gates(card);
	assert_true(!is_open(low) && low->look.may_launch);
	assert_int_equal(low->look.queue_bound_ns, LL_QUEUE_BENEATH_NS);
	ll_claim_release(high->claim);
	card->programs[0] = card->programs[1];
	card->count--;
	open_gates(card);
	open_gates(card);
	assert_true(is_open(&card->programs[0]));
	assert_int_equal(card->programs[0].look.queue_bound_ns, 0);
	release_all(card);
}

/* The card's next look finds a program that has begun to wait for each kernel. */
static void test_a_pace_that_changes_is_seen_at_the_next_look(void **state)
{
	struct card *card = new_card(state);
	for (int i = 0; i < 2; i++)
		ll_turn_set_pace(add(card, LL_PRIORITY_NORMAL, 1000, 0)->claim, LL_PACE_AHEAD);
	look_of_all(card);
	assert_true(card->programs[0].look.is_sliced && card->programs[1].look.is_sliced);
	ll_turn_set_pace(card->programs[1].claim, LL_PACE_WAITS);
	look_of_all(card);
	assert_false(card->programs[0].look.is_sliced || card->programs[1].look.is_sliced);
	release_all(card);
}

#define SLICE_TEST(name) cmocka_unit_test_setup_teardown(test_##name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    SLICE_TEST(gates_are_open_while_nobody_waits_for_each_launch),
	    SLICE_TEST(nobody_owes_what_slices_gave),
	    SLICE_TEST(who_waits_for_each_launch_brings_visits),
	    SLICE_TEST(a_cap_shuts_its_own_gate_alone),
	    SLICE_TEST(beneath_a_higher_class_the_queue_is_bounded),
	    SLICE_TEST(a_pace_that_changes_is_seen_at_the_next_look),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
