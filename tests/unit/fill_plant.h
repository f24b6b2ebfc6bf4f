/*
 * fill_plant.h - a card that other programs use, its meter, and a load that fills it up: for the tests of
 * rules/hold/level.h.
 */
#ifndef LOADLINE_TESTS_UNIT_FILL_PLANT_H
#define LOADLINE_TESTS_UNIT_FILL_PLANT_H

#include <stdbool.h>
#include <string.h>

#include "rules_plant.h"

enum { PLANT_SECONDS = 40, WINDOW_MS = 200, TICK_MS = 50, SHOWN_MS = 60, LINGER_MS = 300 };

enum program_kind {
	NONE,
	LAUNCH_BOUND, /* waits for each of its kernels: work_ms, then thinks for pause_ms */
	BURSTING,     /* work_ms of work comes every period_ms, whether the last is done or not */
	SERVING,      /* requests of work_ms come at random times, one in period_ms on average */
	SWITCHING,    /* as the decoder of doc/facts.md: 32 % alone, 66 % within 0.3 s of an own kernel */
};

struct program {
	enum program_kind kind;
	double work_ms, pause_ms, period_ms;
	unsigned from_ms, until_ms; /* 0: from the start, to the end */
};

struct fill_plant {
	struct program program;
	uint64_t seed;
	unsigned now_ms;
	double queue_ms; /* the program's work that waits */
	double think_ms; /* LAUNCH_BOUND: how long the next kernel is not launched */
	unsigned own_seen_ms;
	bool has_own;
	double loss; /* the part of the duty that the pacer does not deliver */
	double busy[PLANT_SECONDS * 1000], own[PLANT_SECONDS * 1000];
};

static inline bool program_is_there(const struct fill_plant *plant)
{
	const struct program *program = &plant->program;
	return plant->now_ms >= program->from_ms && (!program->until_ms || plant->now_ms < program->until_ms);
}

static inline void program_submits(struct fill_plant *plant)
{
	const struct program *program = &plant->program;
	switch (program->kind) {
	case LAUNCH_BOUND:
		if (plant->queue_ms > 0)
			break;
		plant->think_ms -= 1;
		if (plant->think_ms <= 0) {
			plant->queue_ms = program->work_ms;
			plant->think_ms += program->pause_ms;
		}
		break;
	case BURSTING:
		if (fmod(plant->now_ms, program->period_ms) < 1)
			plant->queue_ms += program->work_ms;
		break;
	case SERVING:
		if (plant_uniform(&plant->seed) < 1 / program->period_ms)
			plant->queue_ms += program->work_ms;
		break;
	case SWITCHING:
		plant->queue_ms = plant->has_own && plant->now_ms - plant->own_seen_ms < LINGER_MS ? 0.653 : 0.32;
		break;
	case NONE:
		break;
	}
}

/* One ms: the own kernel first, then as much of the program's work as fits. */
static inline void plant_step(struct fill_plant *plant, double duty)
{
	double own = duty * (1 - plant->loss);
	if (own > 0.001) {
		plant->has_own = true;
		plant->own_seen_ms = plant->now_ms;
	}
	if (program_is_there(plant))
		program_submits(plant);
	else
		plant->queue_ms = 0;
	double foreign = fmin(plant->queue_ms, 1 - own);
	plant->queue_ms -= foreign;
	plant->own[plant->now_ms] = own;
	plant->busy[plant->now_ms++] = own + foreign;
}

static inline double plant_mean(const double *values, unsigned from_ms, unsigned until_ms)
{
	double sum = 0;
	for (unsigned ms = from_ms; ms < until_ms; ms++)
		sum += values[ms];
	return sum / (until_ms - from_ms);
}

#endif
