/* When a visit ends. */
#include "test.h"

#include "base/clock.h"
#include "rules/share/visits.h"

#define MS LL_NS_PER_MS
#define US LL_NS_PER_US

enum { HIGH = 1, NORMAL, LOW };

static struct ll_contender contender(unsigned rank, uint64_t virtual_ms)
{
	return (struct ll_contender){
	    .rank = rank, .weight_permille = 1000, .virtual_ns = virtual_ms * MS, .has_work = true};
}

/* Its last visit ended for want of work. */
static struct ll_contender contender_that_ended_empty(uint64_t virtual_ms)
{
	struct ll_contender self = contender(NORMAL, virtual_ms);
	self.launches_ahead = self.ended_empty = true;
	return self;
}

TEST(test_a_visit_without_others_goes_on)
{
	struct ll_contender visited = contender(LOW, 100);
	assert_int_equal(ll_visits_end_ns(&visited, NULL, 900 * MS, 0), UINT64_MAX);
	visited.has_work = false;
	assert_int_equal(ll_visits_end_ns(&visited, NULL, 900 * MS, 800 * MS), UINT64_MAX);
}

TEST(test_a_higher_class_ends_it_at_once)
{
	const struct ll_contender visited = contender(NORMAL, 0), best = contender(HIGH, 100);
	assert_int_equal(ll_visits_end_ns(&visited, &best, 0, 0), 0);
	assert_int_equal(ll_visits_end_ns(&visited, &best, 3 * MS, 0), 3 * MS);
}

TEST(test_a_lower_class_has_what_the_visited_leaves)
{
	struct ll_contender visited = contender(NORMAL, 500);
	const struct ll_contender best = contender(LOW, 0);
	assert_int_equal(ll_visits_end_ns(&visited, &best, 900 * MS, 0), UINT64_MAX);
	visited.has_work = false;
	assert_int_equal(ll_visits_end_ns(&visited, &best, 900 * MS, 0), 900 * MS + LL_VISIT_GRACE_WAITS_NS);
	visited.launches_ahead = true; /* its host pauses between two launches, too */
	assert_int_equal(ll_visits_end_ns(&visited, &best, 900 * MS, 0), 900 * MS + LL_VISIT_GRACE_WAITS_NS);
}

TEST(test_a_dry_visit_goes_on_for_its_grace)
{
	struct ll_contender visited = contender(NORMAL, 0);
	const struct ll_contender best = contender(NORMAL, 0);
	visited.has_work = false;
	assert_int_equal(ll_visits_end_ns(&visited, &best, MS, 0), MS + LL_VISIT_GRACE_WAITS_NS);
	assert_int_equal(ll_visits_end_ns(&visited, &best, MS, 70 * US), MS + LL_VISIT_GRACE_WAITS_NS - 70 * US);
	assert_int_equal(ll_visits_end_ns(&visited, &best, MS, MS), MS);
	visited.launches_ahead = true;
	assert_int_equal(ll_visits_end_ns(&visited, &best, MS, 0), MS + LL_VISIT_GRACE_AHEAD_NS);
	assert_int_equal(ll_visits_end_ns(&visited, &best, MS, 70 * US), MS);
}

TEST(test_a_visit_beside_a_full_queue_lasts_a_quantum)
{
	const struct ll_contender visited = contender(NORMAL, 100), best = contender(NORMAL, 50);
	assert_int_equal(ll_visits_end_ns(&visited, &best, 0, 0), LL_VISIT_QUANTUM_NS);
	assert_int_equal(ll_visits_end_ns(&visited, &best, 7 * MS, 0), LL_VISIT_QUANTUM_NS);
	/* though the grace lasts longer */
	struct ll_contender emptied = visited;
	emptied.has_work = false;
	assert_int_equal(ll_visits_end_ns(&emptied, &best, LL_VISIT_QUANTUM_NS - US, 0), LL_VISIT_QUANTUM_NS);
}

TEST(test_a_visit_beside_one_that_ended_empty_is_short)
{
	const struct ll_contender visited = contender(NORMAL, 100);
	struct ll_contender best = contender_that_ended_empty(50);
	assert_int_equal(ll_visits_end_ns(&visited, &best, 0, 0), LL_VISIT_SHORT_NS);
	best.ended_empty = false;
	assert_int_equal(ll_visits_end_ns(&visited, &best, 0, 0), LL_VISIT_QUANTUM_NS);
}

TEST(test_who_is_behind_is_visited_until_it_is_even)
{
	struct ll_contender visited = contender(NORMAL, 40);
	const struct ll_contender best = contender(NORMAL, 60), emptied = contender_that_ended_empty(60);
	assert_int_equal(ll_visits_end_ns(&visited, &best, 3 * MS, 0), 23 * MS);
	assert_int_equal(ll_visits_end_ns(&visited, &emptied, 3 * MS, 0), 23 * MS);
	visited.weight_permille = 500; /* 20 ms by weight are 10 ms of the card's time */
	assert_int_equal(ll_visits_end_ns(&visited, &best, 3 * MS, 0), 13 * MS);
	visited.virtual_ns = 58 * MS; /* less than a quantum behind */
	assert_int_equal(ll_visits_end_ns(&visited, &best, 3 * MS, 0), LL_VISIT_QUANTUM_NS);
	visited.virtual_ns = 40 * MS;
	visited.has_work = false; /* it cannot use it */
	assert_int_equal(ll_visits_end_ns(&visited, &best, 3 * MS, LL_VISIT_GRACE_WAITS_NS), 3 * MS);
}
