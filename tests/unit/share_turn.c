/* Turns among several claims on one card, on a simulated clock: who gets how much of it, and who waits for how long. */
#include "test.h"

#include "rules/share/visits.h"
#include "share_card.h"

TEST_EACH(card_setup, card_teardown);

TEST(two_share_by_weight)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *a = add(card, LL_PRIORITY_NORMAL, 300, 0), *b = add(card, LL_PRIORITY_NORMAL, 700, 0);
	run_for(card, TEN_S);
	assert_near(percent_of(a, TEN_S), 30, 1);
	assert_near(percent_of(b, TEN_S), 70, 1);
}

TEST(three_share_by_weight)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *a = add(card, LL_PRIORITY_NORMAL, 1000, 0), *b = add(card, LL_PRIORITY_NORMAL, 3000, 0),
		       *c = add(card, LL_PRIORITY_NORMAL, 6000, 0);
	run_for(card, TEN_S);
	assert_near(percent_of(a, TEN_S), 10, 1);
	assert_near(percent_of(b, TEN_S), 30, 1);
	assert_near(percent_of(c, TEN_S), 60, 1);
}

TEST(kernels_of_any_length_share_by_weight)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *a = add(card, LL_PRIORITY_NORMAL, 1000, 0), *b = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	a->kernel_ns = 30 * LL_NS_PER_MS;
	run_for(card, TEN_S);
	assert_near(percent_of(a, TEN_S), 50, 1);
	assert_near(percent_of(b, TEN_S), 50, 1);
}

TEST(a_higher_class_gets_the_card_at_its_first_look)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *normal = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	run_for(card, LL_NS_PER_S);
	assert_true(normal->claim.look.may_launch);
	struct program *high = add(card, LL_PRIORITY_HIGH, 1000, 0);
	step(card);
	assert_true(high->claim.look.may_launch);
	uint64_t before_ns = normal->used_ns;
	run_for(card, LL_VISIT_STARVED_NS - LL_NS_PER_MS);
	assert_int_equal(normal->used_ns, before_ns);
	/* It goes on when the high one has no more work. */
	rest(card, high);
	run_for(card, 10 * LL_NS_PER_MS);
	assert_true(normal->used_ns > before_ns);
}

TEST(a_low_class_has_its_service_however_busy_the_others_are)
{
	struct card *card = new_card(state, STEP_NS);
	add(card, LL_PRIORITY_HIGH, 1000, 0);
	struct program *low = add(card, LL_PRIORITY_LOW, 1000, 0);
	uint64_t longest_ns = 0, piece_ns = 0, before_ns = 0;
	for (uint64_t until_ns = card->now_ns + TEN_S; card->now_ns < until_ns; before_ns = low->used_ns) {
		step(card);
		piece_ns = low->used_ns > before_ns ? piece_ns + STEP_NS : 0;
		longest_ns = piece_ns > longest_ns ? piece_ns : longest_ns;
	}
	/* Between 1 and 10 % of the time, in pieces of 1 ms. */
	assert_in_range(low->used_ns, TEN_S / 100, TEN_S / 80);
	assert_in_range(longest_ns, LL_VISIT_SERVICE_NS, LL_VISIT_SERVICE_NS + STEP_NS);
	assert_in_range(low->first_ns - LL_NS_PER_S, LL_VISIT_STARVED_NS, LL_VISIT_STARVED_NS + LL_NS_PER_MS);
}

TEST(who_has_the_turn_is_not_impatient_when_it_gives_it_away)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *high = add(card, LL_PRIORITY_HIGH, 1000, 0);
	struct program *low = add(card, LL_PRIORITY_LOW, 1000, 0);
	while (!low->claim.look.may_launch)
		step(card);
	assert_true(card->now_ns > LL_VISIT_STARVED_NS);
	for (unsigned i = 0; i < 10; i++) { /* as others see it: at any moment of its service */
		step(card);
		assert_true(card->now_ns - low->claim.want_since_ns <= STEP_NS);
	}
	(void)high;
}

TEST(processes_of_a_tenant_have_its_turn_together)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *one = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	struct program *other = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	struct program *sibling = add_process(card, one);
	unsigned together = 0;
	for (unsigned i = 0; i < 10000; i++) {
		step(card);
		assert_int_equal(has_turn(one), has_turn(sibling));
		assert_false(has_turn(one) && has_turn(other));
		together += one->claim.look.may_launch && sibling->claim.look.may_launch;
	}
	assert_in_range(together, 4500, 5500);
	rest(card, one); /* whoever of them goes, the other keeps it */
	run_for(card, LL_NS_PER_S);
	assert_near(percent_of(other, card->now_ns - LL_NS_PER_S), 50, 2);
	rest(card, sibling);
	run_for(card, 100 * LL_NS_PER_MS);
	assert_true(has_turn(other));
}

