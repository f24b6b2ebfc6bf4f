/* Programs that need no visits: whose gate is open, and who shuts it by coming. Clients of MPS are of them. */
#include "test.h"

#include "daemon/arbiter/choose.h"
#include "rules/share/visits.h"
#include "share_card.h"

/* A program of which is not known yet how it launches. */
static struct program *come(struct card *card, enum ll_priority priority, unsigned weight_permille,
			    unsigned cap_permille)
{
	const struct ll_share_job like = {
	    .rank = priority, .weight_permille = weight_permille, .cap_permille = cap_permille};
	struct program *program = add_at_rest(card, &like);
	program->said.launch_mode = LL_LAUNCH_MODE_UNKNOWN;
	want(card, program);
	return program;
}

static void set_launch_mode(const struct card *card, struct program *program, enum ll_launch_mode launch_mode)
{
	program->said.launch_mode = launch_mode;
	post(card, program);
}

static void look_of_all(struct card *card)
{
	for (size_t i = 0; i < card->count; i++)
		look(card, &card->programs[i]);
}

/* The page's gate may be open. */
static bool is_open(const struct program *program)
{
	return program->claim.look.is_alone;
}

static struct card *new_card_of_slices(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	card->card.forced = LL_LIMIT_SHARING_SLICES;
	return card;
}

TEST_EACH(card_setup, card_teardown);

/* Whatever their weights and their numbers of processes, and however they launch. */
TEST(gates_are_open_without_visits)
{
	struct card *card = new_card_of_slices(state);
	for (unsigned i = 0; i < 4; i++) {
		struct program *program =
		    i == 3 ? add_process(card, &card->programs[0]) : come(card, LL_PRIORITY_NORMAL, 1000 + i, 0);
		set_launch_mode(card, program, i % 2 ? LL_LAUNCH_MODE_ASYNC : LL_LAUNCH_MODE_SYNC);
		look_of_all(card);
		for (unsigned k = 0; k <= i; k++) {
			assert_true(is_open(&card->programs[k]));
			assert_true(card->programs[k].claim.look.may_launch);
			assert_int_equal(card->programs[k].claim.look.is_sliced, i > 0);
			assert_int_equal(card->programs[k].claim.look.sharing, i == 3 ? 2 : i);
		}
	}
	/* one that rests and comes back shuts nobody out */
	rest(card, &card->programs[1]);
	want(card, &card->programs[1]);
	assert_true(is_open(&card->programs[0]));
	assert_true(is_open(&card->programs[2]));
}

/* Slices serve all alike, whatever each makes of them, and accounts are estimates there. When visits begin, nobody
 * waits until the others have had as much. */
TEST(nobody_owes_what_slices_gave)
{
	struct card *card = new_card_of_slices(state);
	struct program *little = come(card, LL_PRIORITY_NORMAL, 1000, 0),
		       *much = come(card, LL_PRIORITY_NORMAL, 1000, 0);
	for (size_t i = 0; i < card->count; i++)
		set_launch_mode(card, &card->programs[i], LL_LAUNCH_MODE_ASYNC);
	look_of_all(card);
	for (int i = 0; i < 10; i++) {
		ll_share_charge(much->job, 100 * LL_NS_PER_MS);
		ll_share_charge(little->job, 20 * LL_NS_PER_MS);
		card->now_ns += 100 * LL_NS_PER_MS;
		look_of_all(card);
		assert_true(much->claim.look.is_sliced);
	}
	assert_in_range(much->job->virtual_ns - little->job->virtual_ns, 0, 20 * LL_NS_PER_MS);
}

TEST(visits_that_begin_shut_all_gates)
{
	struct card *card = new_card_of_slices(state);
	for (int i = 0; i < 3; i++)
		set_launch_mode(card, come(card, LL_PRIORITY_NORMAL, 1000, 0), LL_LAUNCH_MODE_ASYNC);
	look_of_all(card);
	assert_true(is_open(&card->programs[0]) && is_open(&card->programs[1]));
	card->card.forced = LL_LIMIT_SHARING_VISITS;
	look_of_all(card);
	unsigned may_launch = 0;
	for (size_t k = 0; k < card->count; k++) {
		may_launch += card->programs[k].claim.look.may_launch;
		assert_false(card->programs[k].claim.look.is_sliced || card->programs[k].claim.look.is_alone);
	}
	assert_true(may_launch <= 1);
	card->card.forced = LL_LIMIT_SHARING_SLICES;
	look_of_all(card);
	assert_true(is_open(&card->programs[0]) && is_open(&card->programs[1]) && is_open(&card->programs[2]));
}

