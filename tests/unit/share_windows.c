/* Programs under caps on a card that takes programs off: who has which window, and how much of the card that is. */
#include "test.h"

#include "daemon/arbiter/choose.h"
#include "daemon/arbiter/windows.h"
#include "share_card.h"

/* The part of the time that a program with the card to itself leaves it idle, because it waits for its host. */
static double idle_part[MOST];

static bool is_on(const struct ll_share_job *job, uint64_t now_ns)
{
	const struct ll_card_time *time = &job->time;
	return !time->period_ns || (now_ns - time->from_ns) % time->period_ns < time->window_ns;
}

/* Who is on the card shares it in equal parts. A kernel that ends after a program has gone off goes on later. */
static void work_in_windows(struct card *card)
{
	bool is_new = false;
	size_t on = 0;
	ll_share_step_windows(&card->card, card->now_ns, &is_new);
	for (size_t i = 0; i < card->count; i++) {
		post(card, &card->programs[i]);
		on += !card->programs[i].is_resting && is_on(card->programs[i].job, card->now_ns);
	}
	for (size_t i = 0; i < card->count; i++) {
		struct program *program = &card->programs[i];
		ll_share_earn(program->job, card->now_ns);
		if (program->is_resting || !is_on(program->job, card->now_ns))
			continue;
		uint64_t ns = (uint64_t)((double)card->step_ns * (1 - idle_part[i]) / (double)on);
		program->used_ns += ns;
		if (program->kernel_ns) { /* one kernel that never ends */
			program->said.running_ns += ns;
			continue;
		}
		ll_share_charge(program->job, ns);
	}
}

static struct program *come(struct card *card, unsigned weight_permille, unsigned cap_permille)
{
	struct program *program = add(card, LL_PRIORITY_NORMAL, weight_permille, cap_permille);
	program->said.lever = LL_TIME_LEVER_WORKS;
	idle_part[card->count - 1] = 0;
	post(card, program);
	return program;
}

static struct card *begin(void **state)
{
	struct card *card = new_card(state, LL_NS_PER_MS / 4);
	card->card.forced = LL_LIMIT_SHARING_MEASURED;
	card->work = work_in_windows;
	return card;
}

/* What each has of 20 s, after a first second. */
static void measure(struct card *card)
{
	run_for(card, LL_NS_PER_S);
	for (size_t i = 0; i < card->count; i++)
		card->programs[i].used_ns = 0;
	run_for(card, 20 * LL_NS_PER_S);
}

static void assert_part(const struct program *program, double percent)
{
	assert_near(percent_of(program, 20 * LL_NS_PER_S), percent, 0.7);
}

TEST_EACH(card_setup, card_teardown);

TEST(each_has_its_cap)
{
	struct card *card = begin(state);
	struct program *a = come(card, 1000, 300), *b = come(card, 1000, 200), *free_one = come(card, 1000, 0);
	measure(card);
	assert_part(a, 30);
	assert_part(b, 20);
	assert_part(free_one, 50);
	assert_true(card->card.has_windows);
}

TEST(a_kernel_that_never_ends_is_held_to_its_cap)
{
	struct card *card = begin(state);
	struct program *endless = come(card, 1000, 250);
	endless->kernel_ns = UINT64_MAX;
	measure(card);
	assert_part(endless, 25);
}

/* It has windows while its account is low, and all of the card while it is not. */
TEST(a_program_alone_that_waits_for_its_host_comes_near_its_cap)
{
	struct card *card = begin(state);
	struct program *waits = come(card, 1000, 250);
	idle_part[0] = 0.6;
	measure(card);
	assert_near(percent_of(waits, 20 * LL_NS_PER_S), 21, 2);
}

TEST(a_program_that_nearly_fills_its_windows_keeps_to_its_cap)
{
	struct card *card = begin(state);
	struct program *sorts = come(card, 1000, 300);
	idle_part[0] = 0.2;
	measure(card);
	assert_part(sorts, 30 * 0.8);
}

/* The charge of each is a tenth too low, so its account becomes full. */
TEST(who_fills_its_windows_keeps_them)
{
	struct card *card = begin(state);
	for (int i = 0; i < 3; i++)
		come(card, 1000, 300);
	run_for(card, LL_NS_PER_S);
	for (int look = 0; look < 200; look++) {
		for (size_t i = 0; i < card->count; i++) {
			struct ll_share_job *job = card->programs[i].job;
			assert_true(job->is_windowed);
			job->tokens_ns += (int64_t)(20 * LL_NS_PER_MS);
		}
		run_for(card, 50 * LL_NS_PER_MS);
	}
}

