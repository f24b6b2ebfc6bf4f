/*
 * The rule of rules/share/visits.h over programs whose launches wait on the simulated card (doc/share.md). Speeds are
 * parts of the rate that the program has alone, with neither a gate nor others on the card.
 */
#include "rules/share/visits.h"

#include <math.h>

#include "paced.h"
#include "test.h"

#define WINDOW_NS (400 * MS)
/* Of programs without a gate. */
#define NATIVE_WINDOW_NS (250 * MS)
/* Visits of floods last for their quantum. The window has many of them. */
#define FLOODS_WINDOW_NS (1200 * MS)

static struct {
	struct ll_contender contenders[MOST_PROGRAMS];
	uint64_t charged_ns[MOST_PROGRAMS];
	bool waits_for_rest; /* a visit begins when all is done that the one before it let through */
	unsigned at;
	enum { FREE, VISITED, ENDING } stage;
	uint64_t begun_ns, now_ns;
	uint64_t since_ns, queue_empty_since_ns; /* of the visit */
} card;

struct outcome {
	double speed[MOST_PROGRAMS];
	double time[MOST_PROGRAMS]; /* what it was charged, of the time that passed */
	double sum;                 /* of speeds */
};

/* The program that is visited is charged the time since the last call, whatever ran. */
static void charge(uint64_t now_ns)
{
	uint64_t ns = now_ns - card.now_ns;
	struct ll_contender *contender = &card.contenders[card.at];
	if (card.stage != FREE) {
		card.charged_ns[card.at] += ns;
		contender->virtual_ns += ll_visits_virtual_ns(ns, contender->weight_permille);
	}
	card.now_ns = now_ns;
}

static uint64_t least_virtual_ns(unsigned count)
{
	uint64_t least_ns = UINT64_MAX;
	for (unsigned i = 0; i < count; i++) {
		if (card.contenders[i].has_work && card.contenders[i].virtual_ns < least_ns)
			least_ns = card.contenders[i].virtual_ns;
	}
	return least_ns;
}

/* A program that had no work for a while makes up for little of it, as in turns. */
static void note_work(const struct paced *programs, unsigned count)
{
	uint64_t least_ns = least_virtual_ns(count);
	for (unsigned i = 0; i < count; i++) {
		struct ll_contender *contender = &card.contenders[i];
		bool has_work = programs[i].served < programs[i].enqueued;
		bool is_visited = card.stage != FREE && i == card.at;
		if (has_work && !contender->has_work && !is_visited && least_ns != UINT64_MAX)
			contender->virtual_ns =
			    ll_visits_come_back_ns(contender->virtual_ns, least_ns, contender->weight_permille);
		contender->has_work = has_work;
	}
	if (card.contenders[card.at].has_work)
		card.queue_empty_since_ns = 0;
	else if (!card.queue_empty_since_ns)
		card.queue_empty_since_ns = card.now_ns;
}

/* Of those with work the one with the least virtual time; count: none has work. */
static size_t best_of(const struct ll_contender *contenders, size_t count)
{
	size_t best = count;
	for (size_t i = 0; i < count; i++) {
		if (contenders[i].has_work && (best == count || contenders[i].virtual_ns < contenders[best].virtual_ns))
			best = i;
	}
	return best;
}

static const struct ll_contender *best_other(unsigned count)
{
	struct ll_contender others[MOST_PROGRAMS];
	memcpy(others, card.contenders, sizeof others);
	others[card.at].has_work = false;
	size_t best = best_of(others, count);
	return best < count ? &card.contenders[best] : NULL;
}

static uint64_t visit_end_ns(unsigned count)
{
	uint64_t visited_ns = card.now_ns - card.since_ns;
	uint64_t dry_ns = card.queue_empty_since_ns ? card.now_ns - card.queue_empty_since_ns : 0;
	uint64_t end_ns = ll_visits_end_ns(&card.contenders[card.at], best_other(count), visited_ns, dry_ns);
	return end_ns == UINT64_MAX ? UINT64_MAX : card.since_ns + end_ns;
}

static void begin_visit(struct paced *programs, size_t best)
{
	card.at = (unsigned)best;
	paced_begin_visit(&programs[best], card.now_ns);
	card.stage = VISITED;
	card.since_ns = card.now_ns;
	card.queue_empty_since_ns = 0;
}

static void end_visit(struct paced *programs)
{
	struct ll_contender *visited = &card.contenders[card.at];
	visited->ended_empty = card.queue_empty_since_ns && visited->launches_ahead;
	paced_end_visit(&programs[card.at], card.now_ns);
	card.stage = ENDING;
}

