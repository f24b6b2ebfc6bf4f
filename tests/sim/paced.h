/*
 * paced.h - small programs on the simulated card, each with a pace of its own, as those of bench/c/pace.c on a real
 * card. They run on a clock of the test's own.
 *
 * Without a scheduler the card alone shares its time. With one, each program has a gate on the card: it launches in
 * batches. A batch begins with a wait for a value in memory, and ends with the write of another.
 */
#ifndef LOADLINE_TESTS_PACED_H
#define LOADLINE_TESTS_PACED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "card/world.h"

#define US LL_NS_PER_US
#define MS LL_NS_PER_MS

enum { MOST_PROGRAMS = 8, MOST_DEPTH = 64, EAGER_STEP = 200 };

enum pace {
	NOBODY,
	SYNC,  /* a launch, a wait for it, a pause */
	EAGER, /* a launch each so many us without a wait; a wait each 200 launches */
	FLOOD, /* launches as fast as it can, with at most so many in the queue */
};

struct program {
	enum pace pace;
	uint64_t kernel_ns, pause_ns;
	unsigned depth;
	double wanted; /* by the test, in its own unit */
};

#define PROGRAMS(...) ((const struct program[MOST_PROGRAMS + 1]){__VA_ARGS__})
#define A_SYNC(wanted) ((struct program){SYNC, 5 * US, 10 * US, 0, wanted})
/* It spins for 4 us, and ends at its next look at the clock. */
#define AN_EAGER(wanted) ((struct program){EAGER, 4300, 12 * US, 0, wanted})
#define A_FLOOD(most, wanted) ((struct program){FLOOD, 200 * US, 0, most, wanted})

struct paced {
	struct program program;
	uint32_t stream;
	uint64_t act_ns;    /* when it launches next; SIM_NEVER: it waits */
	uint64_t waits_for; /* position in the stream; UINT64_MAX: it does not wait */
	uint64_t launched;
	uint64_t positions[MOST_DEPTH]; /* in the stream: of the last launches, or of the writes behind their batches */
	uint64_t noted;                 /* positions of the stream whose end has been noted */
	uint64_t kernels;               /* done */
	uint64_t kernels_before;        /* done when the window began */
	/* The gate. */
	unsigned batch;            /* launches to a batch; 0: there is no gate */
	bool is_in_batch;          /* the wait at the head of the batch has been launched, the write has not */
	unsigned in_batch;         /* launches since that wait */
	bool is_by_visit;          /* all batches wait for the number 1; else batch N waits for N */
	uint64_t granted;          /* the card lets batches up to this number through */
	uint64_t granted_ns;       /* when the card sees that */
	uint64_t enqueued, served; /* batches that are launched whole; that are done */
};

/* A scheduler is called after each event. It returns when it has to be called at the latest. */
typedef uint64_t paced_scheduler(struct paced *programs, unsigned count, uint64_t now_ns);

/* Runs programs that start together, the last followed by NOBODY. ret_rates: kernels a second of each in a window of
 * that length. scheduler: NULL: there are no gates. */
void paced_run(const struct program *programs, paced_scheduler *scheduler, uint64_t window_ns, double *ret_rates);

/* Fails unless each program has what is wanted, in kernels a second, within a tenth. */
void paced_check(const char *what, const struct program *programs, paced_scheduler *scheduler);

/* Lets batches up to that number through. */
void paced_grant(struct paced *self, uint64_t number, uint64_t now_ns);

/* From its first launch on the program's batches all wait for the same number, which a visit sets and its end takes
 * back. The end of a visit also ends the batch that the host is at: its next launch begins another. */
void paced_use_visits(struct paced *self);
void paced_begin_visit(struct paced *self, uint64_t now_ns);
void paced_end_visit(struct paced *self, uint64_t now_ns);

/* Whether all is done that was let through. */
bool paced_is_drained(const struct paced *self);

#endif
