/* What happens to a visit: it goes on, drains, or ends. */
#include "test.h"

#include "base/clock.h"
#include "rules/share/visits.h"

#define MS LL_NS_PER_MS

enum { HIGH = 1, NORMAL, LOW };

static struct ll_contender contender(unsigned rank, uint64_t virtual_ms)
{
	return (struct ll_contender){
	    .rank = rank, .weight_permille = 1000, .virtual_ns = virtual_ms * MS, .has_tokens = true};
}

/* Its launches wait on the card. */
static struct ll_contender visitor(unsigned rank, uint64_t virtual_ms)
{
	struct ll_contender self = contender(rank, virtual_ms);
	self.waits_on_card = true;
	return self;
}

static struct ll_visit_verdict decide(const struct ll_visit *holder, const struct ll_contender *other)
{
	return ll_visits_decide(holder, other, other ? 1 : 0);
}

static void assert_keeps(const struct ll_visit *holder, const struct ll_contender *other, bool may_launch)
{
	struct ll_visit_verdict verdict = decide(holder, other);
	assert_int_equal(verdict.act, LL_VISIT_KEEPS);
	assert_int_equal(verdict.may_launch, may_launch);
	assert_false(verdict.tells_cards || verdict.is_service || verdict.ended_empty || verdict.loses_credit ||
		     verdict.is_paused);
}

static void assert_drains(const struct ll_visit *holder, const struct ll_contender *other, bool tells_cards)
{
	struct ll_visit_verdict verdict = decide(holder, other);
	assert_int_equal(verdict.act, LL_VISIT_DRAINS);
	assert_false(verdict.may_launch);
	assert_int_equal(verdict.tells_cards, tells_cards);
}

static struct ll_visit_verdict assert_gives(const struct ll_visit *holder, const struct ll_contender *other)
{
	struct ll_visit_verdict verdict = decide(holder, other);
	assert_int_equal(verdict.act, LL_VISIT_GIVES);
	assert_int_equal(verdict.next, 0);
	assert_false(verdict.may_launch);
	return verdict;
}

TEST(test_a_turn_that_nobody_else_can_use_is_kept)
{
	struct ll_contender self = contender(LOW, 500), other = contender(HIGH, 0);
	struct ll_visit holder = {.self = &self, .visited_ns = LL_NS_PER_S, .yields_to_gang = true};
	assert_keeps(&holder, NULL, true);
	other.has_tokens = false;
	assert_keeps(&holder, &other, true);
	self.has_tokens = false;
	assert_keeps(&holder, NULL, false);
	self.waits_on_card = true;
	holder.queue_is_empty = true, holder.queue_empty_ns = LL_NS_PER_S;
	assert_keeps(&holder, &other, false);
}

TEST(test_a_turn_ends_when_the_card_has_little_left_of_it)
{
	const struct ll_contender self = contender(NORMAL, 110), other = contender(NORMAL, 100);
	struct ll_visit holder = {.self = &self, .visited_ns = 30 * MS};
	holder.queued_ns = LL_VISIT_DRAINED_NS + 1;
	assert_drains(&holder, &other, true);
	holder.queued_ns = LL_VISIT_DRAINED_NS;
	struct ll_visit_verdict verdict = assert_gives(&holder, &other);
	assert_false(verdict.is_service || verdict.ended_empty || verdict.loses_credit || verdict.is_paused);
}

TEST(test_a_holder_keeps_its_quantum_unless_it_is_led)
{
	const struct ll_contender self = contender(NORMAL, 109), other = contender(NORMAL, 100);
	struct ll_visit holder = {.self = &self, .visited_ns = LL_VISIT_QUANTUM_NS - 1};
	assert_keeps(&holder, &other, true);
	holder.yields_to_gang = true;
	assert_gives(&holder, &other);
}

TEST(test_nobody_drains_for_ever)
{
	const struct ll_contender self = contender(NORMAL, 110), other = contender(NORMAL, 100);
	struct ll_visit holder = {.self = &self, .visited_ns = 30 * MS, .queued_ns = LL_NS_PER_S};
	holder.draining_ns = LL_VISIT_DRAIN_NS - 1;
	assert_drains(&holder, &other, true);
	holder.draining_ns = LL_VISIT_DRAIN_NS;
	assert_gives(&holder, &other);
	/* nor on the card, nor for another card */
	const struct ll_contender visited = visitor(NORMAL, 110);
	holder.self = &visited, holder.is_overrunning = true;
	assert_gives(&holder, &other);
	holder.draining_ns = LL_VISIT_DRAIN_NS - 1;
	assert_drains(&holder, &other, false);
	holder.self = &self, holder.had_work_elsewhere = holder.has_work_elsewhere = true;
	assert_drains(&holder, &other, true);
	holder.draining_ns = LL_VISIT_DRAIN_NS;
	assert_gives(&holder, &other);
}

