/* Who is visited next, and who takes the card. */
#include "test.h"

#include "base/clock.h"
#include "rules/share/visits.h"

enum { HIGH = 1, NORMAL, LOW };

static struct ll_contender contender(unsigned rank, uint64_t virtual_ms)
{
	return (struct ll_contender){
	    .rank = rank, .weight_permille = 1000, .virtual_ns = virtual_ms * LL_NS_PER_MS, .has_tokens = true};
}

/* Whether a visit of that length ends for the best of the others. Nothing that it has let through goes on. */
static bool ends_for(const struct ll_contender *visited, const struct ll_contender *best, uint64_t visited_ns)
{
	struct ll_contender self = *visited;
	self.waits_on_card = true;
	const struct ll_visit visit = {.self = &self, .visited_ns = visited_ns};
	return ll_visits_decide(&visit, best, 1).act == LL_VISIT_GIVES;
}

TEST(test_the_least_virtual_time_goes_first)
{
	const struct ll_contender contenders[] = {contender(NORMAL, 30), contender(NORMAL, 10), contender(NORMAL, 20)};
	assert_int_equal(ll_visits_next(contenders, 3), 1);
}

TEST(test_a_class_goes_before_virtual_time)
{
	const struct ll_contender contenders[] = {contender(NORMAL, 0), contender(LOW, 0), contender(HIGH, 1000)};
	assert_int_equal(ll_visits_next(contenders, 3), 2);
}

TEST(test_who_is_in_debt_is_not_chosen)
{
	struct ll_contender contenders[] = {contender(HIGH, 0), contender(LOW, 100)};
	contenders[0].has_tokens = false;
	assert_int_equal(ll_visits_next(contenders, 2), 1);
	contenders[1].has_tokens = false;
	assert_int_equal(ll_visits_next(contenders, 2), 2);
	assert_int_equal(ll_visits_next(contenders, 0), 0);
}

TEST(test_who_is_starved_goes_before_a_class)
{
	struct ll_contender contenders[] = {contender(HIGH, 0), contender(LOW, 100)};
	contenders[1].waited_ns = LL_VISIT_STARVED_NS - 1;
	assert_int_equal(ll_visits_next(contenders, 2), 0);
	assert_false(ends_for(&contenders[0], &contenders[1], LL_NS_PER_MS));
	contenders[1].waited_ns = LL_VISIT_STARVED_NS;
	assert_int_equal(ll_visits_next(contenders, 2), 1);
	assert_true(ends_for(&contenders[0], &contenders[1], LL_NS_PER_MS));
	/* and is visited for its service, then no longer */
	contenders[1].waited_ns = 0;
	struct ll_visits_present present = {
	    .visited = &contenders[1], .visited_ns = LL_VISIT_SERVICE_NS - 1, .is_service = true};
	assert_false(ll_visits_takes(&present, &contenders[0], NULL, 0));
	present.visited_ns = LL_VISIT_SERVICE_NS;
	assert_true(ll_visits_takes(&present, &contenders[0], NULL, 0));
}

/* Else the one that has not waited went before a class above it, and that class took no turns among its own. */
TEST(test_only_who_is_starved_goes_before_a_class)
{
	struct ll_contender contenders[] = {contender(NORMAL, 1000), contender(LOW, 100), contender(LOW, 50)};
	contenders[1].waited_ns = LL_VISIT_STARVED_NS;
	assert_int_equal(ll_visits_next(contenders, 3), 1);
	contenders[1].waited_ns = 0;
	assert_int_equal(ll_visits_next(contenders, 3), 0);
}

/* Weights and turns of others make it wait so long: no class is above it. */
TEST(test_who_waits_among_its_equals_is_not_starved)
{
	struct ll_contender contenders[] = {contender(NORMAL, 0), contender(NORMAL, 100)};
	contenders[1].waited_ns = LL_VISIT_PATIENCE_NS - 1;
	assert_int_equal(ll_visits_next(contenders, 2), 0);
	contenders[1].waited_ns = LL_VISIT_PATIENCE_NS;
	assert_int_equal(ll_visits_next(contenders, 2), 1);
}

