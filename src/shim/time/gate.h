/*
 * gate.h - what a launch looks at while nothing holds it back: one cache line, and the gate's own word.
 *
 * The driver's launch leaves nothing of ours in the caches near the processor: what an open gate costs is the lines and
 * pages that it touches, more than its instructions. So all that is read and written on the way stands here together,
 * and a hook asks ll_gate_passes before it does anything else, and calls nothing of ours (tests/shim/launch_steps.c
 * counts).
 */
#ifndef LOADLINE_SHIM_TIME_GATE_H
#define LOADLINE_SHIM_TIME_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ledger/turn.h"

/* Launches that went through an open gate since the last mark, and how many may. At the limit one wants to be marked.
 */
struct ll_gate_count {
	_Atomic uint64_t launches, limit;
};

#define LL_GATE_NO_LIMIT UINT64_MAX

struct ll_gate_line {
	/* What stands for all of this process's launches: the one device state's own gate while there is one, one that
	 * is always open where nothing is governed, always shut with several. */
	_Atomic(_Atomic uint32_t *) word;
	struct ll_gate_count count; /* of the one device state's flow */
} __attribute__((aligned(64)));

extern struct ll_gate_line ll_gate_line;

static inline bool ll_gate_is_open(void)
{
	_Atomic uint32_t *word = atomic_load_explicit(&ll_gate_line.word, memory_order_relaxed);
	return __builtin_expect(atomic_load_explicit(word, memory_order_relaxed) == LL_GATE_OPEN, 1);
}

/* Counts one launch, unless it wants to be marked. Lost counts between threads are few, and the next mark makes up for
 * them. */
static inline bool ll_gate_count_one(struct ll_gate_count *count)
{
	uint64_t launches = atomic_load_explicit(&count->launches, memory_order_relaxed) + 1;
	if (__builtin_expect(launches >= atomic_load_explicit(&count->limit, memory_order_relaxed), 0))
		return false;
	atomic_store_explicit(&count->launches, launches, memory_order_relaxed);
	return true;
}

/* Whether a launch may go with nothing else to do; then it is counted. False: the gate is not open, or it wants a mark.
 */
static inline bool ll_gate_passes(void)
{
	return ll_gate_is_open() && ll_gate_count_one(&ll_gate_line.count);
}

/* Sets the word. NULL: shut. */
void ll_gate_set(_Atomic uint32_t *word);

/* The same to one that is always open: nobody is governed. */
void ll_gate_set_open(void);

#endif
