/*
 * gate.h - what a launch reads while its gate is open: one cache line, and the gate's own word in the job's page.
 *
 * The driver's launch pushes all data of the library out of the caches near the processor. So the cost of an open gate
 * is the cache lines and pages that it touches, more than its instructions. All that a launch reads and writes on this
 * way is together here. A hook asks ll_gate_passes before it does anything else, and calls no other function of the
 * library (tests/shim/launch_steps.c counts the instructions).
 */
#ifndef LOADLINE_SHIM_TIME_GATE_H
#define LOADLINE_SHIM_TIME_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/link/port.h"

/* launches: passed since the last timing event. limit: the launch that reaches it records the next timing event. */
struct ll_gate_count {
	_Atomic uint64_t launches, limit;
};

#define LL_GATE_NO_LIMIT UINT64_MAX

struct ll_gate_line {
	/* The gate of all launches of this process. If the process works on one card: that card's gate. If nothing is
	 * governed: a word that is always open. If the process works on several cards: a word that is always shut. */
	_Atomic(_Atomic uint32_t *) word;
	struct ll_gate_count count; /* of the one card's flow */
} __attribute__((aligned(64)));

extern struct ll_gate_line ll_gate_line;

static inline __attribute__((always_inline)) bool ll_gate_is_open(void)
{
	_Atomic uint32_t *word = atomic_load_explicit(&ll_gate_line.word, memory_order_relaxed);
	return __builtin_expect(atomic_load_explicit(word, memory_order_relaxed) == LL_GATE_OPEN, 1);
}

/* Counts one launch. False: the launch shall record a timing event, and is not counted. Threads that count at once may
 * lose a few counts; the next timing event makes up for them. */
static inline __attribute__((always_inline)) bool ll_gate_count_one(struct ll_gate_count *count)
{
	uint64_t launches = atomic_load_explicit(&count->launches, memory_order_relaxed) + 1;
	if (__builtin_expect(launches >= atomic_load_explicit(&count->limit, memory_order_relaxed), 0))
		return false;
	atomic_store_explicit(&count->launches, launches, memory_order_relaxed);
	return true;
}

/* Whether a launch may pass with nothing else to do; then it is counted. False: the gate is shut, or the launch shall
 * record a timing event. */
static inline __attribute__((always_inline)) bool ll_gate_passes(void)
{
	return ll_gate_is_open() && ll_gate_count_one(&ll_gate_line.count);
}

/* Sets the gate of all launches. NULL: always shut. */
void ll_gate_set(_Atomic uint32_t *word);

/* Sets it to a word that is always open: nothing is governed. */
void ll_gate_set_open(void);

#endif
