/*
 * page.h - the memory that the probe and its processes share: an order in, accounts of kernels out.
 *
 * The probe starts each worker (worker.h) with the page and two eventfds. The probe calls a worker by the worker's own
 * eventfd. All workers answer on the other one. An order says which worker has which parties, and has the launches in
 * the order in which each party makes them. All parties of all workers begin at the same moment.
 *
 * Times are CLOCK_MONOTONIC, except those of the card's own clock.
 */
#ifndef LOADLINE_PROBE_PAGE_H
#define LOADLINE_PROBE_PAGE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "probe/timeline.h"

enum { LL_PROBE_TEXT_SIZE = 400 };

enum ll_probe_stream_kind {
	LL_PROBE_OWN_STREAM,
	LL_PROBE_DEFAULT_STREAM, /* the thread's own */
	LL_PROBE_LEGACY_STREAM,  /* the context's one default stream */
};

enum ll_probe_priority { LL_PROBE_PRIORITY_DEFAULT, LL_PROBE_PRIORITY_HIGH, LL_PROBE_PRIORITY_LOW };

struct ll_probe_party {
	uint32_t worker;
	uint32_t has_thread; /* the party has a thread of its own; else the worker's first thread launches for it */
	uint32_t stream;     /* enum ll_probe_stream_kind */
	uint32_t priority;   /* enum ll_probe_priority */
};

/* How many blocks a kernel has. */
enum ll_probe_size {
	LL_PROBE_SIZE_TINY,  /* one block of one warp */
	LL_PROBE_SIZE_BLOCK, /* one block of LL_PROBE_FULL_THREADS */
	LL_PROBE_SIZE_FULL,  /* `rounds` times as many blocks of LL_PROBE_FULL_THREADS as fit on the card at once */
};

enum { LL_PROBE_FULL_THREADS = 512 };

struct ll_probe_launch {
	uint32_t party;
	uint32_t size;   /* enum ll_probe_size */
	uint32_t rounds; /* of a full kernel, at least 1 */
	uint32_t unused;
	uint64_t length_ns; /* that each block needs on the card */
};

struct ll_probe_order {
	uint32_t party_count, launch_count;
	struct ll_probe_party parties[LL_PROBE_PARTIES];
	struct ll_probe_launch launches[LL_PROBE_LAUNCHES];
};

enum ll_probe_call { LL_PROBE_CALL_NONE, LL_PROBE_CALL_RUN, LL_PROBE_CALL_END };

enum ll_probe_state {
	LL_PROBE_STARTING,
	LL_PROBE_READY,      /* has a context and no order */
	LL_PROBE_NO_CONTEXT, /* the driver gave the worker no context; text says why */
	LL_PROBE_BUSY,
	LL_PROBE_FAILED, /* the last order failed; text says why */
};

/* What a worker answers, and what the probe calls it to do. */
struct ll_probe_slot {
	_Atomic uint32_t state; /* enum ll_probe_state */
	_Atomic uint32_t call;  /* enum ll_probe_call */
	int32_t code;           /* -errno of a failure */
	uint32_t sm_count;
	uint32_t full_blocks; /* of LL_PROBE_FULL_THREADS that fit on the card at once */
	char text[LL_PROBE_TEXT_SIZE];
};

struct ll_probe_page {
	pid_t parent;
	char card_uuid[96];
	pthread_barrier_t start; /* made anew for each order, for as many threads as launch */
	_Atomic uint64_t go_ns;  /* when all threads begin; 0 until the first of them has set it */
	struct ll_probe_order order;
	struct ll_probe_slot slots[LL_PROBE_PARTIES];
	struct ll_probe_kernel kernels[LL_PROBE_LAUNCHES]; /* of the order's launches, in its order */
};

/* Returns how many threads launch. All parties of a worker that have no thread of their own share one. */
static inline unsigned ll_probe_order_threads(const struct ll_probe_order *order)
{
	uint64_t firsts = 0;
	unsigned threads = 0;
	for (uint32_t i = 0; i < order->party_count; i++) {
		const struct ll_probe_party *party = &order->parties[i];
		bool counts = party->has_thread || !(firsts >> party->worker & 1);
		threads += counts;
		if (!party->has_thread)
			firsts |= UINT64_C(1) << party->worker;
	}
	return threads;
}

#endif
