/*
 * orders.h - the scripts of the probe's experiments. Pure.
 */
#ifndef LOADLINE_PROBE_ORDERS_H
#define LOADLINE_PROBE_ORDERS_H

#include <stdint.h>

#include "probe/cell.h"
#include "probe/page.h"

/* What each party does: it launches so many kernels, one right after the other, and each needs so long on the card. */
struct ll_probe_load {
	uint32_t parties; /* 1 to LL_PROBE_PARTIES */
	uint32_t kernels; /* of each party; parties * kernels is at most LL_PROBE_LAUNCHES */
	uint64_t length_ns;
};

/* Full kernels have blocks for so many rounds, as most kernels have more blocks than fit at once: between two rounds a
 * kernel of higher priority may go first. */
enum { LL_PROBE_ROUNDS = 4 };

/* Writes the order of a cell. If the parties are processes, party i belongs to worker i; else all belong to worker 0.
 * If one thread launches for several parties, it launches all kernels of one party before those of the next. */
void ll_probe_order_cell(const struct ll_probe_cell *cell, const struct ll_probe_load *load,
			 struct ll_probe_order *ret_order);

/* Returns how many workers a cell's order needs. */
uint32_t ll_probe_order_workers(const struct ll_probe_cell *cell, uint32_t parties);

/*
 * The order of a kernel that arrives while another one fills the card. It has two streams of one process. The first
 * stream has a short kernel of one block (launch 0) and then the arriving kernel (launch 2), which is ready when the
 * short one has ended; the card's own clock tells when. The second stream's kernel (launch 1) has ARRIVAL_ROUNDS rounds
 * of blocks, and each block stays for ARRIVAL_BLOCK_NS. The arriving kernel is ready half way through the first round.
 */
#define LL_PROBE_ARRIVAL_BLOCK_NS UINT64_C(1000000)
enum { LL_PROBE_ARRIVAL_ROUNDS = 4, LL_PROBE_ARRIVAL_LAUNCHES = 3 };

/* has_priorities: the arriving kernel's stream has the highest priority, the other the lowest. */
void ll_probe_order_arrival(bool has_priorities, struct ll_probe_order *ret_order);

/* Returns the time from the end of the short kernel to the start of the arriving one. */
uint64_t ll_probe_arrival_wait_ns(const struct ll_probe_kernel kernels[LL_PROBE_ARRIVAL_LAUNCHES]);

/* Returns the time from the end of the short kernel to the end of the first round; 0: the round had ended before. */
uint64_t ll_probe_arrival_round_ns(const struct ll_probe_kernel kernels[LL_PROBE_ARRIVAL_LAUNCHES]);

#endif