/* The stream stands for its host, for a value or for another stream, and is taken for work. */
TEST(a_stream_that_stands_for_a_while_is_no_reason_for_windows)
{
	struct card *card = begin(state);
	struct program *stands = come(card, 1000, 250);
	idle_part[0] = 0.96;
	stands->said.running_ns = 60 * LL_NS_PER_MS;
	for (int i = 0; i < 100; i++) {
		run_for(card, 50 * LL_NS_PER_MS);
		assert_int_equal(stands->job->time.period_ns, 0);
	}
}

TEST(windows_end_soon_after_their_program_has_less_work)
{
	struct card *card = begin(state);
	struct program *flood = come(card, 1000, 250);
	run_for(card, 2 * LL_NS_PER_S);
	assert_true(flood->job->time.period_ns);
	idle_part[0] = 0.96;
	run_for(card, LL_NS_PER_S / 2);
	assert_int_equal(flood->job->time.period_ns, 0);
}

TEST(a_program_below_its_cap_has_no_window)
{
	struct card *card = begin(state);
	struct program *little = come(card, 1000, 500), *flood = come(card, 1000, 0);
	idle_part[0] = 0.9;
	measure(card);
	assert_false(card->card.has_windows);
	assert_int_equal(little->job->time.period_ns, 0);
	assert_int_equal(flood->job->time.period_ns, 0);
}

TEST(windows_end_with_their_program)
{
	struct card *card = begin(state);
	struct program *capped = come(card, 1000, 300), *flood = come(card, 1000, 0);
	measure(card);
	assert_true(capped->job->time.period_ns && flood->job->time.period_ns);
	rest(card, capped);
	run_for(card, LL_NS_PER_S);
	assert_false(card->card.has_windows);
	assert_int_equal(flood->job->time.period_ns, 0);
}

static void assert_no_windows(struct card *card)
{
	run_for(card, LL_NS_PER_S);
	assert_false(card->card.has_windows);
	for (size_t i = 0; i < card->count; i++)
		assert_int_equal(card->programs[i].job->time.period_ns, 0);
}

TEST(one_program_that_cannot_be_taken_off_keeps_all_from_windows)
{
	struct card *card = begin(state);
	come(card, 1000, 300);
	come(card, 1000, 0)->said.lever = LL_TIME_LEVER_FAILS;
	assert_no_windows(card);
	card->programs[1].said.lever = LL_TIME_LEVER_UNKNOWN;
	assert_no_windows(card);
	card->programs[1].said.lever = LL_TIME_LEVER_WORKS;
	run_for(card, LL_NS_PER_S);
	assert_true(card->card.has_windows);
}

TEST(clients_of_mps_and_other_classes_have_no_windows)
{
	struct card *card = begin(state);
	come(card, 1000, 300);
	struct program *other = come(card, 1000, 0);
	other->own_job.is_by_space = true;
	assert_no_windows(card);
	other->own_job.is_by_space = false;
	ll_share_set_rank(other->job, LL_PRIORITY_LOW, card->now_ns);
	assert_no_windows(card);
}

TEST(what_a_command_has_chosen_is_left_alone)
{
	struct card *card = begin(state);
	card->card.forced = LL_LIMIT_SHARING_SLICES;
	come(card, 1000, 300);
	assert_no_windows(card);
}

/* Nothing holds the launches of a job that is taken off the card. Those of a job with a cap are timed. */
TEST(launches_are_free_in_windows)
{
	struct card *card = begin(state);
	struct program *capped = come(card, 1000, 300), *flood = come(card, 1000, 0);
	measure(card);
	for (size_t i = 0; i < 2; i++) {
		const struct ll_turn_look *seen = look(card, i ? flood : capped);
		assert_true(seen->may_launch);
		assert_int_equal(seen->is_alone, i);
		assert_int_equal(seen->tokens_ns, INT64_MAX);
		assert_int_equal(seen->sharing, 0);
	}
}

/* Everybody is looked at when something is new. */
TEST(what_stays_as_it_is_is_not_new_and_what_ends_is)
{
	struct card *card = begin(state);
	struct program *capped = come(card, 1000, 300);
	come(card, 1000, 0);
	run_for(card, LL_NS_PER_S);
	bool is_new = true;
	ll_share_choose(&card->card, card->now_ns, &is_new);
	assert_true(card->card.has_windows);
	assert_false(is_new);
	capped->said.lever = LL_TIME_LEVER_FAILS;
	post(card, capped);
	ll_share_choose(&card->card, card->now_ns, &is_new);
	assert_false(card->card.has_windows);
	assert_true(is_new);
}