TEST(a_cap_shuts_its_own_gate_alone)
{
	struct card *card = new_card_of_slices(state);
	struct program *capped = come(card, LL_PRIORITY_NORMAL, 1000, 500),
		       *other = come(card, LL_PRIORITY_NORMAL, 1000, 0);
	for (size_t i = 0; i < card->count; i++)
		set_launch_mode(card, &card->programs[i], LL_LAUNCH_MODE_ASYNC);
	look_of_all(card);
	card->now_ns += 10 * LL_NS_PER_MS; /* the account is empty at first */
	look_of_all(card);
	assert_true(is_open(other) && !is_open(capped));
	assert_true(capped->claim.look.is_sliced && capped->claim.look.may_launch && !capped->claim.look.is_alone);
	ll_share_charge(capped->job, LL_NS_PER_S);
	look_of_all(card);
	assert_false(capped->claim.look.may_launch);
	assert_true(is_open(other) && other->claim.look.may_launch);
}

/* While the higher class rests too: its next launch shall not find a long queue. */
TEST(beneath_a_higher_class_the_queue_is_bounded)
{
	struct card *card = new_card_of_slices(state);
	struct program *high = come(card, LL_PRIORITY_HIGH, 1000, 0), *low = come(card, LL_PRIORITY_LOW, 1000, 0);
	for (size_t i = 0; i < card->count; i++)
		set_launch_mode(card, &card->programs[i], LL_LAUNCH_MODE_ASYNC);
	look_of_all(card);
	assert_true(is_open(high) && !is_open(low) && low->claim.look.may_launch);
	assert_int_equal(high->claim.look.queue_bound_ns, 0);
	assert_int_equal(low->claim.look.queue_bound_ns, LL_QUEUE_BENEATH_NS);
	rest(card, high);
	look_of_all(card);
	assert_true(!is_open(low) && low->claim.look.may_launch);
	assert_int_equal(low->claim.look.queue_bound_ns, LL_QUEUE_BENEATH_NS);
	end(card, high);
	look(card, low);
	assert_true(is_open(low));
	assert_int_equal(low->claim.look.queue_bound_ns, 0);
}

TEST(clients_of_mps_wait_for_nobody_while_they_are_equal)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *a = add_by_space(card, LL_PRIORITY_NORMAL, 1000),
		       *b = add_by_space(card, LL_PRIORITY_NORMAL, 1000);
	set_launch_mode(card, a, LL_LAUNCH_MODE_SYNC);
	for (unsigned i = 0; i < 100; i++) {
		step(card);
		assert_true(a->claim.look.may_launch && a->claim.look.is_alone);
		assert_true(b->claim.look.may_launch && b->claim.look.is_alone);
		/* To the card they are one program: what each has is not cut into slices by the other. */
		assert_int_equal(a->claim.look.sharing, 0);
	}
	uint64_t before_ns = a->job->virtual_ns; /* their time is counted all the same */
	ll_share_charge(a->job, MS);
	assert_int_equal(a->job->virtual_ns, before_ns + MS);
}

/* A higher class bounds what the lower one queues, and nobody waits. */
TEST(weights_and_classes_keep_no_client_of_mps_waiting)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *heavy = add_by_space(card, LL_PRIORITY_NORMAL, 7000),
		       *low = add_by_space(card, LL_PRIORITY_LOW, 300),
		       *high = add_by_space(card, LL_PRIORITY_HIGH, 1000);
	for (unsigned i = 0; i < 100; i++) {
		step(card);
		assert_true(heavy->claim.look.may_launch && low->claim.look.may_launch && high->claim.look.may_launch);
		assert_true(high->claim.look.is_alone && !low->claim.look.is_alone);
		assert_int_equal(high->claim.look.queue_bound_ns, 0);
		assert_true(low->claim.look.queue_bound_ns && heavy->claim.look.queue_bound_ns);
	}
}

/* The card gives all clients of MPS together the slices of one program. */
TEST(clients_of_mps_take_turns_with_a_program_that_waits_for_each_kernel)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *by_time = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	struct program *by_space = add_by_space(card, LL_PRIORITY_NORMAL, 1000);
	set_launch_mode(card, by_time, LL_LAUNCH_MODE_SYNC);
	set_launch_mode(card, by_space, LL_LAUNCH_MODE_ASYNC);
	run_for(card, TEN_S);
	assert_near(percent_of(by_time, TEN_S), 50, 1);
	assert_near(percent_of(by_space, TEN_S), 50, 1);
	card->card.forced = LL_LIMIT_SHARING_SLICES;
	step(card);
	assert_true(by_time->claim.look.is_sliced && by_space->claim.look.is_sliced);
}

/* ---- the length of slices, on a card that takes programs off ---- */

static struct program *come_ahead(struct card *card, unsigned weight_permille)
{
	struct program *program = come(card, LL_PRIORITY_NORMAL, weight_permille, 0);
	program->said.lever = LL_TIME_LEVER_WORKS;
	set_launch_mode(card, program, LL_LAUNCH_MODE_ASYNC);
	return program;
}

static void choose(struct card *card)
{
	bool is_new;
	for (size_t i = 0; i < card->count; i++)
		post(card, &card->programs[i]);
	ll_share_choose(&card->card, card->now_ns, &is_new);
}

