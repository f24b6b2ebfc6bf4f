/* Those beneath a higher class are held for a part of the time in which it has work. The card's slices serve all who
 * may launch alike. */
#include "test.h"

#include "daemon/arbiter/choose.h"
#include "daemon/arbiter/classes.h"
#include "rules/share/visits.h"
#include "share_card.h"

#define US LL_NS_PER_US
#define S LL_NS_PER_S

static unsigned count_launching(const struct card *card)
{
	unsigned count = 0;
	for (size_t i = 0; i < card->count; i++)
		count += !card->programs[i].is_resting && !card->programs[i].is_unresponsive &&
			 card->programs[i].claim.look.may_launch;
	return count;
}

static void work_by_slices(struct card *card)
{
	bool is_new;
	ll_share_choose(&card->card, card->now_ns, &is_new);
	for (size_t i = 0; i < card->count; i++) {
		struct program *program = &card->programs[i];
		if (!program->is_resting && !program->is_unresponsive)
			look(card, program);
	}
	unsigned launching = count_launching(card);
	for (size_t i = 0; i < card->count; i++) {
		struct program *program = &card->programs[i];
		if (program->is_resting || program->is_unresponsive || !program->claim.look.may_launch)
			continue;
		program->used_ns += card->step_ns / launching;
		program->said.completed_launches = program->used_ns / (20 * US);
	}
}

static struct card *new_card_of_classes(void **state)
{
	struct card *card = new_card(state, 200 * US);
	card->card.forced = LL_LIMIT_SHARING_MEASURED;
	card->work = work_by_slices;
	return card;
}

static struct program *come(struct card *card, enum ll_priority priority, unsigned slowdown_permille)
{
	const struct ll_share_job like = {
	    .rank = priority, .weight_permille = 1000, .slowdown_permille = slowdown_permille};
	struct program *program = add_at_rest(card, &like);
	program->said.launch_mode = LL_LAUNCH_MODE_ASYNC;
	want(card, program);
	return program;
}

static void forget_use(struct card *card)
{
	for (size_t i = 0; i < card->count; i++)
		card->programs[i].used_ns = 0;
}

static double part_of(const struct program *program, uint64_t ns)
{
	return (double)program->used_ns / (double)ns;
}

TEST_EACH(card_setup, card_teardown);

TEST(the_higher_class_is_as_slow_as_it_accepts_and_the_lower_has_the_rest)
{
	struct card *card = new_card_of_classes(state);
	struct program *high = come(card, LL_PRIORITY_HIGH, 1300), *low = come(card, LL_PRIORITY_LOW, 1300);
	run_for(card, 15 * S);
	forget_use(card);
	run_for(card, 5 * S);
	assert_near(part_of(high, 5 * S), 1 / 1.3, 0.06);
	assert_near(part_of(low, 5 * S), 1 - 1 / 1.3, 0.06);
	assert_near(ll_share_slowdown_permille(high->job), 1300, 130);
	assert_near(ll_share_held_permille(high->job), 540, 60);
	assert_int_equal(ll_share_held_permille(low->job), 0);
}

/* loadlined has to see soon what it does. */
TEST(who_has_others_beneath_is_told)
{
	struct card *card = new_card_of_classes(state);
	struct program *high = come(card, LL_PRIORITY_HIGH, 1300);
	run_for(card, S);
	assert_false(high->claim.look.is_above);
	struct program *low = come(card, LL_PRIORITY_LOW, 1300);
	run_for(card, S);
	assert_true(high->claim.look.is_above);
	assert_false(low->claim.look.is_above);
	rest(card, low);
	run_for(card, 6 * S);
	assert_false(high->claim.look.is_above);
}

/* Two of the lower class share what the higher one leaves, and are held together. */
TEST(all_beneath_are_held_together)
{
	struct card *card = new_card_of_classes(state);
	struct program *high = come(card, LL_PRIORITY_HIGH, 1300), *normal = come(card, LL_PRIORITY_NORMAL, 1300),
		       *low = come(card, LL_PRIORITY_LOW, 1300);
	unsigned held = 0;
	run_for(card, 15 * S);
	forget_use(card);
	for (unsigned i = 0; i < 25000; i++) {
		step(card);
		held += ll_share_is_held(normal->job);
		assert_true(!ll_share_is_held(normal->job) || ll_share_is_held(low->job));
		assert_false(ll_share_is_held(high->job));
	}
	assert_near(part_of(high, 5 * S), 1 / 1.3, 0.06);
	assert_true(part_of(normal, 5 * S) > 1.2 * part_of(low, 5 * S));
	assert_true(part_of(low, 5 * S) > 0.01);
	assert_in_range(held, 10000, 20000);
}