static void begin(struct paced *programs, unsigned count, uint64_t now_ns)
{
	for (unsigned i = 0; i < count; i++)
		paced_use_visits(&programs[i]);
	card.begun_ns = card.now_ns = now_ns;
}

static uint64_t by_visits(struct paced *programs, unsigned count, uint64_t now_ns)
{
	if (!card.begun_ns)
		begin(programs, count, now_ns);
	charge(now_ns);
	note_work(programs, count);
	if (card.stage == VISITED) {
		uint64_t end_ns = visit_end_ns(count);
		if (end_ns > now_ns)
			return end_ns;
		end_visit(programs);
	}
	if (card.stage == ENDING && card.waits_for_rest && !paced_is_drained(&programs[card.at]))
		return UINT64_MAX;
	card.stage = FREE;
	size_t best = best_of(card.contenders, count);
	if (best == count)
		return UINT64_MAX;
	begin_visit(programs, best);
	return visit_end_ns(count);
}

/* All programs of a pace are the same here. */
static double rate_alone(struct program program)
{
	static double rates[FLOOD + 1];
	double *rate = &rates[program.pace];
	if (*rate <= 0)
		paced_run(PROGRAMS(program), NULL, NATIVE_WINDOW_NS, rate);
	return *rate;
}

static struct outcome outcome_of(const struct program *programs, const double *rates)
{
	struct outcome outcome = {.sum = 0};
	for (unsigned i = 0; programs[i].pace != NOBODY; i++) {
		outcome.speed[i] = rates[i] / rate_alone(programs[i]);
		outcome.time[i] = (double)card.charged_ns[i] / (double)(card.now_ns - card.begun_ns);
		outcome.sum += outcome.speed[i];
	}
	return outcome;
}

static void print(const char *what, const struct program *programs, const struct outcome *outcome)
{
	char text[200] = "";
	size_t length = 0;
	for (unsigned i = 0; programs[i].pace != NOBODY; i++)
		length += (size_t)snprintf(text + length, sizeof text - length, "  %.3f (time %.3f)", outcome->speed[i],
					   outcome->time[i]);
	print_message("%s:%s  sum %.3f\n", what, text, outcome->sum);
}

/* No program used the card for longer than it was charged, and all charges together are the time that passed. */
static void check_accounts(const char *what, const struct program *programs, const double *rates,
			   const struct outcome *outcome)
{
	double charged = 0;
	for (unsigned i = 0; programs[i].pace != NOBODY; i++) {
		double used = rates[i] * (double)programs[i].kernel_ns / (double)LL_NS_PER_S;
		if (used > outcome->time[i] + 0.01)
			fail_msg("%s: program %u used %.3f, charged %.3f", what, i, used, outcome->time[i]);
		charged += outcome->time[i];
	}
	if (charged > 1 + 1e-9 || charged < 0.99)
		fail_msg("%s: %.3f of the time is charged", what, charged);
}

static void set_up_card(const struct program *programs, const unsigned *weights)
{
	memset(&card, 0, sizeof card);
	for (unsigned i = 0; programs[i].pace != NOBODY; i++) {
		card.contenders[i].weight_permille = weights ? weights[i] : 1000;
		card.contenders[i].launches_ahead = programs[i].pace != SYNC;
	}
}

/* Runs the programs by visits. weights: NULL: all are equal. Fails if a program has less than the wanted speed. */
static struct outcome visit(const char *what, const struct program *programs, const unsigned *weights)
{
	double rates[MOST_PROGRAMS];
	set_up_card(programs, weights);
	paced_run(programs, by_visits, programs[0].pace == FLOOD ? FLOODS_WINDOW_NS : WINDOW_NS, rates);
	struct outcome outcome = outcome_of(programs, rates);
	print(what, programs, &outcome);
	check_accounts(what, programs, rates, &outcome);
	for (unsigned i = 0; programs[i].pace != NOBODY; i++) {
		if (outcome.speed[i] < programs[i].wanted)
			fail_msg("%s: program %u has %.3f, not %.3f", what, i, outcome.speed[i], programs[i].wanted);
	}
	return outcome;
}

static double native_sum(const struct program *programs)
{
	double rates[MOST_PROGRAMS], sum = 0;
	paced_run(programs, NULL, NATIVE_WINDOW_NS, rates);
	for (unsigned i = 0; programs[i].pace != NOBODY; i++)
		sum += rates[i] / rate_alone(programs[i]);
	print_message("    without a gate: sum %.3f\n", sum);
	return sum;
}

/* Programs that always have work have time, and speed, by their weights. */
static void check_parts(const struct outcome *outcome, const unsigned *weights, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		double part = weights[i] / 1000.0;
		assert_true(fabs(outcome->time[i] - part) < 0.01);
		assert_true(fabs(outcome->speed[i] - part) < 0.02);
	}
	assert_true(outcome->sum >= 0.95);
}

