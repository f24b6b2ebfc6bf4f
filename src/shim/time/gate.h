/*
 * gate.h - the data that a launch reads while its gate is open: one cache line, and the gate's word in the job's page;
 * and launches that are counted before they are made.
 *
 * The driver's launch function replaces all data of the library in the processor's near caches. So the cost of an open
 * gate comes from the cache lines and pages that it touches, more than from its instructions. All data that such a
 * launch reads and writes is therefore in this one line. A hook asks ll_gate_passes before it does anything else, and
 * calls no other function of the library (tests/shim/launch_steps.c counts the instructions).
 */
#ifndef LOADLINE_SHIM_TIME_GATE_H
#define LOADLINE_SHIM_TIME_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/link/port.h"
#include "shim/time/timing.h"

/* launches: number that passed since the last timing event. limit: the launch that reaches it records the next timing
 * event. */
struct ll_gate_count {
	_Atomic uint64_t launches, limit;
};

#define LL_GATE_NO_LIMIT UINT64_MAX

struct ll_gate_line {
	/* The gate of all launches of this process. If the process works on one card, this is that card's gate. If no
	 * card is governed, it is a word that is always open. If the process works on several cards, it is a word that
	 * is always shut. */
	_Atomic(_Atomic uint32_t *) word;
	struct ll_gate_count count; /* belongs to the flow of the process's one card */
	_Atomic uint64_t gaps;      /* long operations that are no kernels, while the gate was open */
} __attribute__((aligned(64)));

extern struct ll_gate_line ll_gate_line;

static inline __attribute__((always_inline)) bool ll_gate_is_open(void)
{
	_Atomic uint32_t *word = atomic_load_explicit(&ll_gate_line.word, memory_order_relaxed);
	return __builtin_expect(atomic_load_explicit(word, memory_order_relaxed) == LL_GATE_OPEN, 1);
}

/* Counts one launch. Returns false if the launch must record a timing event; then it is not counted. Threads that count
 * at the same time may lose a few counts. The next timing event corrects the charge. */
static inline __attribute__((always_inline)) bool ll_gate_count_one(struct ll_gate_count *count)
{
	uint64_t counted = atomic_load_explicit(&count->launches, memory_order_relaxed) + 1;
	if (__builtin_expect(counted >= atomic_load_explicit(&count->limit, memory_order_relaxed), 0))
		return false;
	atomic_store_explicit(&count->launches, counted, memory_order_relaxed);
	return true;
}

/* Returns true if the launch may pass without any further step; then it is counted. Returns false if the gate is shut
 * or the launch must record a timing event. */
static inline __attribute__((always_inline)) bool ll_gate_passes(void)
{
	return ll_gate_is_open() && ll_gate_count_one(&ll_gate_line.count);
}

/* Notes that a stream gets an operation that is no kernel and may take long (ll_timing_note_gap). Threads that note at
 * the same time may lose a few. */
static inline void ll_gate_note_gap(void)
{
	uint64_t gaps = atomic_load_explicit(&ll_gate_line.gaps, memory_order_relaxed);
	atomic_store_explicit(&ll_gate_line.gaps, gaps + 1, memory_order_relaxed);
}

/* Sets the gate of all launches. NULL: a word that is always shut. */
void ll_gate_set(_Atomic uint32_t *word);

/* Sets the gate of all launches to a word that is always open. Call it if no card is governed. */
void ll_gate_set_open(void);

/* ---- prepaid launches ---- */

/*
 * To count one launch, a thread acquires a lock, reads a clock and checks the turn. This takes 0.3 us. Most programs
 * launch the same kernel several times in a row. So if a launch is like the launch before it, the thread counts some
 * more launches in advance. When these launches come, they pass at once. One atomic word holds how many are left. The
 * next thread that acquires the lock uncounts the launches that did not come. The agent does this at each of its looks,
 * so prepaid launches are not older than its last look. A flow has prepaid launches of one kernel at a time.
 */

/* The most launches that one counted launch prepays. A larger number gains little, and more launches would have to be
 * uncounted. */
enum { LL_PREPAID_MOST = 16 };

/* Two launches are alike if all members are equal. */
struct ll_prepaid_kernel {
	const struct ll_cu_context *context;
	struct ll_timing_stream stream;
	uint64_t kernel_key;
};

/* All zero at first. */
struct ll_prepaid {
	_Atomic uint64_t word;         /* sequence number << 8 | launches left */
	struct ll_prepaid_kernel what; /* the prepaid launches' kernel; under the lock */
	struct ll_prepaid_kernel last; /* kernel of the last call of ll_prepaid_is_like_last; under the lock */
};

/* Returns whether this launch is prepaid. If so, subtracts it from the launches left. Needs no lock. */
bool ll_prepaid_use(struct ll_prepaid *prepaid, const struct ll_prepaid_kernel *what);

/* Prepays a number of launches of the kernel, at most LL_PREPAID_MOST, for the calling thread. Call it under the lock
 * when no prepaid launches are left. */
void ll_prepaid_give(struct ll_prepaid *prepaid, const struct ll_prepaid_kernel *what, uint32_t launches);

/* Returns whether a launch is like the launch of the last call. If it is, the caller prepays more. Under the lock. */
bool ll_prepaid_is_like_last(struct ll_prepaid *prepaid, const struct ll_prepaid_kernel *what);

/* Removes the prepaid launches that are left, and returns their number. Under the lock. */
uint32_t ll_prepaid_return(struct ll_prepaid *prepaid);

#endif
