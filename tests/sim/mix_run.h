/*
 * mix_run.h - lets the programs of a mix run on the simulated card, in one of several ways, and judges the rule.
 */
#ifndef LOADLINE_TESTS_MIX_RUN_H
#define LOADLINE_TESTS_MIX_RUN_H

#include "mix_draw.h"

enum mix_way {
	MIX_NATIVE, /* without loadline; all gates open is the same (doc/facts.md) */
	MIX_VISITS, /* by visits all the time */
	MIX_RULE,   /* as loadlined chooses */
	MIX_WAYS,
};

/* The rule has so long to measure before the windows begin in which it is judged. */
#define MIX_SETTLE_S 4
enum { MIX_WINDOWS = 20 };
#define MIX_WINDOW_NS (400 * LL_NS_PER_MS)

struct mix_outcome {
	double alone[MIX_MOST];                       /* launches a second */
	double done[MIX_WAYS][MIX_MOST][MIX_WINDOWS]; /* launches completed in each window */
	double settled_s;                             /* when the rule chose for the last time */
	bool ends_with_visits;
	enum ll_regime_why why;
	double gain; /* as it measured it */
	/* judged */
	enum mix_way best;     /* by all windows */
	double regret;         /* of the rule's geometric mean of speeds, against the better of the two other ways */
	bool wrongs[MIX_MOST]; /* the program has less than 0.93 of what it has natively, and of its share */
};

struct mix_outcome mix_run(const struct mix *mix);

/* Of the program's speed alone, over all windows. */
double mix_speed(const struct mix_outcome *outcome, enum mix_way way, unsigned program);

#endif
