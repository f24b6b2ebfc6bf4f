/* The gates on the card of several tenants, on a simulated clock: whose is open, and when a visit ends. */
#include "test.h"

#include "base/clock.h"
#include "control/visits.h"
#include "ledger/account.h"
#include "ledger/contender.h"
#include "ledger/handle.h"
#include "ledger/turn.h"
#include "ledger_fixture.h"

#define MS LL_NS_PER_MS

/* A process whose launches wait on the card. */
struct process {
	struct ll_claim *claim;
	struct ll_turn turn;
	struct ll_turn_look look;
};

static uint64_t now_ns;

static struct process begin(struct ll_claim *claim)
{
	struct process process = {.claim = claim};
	ll_turn_set_waits_on_card(claim, true);
	ll_turn_set_pace(claim, LL_PACE_WAITS);
	ll_turn_want(claim, now_ns);
	return process;
}

static struct process new_tenant(struct fixture *f, enum ll_priority priority, unsigned weight_permille)
{
	static uint64_t id;
	id++;
	struct ll_tenant_wish wish = {
	    .id = id, .name = "test", .priority = priority, .weight_permille = weight_permille};
	return begin(take_claim_of_new(f->ledger, &wish));
}

static struct process new_sibling(struct fixture *f, const struct process *of)
{
	return begin(take_claim_of(f->ledger, of->claim->tenant_row - 1));
}

static bool is_open(const struct process *process)
{
	return *ll_turn_card_word(process->claim) & LL_VISIT_WORD_OPEN;
}

static void look(struct process *process)
{
	ll_turn_look(process->claim, &process->turn, now_ns, 0, &process->look);
}

static void pass(struct process *processes[], size_t count, uint64_t ns)
{
	for (uint64_t until_ns = now_ns + ns; now_ns < until_ns; now_ns += MS / 10) {
		for (size_t i = 0; i < count; i++)
			look(processes[i]);
	}
}