/* Plays visits of two contenders that always have work; the longest visit, and the GPU time of each. */
static uint64_t play(unsigned weight_a, unsigned weight_b, uint64_t ret_gpu_ns[2])
{
	struct ll_contender contenders[2] = {contender(NORMAL, 0), contender(NORMAL, 0)};
	contenders[0].weight_permille = weight_a, contenders[1].weight_permille = weight_b;
	uint64_t longest_ns = 0, visited_ns = 0;
	size_t visited = 0;
	ret_gpu_ns[0] = ret_gpu_ns[1] = 0;
	for (int step = 0; step < 40000; step++, visited_ns += 100 * LL_NS_PER_US) {
		longest_ns = visited_ns > longest_ns ? visited_ns : longest_ns;
		if (ends_for(&contenders[visited], &contenders[1 - visited], visited_ns))
			visited = 1 - visited, visited_ns = 0;
		ret_gpu_ns[visited] += 100 * LL_NS_PER_US;
		contenders[visited].virtual_ns =
		    ll_visits_virtual_ns(ret_gpu_ns[visited], contenders[visited].weight_permille);
	}
	return longest_ns;
}

/* --weight 30 beside --weight 70: the size of the numbers makes no turn longer. */
TEST(test_only_the_ratio_of_weights_counts)
{
	uint64_t small[2], large[2];
	uint64_t longest_ns = play(3000, 7000, small);
	assert_true(longest_ns <= 4 * LL_VISIT_QUANTUM_NS);
	assert_int_equal(play(30000, 70000, large), longest_ns);
	assert_int_equal(large[0], small[0]);
	assert_in_range(100 * large[0] / (large[0] + large[1]), 29, 30);
}

TEST(test_a_lower_class_gives_way_at_once_and_a_higher_does_not)
{
	struct ll_contender high = contender(HIGH, 100000), low = contender(LOW, 0);
	assert_true(ends_for(&low, &high, 0));
	assert_false(ends_for(&high, &low, 10 * LL_NS_PER_S));
	high.has_tokens = false;
	assert_false(ends_for(&low, &high, 0));
	assert_true(ends_for(&high, &low, 0));
}

/* Two tenants on two cards: whoever has the turn on the first goes first on the second. */
TEST(test_a_gang_goes_first_while_it_has_its_turn_and_gets_no_more_for_it)
{
	struct ll_contender a = contender(NORMAL, 100), b = contender(NORMAL, 120);
	b.has_gang_turn = true;
	assert_true(ends_for(&a, &b, 0)); /* though b has had more */
	assert_false(ends_for(&b, &a, 0));
	struct ll_contender both[2] = {a, b};
	assert_int_equal(ll_visits_next(both, 2), 1);
	both[1].virtual_ns = 100 * LL_NS_PER_MS + LL_VISIT_GANG_NS + 1; /* too far ahead */
	assert_int_equal(ll_visits_next(both, 2), 0);
	both[1].virtual_ns = 0, both[1].rank = LOW; /* a class is a class */
	assert_int_equal(ll_visits_next(both, 2), 0);
	struct ll_contender other = contender(NORMAL, 100);
	assert_false(ends_for(&a, &other, 0));
}

TEST(test_weights_divide_and_a_pause_is_not_saved_up)
{
	assert_int_equal(ll_visits_virtual_ns(1000, 1000), 1000);
	assert_int_equal(ll_visits_virtual_ns(1000, 4000), 250);
	assert_int_equal(ll_visits_virtual_ns(1000, 0), 1000000);
	uint64_t least_ns = 10 * LL_NS_PER_S;
	assert_int_equal(ll_visits_come_back_ns(0, least_ns, 1000), least_ns - LL_VISIT_LAG_NS);
	assert_int_equal(ll_visits_come_back_ns(0, least_ns, 70000), least_ns - LL_VISIT_LAG_NS / 70);
	assert_int_equal(ll_visits_come_back_ns(least_ns - 5, least_ns, 1000), least_ns - 5);
	assert_int_equal(ll_visits_come_back_ns(3, 7, 1000), 3);
}

