/* Tenants on two cards at once, on a simulated clock: they have their turns together, and their shares all the same. */
#include "test.h"

#include "base/clock.h"
#include "ledger/account.h"
#include "ledger/handle.h"
#include "ledger/turn.h"
#include "ledger_fixture.h"

#define STEP_NS (100 * LL_NS_PER_US)

enum { CARDS = 2, TENANTS = 2 };

struct member {
	struct ll_claim *claim;
	struct ll_turn turn;
	struct ll_turn_look look;
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
	ll_turn_want(member->claim, now_ns);
}

/* Kernels of a step that begin when they may; on the second card each process says when its tenant has the first. */
static void step(bool calls)
{
	now_ns += STEP_NS;
	for (unsigned card = 0; card < CARDS; card++) {
		for (unsigned tenant = 0; tenant < TENANTS; tenant++) {
			struct member *member = &members[card][tenant];
			if (!member->claim)
				continue;
			if (calls && card > 0 && ll_turn_is_of(ledgers[0], 1 + tenant))
				ll_turn_call(member->claim, now_ns);
			ll_turn_look(member->claim, &member->turn, now_ns, 0, &member->look);
			if (!member->look.may_launch)
				continue;
			member->used_ns += STEP_NS;
			ll_account_charge(member->claim, now_ns, now_ns + STEP_NS, STEP_NS);
		}
	}
}

/* The part of ten seconds in which both cards were the same tenant's, in percent. */
static double together(bool calls)
{
	unsigned same = 0, steps = 100000;
	for (unsigned i = 0; i < steps; i++) {
		step(calls);
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

#define GANG_TEST(name) cmocka_unit_test_setup_teardown(test_##name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    GANG_TEST(they_have_their_turns_together),
	    GANG_TEST(by_weight_too),
	    GANG_TEST(who_is_on_one_card_only_loses_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