/* It was stopped with work in the queue, which the card has long done. */
TEST(a_stopped_process_of_a_tenant_holds_up_no_turn)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *one = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	struct program *other = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	struct program *stopped = add_process(card, one);
	stopped->said.queued_ns = 2 * MS;
	post(card, stopped);
	stopped->is_unresponsive = true;
	run_for(card, LL_NS_PER_S);
	assert_near(percent_of(one, LL_NS_PER_S), 50, 2);
	assert_near(percent_of(other, LL_NS_PER_S), 50, 2);
}

TEST(a_holder_that_does_not_look_is_overtaken)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *a = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	run_for(card, 100 * LL_NS_PER_MS);
	a->is_unresponsive = true;
	uint64_t silent_ns = card->now_ns;
	struct program *b = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	run_for(card, 100 * LL_NS_PER_MS);
	assert_near((double)(b->first_ns - silent_ns) / (double)LL_NS_PER_MS, 20, 1);
	/* Nothing is kept for it while it is away, and it is not made up for its absence. */
	assert_near((double)b->used_ns / (double)LL_NS_PER_MS, 80, 2);
	a->is_unresponsive = false;
	uint64_t used_ns = b->used_ns;
	run_for(card, LL_NS_PER_S);
	assert_true(b->used_ns - used_ns > 400 * LL_NS_PER_MS);
}

TEST(a_cap_holds_with_kernels_far_longer_than_its_account)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *capped = add(card, LL_PRIORITY_NORMAL, 1000, 100),
		       *other = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	capped->kernel_ns = 100 * LL_NS_PER_MS;
	run_for(card, TEN_S);
	assert_near(percent_of(capped, TEN_S), 10, 1);
	assert_near(percent_of(other, TEN_S), 90, 2);
	assert_true(capped->claim.look.tokens_ns <= (int64_t)(20 * LL_NS_PER_MS));
}

TEST(a_cap_that_is_new_or_changed_holds_from_then_on)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *program = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	run_for(card, LL_NS_PER_S);
	assert_near(percent_of(program, LL_NS_PER_S), 100, 1);
	program->job->cap_permille = 250;
	program->used_ns = 0;
	run_for(card, LL_NS_PER_S);
	assert_near(percent_of(program, LL_NS_PER_S), 25, 1);
	program->job->cap_permille = 500;
	program->used_ns = 0;
	run_for(card, LL_NS_PER_S);
	assert_near(percent_of(program, LL_NS_PER_S), 50, 1);
	program->job->cap_permille = 0;
	program->used_ns = 0;
	run_for(card, LL_NS_PER_S);
	assert_near(percent_of(program, LL_NS_PER_S), 100, 1);
}

TEST(a_newcomer_shares_from_now_on_and_is_not_made_up_for_the_past)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *old = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	run_for(card, 5 * LL_NS_PER_S);
	struct program *late = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	uint64_t came_ns = card->now_ns;
	run_for(card, LL_NS_PER_S);
	assert_near(percent_of(late, LL_NS_PER_S), 50, 3);
	assert_true(late->first_ns - came_ns <= 21 * LL_NS_PER_MS);
	(void)old;
}

TEST(a_pause_is_made_up_for_by_no_more_than_the_lag)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *a = add(card, LL_PRIORITY_NORMAL, 1000, 0), *b = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	run_for(card, LL_NS_PER_S);
	rest(card, b);
	run_for(card, 2 * LL_NS_PER_S);
	a->used_ns = 0;
	b->used_ns = 0;
	want(card, b);
	run_for(card, LL_NS_PER_S);
	assert_near(percent_of(a, LL_NS_PER_S), 50, 3);
	assert_near(percent_of(b, LL_NS_PER_S), 50, 3);
}

/* It had the card to itself, and rests while the other comes. */
TEST(nobody_owes_the_time_in_which_nobody_else_wanted_the_card)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *light = add(card, LL_PRIORITY_NORMAL, 100, 0);
	run_for(card, 5 * LL_NS_PER_S);
	rest(card, light);
	add(card, LL_PRIORITY_NORMAL, 900, 0);
	run_for(card, 10 * LL_NS_PER_MS);
	light->used_ns = 0;
	want(card, light);
	run_for(card, LL_NS_PER_S);
	assert_near(percent_of(light, LL_NS_PER_S), 10, 2);
}

