#include "test.h"

#include "base/clock.h"
#include "control/turns.h"

enum { HIGH = 1, NORMAL, LOW };

static struct ll_turn_contender contender(unsigned rank, uint64_t virtual_ms)
{
	return (struct ll_turn_contender){
	    .rank = rank, .weight_permille = 1000, .virtual_ns = virtual_ms * LL_NS_PER_MS, .has_tokens = true};
}

static void test_the_least_virtual_time_goes_first(void **state)
{
	(void)state;
	const struct ll_turn_contender contenders[] = {contender(NORMAL, 30), contender(NORMAL, 10),
						       contender(NORMAL, 20)};
	assert_int_equal(ll_turns_best(contenders, 3), 1);
}

static void test_a_class_goes_before_virtual_time(void **state)
{
	(void)state;
	const struct ll_turn_contender contenders[] = {contender(NORMAL, 0), contender(LOW, 0), contender(HIGH, 1000)};
	assert_int_equal(ll_turns_best(contenders, 3), 2);
}

static void test_who_is_in_debt_is_not_chosen(void **state)
{
	(void)state;
	struct ll_turn_contender contenders[] = {contender(HIGH, 0), contender(LOW, 100)};
	contenders[0].has_tokens = false;
	assert_int_equal(ll_turns_best(contenders, 2), 1);
	contenders[1].has_tokens = false;
	assert_int_equal(ll_turns_best(contenders, 2), 2);
	assert_int_equal(ll_turns_best(contenders, 0), 0);
}

static void test_who_is_starved_goes_before_a_class(void **state)
{
	(void)state;
	struct ll_turn_contender contenders[] = {contender(HIGH, 0), contender(LOW, 100)};
	contenders[1].waited_ns = LL_TURN_STARVED_NS - 1;
	assert_int_equal(ll_turns_best(contenders, 2), 0);
	assert_false(ll_turns_gives_way(&contenders[0], &contenders[1], LL_NS_PER_MS, false));
	contenders[1].waited_ns = LL_TURN_STARVED_NS;
	assert_int_equal(ll_turns_best(contenders, 2), 1);
	assert_true(ll_turns_gives_way(&contenders[0], &contenders[1], LL_NS_PER_MS, false));
	/* and keeps its turn for its service, then no longer */
	contenders[1].waited_ns = 0;
	assert_false(ll_turns_preempts(&contenders[0], &contenders[1], LL_TURN_SERVICE_NS - 1, true));
	assert_true(ll_turns_preempts(&contenders[0], &contenders[1], LL_TURN_SERVICE_NS, true));
}

/* Else the one that has not waited went before a class above it, and that class took no turns among its own. */
static void test_only_who_is_starved_goes_before_a_class(void **state)
{
	(void)state;
	struct ll_turn_contender contenders[] = {contender(NORMAL, 1000), contender(LOW, 100), contender(LOW, 50)};
	contenders[1].waited_ns = LL_TURN_STARVED_NS;
	assert_int_equal(ll_turns_best(contenders, 3), 1);
	contenders[1].waited_ns = 0;
	assert_int_equal(ll_turns_best(contenders, 3), 0);
}

/* Weights and turns of others make it wait so long: no class is above it. */
static void test_who_waits_among_its_equals_is_not_starved(void **state)
{
	(void)state;
	struct ll_turn_contender contenders[] = {contender(NORMAL, 0), contender(NORMAL, 100)};
	contenders[1].waited_ns = LL_TURN_PATIENCE_NS - 1;
	assert_int_equal(ll_turns_best(contenders, 2), 0);
	contenders[1].waited_ns = LL_TURN_PATIENCE_NS;
	assert_int_equal(ll_turns_best(contenders, 2), 1);
}

static void test_a_holder_keeps_its_quantum(void **state)
{
	(void)state;
	uint64_t quantum_ms = LL_TURN_QUANTUM_NS / LL_NS_PER_MS;
	struct ll_turn_contender other = contender(NORMAL, 100);
	struct ll_turn_contender young = contender(NORMAL, 100 + quantum_ms - 1),
				 old = contender(NORMAL, 100 + quantum_ms);
	assert_false(ll_turns_gives_way(&young, &other, LL_NS_PER_MS, false));
	assert_true(ll_turns_gives_way(&old, &other, LL_NS_PER_MS, false));
}

