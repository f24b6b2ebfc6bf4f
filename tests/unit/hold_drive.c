/* A power target on a card that lowers its clocks where it is busy for less than two fifths of the time (doc/facts.md);
 * tensor and dram on cards that reach more or less.
 */
#include "rules_plant.h"

#include "hold/governor.h"

enum { SMS = 132, TICK_MS = 10, READ_MS = 200, HISTORY = 100, SLOW_AFTER_MS = 3500, FAST_AFTER_MS = 500 };
#define SLOW_BELOW 0.4
#define FLOOR_WATTS 122.0
#define SLOPE_WATTS 600.0 /* of the duty and the part of the SMs that works: more than the plan takes it to be */
#define MOST_WATTS 330.0  /* on top of the floor, with all of them */

struct card {
	uint64_t now_ns;
	double past[HISTORY];
	unsigned steps;
	unsigned slow_ms, fast_ms; /* for so long below, not below */
	bool is_slow;
	unsigned slow_downs;
};

static double watts(const struct card *card, const struct ll_drive *drive, double duty)
{
	double share = drive->blocks / (2.0 * SMS);
	double full = fmin(SLOPE_WATTS * share, MOST_WATTS);
	return FLOOR_WATTS + full * duty * (card->is_slow ? 0.5 : 1.0);
}

static void pass_time(struct card *card, const struct ll_drive *drive, double duty)
{
	bool is_below = duty < SLOW_BELOW;
	card->slow_ms = is_below ? card->slow_ms + TICK_MS : 0;
	card->fast_ms = is_below ? 0 : card->fast_ms + TICK_MS;
	if (!card->is_slow && card->slow_ms >= SLOW_AFTER_MS) {
		card->is_slow = true;
		card->slow_downs++;
	}
	if (card->fast_ms >= FAST_AFTER_MS)
		card->is_slow = false;
	card->past[card->steps++ % HISTORY] = watts(card, drive, duty);
	card->now_ns += TICK_MS * MS;
}

static double read_meter(const struct card *card)
{
	double sum = 0;
	for (unsigned i = 0; i < HISTORY; i++)
		sum += card->past[i];
	return sum / HISTORY;
}

struct outcome {
	double mean, least, most; /* of the readings of the last minute */
	double highest;           /* of all of them */
};

static struct outcome hold(struct card *card, double target)
{
	struct ll_hold_config config = {.metric = LL_METRIC_POWER, .target_watts = target};
	struct ll_drive drive;
	struct outcome outcome = {.least = 1e9};
	unsigned count = 0;
	*card = (struct card){.now_ns = 10 * S};
	for (unsigned i = 0; i < HISTORY; i++)
		card->past[i] = FLOOR_WATTS;
	ll_drive_init(&drive, &config, SMS);
	for (unsigned t = TICK_MS; t <= 75000; t += TICK_MS) {
		pass_time(card, &drive, ll_drive_command(&drive, card->now_ns, target));
		if (t % READ_MS)
			continue;
		struct ll_drive_sample sample = {.start_ns = card->now_ns - READ_MS * MS, .end_ns = card->now_ns};
		sample.level = read_meter(card);
		ll_drive_add_sample(&drive, &sample);
		outcome.highest = fmax(outcome.highest, sample.level);
		if (t <= 15000)
			continue;
		outcome.mean += sample.level;
		outcome.least = fmin(outcome.least, sample.level);
		outcome.most = fmax(outcome.most, sample.level);
		count++;
	}
	outcome.mean /= count;
	return outcome;
}

TEST(every_reading_is_within_2_percent_and_the_clocks_stay)
{
	static const double targets[] = {150, 175, 200, 250, 300, 400};
	for (unsigned i = 0; i < sizeof targets / sizeof *targets; i++) {
		struct card card;
		struct outcome outcome = hold(&card, targets[i]);
		assert_near(outcome.mean, targets[i], 0.005 * targets[i]);
		assert_between(outcome.least, 0.98 * targets[i], 1.02 * targets[i]);
		assert_between(outcome.most, 0.98 * targets[i], 1.02 * targets[i]);
		assert_between(outcome.highest, 0, 1.1 * targets[i]);
		assert_int_equal(card.slow_downs, 0);
	}
}

/* A card that reaches no more than `most` with the kernel running all the time. */
static enum ll_level_state hold_ratio(enum ll_metric metric, double target, double most, double *ret_mean,
				      double *ret_reach)
{
	struct ll_hold_config config = {.metric = metric};
	struct ll_drive drive;
	uint64_t now_ns = 10 * S;
	unsigned count = 0;
	*ret_mean = 0;
	ll_drive_init(&drive, &config, SMS);
	for (unsigned t = READ_MS; t <= 60000; t += READ_MS) {
		double duty = ll_drive_command(&drive, now_ns, target);
		now_ns += READ_MS * MS;
		struct ll_drive_sample sample = {
		    .start_ns = now_ns - READ_MS * MS, .end_ns = now_ns, .level = duty * most};
		ll_drive_add_sample(&drive, &sample);
		if (t <= 5000)
			continue;
		*ret_mean += sample.level;
		count++;
	}
	*ret_mean /= count;
	return ll_drive_state(&drive, ret_reach);
}

TEST(tensor_and_dram_fill_every_sm_with_a_kernel_of_their_own)
{
	static const struct {
		enum ll_metric metric;
		enum ll_kernel kernel;
	} cases[] = {{LL_METRIC_TENSOR, LL_KERNEL_TENSOR}, {LL_METRIC_DRAM, LL_KERNEL_DRAM}};
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ll_hold_config config = {.metric = cases[i].metric};
		struct ll_drive drive;
		ll_drive_init(&drive, &config, SMS);
		assert_int_equal(drive.kernel, cases[i].kernel);
		assert_int_equal(drive.blocks, SMS);
		assert_int_equal(drive.threads, 1024);
	}
}

TEST(a_ratio_is_held_whatever_the_card_reaches_and_more_is_told)
{
	double mean, reach;
	static const double reaches[] = {0.55, 0.65, 0.75, 0.85, 0.95};
	for (unsigned i = 0; i < sizeof reaches / sizeof *reaches; i++) {
		double most = reaches[i];
		assert_int_equal(hold_ratio(LL_METRIC_TENSOR, 0.3, most, &mean, &reach), LL_LEVEL_TRACKING);
		assert_near(mean, 0.3, 0.005);
		assert_int_equal(hold_ratio(LL_METRIC_DRAM, 0.4, most, &mean, &reach), LL_LEVEL_TRACKING);
		assert_near(mean, 0.4, 0.005);
	}
	assert_int_equal(hold_ratio(LL_METRIC_TENSOR, 0.8, 0.6, &mean, &reach), LL_LEVEL_TARGET_TOO_HIGH);
	assert_near(reach, 0.6, 0.01);
}
