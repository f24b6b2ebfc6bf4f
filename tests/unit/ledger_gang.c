/* Tenants on two cards at once, on a simulated clock: they have their turns together, and their shares all the same. */
#include "test.h"

#include "base/clock.h"
#include "control/visits.h"
#include "ledger/account.h"
#include "ledger/gang.h"
#include "ledger/handle.h"
#include "ledger/turn.h"
#include "ledger_fixture.h"

#define STEP_NS (100 * LL_NS_PER_US)

enum { CARDS = 2, TENANTS = 2 };

struct member {
	struct ll_claim *claim;
	struct ll_turn turn;
	struct ll_turn_look look;
	struct ll_gang gang;
	uint64_t used_ns;
};

static struct member members[CARDS][TENANTS];
static struct ll_ledger *ledgers[CARDS];
static uint64_t now_ns;

static void join(unsigned card, unsigned tenant, unsigned weight_permille)
{
	struct member *member = &members[card][tenant];
	struct ll_tenant_wish wish = {
	    .id = 1 + tenant, .name = "gang", .priority = LL_PRIORITY_NORMAL, .weight_permille = weight_permille};
	unsigned row = 0;
	assert_int_equal(ll_tenant_join(ledgers[card], &wish, &row, NULL), 0);
	*member = (struct member){.claim = take_claim_of(ledgers[card], row)};
	ll_turn_set_pace(member->claim, LL_PACE_WAITS); /* for its kernels on the other card */
	ll_turn_want(member->claim, now_ns);
}

/* Kernels of a step that begin when they may; on the second card each process says when its tenant has the first. */
static void step(bool is_gang)
{
	now_ns += STEP_NS;
	for (unsigned card = 0; card < CARDS; card++) {
		for (unsigned tenant = 0; tenant < TENANTS; tenant++) {
			struct member *member = &members[card][tenant];
			if (!member->claim)
				continue;
			if (is_gang && card > 0 && ll_turn_is_of(ledgers[0], 1 + tenant))
				ll_turn_note_gang(member->claim, now_ns);
			ll_turn_look(member->claim, &member->turn, now_ns, 0, &member->look);
			if (!member->look.may_launch)
				continue;
			member->used_ns += STEP_NS;
			ll_account_charge(member->claim, now_ns, now_ns + STEP_NS, STEP_NS);
		}
	}
}

/* The part of ten seconds in which both cards were the same tenant's, in percent. */
static double together(bool is_gang)
{
	unsigned same = 0, steps = 100000;
	for (unsigned i = 0; i < steps; i++) {
		step(is_gang);
		same += ll_turn_is_mine(members[0][0].claim) == ll_turn_is_mine(members[1][0].claim);
	}
	return 100.0 * same / steps;
}

static void begin(struct fixture *fixture, unsigned weight_permille)
{
	memset(members, 0, sizeof members);
	now_ns = LL_NS_PER_S;
	open_ledger(fixture);
	ledgers[0] = fixture->ledger;
	assert_int_equal(ll_ledger_open(fixture->folder, "GPU-another", true, &ledgers[1], NULL), 0);
	join(0, 0, 1000);
	join(0, 1, weight_permille);
	for (unsigned i = 0; i < 137; i++) /* the other card is at another point of its turns */
		step(false);
	join(1, 1, weight_permille);
	join(1, 0, 1000);
}

static void end(void)
{
	for (unsigned card = 0; card < CARDS; card++) {
		for (unsigned tenant = 0; tenant < TENANTS; tenant++) {
			if (members[card][tenant].claim)
				ll_claim_release(members[card][tenant].claim);
		}
	}
	ll_ledger_close(ledgers[1]);
}

static double share(unsigned card)
{
	double first = (double)members[card][0].used_ns, second = (double)members[card][1].used_ns;
	return 100 * first / (first + second);
}

static void test_they_have_their_turns_together(void **state)
{
	begin(*state, 1000);
	assert_true(together(true) > 95);
	for (unsigned card = 0; card < CARDS; card++)
		assert_true(share(card) > 49 && share(card) < 51);
	end();
}