/* Plays turns of two contenders that always have work; the longest turn, and the GPU time of each. */
static uint64_t play(unsigned weight_a, unsigned weight_b, uint64_t ret_gpu_ns[2])
{
	struct ll_turn_contender contenders[2] = {contender(NORMAL, 0), contender(NORMAL, 0)};
	contenders[0].weight_permille = weight_a, contenders[1].weight_permille = weight_b;
	uint64_t longest_ns = 0, held_ns = 0;
	size_t holder = 0;
	ret_gpu_ns[0] = ret_gpu_ns[1] = 0;
	for (int step = 0; step < 40000; step++, held_ns += 100 * LL_NS_PER_US) {
		longest_ns = held_ns > longest_ns ? held_ns : longest_ns;
		if (ll_turns_gives_way(&contenders[holder], &contenders[1 - holder], held_ns, false))
			holder = 1 - holder, held_ns = 0;
		ret_gpu_ns[holder] += 100 * LL_NS_PER_US;
		contenders[holder].virtual_ns =
		    ll_turns_virtual_ns(ret_gpu_ns[holder], contenders[holder].weight_permille);
	}
	return longest_ns;
}

/* --weight 30 beside --weight 70: the size of the numbers makes no turn longer. */
static void test_only_the_ratio_of_weights_counts(void **state)
{
	(void)state;
	uint64_t small[2], large[2];
	uint64_t longest_ns = play(3000, 7000, small);
	assert_true(longest_ns <= 4 * LL_TURN_QUANTUM_NS);
	assert_int_equal(play(30000, 70000, large), longest_ns);
	assert_int_equal(large[0], small[0]);
	assert_in_range(100 * large[0] / (large[0] + large[1]), 29, 30);
}

static void test_a_lower_class_gives_way_at_once_and_a_higher_does_not(void **state)
{
	(void)state;
	struct ll_turn_contender high = contender(HIGH, 100000), low = contender(LOW, 0);
	assert_true(ll_turns_gives_way(&low, &high, 0, false));
	assert_false(ll_turns_gives_way(&high, &low, 10 * LL_NS_PER_S, false));
	high.has_tokens = false;
	assert_false(ll_turns_gives_way(&low, &high, 0, false));
	assert_true(ll_turns_gives_way(&high, &low, 0, false));
}

/* Two tenants on two cards: whoever has the turn on the first goes first on the second. */
static void test_a_gang_goes_first_while_it_has_its_turn_and_gets_no_more_for_it(void **state)
{
	(void)state;
	struct ll_turn_contender a = contender(NORMAL, 100), b = contender(NORMAL, 120);
	b.has_gang_turn = true;
	assert_true(ll_turns_gives_way(&a, &b, 0, false)); /* though b has had more */
	assert_false(ll_turns_gives_way(&b, &a, 0, false));
	struct ll_turn_contender both[2] = {a, b};
	assert_int_equal(ll_turns_best(both, 2), 1);
	both[1].virtual_ns = 100 * LL_NS_PER_MS + LL_TURN_GANG_NS + 1; /* too far ahead */
	assert_int_equal(ll_turns_best(both, 2), 0);
	both[1].virtual_ns = 0, both[1].rank = LOW; /* a class is a class */
	assert_int_equal(ll_turns_best(both, 2), 0);
	struct ll_turn_contender other = contender(NORMAL, 100);
	assert_false(ll_turns_gives_way(&a, &other, 0, false));
}

static void test_weights_divide_and_a_pause_is_not_saved_up(void **state)
{
	(void)state;
	assert_int_equal(ll_turns_virtual_ns(1000, 1000), 1000);
	assert_int_equal(ll_turns_virtual_ns(1000, 4000), 250);
	assert_int_equal(ll_turns_virtual_ns(1000, 0), 1000000);
	uint64_t least_ns = 10 * LL_NS_PER_S;
	assert_int_equal(ll_turns_come_back_ns(0, least_ns, 1000), least_ns - LL_TURN_LAG_NS);
	assert_int_equal(ll_turns_come_back_ns(0, least_ns, 70000), least_ns - LL_TURN_LAG_NS / 70);
	assert_int_equal(ll_turns_come_back_ns(least_ns - 5, least_ns, 1000), least_ns - 5);
	assert_int_equal(ll_turns_come_back_ns(3, 7, 1000), 3);
}

