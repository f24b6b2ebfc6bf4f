#include "probe/orders.h"

#include <string.h>

static void add_launch(struct ll_probe_order *order, uint32_t party, enum ll_probe_size size, uint32_t rounds,
		       uint64_t length_ns)
{
	order->launches[order->launch_count++] =
	    (struct ll_probe_launch){.party = party, .size = size, .rounds = rounds, .length_ns = length_ns};
}

static enum ll_probe_priority priority_of(bool has_priorities, uint32_t party)
{
	if (!has_priorities)
		return LL_PROBE_PRIORITY_DEFAULT;
	return party == 0 ? LL_PROBE_PRIORITY_HIGH : LL_PROBE_PRIORITY_LOW;
}

static enum ll_probe_stream_kind stream_of(enum ll_probe_parallel parallel)
{
	if (parallel == LL_PROBE_PER_THREAD)
		return LL_PROBE_DEFAULT_STREAM;
	return parallel == LL_PROBE_LEGACY ? LL_PROBE_LEGACY_STREAM : LL_PROBE_OWN_STREAM;
}

void ll_probe_order_cell(const struct ll_probe_cell *cell, const struct ll_probe_load *load,
			 struct ll_probe_order *ret_order)
{
	struct ll_probe_order *order = ret_order;
	bool has_threads = cell->parallel == LL_PROBE_THREADS || cell->parallel == LL_PROBE_PER_THREAD ||
			   cell->parallel == LL_PROBE_LEGACY;
	uint32_t rounds = cell->is_full ? LL_PROBE_ROUNDS : 1;
	memset(order, 0, sizeof *order);
	order->party_count = load->parties;
	for (uint32_t i = 0; i < load->parties; i++) {
		order->parties[i] = (struct ll_probe_party){
		    .worker = cell->parallel == LL_PROBE_PROCESSES ? i : 0,
		    .has_thread = has_threads,
		    .stream = stream_of(cell->parallel),
		    .priority = priority_of(cell->has_priorities, i),
		};
		for (uint32_t k = 0; k < load->kernels; k++)
			add_launch(order, i, cell->is_full ? LL_PROBE_SIZE_FULL : LL_PROBE_SIZE_TINY, rounds,
				   load->length_ns / rounds);
	}
}

uint32_t ll_probe_order_workers(const struct ll_probe_cell *cell, uint32_t parties)
{
	return cell->parallel == LL_PROBE_PROCESSES ? parties : 1;
}

void ll_probe_order_arrival(bool has_priorities, struct ll_probe_order *ret_order)
{
	struct ll_probe_order *order = ret_order;
	memset(order, 0, sizeof *order);
	order->party_count = 2;
	for (uint32_t i = 0; i < 2; i++)
		order->parties[i].priority = priority_of(has_priorities, i);
	add_launch(order, 0, LL_PROBE_SIZE_BLOCK, 1, LL_PROBE_ARRIVAL_BLOCK_NS / 2);
	add_launch(order, 1, LL_PROBE_SIZE_FULL, LL_PROBE_ARRIVAL_ROUNDS, LL_PROBE_ARRIVAL_BLOCK_NS);
	add_launch(order, 0, LL_PROBE_SIZE_BLOCK, 1, LL_PROBE_ARRIVAL_BLOCK_NS / 10);
}

uint64_t ll_probe_arrival_wait_ns(const struct ll_probe_kernel kernels[LL_PROBE_ARRIVAL_LAUNCHES])
{
	return kernels[2].start_ns > kernels[0].end_ns ? kernels[2].start_ns - kernels[0].end_ns : 0;
}

uint64_t ll_probe_arrival_round_ns(const struct ll_probe_kernel kernels[LL_PROBE_ARRIVAL_LAUNCHES])
{
	uint64_t round_end_ns = kernels[1].start_ns + LL_PROBE_ARRIVAL_BLOCK_NS;
	return round_end_ns > kernels[0].end_ns ? round_end_ns - kernels[0].end_ns : 0;
}
