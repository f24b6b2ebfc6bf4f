/* The words on the card of several jobs, on a simulated clock: whose is open, and when a visit ends. */
#include "test.h"

#include "rules/share/visits.h"
#include "share_card.h"

static struct program *new_job(struct card *card, enum ll_priority priority, unsigned weight_permille)
{
	const struct ll_share_job like = {.rank = priority, .weight_permille = weight_permille};
	struct program *program = add_at_rest(card, &like);
	program->said.is_on_card = true;
	want(card, program);
	return program;
}

static struct program *new_sibling(struct card *card, const struct program *of)
{
	struct program *program = add_process(card, of);
	program->said.is_on_card = true;
	post(card, program);
	return program;
}

static void pass(struct card *card, struct program *programs[], size_t count, uint64_t ns)
{
	for (uint64_t until_ns = card->now_ns + ns; card->now_ns < until_ns; card->now_ns += MS / 10) {
		for (size_t i = 0; i < count; i++)
			look(card, programs[i]);
	}
}

TEST_EACH(card_setup, card_teardown);

TEST(one_gate_is_open_at_a_time_and_a_visit_lasts_a_quantum)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *one = new_job(card, LL_PRIORITY_NORMAL, 1000), *other;
	look(card, one);
	assert_true(is_word_open(one));
	other = new_job(card, LL_PRIORITY_NORMAL, 1000);
	assert_false(is_word_open(other)); /* before it looks: its first launch waits */
	struct program *both[] = {one, other};
	pass(card, both, 2, LL_VISIT_QUANTUM_NS - MS);
	assert_true(is_word_open(one) && !is_word_open(other));
	uint32_t before = one->word;
	pass(card, both, 2, 2 * MS);
	assert_true(!is_word_open(one) && is_word_open(other));
	assert_int_not_equal(one->word, before);
	assert_true(one->claim.look.is_exclusive && other->claim.look.is_exclusive);
}

TEST(who_rests_or_is_alone_is_not_held)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *one = new_job(card, LL_PRIORITY_NORMAL, 1000);
	look(card, one);
	struct program *other = new_job(card, LL_PRIORITY_NORMAL, 1000);
	struct program *sibling = new_sibling(card, other);
	rest(card, other);
	assert_false(is_word_open(sibling)); /* which wants the card */
	rest(card, sibling);
	assert_true(is_word_open(other));
	want(card, other);
	look(card, other);
	assert_false(is_word_open(other));
	rest(card, one);
	assert_true(is_word_open(one) && is_word_open(other));
}

TEST(a_higher_class_shuts_the_gate_of_a_lower_one_itself)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *low = new_job(card, LL_PRIORITY_LOW, 1000);
	look(card, low);
	struct program *high = new_job(card, LL_PRIORITY_HIGH, 1000);
	look(card, high);
	assert_true(is_word_open(high) && !is_word_open(low));
	rest(card, high);
	look(card, low);
	assert_true(is_word_open(low));
	assert_true(low->claim.look.queue_bound_ns); /* the next launch of the high one may come at any time */
}

/* A request of a service has pauses: its host computes between two launches. */
TEST(a_higher_class_that_paused_takes_the_card_back_at_once)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *low = new_job(card, LL_PRIORITY_LOW, 1000), *high = new_job(card, LL_PRIORITY_HIGH, 1000);
	struct program *both[] = {low, high};
	pass(card, both, 2, MS);
	assert_true(is_word_open(high) && !is_word_open(low));
	high->said.queue_is_empty = true;
	pass(card, both, 2, MS / 2);
	assert_true(is_word_open(low) && !is_word_open(high));
	high->said.queue_is_empty = false; /* it launches */
	high->said.has_launched = true;
	look(card, high);
	assert_true(is_word_open(high) && !is_word_open(low));
}

TEST(a_pause_is_not_interrupted_by_looks_but_ends)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *low = new_job(card, LL_PRIORITY_LOW, 1000), *high = new_job(card, LL_PRIORITY_HIGH, 1000);
	struct program *both[] = {low, high};
	high->said.queue_is_empty = true;
	pass(card, both, 2, MS);
	assert_true(high->claim.paused_since_ns);
	uint32_t before = low->word;
	pass(card, both, 2, LL_SHARE_PAUSE_NS - MS);
	assert_true(is_word_open(low));
	assert_int_equal(low->word, before);
	pass(card, both, 2, MS); /* what it did not know of goes on */
	assert_int_not_equal(low->word, before);
}

TEST(a_visit_ends_when_all_processes_of_the_tenant_have_empty_queues)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *one = new_job(card, LL_PRIORITY_NORMAL, 1000);
	struct program *sibling = new_sibling(card, one);
	look(card, one);
	struct program *other = new_job(card, LL_PRIORITY_NORMAL, 1000);
	struct program *all[] = {one, sibling, other};
	one->said.queue_is_empty = true;
	pass(card, all, 3, 2 * MS);
	assert_true(is_word_open(one) && !is_word_open(other));
	sibling->said.queue_is_empty = true;
	pass(card, all, 3, MS);
	assert_true(!is_word_open(one) && is_word_open(other));
}

