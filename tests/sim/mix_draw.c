#include "mix_draw.h"

#include "mix_dice.h"

#define US 1e3
#define MS 1e6
/* Mixes of one seed and number are others for each sort. */
#define CLASSES_SALT UINT64_C(0xc1a55e5)
#define CAPS_SALT UINT64_C(0xca95)
#define SPARSE_SALT UINT64_C(0x5ba45e)

/* Hosts that compute before each launch drift by 5 to 10 % (doc/facts.md); programs that fill the card do not. */
static double draw_drift(uint64_t *dice)
{
	return dice_between(dice, 0.03, 0.10);
}

static struct mix_kind draw_flood(uint64_t *dice)
{
	return (struct mix_kind){.name = "flood",
				 .launches = 1,
				 .kernel_ns = dice_between(dice, 20 * US, 20 * MS),
				 .call_ns = 4 * US,
				 .ahead = dice_count(dice, 4, 40),
				 .drift = 0.01};
}

static struct mix_kind draw_waits(uint64_t *dice)
{
	return (struct mix_kind){.name = "waits",
				 .launches = 1,
				 .kernel_ns = dice_between(dice, 4 * US, 500 * US),
				 .call_ns = 4 * US,
				 .pause_ns = dice_between(dice, 5 * US, 100 * US),
				 .drift = draw_drift(dice)};
}

static struct mix_kind draw_eager(uint64_t *dice)
{
	return (struct mix_kind){.name = "eager",
				 .launches = dice_count(dice, 100, 800),
				 .kernel_ns = dice_between(dice, 3 * US, 15 * US),
				 .kernel_spread = 0.6,
				 .call_ns = dice_between(dice, 10 * US, 30 * US),
				 .pause_ns = dice_between(dice, 20 * US, 1 * MS),
				 .drift = draw_drift(dice)};
}

static struct mix_kind draw_training(uint64_t *dice)
{
	return (struct mix_kind){.name = "training",
				 .launches = dice_count(dice, 100, 400),
				 .kernel_ns = dice_between(dice, 20 * US, 300 * US),
				 .kernel_spread = 1,
				 .call_ns = dice_between(dice, 8 * US, 25 * US),
				 .pause_ns = dice_between(dice, 100 * US, 3 * MS),
				 .ahead = 1 + (dice_part(dice) < 0.3),
				 .drift = draw_drift(dice)};
}

static struct mix_kind draw_steps(uint64_t *dice)
{
	struct mix_kind kind = draw_training(dice);
	kind.name = "steps";
	kind.ahead = 0;
	return kind;
}

static struct mix_kind draw_burst(uint64_t *dice)
{
	return (struct mix_kind){.name = "burst",
				 .launches = dice_count(dice, 10, 150),
				 .kernel_ns = dice_between(dice, 20 * US, 200 * US),
				 .kernel_spread = 0.5,
				 .call_ns = 8 * US,
				 .pause_ns = dice_between(dice, 3 * MS, 20 * MS),
				 .drift = draw_drift(dice) / 2};
}

static struct mix_kind draw_streams(uint64_t *dice)
{
	return (struct mix_kind){.name = "streams",
				 .launches = dice_count(dice, 16, 128),
				 .kernel_ns = dice_between(dice, 10 * US, 150 * US),
				 .kernel_spread = 0.3,
				 .call_ns = 5 * US,
				 .pause_ns = dice_between(dice, 20 * US, 300 * US),
				 .streams = dice_count(dice, 2, MIX_STREAMS),
				 .drift = draw_drift(dice)};
}

static struct mix_kind draw_copies(uint64_t *dice)
{
	return (struct mix_kind){.name = "copies",
				 .launches = dice_count(dice, 1, 8),
				 .kernel_ns = dice_between(dice, 20 * US, 300 * US),
				 .call_ns = 6 * US,
				 .pause_ns = dice_between(dice, 10 * US, 100 * US),
				 .copy_ns = dice_between(dice, 10 * US, 300 * US),
				 .drift = draw_drift(dice) / 2};
}

static struct mix_kind draw_requests(uint64_t *dice)
{
	return (struct mix_kind){.name = "requests",
				 .launches = dice_count(dice, 50, 400),
				 .kernel_ns = dice_between(dice, 10 * US, 100 * US),
				 .kernel_spread = 0.6,
				 .call_ns = dice_between(dice, 8 * US, 25 * US),
				 .think_ns = dice_between(dice, 3 * MS, 60 * MS),
				 .drift = draw_drift(dice)};
}

