/*
 * pace.h - whether a program launches ahead of the card, or waits for each of its launches. Pure arithmetic.
 */
#ifndef LOADLINE_CONTROL_PACE_H
#define LOADLINE_CONTROL_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* A program waits for each launch if it makes fewer launches than this between two waits, of less work than this. The
 * card needs two switches of 0.14 ms to come back to the program (doc/facts.md): work of 1 ms loses a fifth by them. */
enum { LL_PACE_FEW_LAUNCHES = 16 };
#define LL_PACE_LITTLE_WORK_NS UINT64_C(1000000)

/* What a program did in a stretch of time. */
struct ll_pace_facts {
	uint64_t launches, waits;   /* waits: until all launches before were done */
	uint64_t launch_ns;         /* GPU time of a launch; 0: not known */
	uint64_t shortest_round_ns; /* from one wait to the next; UINT64_MAX: there was no round */
};

/*
 * Whether the program waits for each launch, or for a few short ones. The queue of such a program runs dry whenever
 * another program has the card, and each visit of the card serves it for a few microseconds. The work between two waits
 * is short if launches are known to be short, or if one round was short.
 */
bool ll_pace_waits_for_each(const struct ll_pace_facts *facts);

#endif