TEST(who_is_held_launches_nothing_and_waits_on_the_card)
{
	struct card *card = new_card_of_classes(state);
	struct program *high = come(card, LL_PRIORITY_HIGH, 1300), *low = come(card, LL_PRIORITY_LOW, 1300);
	low->said.is_on_card = true;
	card->card.holder = &low->claim; /* since before the other was there */
	unsigned held = 0, free = 0;
	for (unsigned i = 0; i < 25000; i++) {
		step(card);
		bool is_held = ll_share_is_held(low->job);
		held += is_held;
		free += !is_held;
		assert_int_equal(low->claim.look.may_launch, !is_held);
		assert_false(is_held && has_turn(low));
		assert_int_equal(is_word_open(low), !is_held);
		assert_int_equal(low->claim.look.is_exclusive, is_held);
		assert_true(high->claim.look.may_launch && is_word_open(high) && high->claim.look.is_alone);
		assert_int_equal(low->claim.look.queue_bound_ns, LL_QUEUE_BENEATH_NS);
		assert_int_equal(low->claim.look.waiting_claims, is_held);
	}
	assert_true(held > 1000 && free > 1000);
}

/* Requests of 2 ms of the card, each 50 ms. */
TEST(short_requests_lose_nothing_and_cost_little)
{
	struct card *card = new_card_of_classes(state);
	struct program *high = come(card, LL_PRIORITY_HIGH, 1300), *low = come(card, LL_PRIORITY_LOW, 1300);
	rest(card, high);
	uint64_t longest_ns = 0;
	for (unsigned i = 0; i < 200; i++) {
		uint64_t begun_ns = card->now_ns, until_ns = high->used_ns + 2 * MS;
		want(card, high);
		while (high->used_ns < until_ns)
			step(card);
		if (card->now_ns - begun_ns > longest_ns)
			longest_ns = card->now_ns - begun_ns;
		rest(card, high);
		run_for(card, 48 * MS);
	}
	assert_true(longest_ns <= 2200 * US);
	assert_true(part_of(low, 200 * 50 * MS) > 0.9);
}

TEST(a_class_that_is_unresponsive_or_gone_or_at_rest_holds_nobody)
{
	struct card *card = new_card_of_classes(state);
	struct program *high = come(card, LL_PRIORITY_HIGH, 1000), *low = come(card, LL_PRIORITY_LOW, 1300);
	run_for(card, 5 * S);
	forget_use(card);
	high->is_unresponsive = true;
	run_for(card, S);
	assert_near(part_of(low, S), 1, 0.05);
	high->is_unresponsive = false;
	run_for(card, S);
	forget_use(card);
	run_for(card, S);
	assert_true(part_of(low, S) < 0.2);
	rest(card, high);
	forget_use(card);
	run_for(card, S);
	assert_near(part_of(low, S), 1, 0.05);
	want(card, high);
	run_for(card, S);
	end(card, high);
	forget_use(card);
	run_for(card, S);
	assert_near(part_of(low, S), 1, 0.05);
}

TEST(a_person_may_choose_the_part)
{
	static const struct {
		enum ll_limit_sharing sharing;
		double high, low;
	} rows[] = {{LL_LIMIT_SHARING_HELD_NONE, 0.5, 0.5},
		    {LL_LIMIT_SHARING_HELD_HALF, 0.75, 0.25},
		    {LL_LIMIT_SHARING_HELD_ALL, 1, 0},
		    {LL_LIMIT_SHARING_SLICES, 0.5, 0.5}};
	struct card *card = new_card_of_classes(state);
	struct program *high = come(card, LL_PRIORITY_HIGH, 1300), *low = come(card, LL_PRIORITY_LOW, 1300);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		card->card.forced = rows[i].sharing;
		run_for(card, S);
		forget_use(card);
		run_for(card, 2 * S);
		assert_near(part_of(high, 2 * S), rows[i].high, 0.03);
		assert_near(part_of(low, 2 * S), rows[i].low, 0.03);
	}
	card->card.forced = LL_LIMIT_SHARING_MEASURED;
	run_for(card, 15 * S);
	assert_near(ll_share_slowdown_permille(high->job), 1300, 130);
}