/* Ctrl-Z, or a batch system that suspends jobs. It still wants the card when it goes on. */
TEST(a_program_that_was_stopped_is_not_made_up_for_it)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *stopped = add(card, LL_PRIORITY_NORMAL, 1000, 0),
		       *other = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	run_for(card, LL_NS_PER_S);
	stopped->is_unresponsive = true;
	run_for(card, 5 * LL_NS_PER_S);
	stopped->is_unresponsive = false;
	other->used_ns = 0;
	run_for(card, LL_NS_PER_S);
	assert_near(percent_of(other, LL_NS_PER_S), 50, 3);
}

TEST(a_hundred_claims_share_evenly)
{
	struct card *card = new_card(state, LL_NS_PER_MS);
	for (int i = 0; i < MOST; i++)
		add(card, LL_PRIORITY_NORMAL, 1000, 0);
	run_for(card, TEN_S);
	for (int i = 0; i < MOST; i++)
		assert_near(percent_of(&card->programs[i], TEN_S), 1, 0.3);
}

/* As it is after the WAKE message of one that came. */
TEST(only_who_is_alone_and_has_no_cap_is_let_alone)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *a = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	assert_true(look(card, a)->is_alone);
	struct program *b = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	assert_false(look(card, a)->is_alone);
	rest(card, b);
	assert_true(look(card, a)->is_alone);
	a->job->cap_permille = 500;
	assert_false(look(card, a)->is_alone);
}

TEST(who_rests_is_free_if_nobody_would_be_held_for_it)
{
	struct card *card = new_card(state, STEP_NS);
	const struct ll_share_job like = {.rank = LL_PRIORITY_NORMAL, .weight_permille = 1000};
	struct program *a = add_at_rest(card, &like), *b = add_at_rest(card, &like);
	assert_true(ll_share_is_free(&a->claim, card->now_ns) && ll_share_is_free(&b->claim, card->now_ns));
	want(card, b);
	assert_false(ll_share_is_free(&a->claim, card->now_ns));
	card->card.forced = LL_LIMIT_SHARING_SLICES;
	assert_true(ll_share_is_free(&a->claim, card->now_ns));
	a->job->cap_permille = 900;
	assert_false(ll_share_is_free(&a->claim, card->now_ns));
	a->job->cap_permille = 0;
	ll_share_set_rank(b->job, LL_PRIORITY_HIGH, card->now_ns);
	assert_false(ll_share_is_free(&a->claim, card->now_ns));
	end(card, b);
	assert_true(ll_share_is_free(&a->claim, card->now_ns));
}

TEST(a_pause_ends_by_itself_or_with_a_launch)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *program = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	uint64_t began_ns = program->claim.paused_since_ns = card->now_ns;
	card->now_ns = began_ns + LL_SHARE_PAUSE_NS - 1;
	post(card, program);
	assert_int_equal(program->claim.paused_since_ns, began_ns);
	card->now_ns++;
	post(card, program);
	assert_int_equal(program->claim.paused_since_ns, 0);
	program->claim.paused_since_ns = card->now_ns++;
	program->said.has_launched = true;
	post(card, program);
	assert_int_equal(program->claim.paused_since_ns, 0);
}

/* Its process was killed in its turn. */
TEST(who_ends_in_its_turn_passes_it_on)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *one = add(card, LL_PRIORITY_NORMAL, 1000, 0), *other = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	struct program *sibling = add_process(card, one);
	look(card, one);
	assert_true(has_turn(one) && !has_turn(other));
	end(card, one);
	assert_true(has_turn(sibling) && is_word_open(sibling) && !is_word_open(other));
	end(card, sibling);
	assert_true(has_turn(other) && is_word_open(other) && is_word_open(sibling));
	end(card, other);
	assert_null(card->card.holder);
}

/* A program may say anything. The sum of its times does not overflow, and it alone comes last. */
TEST(what_nobody_can_have_harms_its_own_job_alone)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *liar = add(card, LL_PRIORITY_NORMAL, 1000, 0), *other = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	liar->said.running_ns = liar->said.queued_ns = UINT64_MAX;
	liar->said.queued_launches = UINT32_MAX;
	run_for(card, LL_NS_PER_S);
	assert_true(percent_of(other, LL_NS_PER_S) > 90);
}
