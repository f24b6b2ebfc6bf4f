/*
 * mix_run.h - lets the programs of a mix run on the simulated card, in one of several ways to share it.
 */
#ifndef LOADLINE_TESTS_MIX_RUN_H
#define LOADLINE_TESTS_MIX_RUN_H

#include "mix_draw.h"

enum mix_way {
	MIX_NATIVE, /* without loadline; all gates open is the same (doc/facts.md) */
	MIX_VISITS, /* by visits all the time */
	MIX_RULE,   /* as loadlined chooses */
	/* those beneath a higher class are held for no part of the time in which it has work, for half of it, for all
	 */
	MIX_HELD_NONE,
	MIX_HELD_HALF,
	MIX_HELD_ALL,
};

enum { MIX_WINDOWS = 20 };
#define MIX_WINDOW_NS (400 * LL_NS_PER_MS)

/* What the programs of a mix did in the windows, and how the rule chose. */
struct mix_reading {
	double done[MIX_MOST][MIX_WINDOWS]; /* launches completed */
	double latency_ns[MIX_MOST];        /* the median of its rounds; 0: it does not answer, or has not */
	double used[MIX_MOST];              /* GPU time, of all time */
	double stall_ns[MIX_MOST];          /* the longest time that a launch waited for a cap */
	double settled_s;                   /* when the rule chose for the last time */
	bool ends_with_visits;
	enum ll_regime_why why;
	double gain; /* as the rule measured it */
	/* of the time in which the highest class has work, those beneath it are held; and how many times as slow as
	 * alone the rule takes it to be; 0: it does not know */
	double held_part, seen_slowdown;
};

/* Runs the mix in one way. The rule has settle_s to measure; then the windows begin, for all ways at the same time of
 * the hosts' drift. */
struct mix_reading mix_run_way(const struct mix *mix, enum mix_way way, unsigned settle_s);

/* One program by itself. */
struct mix_alone {
	double rate; /* launches a second */
	double used; /* GPU time, of all time */
	double latency_ns;
};

struct mix_alone mix_run_alone(const struct mix_kind *kind, unsigned settle_s);

/* The program's launches in the windows first, first + step and so on; never 0. */
double mix_done(const struct mix_reading *reading, unsigned program, unsigned first, unsigned step);

/* The program's speed in all windows, of its speed alone: by launches, or, if it answers, by its median latency. */
double mix_speed(const struct mix_reading *reading, unsigned program, const struct mix_alone *alone);
double mix_pace(const struct mix_kind *kind, const struct mix_reading *reading, unsigned program,
		const struct mix_alone *alone);

#endif