static struct mix_kind draw_graphs(uint64_t *dice)
{
	return (struct mix_kind){.name = "graphs",
				 .launches = 1,
				 .kernel_ns = dice_between(dice, 300 * US, 5 * MS),
				 .call_ns = 10 * US,
				 .pause_ns = dice_between(dice, 10 * US, 300 * US),
				 .drift = 0.02};
}

static struct mix_kind (*const kinds[])(uint64_t *) = {draw_flood,    draw_waits, draw_eager,   draw_training,
						       draw_steps,    draw_burst, draw_streams, draw_copies,
						       draw_requests, draw_graphs};

static struct mix_kind draw_kind(uint64_t *dice)
{
	struct mix_kind kind = kinds[dice_next(dice) % (sizeof kinds / sizeof kinds[0])](dice);
	kind.streams += !kind.streams;
	kind.weight_permille = 1000;
	kind.seed = dice_next(dice);
	return kind;
}

static unsigned draw_count(uint64_t *dice)
{
	static const unsigned counts[] = {2, 2, 2, 3, 3, 4, 5};
	return counts[dice_next(dice) % (sizeof counts / sizeof counts[0])];
}

static struct mix draw_kinds(uint64_t *dice)
{
	struct mix mix = {.count = draw_count(dice)};
	for (unsigned i = 0; i < mix.count; i++)
		mix.kinds[i] = draw_kind(dice);
	return mix;
}

static bool has_one_class(const struct mix *mix)
{
	for (unsigned i = 1; i < mix->count; i++) {
		if (mix->kinds[i].rank != mix->kinds[0].rank)
			return false;
	}
	return true;
}

struct mix mix_draw_classes(uint64_t seed, unsigned number)
{
	static const unsigned ranks[] = {LL_PRIORITY_HIGH, LL_PRIORITY_NORMAL, LL_PRIORITY_LOW};
	uint64_t dice = dice_scramble(seed ^ CLASSES_SALT) ^ dice_scramble(number + 1);
	struct mix mix = draw_kinds(&dice);
	while (has_one_class(&mix)) {
		for (unsigned i = 0; i < mix.count; i++)
			mix.kinds[i].rank = ranks[dice_next(&dice) % 3];
	}
	return mix;
}

struct mix mix_draw_caps(uint64_t seed, unsigned number)
{
	static const unsigned caps[] = {100, 200, 300, 400, 500, 600, 700, 0, 0};
	uint64_t dice = dice_scramble(seed ^ CAPS_SALT) ^ dice_scramble(number + 1);
	struct mix mix = draw_kinds(&dice);
	for (unsigned i = 0; i < mix.count; i++)
		mix.kinds[i].cap_permille = caps[dice_next(&dice) % (sizeof caps / sizeof caps[0])];
	if (!mix.kinds[0].cap_permille)
		mix.kinds[0].cap_permille = caps[dice_next(&dice) % 7];
	return mix;
}

/* Of 2 to 6 ms, as a service's forward of a small batch (doc/benchmarks.md, shares and classes). */
static struct mix_kind draw_short_requests(uint64_t *dice)
{
	struct mix_kind kind = {.name = "asked",
				.kernel_ns = dice_between(dice, 10 * US, 60 * US),
				.kernel_spread = 0.6,
				.call_ns = dice_between(dice, 8 * US, 25 * US),
				.drift = draw_drift(dice),
				.streams = 1,
				.weight_permille = 1000,
				.rank = LL_PRIORITY_HIGH};
	double round_ns = dice_between(dice, 2 * MS, 6 * MS);
	kind.launches = (unsigned)(round_ns / fmax(kind.kernel_ns, kind.call_ns));
	kind.think_ns = round_ns * dice_between(dice, 15, 60);
	kind.seed = dice_next(dice);
	return kind;
}

struct mix mix_draw_sparse(uint64_t seed, unsigned number)
{
	uint64_t dice = dice_scramble(seed ^ SPARSE_SALT) ^ dice_scramble(number + 1);
	struct mix mix = {.count = 2};
	mix.kinds[0] = draw_short_requests(&dice);
	mix.kinds[1] = draw_kind(&dice);
	mix.kinds[1].rank = LL_PRIORITY_LOW;
	return mix;
}

struct mix mix_draw(uint64_t seed, unsigned number)
{
	static const unsigned weights[] = {500, 1000, 2000, 4000};
	uint64_t dice = dice_scramble(seed) ^ dice_scramble(number + 1);
	struct mix mix = {.count = draw_count(&dice)};
	bool has_weights = dice_part(&dice) < 0.2;
	for (unsigned i = 0; i < mix.count; i++) {
		mix.kinds[i] = draw_kind(&dice);
		if (has_weights)
			mix.kinds[i].weight_permille = weights[dice_next(&dice) % 4];
	}
	return mix;
}
