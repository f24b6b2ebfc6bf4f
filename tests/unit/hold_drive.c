/* A power target on a card that lowers its clocks where it is busy for less than two fifths of the time (doc/facts.md).
 */
#include "control_plant.h"

#include "hold/drive.h"

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
		ll_drive_sample(&drive, &sample);
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

static void every_reading_is_within_2_percent_and_the_clocks_stay(void **state)
{
	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_reading_is_within_2_percent_and_the_clocks_stay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