/* Of two tenants with the same first card, the one that has the turn there goes first here, whatever it had. */
static void test_tenants_with_one_first_card_go_in_its_order(void **state)
{
	(void)state;
	struct ll_turn_contender contenders[] = {contender(NORMAL, 0), contender(NORMAL, 100000),
						 contender(NORMAL, 50)};
	contenders[0].first_card = contenders[1].first_card = 7;
	assert_int_equal(ll_turns_best(contenders, 2), 0);
	contenders[1].has_gang_turn = true;
	assert_int_equal(ll_turns_best(contenders, 2), 1);
	assert_true(ll_turns_gives_way(&contenders[0], &contenders[1], LL_NS_PER_MS, false));
	assert_false(ll_turns_gives_way(&contenders[1], &contenders[0], LL_NS_PER_MS, false));
	/* a tenant without a first card is before them or behind by what it had */
	assert_int_equal(ll_turns_best(contenders, 3), 2);
	contenders[1].virtual_ns = 0;
	assert_int_equal(ll_turns_best(contenders, 3), 1);
	/* nobody waits for ever, and one in debt leads nobody */
	contenders[0].waited_ns = LL_TURN_PATIENCE_NS;
	assert_int_equal(ll_turns_best(contenders, 2), 0);
	assert_true(ll_turns_gives_way(&contenders[1], &contenders[0], LL_NS_PER_MS, false));
	contenders[0].waited_ns = 0;
	contenders[1].has_tokens = false;
	assert_int_equal(ll_turns_best(contenders, 2), 0);
}

static void test_programs_that_launch_ahead_and_are_equal_need_no_turns(void **state)
{
	(void)state;
	struct ll_turn_contender one = contender(NORMAL, 100), other = contender(NORMAL, 5);
	assert_false(ll_turns_may_slice(&one, &other)); /* how they launch is not known */
	one.launches_ahead = true;
	assert_false(ll_turns_may_slice(&one, &other));
	other.launches_ahead = true;
	assert_true(ll_turns_may_slice(&one, &other));
	other.weight_permille *= 2;
	assert_false(ll_turns_may_slice(&one, &other));
	other.weight_permille = one.weight_permille;
	other.rank = LOW;
	assert_false(ll_turns_may_slice(&one, &other));
	other.rank = NORMAL;
	other.has_cap = true;
	assert_false(ll_turns_may_slice(&one, &other));
	assert_false(ll_turns_may_slice(&other, &one));
}

/* However they launch: their kernels run at the same time. */
static void test_clients_of_mps_that_are_equal_need_no_turns(void **state)
{
	(void)state;
	struct ll_turn_contender one = contender(NORMAL, 100), other = contender(NORMAL, 5),
				 by_time = contender(NORMAL, 5);
	one.is_by_space = other.is_by_space = true;
	assert_true(ll_turns_may_slice(&one, &other));
	by_time.launches_ahead = true;
	assert_false(ll_turns_may_slice(&one, &by_time));
	one.launches_ahead = true;
	assert_true(ll_turns_may_slice(&one, &by_time));
	other.weight_permille *= 2;
	assert_false(ll_turns_may_slice(&one, &other));
	other.weight_permille = one.weight_permille, other.rank = LOW;
	assert_false(ll_turns_may_slice(&one, &other));
}

/* A client of MPS that waits for each kernel, one that launches ahead, and one that launches ahead by time. */
static void test_slices_serve_all_if_one_reason_holds_for_all(void **state)
{
	(void)state;
	struct ll_turn_contender waits = contender(NORMAL, 0), ahead = contender(NORMAL, 0),
				 by_time = contender(NORMAL, 0);
	waits.is_by_space = ahead.is_by_space = true;
	ahead.launches_ahead = by_time.launches_ahead = true;
	struct ll_turn_contender all = ahead;
	assert_true(ll_turns_join_slices(&all, &waits));
	assert_false(ll_turns_join_slices(&all, &by_time)); /* though it may share with the first */
	all = ahead;
	assert_true(ll_turns_join_slices(&all, &by_time));
	assert_false(ll_turns_join_slices(&all, &waits));
	assert_true(ll_turns_join_slices(&all, &ahead)); /* who was refused changes nothing */
}