static void test_by_weight_too(void **state)
{
	begin(*state, 3000);
	assert_true(together(true) > 95);
	for (unsigned card = 0; card < CARDS; card++)
		assert_true(share(card) > 24 && share(card) < 26);
	end();
}

/* One of them is on the second card alone: it gets its share there all the same. */
static void test_who_is_on_one_card_only_loses_nothing(void **state)
{
	begin(*state, 1000);
	ll_turn_rest(members[0][1].claim, now_ns);
	ll_claim_release(members[0][1].claim);
	members[0][1].claim = NULL;
	members[1][0].used_ns = members[1][1].used_ns = 0;
	for (unsigned i = 0; i < 100000; i++)
		step(true);
	assert_true(share(1) > 49 && share(1) < 51);
	end();
}

static struct ll_gang look_from_the_second(unsigned tenant, uint32_t launches)
{
	struct member *member = &members[1][tenant];
	ll_gang_look(member->claim, ledgers[0], 1 + tenant, launches, now_ns, &member->gang);
	return member->gang;
}

static struct ll_turn_look look_on_the_first(unsigned tenant, uint64_t queued_ns, uint32_t launches)
{
	struct member *member = &members[0][tenant];
	member->turn.queued_launches = launches;
	ll_turn_look(member->claim, &member->turn, now_ns, queued_ns, &member->look);
	return member->look;
}

/* The tenant that has the turn on the first card, used up; the other one waits for it. */
static unsigned find_ending(void)
{
	for (unsigned tenant = 0; tenant < TENANTS; tenant++)
		look_from_the_second(tenant, 0);
	for (unsigned i = 0; i < 10000; i++) {
		step(false);
		now_ns += STEP_NS / 2; /* so that a quantum ends while it has work queued */
		for (unsigned tenant = 0; tenant < TENANTS; tenant++) {
			look_on_the_first(tenant, LL_NS_PER_MS, 4);
			if (members[0][tenant].turn.ending_since_ns)
				return tenant;
		}
	}
	fail();
	return 0;
}

static void test_a_turn_ends_on_all_cards_at_once(void **state)
{
	begin(*state, 1000);
	unsigned own = find_ending(), other = 1 - own;
	/* the first card has nothing left, the second has: not yet, and what that waits for may go */
	assert_true(look_from_the_second(own, 3).is_ending);
	struct ll_turn_look look = look_on_the_first(own, 0, 0);
	assert_true(look.is_holder);
	assert_false(look.may_launch);
	assert_int_equal(look.awaited.seen_ns, now_ns);
	assert_int_equal(look.awaited.launches, 3);
	/* the other way round */
	now_ns += STEP_NS;
	look_on_the_first(own, LL_NS_PER_MS, 2);
	struct ll_gang gang = look_from_the_second(own, 0);
	assert_int_equal(gang.work.seen_ns, now_ns);
	assert_int_equal(gang.work.launches, 2);
	/* nobody has anything left */
	now_ns += 2 * LL_GANG_FRESH_NS;
	look_on_the_first(other, 0, 0);
	assert_false(look_on_the_first(own, 0, 0).is_holder);
	assert_true(ll_turn_is_mine(members[0][other].claim));
	end();
}

static void test_what_another_card_has_is_not_waited_for_longer_than_a_queue(void **state)
{
	begin(*state, 1000);
	unsigned own = find_ending();
	for (uint64_t waited_ns = 0; waited_ns < LL_VISIT_DRAIN_NS + STEP_NS; waited_ns += STEP_NS) {
		look_from_the_second(own, 3);
		look_on_the_first(1 - own, 0, 0);
		look_on_the_first(own, 0, 0);
		now_ns += STEP_NS;
	}
	assert_false(look_on_the_first(own, 0, 0).is_holder);
	end();
}

static void test_while_another_has_the_first_card_nothing_goes_where_it_works_too(void **state)
{
	begin(*state, 1000);
	unsigned holder = ll_turn_is_mine(members[0][1].claim);
	assert_false(look_from_the_second(holder, 1).yields_to_gang);
	assert_true(look_from_the_second(1 - holder, 1).yields_to_gang);
	/* it is on that card no more, but for a moment */
	ll_turn_rest(members[1][holder].claim, now_ns);
	assert_true(look_from_the_second(1 - holder, 1).yields_to_gang);
	now_ns += LL_GANG_PAUSE_NS;
	assert_false(look_from_the_second(1 - holder, 1).yields_to_gang);
	end();
}