/* A kernel there may spin until the last launch here has run. */
TEST(test_work_on_another_card_is_waited_for)
{
	const struct ll_contender self = contender(NORMAL, 110), other = contender(NORMAL, 100);
	struct ll_visit holder = {
	    .self = &self, .visited_ns = 30 * MS, .had_work_elsewhere = true, .has_work_elsewhere = true};
	assert_drains(&holder, &other, true);
	holder.has_work_elsewhere = false;
	assert_gives(&holder, &other);
	holder.queued_ns = 1;
	assert_drains(&holder, &other, true);
}

TEST(test_a_higher_class_that_waits_makes_the_turn_a_service)
{
	struct ll_contender self = contender(HIGH, 100), low = contender(LOW, 0);
	struct ll_visit holder = {.self = &self, .visited_ns = LL_NS_PER_S};
	low.waited_ns = LL_VISIT_STARVED_NS - 1;
	assert_keeps(&holder, &low, true);
	low.waited_ns = LL_VISIT_STARVED_NS;
	assert_true(assert_gives(&holder, &low).is_service);
	self.has_tokens = false; /* the holder could not use it */
	assert_false(assert_gives(&holder, &low).is_service);
	struct ll_contender others[] = {contender(NORMAL, 0), low};
	self.rank = LOW;
	struct ll_visit_verdict verdict = ll_visits_decide(&holder, others, 2);
	assert_int_equal(verdict.act, LL_VISIT_GIVES);
	assert_int_equal(verdict.next, 1);
	assert_true(verdict.is_service);
}

TEST(test_a_visit_lasts_a_quantum_and_a_long_launch_is_waited_for)
{
	struct ll_contender self = visitor(NORMAL, 110), other = visitor(NORMAL, 100);
	struct ll_visit holder = {.self = &self, .visited_ns = LL_VISIT_QUANTUM_NS - 1, .queued_ns = LL_NS_PER_S};
	self.launches_ahead = true;
	assert_keeps(&holder, &other, true);
	holder.visited_ns = LL_VISIT_QUANTUM_NS;
	struct ll_visit_verdict verdict = assert_gives(&holder, &other); /* what is queued stays behind */
	assert_false(verdict.ended_empty || verdict.loses_credit || verdict.is_paused);
	holder.is_overrunning = true;
	assert_drains(&holder, &other, false);
	holder.visited_ns = LL_VISIT_QUANTUM_NS - 1;
	assert_keeps(&holder, &other, true);
}

TEST(test_a_visit_ends_sooner_beside_one_that_ended_empty_and_later_for_one_that_is_behind)
{
	struct ll_contender self = visitor(NORMAL, 110), other = visitor(NORMAL, 100);
	struct ll_visit holder = {.self = &self, .visited_ns = LL_VISIT_SHORT_NS};
	assert_keeps(&holder, &other, true);
	other.ended_empty = true;
	assert_gives(&holder, &other);
	self.virtual_ns = 100 * MS - 999; /* which count by weight: a lighter one is even */
	holder.visited_ns = LL_VISIT_QUANTUM_NS;
	assert_keeps(&holder, &other, true);
	self.weight_permille = 1;
	assert_gives(&holder, &other);
	struct ll_contender others[] = {visitor(NORMAL, 101), other};
	assert_int_equal(ll_visits_decide(&holder, others, 2).next, 1);
	assert_int_equal(ll_visits_decide(&holder, others, 2).act, LL_VISIT_GIVES);
}

TEST(test_a_visit_ends_when_its_cap_or_anothers_patience_does)
{
	struct ll_contender self = visitor(NORMAL, 0), other = visitor(NORMAL, 100);
	struct ll_visit holder = {.self = &self, .visited_ns = MS};
	assert_keeps(&holder, &other, true);
	self.has_tokens = false;
	assert_gives(&holder, &other);
	self.has_tokens = true;
	other.waited_ns = LL_VISIT_PATIENCE_NS - 1;
	assert_keeps(&holder, &other, true);
	other.waited_ns = LL_VISIT_PATIENCE_NS;
	assert_gives(&holder, &other);
}

