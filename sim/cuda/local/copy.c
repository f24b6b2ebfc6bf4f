/*
 * Finds the place of addresses, and the card's resources for a copy.
 */
#include "cuda/local/copy.h"

#include <stdlib.h>
#include <string.h>

#include "cuda/local/allocations.h"
#include "cuda/local/capture.h"

enum { COPY_OVERHEAD_NS = 2000 };

void sim_copy_describe(struct sim_op *op, const struct ll_cu_context *context, enum sim_direction direction,
		       size_t bytes)
{
	const struct sim_card *card = &sim_cuda.world->cards[context->card];
	double rate = direction == SIM_ON_CARD ? card->memory_bytes_per_ns : card->copy_bytes_per_ns;
	*op = (struct sim_op){
	    .kind = direction == SIM_ON_CARD ? SIM_OP_KERNEL : SIM_OP_COPY,
	    .direction = direction == SIM_FROM_CARD,
	    .length_ns = COPY_OVERHEAD_NS + (uint64_t)((double)bytes / rate),
	    .module = SIM_NONE,
	};
	if (direction != SIM_ON_CARD)
		return;
	/* Copies and memsets on the card are kernels of the driver, with one block for each 64 KiB. */
	size_t blocks = (bytes + 65535) / 65536;
	op->blocks = blocks < card->sm_count ? (uint32_t)blocks : card->sm_count;
	op->threads = 512;
}

ll_cu_result sim_place_device(uint64_t address, size_t bytes, struct sim_place *ret_place)
{
	const struct sim_memory *memory = sim_memory_find(address);
	char *at = sim_memory_at(address, bytes);
	if (!at)
		return LL_CUDA_ERROR_INVALID_VALUE;
	*ret_place = (struct sim_place){
	    .address = address, .at = at, .is_device = memory->kind == SIM_MEMORY_DEVICE, .is_reachable = true};
	return LL_CUDA_SUCCESS;
}

struct sim_place sim_place_any(uint64_t address, size_t bytes)
{
	struct sim_place place;
	if (sim_place_device(address, bytes, &place) != LL_CUDA_SUCCESS)
		place = (struct sim_place){.address = address, .at = (char *)(uintptr_t)address};
	return place;
}

enum sim_direction sim_direction_of(struct sim_place to, struct sim_place from)
{
	return !to.is_device ? SIM_FROM_CARD : from.is_device ? SIM_ON_CARD : SIM_TO_CARD;
}