/* Its kernels may wait for each other across cards, and a part of a period is too short for that. */
TEST(nobody_is_held_beside_a_job_on_several_cards)
{
	struct card *card = new_card_of_classes(state);
	struct program *high = come(card, LL_PRIORITY_HIGH, 1000), *low = come(card, LL_PRIORITY_LOW, 1300);
	run_for(card, 2 * S);
	for (unsigned i = 0; i < 5000; i++) {
		high->job->worked_elsewhere_ns = card->now_ns;
		step(card);
		assert_false(ll_share_is_held(low->job));
	}
}

/* Two that wait for each of their launches are visited while the rest is held. */
TEST(jobs_of_the_higher_class_are_visited_in_turn)
{
	struct card *card = new_card_of_classes(state);
	struct program *a = come(card, LL_PRIORITY_HIGH, 1000), *b = come(card, LL_PRIORITY_HIGH, 1000),
		       *low = come(card, LL_PRIORITY_LOW, 1300);
	a->said.launch_mode = b->said.launch_mode = LL_LAUNCH_MODE_SYNC;
	a->kernel_ns = b->kernel_ns = 0;
	unsigned visited = 0, held = 0;
	for (unsigned i = 0; i < 25000; i++) {
		step(card);
		if (!ll_share_is_held(low->job))
			continue;
		held++;
		visited += a->claim.look.may_launch != b->claim.look.may_launch;
		assert_false(low->claim.look.may_launch);
	}
	assert_true(held > 10000 && visited > held * 8 / 10);
}

/* ---- on a card that takes programs off ---- */

enum { LEAVING_US = 4000 }; /* until a program is off the card, or on it, as ordered */

/* Beside lower programs that are on the card, the higher one has a third of it. */
static void work_until_off(struct card *card)
{
	bool is_new;
	unsigned on = 0;
	ll_share_choose(&card->card, card->now_ns, &is_new);
	for (size_t i = 0; i < card->count; i++) {
		struct program *program = &card->programs[i];
		bool is_off = program->job->time.period_ns;
		if (is_off == program->said.is_off)
			program->first_ns = card->now_ns;
		else if (card->now_ns - program->first_ns >= LEAVING_US * US)
			program->said.is_off = is_off;
		on += program->job->rank != LL_PRIORITY_HIGH && !program->is_resting && !program->said.is_off;
	}
	for (size_t i = 0; i < card->count; i++) {
		struct program *program = &card->programs[i];
		bool is_high = program->job->rank == LL_PRIORITY_HIGH;
		if (program->is_resting || program->said.is_off)
			continue;
		program->used_ns += is_high ? card->step_ns / (on ? 3 : 1) : card->step_ns / (2 * on);
		program->said.completed_launches = program->used_ns / (20 * US);
		post(card, program);
	}
}

static struct card *new_card_that_takes_off(void **state)
{
	struct card *card = new_card_of_classes(state);
	card->work = work_until_off;
	return card;
}

static struct program *come_with_lever(struct card *card, enum ll_priority priority)
{
	struct program *program = come(card, priority, 1300);
	program->said.lever = LL_TIME_LEVER_WORKS;
	post(card, program);
	return program;
}

TEST(while_programs_leave_the_card_nobody_is_measured_and_what_that_costs_is_made_up_for)
{
	struct card *card = new_card_that_takes_off(state);
	struct program *high = come_with_lever(card, LL_PRIORITY_HIGH), *low = NULL;
	for (unsigned i = 0; i < 3; i++)
		low = come_with_lever(card, LL_PRIORITY_LOW);
	run_for(card, 20 * S);
	forget_use(card);
	run_for(card, 5 * S);
	assert_true(card->card.has_class_slices);
	assert_near(part_of(high, 5 * S), 1 / 1.3, 0.04);
	assert_near(ll_share_slowdown_permille(high->job) / 1000.0, 1.3, 0.08);
	assert_true(part_of(low, 5 * S) > 0.03);
}

TEST(a_class_that_seldom_works_has_short_slices_beneath_it)
{
	struct card *card = new_card_that_takes_off(state);
	struct program *high = come_with_lever(card, LL_PRIORITY_HIGH), *low = come_with_lever(card, LL_PRIORITY_LOW);
	for (unsigned i = 0; i < 200; i++) {
		want(card, high);
		run_for(card, 4 * LL_NS_PER_MS);
		assert_int_equal(low->job->time.slice_us, LL_CLASS_SLICE_US);
		rest(card, high);
		run_for(card, 96 * LL_NS_PER_MS);
	}
}