/* As a flow does on a card that is not its tenant's first. */
static void step_as_a_flow(struct member *member, unsigned tenant)
{
	struct ll_gang gang = look_from_the_second(tenant, 0);
	member->turn.yields_to_gang = gang.yields_to_gang;
	ll_turn_look(member->claim, &member->turn, now_ns, 0, &member->look);
	if (!member->look.may_launch || gang.yields_to_gang || gang.is_ending)
		return;
	member->used_ns += STEP_NS;
	ll_account_charge(member->claim, now_ns, now_ns + STEP_NS, STEP_NS);
}

/* It has a context on the first card, but works on the second alone: nothing of it waits for another card. */
static void test_who_rests_on_its_first_card_has_its_share_of_another(void **state)
{
	begin(*state, 1000);
	ll_turn_rest(members[0][1].claim, now_ns);
	now_ns += LL_GANG_PAUSE_NS;
	members[1][0].used_ns = members[1][1].used_ns = 0;
	for (unsigned i = 0; i < 100000; i++) {
		now_ns += STEP_NS;
		if (look_on_the_first(0, 0, 0).may_launch)
			ll_account_charge(members[0][0].claim, now_ns, now_ns + STEP_NS, STEP_NS);
		for (unsigned tenant = 0; tenant < TENANTS; tenant++)
			step_as_a_flow(&members[1][tenant], tenant);
	}
	assert_true(share(1) > 49 && share(1) < 51);
	end();
}

static void test_a_call_that_is_damaged_is_none(void **state)
{
	begin(*state, 1000);
	ledgers[1]->file->tenants[members[1][1].claim->tenant_row - 1].gang_turn_until_ns = UINT64_MAX;
	for (unsigned tenant = 0; tenant < TENANTS; tenant++)
		ledgers[1]->file->tenants[members[1][tenant].claim->tenant_row - 1].first_card = 7;
	for (unsigned i = 0; i < 50000; i++)
		step(false);
	assert_true(share(1) > 49 && share(1) < 51);
	end();
}

/* Nobody waits for it there: it goes on, and holds up no turn elsewhere. */
static void test_a_card_that_nobody_shares_goes_on_while_a_turn_ends_elsewhere(void **state)
{
	begin(*state, 1000);
	unsigned own = find_ending();
	ll_turn_rest(members[1][1 - own].claim, now_ns);
	ll_claim_release(members[1][1 - own].claim);
	members[1][1 - own].claim = NULL;
	assert_false(look_from_the_second(own, 3).is_ending);
	look_on_the_first(1 - own, 0, 0);
	assert_false(look_on_the_first(own, 0, 0).is_holder);
	end();
}

/* It has nothing left on the second card: nobody waits until what it said is old. */
static void test_what_was_said_of_work_is_taken_back_when_it_has_ended(void **state)
{
	begin(*state, 1000);
	unsigned own = find_ending();
	look_from_the_second(own, 3);
	now_ns += STEP_NS;
	look_from_the_second(own, 0);
	look_on_the_first(1 - own, 0, 0);
	assert_true(
	    look_on_the_first(own, 0, 0).is_holder); /* a third card may have something, and is about to say so */
	now_ns += STEP_NS;
	look_on_the_first(1 - own, 0, 0);
	assert_false(look_on_the_first(own, 0, 0).is_holder);
	end();
}

static void test_what_another_card_said_since_is_not_taken_back(void **state)
{
	begin(*state, 1000);
	unsigned own = find_ending();
	look_from_the_second(own, 3);
	now_ns += STEP_NS;
	ledgers[0]->file->tenants[members[0][own].claim->tenant_row - 1].others_busy_ns = now_ns;
	look_from_the_second(own, 0);
	now_ns += 2 * STEP_NS;
	look_on_the_first(1 - own, 0, 0);
	assert_true(look_on_the_first(own, 0, 0).is_holder);
	end();
}