/* Its agent may hang in the driver behind the very streams that wait. */
TEST(a_held_process_that_does_not_look_is_let_go)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *one = new_job(card, LL_PRIORITY_NORMAL, 1000);
	look(card, one);
	struct program *silent = new_job(card, LL_PRIORITY_NORMAL, 1000);
	struct program *sleeps = new_job(card, LL_PRIORITY_NORMAL, 1000), *awake = new_sibling(card, sleeps);
	rest(card, sleeps);
	look(card, silent);
	ll_share_charge(silent->job, 100 * MS); /* it is not its turn soon */
	pass(card, (struct program *[]){one, awake}, 2, LL_SHARE_UNRESPONSIVE_NS - MS);
	assert_false(is_word_open(silent));
	pass(card, (struct program *[]){one, awake}, 2, 2 * MS);
	assert_true(is_word_open(silent));
	assert_true(is_word_open(one) != is_word_open(awake)); /* who rests need not look */
}

TEST(a_long_launch_is_waited_for_and_what_goes_on_is_shared)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *one = new_job(card, LL_PRIORITY_NORMAL, 1000);
	look(card, one);
	struct program *other = new_job(card, LL_PRIORITY_NORMAL, 1000);
	struct program *both[] = {one, other};
	one->said.overruns = true;
	pass(card, both, 2, LL_VISIT_QUANTUM_NS + MS);
	assert_true(!is_word_open(one) && !is_word_open(other));
	pass(card, both, 2, LL_VISIT_DRAIN_NS);
	assert_true(is_word_open(other));
	assert_int_equal(other->claim.look.sharing, 1);
	assert_int_equal(one->claim.look.sharing, 1);
	one->said.overruns = false;
	pass(card, both, 2, MS);
	assert_int_equal(other->claim.look.sharing, 0);
}

/* The part of the time in which the second of two has the card. Whoever has it is charged for it. The first has no more
 * than dry_after_ns of work for each visit; 0: it has work without end. */
static double part_of_other(struct card *card, struct program *both[], uint64_t dry_after_ns, uint64_t ns)
{
	uint64_t other_ns = 0, visited_ns = 0;
	for (uint64_t until_ns = card->now_ns + ns; card->now_ns < until_ns;) {
		pass(card, both, 2, MS / 10);
		visited_ns = is_word_open(both[0]) ? visited_ns + MS / 10 : 0;
		bool queue_is_empty = dry_after_ns && visited_ns > dry_after_ns;
		both[0]->said.queue_is_empty = queue_is_empty;
		if (is_word_open(both[0]) != is_word_open(both[1]))
			ll_share_charge(both[is_word_open(both[1])]->job, MS / 10);
		other_ns += is_word_open(both[1]) ? MS / 10 : 0;
	}
	return (double)other_ns / (double)ns;
}

/* A program of little work, a notebook, begins to fill the card. */
TEST(who_leaves_the_card_for_want_of_work_gathers_no_credit)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *light = new_job(card, LL_PRIORITY_NORMAL, 700), *other = new_job(card, LL_PRIORITY_NORMAL, 300);
	struct program *both[] = {light, other};
	assert_true(part_of_other(card, both, MS, 5 * LL_NS_PER_S) > 0.6);
	double part = part_of_other(card, both, 0, LL_NS_PER_S);
	if (part < 0.25 || part > 0.35)
		fail_msg("%.3f of the time, not 0.3", part);
}

TEST(who_had_a_cap_has_no_credit_when_it_goes)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *capped = new_job(card, LL_PRIORITY_NORMAL, 1000),
		       *other = new_job(card, LL_PRIORITY_NORMAL, 1000);
	struct program *both[] = {capped, other};
	capped->job->cap_permille = 100;
	assert_true(part_of_other(card, both, 0, 5 * LL_NS_PER_S) > 0.85);
	capped->job->cap_permille = 0;
	double part = part_of_other(card, both, 0, LL_NS_PER_S);
	if (part < 0.45 || part > 0.55)
		fail_msg("%.3f of the time, not half", part);
}

TEST(who_changes_its_class_owes_nothing_and_is_owed_nothing)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *one = new_job(card, LL_PRIORITY_HIGH, 1000), *other = new_job(card, LL_PRIORITY_NORMAL, 1000);
	struct program *both[] = {one, other};
	static const enum ll_priority classes[] = {LL_PRIORITY_LOW, LL_PRIORITY_HIGH};
	for (size_t i = 0; i < 2; i++) {
		part_of_other(card, both, 0, 5 * LL_NS_PER_S);
		ll_share_set_rank(one->job, LL_PRIORITY_NORMAL, card->now_ns);
		double part = part_of_other(card, both, 0, LL_NS_PER_S);
		if (part < 0.45 || part > 0.55)
			fail_msg("%.3f of the time, not half", part);
		ll_share_set_rank(one->job, classes[i], card->now_ns);
	}
}

TEST(damaged_words_are_mended)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *one = new_job(card, LL_PRIORITY_NORMAL, 1000);
	look(card, one);
	struct program *other = new_job(card, LL_PRIORITY_NORMAL, 1000);
	struct program *both[] = {one, other};
	static const uint32_t values[] = {0, 1, 2, UINT32_MAX, UINT32_MAX - 1};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		one->word = values[i];
		other->word = values[i];
		pass(card, both, 2, MS / 5);
		assert_true(is_word_open(one) != is_word_open(other));
	}
}