static void release(struct process *processes[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		ll_claim_release(processes[i]->claim);
}

static struct fixture *begin_test(void **state)
{
	struct fixture *f = *state;
	now_ns = LL_NS_PER_S;
	open_ledger(f);
	return f;
}

static void one_gate_is_open_at_a_time_and_a_visit_lasts_a_quantum(void **state)
{
	struct fixture *f = begin_test(state);
	struct process one = new_tenant(f, LL_PRIORITY_NORMAL, 1000), other;
	look(&one);
	assert_true(is_open(&one));
	other = new_tenant(f, LL_PRIORITY_NORMAL, 1000);
	assert_false(is_open(&other)); /* before it looks: its first launch waits */
	struct process *both[] = {&one, &other};
	pass(both, 2, LL_VISIT_QUANTUM_NS - MS);
	assert_true(is_open(&one) && !is_open(&other));
	uint32_t before = *ll_turn_card_word(one.claim);
	pass(both, 2, 2 * MS);
	assert_true(!is_open(&one) && is_open(&other));
	assert_int_not_equal(*ll_turn_card_word(one.claim), before);
	assert_true(one.look.is_by_visits && other.look.is_by_visits);
	release(both, 2);
}

static void who_rests_or_is_alone_is_not_held(void **state)
{
	struct fixture *f = begin_test(state);
	struct process one = new_tenant(f, LL_PRIORITY_NORMAL, 1000);
	look(&one);
	struct process other = new_tenant(f, LL_PRIORITY_NORMAL, 1000);
	struct process sibling = new_sibling(f, &other);
	ll_turn_rest(other.claim, now_ns);
	assert_false(is_open(&sibling)); /* which wants the card */
	ll_turn_rest(sibling.claim, now_ns);
	assert_true(is_open(&other));
	ll_turn_want(other.claim, now_ns);
	look(&other);
	assert_false(is_open(&other));
	ll_turn_rest(one.claim, now_ns);
	assert_true(is_open(&one) && is_open(&other));
	release((struct process *[]){&one, &other, &sibling}, 3);
}

static void a_higher_class_shuts_the_gate_of_a_lower_one_itself(void **state)
{
	struct fixture *f = begin_test(state);
	struct process low = new_tenant(f, LL_PRIORITY_LOW, 1000);
	look(&low);
	struct process high = new_tenant(f, LL_PRIORITY_HIGH, 1000);
	look(&high);
	assert_true(is_open(&high) && !is_open(&low));
	ll_turn_rest(high.claim, now_ns);
	look(&low);
	assert_true(is_open(&low));
	assert_true(low.look.queue_bound_ns); /* the next launch of the high one may come at any time */
	release((struct process *[]){&low, &high}, 2);
}

/* A request of a service has pauses: its host computes between two launches. */
static void a_higher_class_that_paused_takes_the_card_back_at_once(void **state)
{
	struct fixture *f = begin_test(state);
	struct process low = new_tenant(f, LL_PRIORITY_LOW, 1000), high = new_tenant(f, LL_PRIORITY_HIGH, 1000);
	struct process *both[] = {&low, &high};
	pass(both, 2, MS);
	assert_true(is_open(&high) && !is_open(&low));
	high.turn.dry_since_ns = now_ns;
	pass(both, 2, MS / 2);
	assert_true(is_open(&low) && !is_open(&high));
	high.turn.dry_since_ns = high.turn.paused_since_ns = 0; /* it launches */
	look(&high);
	assert_true(is_open(&high) && !is_open(&low));
	release(both, 2);
}

static void a_pause_is_not_interrupted_by_looks_but_ends(void **state)
{
	struct fixture *f = begin_test(state);
	struct process low = new_tenant(f, LL_PRIORITY_LOW, 1000), high = new_tenant(f, LL_PRIORITY_HIGH, 1000);
	struct process *both[] = {&low, &high};
	high.turn.dry_since_ns = now_ns;
	pass(both, 2, MS);
	assert_true(high.turn.paused_since_ns);
	uint32_t before = *ll_turn_card_word(low.claim);
	pass(both, 2, LL_TURN_PAUSE_NS - MS);
	assert_true(is_open(&low));
	assert_int_equal(*ll_turn_card_word(low.claim), before);
	pass(both, 2, MS); /* what it did not know of goes on */
	assert_int_not_equal(*ll_turn_card_word(low.claim), before);
	release(both, 2);
}

static void a_visit_ends_when_all_processes_of_the_tenant_are_dry(void **state)
{
	struct fixture *f = begin_test(state);
	struct process one = new_tenant(f, LL_PRIORITY_NORMAL, 1000);
	struct process sibling = new_sibling(f, &one);
	look(&one);
	struct process other = new_tenant(f, LL_PRIORITY_NORMAL, 1000);
	struct process *all[] = {&one, &sibling, &other};
	one.turn.dry_since_ns = now_ns;
	pass(all, 3, 2 * MS);
	assert_true(is_open(&one) && !is_open(&other));
	sibling.turn.dry_since_ns = now_ns;
	pass(all, 3, MS);
	assert_true(!is_open(&one) && is_open(&other));
	release(all, 3);
}

/* Its agent may hang in the driver behind the very streams that wait. */
static void a_held_process_that_does_not_look_is_let_go(void **state)
{
	struct fixture *f = begin_test(state);
	struct process one = new_tenant(f, LL_PRIORITY_NORMAL, 1000);
	look(&one);
	struct process deaf = new_tenant(f, LL_PRIORITY_NORMAL, 1000);
	struct process sleeps = new_tenant(f, LL_PRIORITY_NORMAL, 1000), awake = new_sibling(f, &sleeps);
	ll_turn_rest(sleeps.claim, now_ns);
	look(&deaf);
	ll_account_charge(deaf.claim, now_ns - 100 * MS, now_ns, 100 * MS); /* it is not its turn soon */
	pass((struct process *[]){&one, &awake}, 2, LL_TURN_DEAF_NS - MS);
	assert_false(is_open(&deaf));
	pass((struct process *[]){&one, &awake}, 2, 2 * MS);
	assert_true(is_open(&deaf));
	assert_true(is_open(&one) != is_open(&awake)); /* who rests need not look */
	release((struct process *[]){&one, &deaf, &sleeps, &awake}, 4);
}

static void a_long_launch_is_waited_for_and_what_goes_on_is_shared(void **state)
{
	struct fixture *f = begin_test(state);
	struct process one = new_tenant(f, LL_PRIORITY_NORMAL, 1000);
	look(&one);
	struct process other = new_tenant(f, LL_PRIORITY_NORMAL, 1000);
	struct process *both[] = {&one, &other};
	one.turn.is_lingering = true;
	pass(both, 2, LL_VISIT_QUANTUM_NS + MS);
	assert_true(!is_open(&one) && !is_open(&other));
	pass(both, 2, LL_VISIT_DRAIN_NS);
	assert_true(is_open(&other));
	assert_int_equal(other.look.sharing, 1);
	assert_int_equal(one.look.sharing, 1);
	one.turn.is_lingering = false;
	pass(both, 2, MS);
	assert_int_equal(other.look.sharing, 0);
	release(both, 2);
}

/* The part of the time in which the second of two has the card. Whoever has it is charged for it. The first has no more
 * than dry_after_ns of work for each visit; 0: it has work without end. */
static double part_of_other(struct process *both[], uint64_t dry_after_ns, uint64_t ns)
{
	uint64_t other_ns = 0, visited_ns = 0;
	for (uint64_t until_ns = now_ns + ns; now_ns < until_ns;) {
		pass(both, 2, MS / 10);
		visited_ns = is_open(both[0]) ? visited_ns + MS / 10 : 0;
		bool is_dry = dry_after_ns && visited_ns > dry_after_ns;
		both[0]->turn.dry_since_ns = !is_dry                      ? 0
					     : both[0]->turn.dry_since_ns ? both[0]->turn.dry_since_ns
									  : now_ns;
		if (is_open(both[0]) != is_open(both[1]))
			ll_account_charge(both[is_open(both[1])]->claim, now_ns - MS / 10, now_ns, MS / 10);
		other_ns += is_open(both[1]) ? MS / 10 : 0;
	}
	return (double)other_ns / (double)ns;
}

/* A program of little work, a notebook, begins to fill the card. */
static void who_leaves_the_card_for_want_of_work_gathers_no_credit(void **state)
{
	struct fixture *f = begin_test(state);
	struct process light = new_tenant(f, LL_PRIORITY_NORMAL, 700), other = new_tenant(f, LL_PRIORITY_NORMAL, 300);
	struct process *both[] = {&light, &other};
	assert_true(part_of_other(both, MS, 5 * LL_NS_PER_S) > 0.6);
	double part = part_of_other(both, 0, LL_NS_PER_S);
	if (part < 0.25 || part > 0.35)
		fail_msg("%.3f of the time, not 0.3", part);
	release(both, 2);
}

static void who_had_a_cap_has_no_credit_when_it_goes(void **state)
{
	struct fixture *f = begin_test(state);
	struct process capped = new_tenant(f, LL_PRIORITY_NORMAL, 1000),
		       other = new_tenant(f, LL_PRIORITY_NORMAL, 1000);
	struct process *both[] = {&capped, &other};
	struct ll_ledger_tenant *tenant = &f->ledger->file->tenants[capped.claim->tenant_row - 1];
	tenant->compute_cap_permille = 100;
	assert_true(part_of_other(both, 0, 5 * LL_NS_PER_S) > 0.85);
	tenant->compute_cap_permille = 0;
	double part = part_of_other(both, 0, LL_NS_PER_S);
	if (part < 0.45 || part > 0.55)
		fail_msg("%.3f of the time, not half", part);
	release(both, 2);
}

static void who_changes_its_class_owes_nothing_and_is_owed_nothing(void **state)
{
	struct fixture *f = begin_test(state);
	struct process one = new_tenant(f, LL_PRIORITY_HIGH, 1000), other = new_tenant(f, LL_PRIORITY_NORMAL, 1000);
	struct process *both[] = {&one, &other};
	static const enum ll_priority classes[] = {LL_PRIORITY_LOW, LL_PRIORITY_HIGH};
	for (size_t i = 0; i < 2; i++) {
		part_of_other(both, 0, 5 * LL_NS_PER_S);
		ll_tenant_set_priority(f->ledger, one.claim->tenant_row - 1, LL_PRIORITY_NORMAL, now_ns);
		double part = part_of_other(both, 0, LL_NS_PER_S);
		if (part < 0.45 || part > 0.55)
			fail_msg("%.3f of the time, not half", part);
		ll_tenant_set_priority(f->ledger, one.claim->tenant_row - 1, classes[i], now_ns);
	}
	release(both, 2);
}

static void damaged_words_and_bits_are_mended(void **state)
{
	struct fixture *f = begin_test(state);
	struct process one = new_tenant(f, LL_PRIORITY_NORMAL, 1000);
	look(&one);
	struct process other = new_tenant(f, LL_PRIORITY_NORMAL, 1000);
	struct process *both[] = {&one, &other};
	static const uint32_t values[] = {0, 1, 2, UINT32_MAX, UINT32_MAX - 1};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		*ll_turn_card_word(one.claim) = *ll_turn_card_word(other.claim) = values[i];
		f->ledger->file->used[0] = 0;
		pass(both, 2, MS / 5);
		assert_true(is_open(&one) != is_open(&other));
	}
	release(both, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(one_gate_is_open_at_a_time_and_a_visit_lasts_a_quantum),
	    TEST(who_rests_or_is_alone_is_not_held),
	    TEST(a_higher_class_shuts_the_gate_of_a_lower_one_itself),
	    TEST(a_higher_class_that_paused_takes_the_card_back_at_once),
	    TEST(a_pause_is_not_interrupted_by_looks_but_ends),
	    TEST(a_visit_ends_when_all_processes_of_the_tenant_are_dry),
	    TEST(a_held_process_that_does_not_look_is_let_go),
	    TEST(a_long_launch_is_waited_for_and_what_goes_on_is_shared),
	    TEST(who_leaves_the_card_for_want_of_work_gathers_no_credit),
	    TEST(who_had_a_cap_has_no_credit_when_it_goes),
	    TEST(who_changes_its_class_owes_nothing_and_is_owed_nothing),
	    TEST(damaged_words_and_bits_are_mended),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
