/*
 * orders.h - the scripts of the probe's experiments. Pure.
 */
#ifndef LOADLINE_PROBE_ORDERS_H
#define LOADLINE_PROBE_ORDERS_H

#include <stdint.h>

#include "probe/cell.h"
#include "probe/page.h"

/* What each party does: so many kernels, one right after the other, each of which needs so long on the card. */
struct ll_probe_load {
	uint32_t parties; /* 1 to LL_PROBE_PARTIES */
	uint32_t kernels; /* of each party; parties * kernels is at most LL_PROBE_LAUNCHES */
	uint64_t length_ns;
};

/* Full kernels have blocks for so many rounds, as most kernels have more blocks than fit at once: between two rounds a
 * kernel of higher priority may go first. */
enum { LL_PROBE_ROUNDS = 4 };

/* A cell: party i is worker i's where the parties are processes, else worker 0's. A party's kernels are all launched
 * before the next party's where one thread launches them. */
void ll_probe_order_cell(const struct ll_probe_cell *cell, const struct ll_probe_load *load,
			 struct ll_probe_order *ret_order);

/* Workers that a cell's order needs. */
uint32_t ll_probe_order_workers(const struct ll_probe_cell *cell, uint32_t parties);

/*
 * A kernel that arrives while another fills the card. Two streams of one process: the first has a short kernel of one
 * block and then the one that arrives (launches 0 and 2); it is ready when the short one has ended, a moment that the
 * card's own clock tells. The second stream's kernel (launch 1) has ARRIVAL_ROUNDS rounds of blocks, each of which
 * stays for ARRIVAL_BLOCK_NS; the arriving one is ready half way through the first round.
 */
#define LL_PROBE_ARRIVAL_BLOCK_NS UINT64_C(1000000)
enum { LL_PROBE_ARRIVAL_ROUNDS = 4, LL_PROBE_ARRIVAL_LAUNCHES = 3 };

/* has_priorities: the arriving kernel's stream has the highest priority, the other the lowest. */
void ll_probe_order_arrival(bool has_priorities, struct ll_probe_order *ret_order);

/* From the end of the short kernel to the start of the one that arrives. */
uint64_t ll_probe_arrival_wait_ns(const struct ll_probe_kernel kernels[LL_PROBE_ARRIVAL_LAUNCHES]);

/* What the arriving kernel would have waited for the first round to end, had it been told to: 0 where it had ended. */
uint64_t ll_probe_arrival_round_ns(const struct ll_probe_kernel kernels[LL_PROBE_ARRIVAL_LAUNCHES]);

#endif
