/* What people are told of each job: how it is shared, what keeps it back, and what was measured of it. */
#include "test.h"

#include "daemon/arbiter/choose.h"
#include "daemon/arbiter/how_shared.h"
#include "share_card.h"

/* By visits a program does 40000 launches a second while it is visited. By slices each does 2000 a second. */
static void get_on(struct card *card)
{
	bool is_new, visits = ll_share_needs_visits(&card->card, card->now_ns);
	ll_share_choose(&card->card, card->now_ns, &is_new);
	for (size_t i = 0; i < card->count; i++) {
		struct program *program = &card->programs[i];
		if (program->is_resting)
			continue;
		look(card, program);
		if (!visits)
			program->said.completed_launches += card->now_ns / card->step_ns % 5 == 0;
		else if (has_turn(program) && program->claim.look.may_launch)
			program->said.completed_launches += 4;
		if (visits && has_turn(program))
			use(program, card->step_ns);
	}
}

static struct card *measured_card(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	card->card.forced = LL_LIMIT_SHARING_MEASURED;
	card->work = get_on;
	return card;
}

static struct ll_share_how how(const struct card *card, const struct program *program)
{
	return ll_share_how_shared(program->job, card->now_ns);
}

TEST_EACH(card_setup, card_teardown);

TEST(one_is_alone_until_another_comes_and_soon_after_it_has_gone)
{
	struct card *card = measured_card(state);
	struct program *one = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	run_for(card, 100 * MS);
	assert_int_equal(how(card, one).shared, LL_SHARED_ALONE);
	struct program *two = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	run_for(card, 100 * MS);
	assert_int_equal(how(card, one).shared, LL_SHARED_SLICES);
	assert_int_equal(how(card, two).shared, LL_SHARED_SLICES);
	rest(card, two);
	run_for(card, 3 * LL_NS_PER_S);
	assert_int_equal(how(card, one).shared, LL_SHARED_ALONE);
}

TEST(what_was_measured_of_each_is_told_as_long_as_the_same_jobs_are_there)
{
	struct card *card = measured_card(state);
	struct program *one = add(card, LL_PRIORITY_NORMAL, 1000, 0), *two = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	run_for(card, 300 * MS);
	assert_int_equal(how(card, one).measured_ns, 0);
	run_for(card, 3 * LL_NS_PER_S);
	struct ll_share_how first = how(card, one), second = how(card, two);
	assert_int_equal(first.shared, LL_SHARED_VISITS);
	assert_near(first.slices_permille, 50, 10);
	assert_near(second.slices_permille, 50, 10);
	assert_near(first.visits_permille, 500, 50);
	assert_near(second.visits_permille, 500, 50);
	assert_true(first.measured_ns && first.measured_ns <= card->now_ns);
	add(card, LL_PRIORITY_NORMAL, 1000, 0);
	run_for(card, 100 * MS);
	assert_int_equal(how(card, one).measured_ns, 0);
	assert_int_equal(how(card, one).visits_permille, 0);
}

TEST(who_is_kept_back_by_its_cap_or_by_a_higher_class_is_told)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *capped = add(card, LL_PRIORITY_NORMAL, 1000, 200);
	run_for(card, LL_NS_PER_S);
	assert_true(how(card, capped).is_capped);
	assert_false(how(card, capped).is_beneath);
	rest(card, capped);
	run_for(card, 2 * LL_NS_PER_S);
	assert_false(how(card, capped).is_capped);
	const struct program *high = add(card, LL_PRIORITY_HIGH, 1000, 0);
	run_for(card, 100 * MS);
	assert_true(how(card, capped).is_beneath);
	assert_false(how(card, high).is_beneath);
	assert_true(how(card, high).is_forced);
}

TEST(clients_of_mps_share_by_space)
{
	struct card *card = measured_card(state);
	struct program *one = add_by_space(card, LL_PRIORITY_NORMAL, 1000);
	add_by_space(card, LL_PRIORITY_NORMAL, 1000);
	run_for(card, 100 * MS);
	assert_int_equal(how(card, one).shared, LL_SHARED_SPACE);
}