TEST(test_a_visit_with_an_empty_queue_goes_on_for_its_grace)
{
	struct ll_contender self = visitor(NORMAL, 100), other = visitor(NORMAL, 100);
	struct ll_visit holder = {.self = &self, .visited_ns = MS, .queue_is_empty = true};
	holder.queue_empty_ns = LL_VISIT_GRACE_WAITS_NS - 1;
	assert_keeps(&holder, &other, true);
	holder.queue_empty_ns = LL_VISIT_GRACE_WAITS_NS;
	struct ll_visit_verdict verdict = assert_gives(&holder, &other);
	assert_true(verdict.loses_credit);
	assert_false(verdict.ended_empty || verdict.is_paused);
	holder.has_busy_sibling = true;
	assert_keeps(&holder, &other, true);
	holder.has_busy_sibling = holder.queue_is_empty = false;
	assert_keeps(&holder, &other, true);
	holder.queue_is_empty = true;
	/* it has no credit even if the visit ends before the grace does */
	holder.queue_empty_ns = 1, holder.visited_ns = LL_VISIT_QUANTUM_NS;
	assert_true(assert_gives(&holder, &other).loses_credit);
	holder.visited_ns = MS;
	self.launches_ahead = true;
	holder.queue_empty_ns = LL_VISIT_GRACE_AHEAD_NS - 1;
	assert_keeps(&holder, &other, true);
	holder.queue_empty_ns = LL_VISIT_GRACE_AHEAD_NS;
	assert_true(assert_gives(&holder, &other).ended_empty);
}

/* Dry since before the visit began: the grace begins with the visit. */
TEST(test_a_visit_has_its_grace_however_long_its_program_paused_before)
{
	const struct ll_contender self = visitor(NORMAL, 100), other = visitor(NORMAL, 100);
	struct ll_visit holder = {.self = &self, .queue_is_empty = true, .queue_empty_ns = LL_NS_PER_S};
	holder.visited_ns = LL_VISIT_GRACE_WAITS_NS - 1;
	assert_keeps(&holder, &other, true);
	holder.visited_ns = LL_VISIT_GRACE_WAITS_NS;
	assert_gives(&holder, &other);
}

TEST(test_who_leaves_the_card_to_a_lower_class_pauses)
{
	struct ll_contender self = visitor(HIGH, 100), low = visitor(LOW, 100);
	struct ll_visit holder = {.self = &self, .visited_ns = MS, .queue_is_empty = true};
	holder.queue_empty_ns = LL_VISIT_GRACE_WAITS_NS - 1;
	assert_keeps(&holder, &low, true);
	holder.queue_empty_ns = LL_VISIT_GRACE_WAITS_NS;
	struct ll_visit_verdict verdict = assert_gives(&holder, &low);
	assert_true(verdict.is_paused);
	assert_false(verdict.is_service); /* nobody higher waits */
	/* one that has work and gives way because the lower class has starved does not pause */
	holder.queue_is_empty = false, holder.queue_empty_ns = 0;
	low.waited_ns = LL_VISIT_STARVED_NS;
	verdict = assert_gives(&holder, &low);
	assert_false(verdict.is_paused || verdict.loses_credit);
	assert_true(verdict.is_service);
}

TEST(test_a_visit_in_service_is_not_cut_short_while_it_has_work)
{
	const struct ll_contender self = visitor(LOW, 100), high = visitor(HIGH, 100);
	struct ll_visit holder = {.self = &self, .is_service = true, .visited_ns = LL_VISIT_SERVICE_NS - 1};
	assert_keeps(&holder, &high, true);
	holder.visited_ns = LL_VISIT_SERVICE_NS;
	assert_gives(&holder, &high);
	holder.visited_ns = LL_VISIT_SERVICE_NS - 1;
	holder.queue_is_empty = true, holder.queue_empty_ns = LL_VISIT_GRACE_WAITS_NS;
	assert_false(assert_gives(&holder, &high).is_paused);
	holder.queue_empty_ns = LL_VISIT_GRACE_WAITS_NS - 1;
	assert_keeps(&holder, &high, true);
	holder.queue_is_empty = false, holder.queue_empty_ns = LL_NS_PER_S; /* of an earlier time */
	assert_keeps(&holder, &high, true);
	holder.is_service = false;
	assert_gives(&holder, &high);
}