/* Each of the first `count` has so much of the card for ten seconds. */
static void work_for_10_s(struct card *card, const double *parts, size_t count)
{
	for (unsigned step = 0; step < 100; step++) {
		card->now_ns += 100 * LL_NS_PER_MS;
		for (size_t i = 0; i < count; i++)
			ll_share_charge(card->programs[i].job, (uint64_t)(parts[i] * 100 * LL_NS_PER_MS));
		choose(card);
	}
}

static struct card *new_measured_card(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	card->card.forced = LL_LIMIT_SHARING_MEASURED;
	return card;
}

TEST(weights_are_time_slices_and_no_reason_to_measure_visits)
{
	struct card *card = new_measured_card(state);
	struct program *one = come_ahead(card, 1000), *two = come_ahead(card, 2000), *five = come_ahead(card, 5000);
	const double parts[] = {.12, .24, .6};
	work_for_10_s(card, parts, sizeof parts / sizeof *parts);
	assert_int_equal(one->job->time.slice_us, 2000);
	assert_int_equal(two->job->time.slice_us, 4000);
	assert_int_equal(five->job->time.slice_us, 10000);
	assert_false(card->card.keeps_slices || card->card.has_windows);
	assert_int_equal(card->card.regime.why, LL_REGIME_NO_REASON);
}

TEST(a_large_weight_has_no_slice_that_others_wait_for_long)
{
	struct card *card = new_measured_card(state);
	struct program *one = come_ahead(card, 1000), *many = come_ahead(card, 100000);
	choose(card);
	assert_int_equal(one->job->time.slice_us, 200);
	assert_int_equal(many->job->time.slice_us, 20000);
}

TEST(each_process_of_a_job_has_its_part_of_the_slice)
{
	struct card *card = new_measured_card(state);
	struct program *two = come_ahead(card, 1000), *more = add_process(card, two), *one = come_ahead(card, 1000);
	more->said.lever = LL_TIME_LEVER_WORKS;
	set_launch_mode(card, more, LL_LAUNCH_MODE_ASYNC);
	choose(card);
	assert_int_equal(two->job->time.slice_us, 2000);
	assert_int_equal(one->job->time.slice_us, 4000);
}

TEST(equal_jobs_have_the_driver_s_slices)
{
	struct card *card = new_measured_card(state);
	struct program *one = come_ahead(card, 2000), *two = come_ahead(card, 2000);
	choose(card);
	assert_int_equal(one->job->time.slice_us, 0);
	assert_int_equal(two->job->time.slice_us, 0);
}

TEST(equal_jobs_that_always_have_work_have_long_slices_until_one_pauses)
{
	struct card *card = new_measured_card(state);
	struct program *one = come_ahead(card, 1000), *two = come_ahead(card, 1000);
	const double full[] = {.45, .46}, pauses[] = {.6, .3};
	work_for_10_s(card, full, 2);
	assert_int_equal(one->job->time.slice_us, 20000);
	work_for_10_s(card, full, 1);
	work_for_10_s(card, full, 2);
	assert_int_equal(one->job->time.slice_us, 20000);
	assert_int_equal(two->job->time.slice_us, 20000);
	work_for_10_s(card, pauses, 2);
	assert_int_equal(one->job->time.slice_us, 0);
	work_for_10_s(card, full, 2); /* not so soon again */
	assert_int_equal(one->job->time.slice_us, 0);
	for (int i = 0; i < 6; i++)
		work_for_10_s(card, full, 2);
	assert_int_equal(one->job->time.slice_us, 20000);
	set_launch_mode(card, two, LL_LAUNCH_MODE_SYNC);
	work_for_10_s(card, full, 2);
	assert_int_equal(one->job->time.slice_us, 0);
}

TEST(a_job_that_pauses_keeps_the_driver_s_slices)
{
	struct card *card = new_measured_card(state);
	struct program *one = come_ahead(card, 1000), *two = come_ahead(card, 1000);
	const double parts[] = {.5, .39};
	work_for_10_s(card, parts, 2);
	assert_int_equal(one->job->time.slice_us, 0);
	assert_int_equal(two->job->time.slice_us, 0);
}

/* Two jobs of weights 1 and 3 have the same for ten seconds. */
static struct card *have_the_same(void **state, double each)
{
	struct card *card = new_measured_card(state);
	come_ahead(card, 1000);
	come_ahead(card, 3000);
	const double parts[] = {each, each};
	work_for_10_s(card, parts, sizeof parts / sizeof *parts);
	return card;
}

TEST(a_card_that_keeps_its_own_slices_is_noticed_and_visits_are_measured)
{
	struct card *card = have_the_same(state, .45);
	assert_true(card->card.keeps_slices);
	assert_int_not_equal(card->card.regime.why, LL_REGIME_NO_REASON);
}

/* Of who leaves the card idle nothing is known. */
TEST(programs_that_pause_say_nothing_of_the_card)
{
	struct card *card = have_the_same(state, .3);
	assert_false(card->card.keeps_slices);
}