TEST(test_programs_that_wait_for_each_kernel_share_the_card)
{
	visit("2 x sync", PROGRAMS(A_SYNC(0.45), A_SYNC(0.45)), NULL);
	visit("4 x sync", PROGRAMS(A_SYNC(0.22), A_SYNC(0.22), A_SYNC(0.22), A_SYNC(0.22)), NULL);
}

TEST(test_one_that_waits_has_half_beside_a_flood)
{
	visit("sync + flood", PROGRAMS(A_SYNC(0.45), A_FLOOD(10, 0.45)), NULL);
}

TEST(test_one_that_waits_beside_others_that_launch_ahead_gains_more_than_they_lose)
{
	struct outcome two = visit("sync + eager", PROGRAMS(A_SYNC(0.40), AN_EAGER(0.40)), NULL);
	assert_true(two.sum >= 1.25);
	struct outcome three = visit("sync + 2 eager", PROGRAMS(A_SYNC(0.28), AN_EAGER(0.55), AN_EAGER(0.55)), NULL);
	assert_true(three.sum >= 1.40);
}

TEST(test_floods_have_time_and_speed_by_weight)
{
	const unsigned weights[] = {300, 700}, three_weights[] = {100, 300, 600};
	struct outcome two = visit("2 x flood, 30/70", PROGRAMS(A_FLOOD(10, 0), A_FLOOD(10, 0)), weights);
	check_parts(&two, weights, 2);
	struct outcome three =
	    visit("3 x flood, 10/30/60", PROGRAMS(A_FLOOD(10, 0), A_FLOOD(10, 0), A_FLOOD(10, 0)), three_weights);
	check_parts(&three, three_weights, 3);
}

/* Beside a flood the eager program cannot use more than 0.4 of the time. */
TEST(test_one_that_launches_ahead_and_a_flood_have_time_by_weight_as_far_as_they_can_use_it)
{
	const unsigned light[] = {100, 900}, medium[] = {300, 700};
	struct outcome outcome = visit("eager + flood, 10/90", PROGRAMS(AN_EAGER(0.17), A_FLOOD(10, 0.87)), light);
	assert_true(fabs(outcome.time[0] - 0.1) < 0.01);
	outcome = visit("eager + flood, 30/70", PROGRAMS(AN_EAGER(0.52), A_FLOOD(10, 0.67)), medium);
	assert_true(fabs(outcome.time[0] - 0.3) < 0.01);
	outcome = visit("eager + flood", PROGRAMS(AN_EAGER(0.70), A_FLOOD(10, 0.58)), NULL);
	assert_true(outcome.sum >= 0.97 * native_sum(PROGRAMS(AN_EAGER(0), A_FLOOD(10, 0))));
}

TEST(test_programs_that_launch_ahead_lose_next_to_nothing)
{
	const struct program *two = PROGRAMS(AN_EAGER(0.85), AN_EAGER(0.85));
	assert_true(visit("2 x eager", two, NULL).sum >= 0.97 * native_sum(two));
	/* Four fill the card: a quarter of all that it does is half of what one makes it do. */
	visit("4 x eager", PROGRAMS(AN_EAGER(0.48), AN_EAGER(0.48), AN_EAGER(0.48), AN_EAGER(0.48)), NULL);
}

/* The part of the card that kernels of 20 ms use beside a flood, by a weight of 30 to 70. */
static double part_of_long_kernels(bool waits_for_rest)
{
	double rates[MOST_PROGRAMS];
	const struct program *programs = PROGRAMS(A_FLOOD(10, 0), {FLOOD, 20 * MS, 0, 10, 0});
	set_up_card(programs, (unsigned[]){700, 300});
	card.waits_for_rest = waits_for_rest;
	paced_run(programs, by_visits, FLOODS_WINDOW_NS, rates);
	double used = rates[1] * 0.02, charged = (double)card.charged_ns[1] / (double)(card.now_ns - card.begun_ns);
	print_message("flood + flood of 20 ms, 70/30%s:  the long use %.3f, charged %.3f\n",
		      waits_for_rest ? ", the rest waited for" : "", used, charged);
	assert_true(fabs(charged - 0.3) < 0.01);
	return used;
}

/* A kernel goes on when its visit is over. The card then shares its time by slices. */
TEST(test_kernels_longer_than_a_slice_have_their_part_only_if_the_next_visit_waits_for_them)
{
	assert_true(part_of_long_kernels(false) > 0.60);
	assert_true(fabs(part_of_long_kernels(true) - 0.3) < 0.02);
}