/* Else the two give the turn there to each other, again and again, until the former's call is old. */
static void test_a_turn_that_comes_to_another_comes_to_it_at_once_on_all_cards(void **state)
{
	begin(*state, 1000);
	unsigned own = find_ending(), other = 1 - own, changes = 0;
	uint64_t ahead_ns = 2 * LL_VISIT_QUANTUM_NS;
	for (unsigned tenant = 0; tenant < TENANTS; tenant++)
		look_from_the_second(tenant, 0);
	ll_account_charge(members[1][other].claim, now_ns, now_ns + ahead_ns, ahead_ns);
	now_ns += STEP_NS;
	look_on_the_first(other, 0, 0);
	assert_false(look_on_the_first(own, 0, 0).is_holder);
	bool is_others = ll_turn_is_mine(members[1][other].claim);
	for (unsigned i = 0; i < 20; i++, now_ns += STEP_NS / 10) {
		step_as_a_flow(&members[1][i % TENANTS], i % TENANTS);
		changes += is_others != ll_turn_is_mine(members[1][other].claim);
		is_others = ll_turn_is_mine(members[1][other].claim);
	}
	assert_true(is_others);
	assert_true(changes <= 1);
	end();
}

static void test_a_lower_class_leads_nobody(void **state)
{
	begin(*state, 1000);
	unsigned holder = ll_turn_is_mine(members[0][1].claim);
	look_from_the_second(holder, 0);
	assert_true(look_from_the_second(1 - holder, 0).yields_to_gang);
	for (unsigned card = 0; card < CARDS; card++)
		ledgers[card]->file->tenants[members[card][holder].claim->tenant_row - 1].priority = LL_PRIORITY_LOW;
	assert_false(look_from_the_second(1 - holder, 0).yields_to_gang);
	end();
}

/* Else a holder that may not launch, and so has the least, would keep the card from everybody. */
static void test_who_is_led_gives_its_turn_to_whoever_waits(void **state)
{
	begin(*state, 1000);
	unsigned holder = ll_turn_is_mine(members[1][1].claim);
	struct member *member = &members[1][holder];
	ll_turn_look(member->claim, &member->turn, now_ns, 0, &member->look);
	assert_true(member->look.may_launch);
	member->turn.yields_to_gang = true;
	ll_turn_look(member->claim, &member->turn, now_ns, 0, &member->look);
	assert_false(member->look.may_launch);
	assert_true(ll_turn_is_mine(members[1][1 - holder].claim));
	end();
}

static void test_a_tenant_that_is_not_on_its_first_card_is_no_gang(void **state)
{
	begin(*state, 1000);
	struct ll_gang gang = {0};
	ll_gang_look(members[1][0].claim, ledgers[0], 77, 5, now_ns, &gang);
	assert_false(gang.yields_to_gang || gang.is_ending || gang.work.seen_ns);
	end();
}

#define GANG_TEST(name) cmocka_unit_test_setup_teardown(test_##name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    GANG_TEST(they_have_their_turns_together),
	    GANG_TEST(by_weight_too),
	    GANG_TEST(who_is_on_one_card_only_loses_nothing),
	    GANG_TEST(a_turn_ends_on_all_cards_at_once),
	    GANG_TEST(what_another_card_has_is_not_waited_for_longer_than_a_queue),
	    GANG_TEST(while_another_has_the_first_card_nothing_goes_where_it_works_too),
	    GANG_TEST(who_rests_on_its_first_card_has_its_share_of_another),
	    GANG_TEST(a_card_that_nobody_shares_goes_on_while_a_turn_ends_elsewhere),
	    GANG_TEST(what_was_said_of_work_is_taken_back_when_it_has_ended),
	    GANG_TEST(what_another_card_said_since_is_not_taken_back),
	    GANG_TEST(a_turn_that_comes_to_another_comes_to_it_at_once_on_all_cards),
	    GANG_TEST(a_lower_class_leads_nobody),
	    GANG_TEST(a_call_that_is_damaged_is_none),
	    GANG_TEST(who_is_led_gives_its_turn_to_whoever_waits),
	    GANG_TEST(a_tenant_that_is_not_on_its_first_card_is_no_gang),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