/* Of two tenants with the same first card, the one that has the turn there goes first here, whatever it had. */
TEST(test_tenants_with_one_first_card_go_in_its_order)
{
	struct ll_contender contenders[] = {contender(NORMAL, 0), contender(NORMAL, 100000), contender(NORMAL, 50)};
	contenders[0].first_card = contenders[1].first_card = 7;
	assert_int_equal(ll_visits_next(contenders, 2), 0);
	contenders[1].has_gang_turn = true;
	assert_int_equal(ll_visits_next(contenders, 2), 1);
	assert_true(ends_for(&contenders[0], &contenders[1], LL_NS_PER_MS));
	assert_false(ends_for(&contenders[1], &contenders[0], LL_NS_PER_MS));
	/* a tenant without a first card is before them or behind by what it had */
	assert_int_equal(ll_visits_next(contenders, 3), 2);
	contenders[1].virtual_ns = 0;
	assert_int_equal(ll_visits_next(contenders, 3), 1);
	/* nobody waits for ever, and one in debt leads nobody */
	contenders[0].waited_ns = LL_VISIT_PATIENCE_NS;
	assert_int_equal(ll_visits_next(contenders, 2), 0);
	assert_true(ends_for(&contenders[1], &contenders[0], LL_NS_PER_MS));
	contenders[0].waited_ns = 0;
	contenders[1].has_tokens = false;
	assert_int_equal(ll_visits_next(contenders, 2), 0);
}

/* The turn of a visited of this class that has had it for so long: does a contender of NORMAL take it, beside another
 * contender of that class and virtual time? */
static const struct {
	const char *what;
	unsigned visited_rank; /* 0: nobody has the turn */
	uint64_t visited_ns;
	bool is_service, is_unresponsive, has_tokens;
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
    {"a lower class is served", LOW, LL_VISIT_SERVICE_NS - 1, true, false, true, 0, 0, false},
    {"a lower class was served", LOW, LL_VISIT_SERVICE_NS, true, false, true, 0, 0, true},
    {"an equal has it that does not look", NORMAL, LL_NS_PER_S, false, true, true, 0, 0, true},
    {"the same, and a higher class waits", NORMAL, LL_NS_PER_S, false, true, true, HIGH, 500, false},
};

TEST(test_a_turn_is_taken_where_nobody_better_has_or_wants_it)
{
	for (size_t i = 0; i < sizeof takings / sizeof *takings; i++) {
		struct ll_contender self = contender(NORMAL, 100), visited = contender(takings[i].visited_rank, 90);
		struct ll_contender other = contender(takings[i].other_rank, takings[i].other_ms);
		struct ll_visits_present taking = {.visited = takings[i].visited_rank ? &visited : NULL,
						   .visited_ns = takings[i].visited_ns,
						   .is_service = takings[i].is_service,
						   .is_unresponsive = takings[i].is_unresponsive};
		self.has_tokens = takings[i].has_tokens;
		if (ll_visits_takes(&taking, &self, &other, takings[i].other_rank != 0) != takings[i].takes)
			fail_msg("%s", takings[i].what);
	}
}

TEST(test_a_higher_class_counts_while_it_can_use_the_card)
{
	struct ll_contender low = contender(LOW, 0), others[] = {contender(LOW, 0), contender(NORMAL, 1000)};
	assert_false(ll_visits_has_higher(others, 1, &low));
	assert_true(ll_visits_has_higher(others, 2, &low));
	others[1].is_paused = true;
	assert_false(ll_visits_has_higher(others, 2, &low));
	others[1].is_paused = others[1].has_tokens = false;
	assert_false(ll_visits_has_higher(others, 2, &low));
}

/* Of three, the last gets the turn. */
TEST(test_a_turn_is_a_service_if_a_higher_class_waits_or_gives_it)
{
	struct ll_contender giver = contender(NORMAL, 0),
			    others[] = {contender(LOW, 0), contender(NORMAL, 0), contender(LOW, 0)};
	assert_true(ll_visits_is_service(NULL, others, 3, 2)); /* the second waits */
	assert_false(ll_visits_is_service(NULL, others, 3, 1));
	others[1].rank = LOW;
	assert_false(ll_visits_is_service(NULL, others, 3, 2));
	assert_true(ll_visits_is_service(&giver, others, 3, 2));
	giver.has_tokens = false;
	assert_false(ll_visits_is_service(&giver, others, 3, 2));
	giver.has_tokens = true, giver.rank = LOW;
	assert_false(ll_visits_is_service(&giver, others, 3, 2));
}