static void test_tenants_are_as_many_if_all_that_want_the_card_have_as_many_processes(void **state)
{
	(void)state;
	assert_true(ll_turns_are_as_many(NULL, 0));
	assert_true(ll_turns_are_as_many((const uint8_t[]){0, 0}, 2));
	assert_true(ll_turns_are_as_many((const uint8_t[]){0, 3, 0}, 3));
	assert_true(ll_turns_are_as_many((const uint8_t[]){2, 0, 2}, 3));
	assert_false(ll_turns_are_as_many((const uint8_t[]){2, 0, 1}, 3));
	assert_false(ll_turns_are_as_many((const uint8_t[]){1, 1, 2}, 3));
	assert_true(ll_turns_are_as_many((const uint8_t[]){1, 1, 2}, 2));
}

static bool waits_for_each(uint64_t launches, uint64_t waits, uint64_t launch_us, uint64_t round_us)
{
	const struct ll_turns_pace pace = {launches, waits, launch_us * LL_NS_PER_US, round_us * LL_NS_PER_US};
	return ll_turns_waits_for_each(&pace);
}

/* The kinds of doc/sharing.md. */
static void test_who_waits_for_each_kernel_is_known_by_launches_and_waits(void **state)
{
	(void)state;
	assert_true(waits_for_each(1000, 1000, 5, 25));       /* sync */
	assert_true(waits_for_each(1000, 1000, 5, 4000));     /* among the slices of others */
	assert_true(waits_for_each(1000, 1000, 4000, 25));    /* a time of a launch that was learned there */
	assert_true(waits_for_each(1000, 1000, 200, 210));    /* of longer kernels */
	assert_false(waits_for_each(1000, 1000, 1500, 1510)); /* whose visits are worth their switches */
	assert_false(waits_for_each(1000, 5, 4, 2400));       /* eager: 200 launches, a wait */
	assert_false(waits_for_each(1000, 5, 0, 900));
	assert_false(waits_for_each(1000, 0, 200, 1000)); /* flood */
	assert_false(waits_for_each(100, 25, 600, 2400)); /* graphs, a wait each four */
}

/* The turn of a holder of this class that has had it for so long: does a contender of NORMAL take it, beside another
 * contender of that class and virtual time? */
static const struct {
	const char *what;
	unsigned holder_rank; /* 0: nobody has the turn */
	uint64_t held_ns;
	bool is_promoted, is_deaf, has_tokens;
	unsigned other_rank; /* 0: there is no other */
	uint64_t other_ms;
	bool takes;
} takings[] = {
    {"nobody has it", 0, 0, false, false, true, 0, 0, true},
    {"nobody has it, and our cap is used up", 0, 0, false, false, false, 0, 0, false},
    {"nobody has it, and a higher class waits", 0, 0, false, false, true, HIGH, 500, false},
    {"nobody has it, and one with less time waits", 0, 0, false, false, true, NORMAL, 50, false},
    {"nobody has it, and one with more time waits", 0, 0, false, false, true, NORMAL, 500, true},
    {"an equal has it", NORMAL, 1, false, false, true, 0, 0, false},
    {"a higher class has it", HIGH, 1, false, false, true, 0, 0, false},
    {"a lower class has it", LOW, 1, false, false, true, 0, 0, true},
    {"a lower class is served", LOW, LL_TURN_SERVICE_NS - 1, true, false, true, 0, 0, false},
    {"a lower class was served", LOW, LL_TURN_SERVICE_NS, true, false, true, 0, 0, true},
    {"an equal has it that does not look", NORMAL, LL_NS_PER_S, false, true, true, 0, 0, true},
    {"the same, and a higher class waits", NORMAL, LL_NS_PER_S, false, true, true, HIGH, 500, false},
};

static void test_a_turn_is_taken_where_nobody_better_has_or_wants_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof takings / sizeof *takings; i++) {
		struct ll_turn_contender self = contender(NORMAL, 100), holder = contender(takings[i].holder_rank, 90);
		struct ll_turn_contender other = contender(takings[i].other_rank, takings[i].other_ms);
		struct ll_turns_taking taking = {.holder = takings[i].holder_rank ? &holder : NULL,
						 .held_ns = takings[i].held_ns,
						 .is_promoted = takings[i].is_promoted,
						 .is_deaf = takings[i].is_deaf};
		self.has_tokens = takings[i].has_tokens;
		if (ll_turns_takes(&taking, &self, &other, takings[i].other_rank != 0) != takings[i].takes)
			fail_msg("%s", takings[i].what);
	}
}

static void test_a_higher_class_counts_while_it_can_use_the_card(void **state)
{
	(void)state;
	struct ll_turn_contender low = contender(LOW, 0), others[] = {contender(LOW, 0), contender(NORMAL, 1000)};
	assert_false(ll_turns_has_higher(others, 1, &low));
	assert_true(ll_turns_has_higher(others, 2, &low));
	others[1].is_paused = true;
	assert_false(ll_turns_has_higher(others, 2, &low));
	others[1].is_paused = others[1].has_tokens = false;
	assert_false(ll_turns_has_higher(others, 2, &low));
}

/* Of three, the last gets the turn. */
static void test_a_turn_is_a_service_if_a_higher_class_waits_or_gives_it(void **state)
{
	(void)state;
	struct ll_turn_contender giver = contender(NORMAL, 0),
				 others[] = {contender(LOW, 0), contender(NORMAL, 0), contender(LOW, 0)};
	assert_true(ll_turns_is_service(NULL, others, 3, 2)); /* the second waits */
	assert_false(ll_turns_is_service(NULL, others, 3, 1));
	others[1].rank = LOW;
	assert_false(ll_turns_is_service(NULL, others, 3, 2));
	assert_true(ll_turns_is_service(&giver, others, 3, 2));
	giver.has_tokens = false;
	assert_false(ll_turns_is_service(&giver, others, 3, 2));
	giver.has_tokens = true, giver.rank = LOW;
	assert_false(ll_turns_is_service(&giver, others, 3, 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_the_least_virtual_time_goes_first),
	    cmocka_unit_test(test_a_class_goes_before_virtual_time),
	    cmocka_unit_test(test_who_is_in_debt_is_not_chosen),
	    cmocka_unit_test(test_who_is_starved_goes_before_a_class),
	    cmocka_unit_test(test_only_who_is_starved_goes_before_a_class),
	    cmocka_unit_test(test_who_waits_among_its_equals_is_not_starved),
	    cmocka_unit_test(test_a_holder_keeps_its_quantum),
	    cmocka_unit_test(test_only_the_ratio_of_weights_counts),
	    cmocka_unit_test(test_a_lower_class_gives_way_at_once_and_a_higher_does_not),
	    cmocka_unit_test(test_a_gang_goes_first_while_it_has_its_turn_and_gets_no_more_for_it),
	    cmocka_unit_test(test_weights_divide_and_a_pause_is_not_saved_up),
	    cmocka_unit_test(test_tenants_with_one_first_card_go_in_its_order),
	    cmocka_unit_test(test_programs_that_launch_ahead_and_are_equal_need_no_turns),
	    cmocka_unit_test(test_clients_of_mps_that_are_equal_need_no_turns),
	    cmocka_unit_test(test_who_waits_for_each_kernel_is_known_by_launches_and_waits),
	    cmocka_unit_test(test_a_turn_is_taken_where_nobody_better_has_or_wants_it),
	    cmocka_unit_test(test_a_higher_class_counts_while_it_can_use_the_card),
	    cmocka_unit_test(test_a_turn_is_a_service_if_a_higher_class_waits_or_gives_it),
	    cmocka_unit_test(test_slices_serve_all_if_one_reason_holds_for_all),
	    cmocka_unit_test(test_tenants_are_as_many_if_all_that_want_the_card_have_as_many_processes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
