/*
 * Copies and memsets. Bytes move when the model says that the copy is done; from host memory the card cannot reach by
 * itself they are staged when the call is made, and to such memory the call waits, as the real driver does.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda_local.h"
#include "engine.h"

enum direction { TO_CARD, FROM_CARD, ON_CARD };

enum { COPY_OVERHEAD_NS = 2000 };

static void fill_in(struct sim_op *op, const struct ll_cu_context *context, enum direction direction, size_t bytes)
{
	const struct sim_card *card = &sim_cuda.world->cards[context->card];
	double rate = direction == ON_CARD ? card->memory_bytes_per_ns : card->copy_bytes_per_ns;
	*op = (struct sim_op){
	    .kind = direction == ON_CARD ? SIM_OP_KERNEL : SIM_OP_COPY,
	    .direction = direction == FROM_CARD,
	    .length_ns = COPY_OVERHEAD_NS + (uint64_t)((double)bytes / rate),
	    .module = SIM_NONE,
	};
	if (direction != ON_CARD)
		return;
	/* Copies and memsets on the card are kernels of the driver: a block for each 64 KiB. */
	size_t blocks = (bytes + 65535) / 65536;
	op->blocks = blocks < card->sm_count ? (uint32_t)blocks : card->sm_count;
	op->threads = 512;
}

/* An address of the card, or of the host: where its bytes are. is_reachable: the card reaches it by itself. */
struct place {
	char *at;
	bool is_device;
	bool is_reachable;
};

static ll_cu_result find_device(uint64_t address, size_t bytes, struct place *ret_place)
{
	const struct sim_memory *memory = sim_memory_find(address);
	char *at = sim_memory_at(address, bytes);
	if (!at)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_managed_touch(address);
	*ret_place = (struct place){.at = at, .is_device = memory->kind == SIM_MEMORY_DEVICE, .is_reachable = true};
	return LL_CUDA_SUCCESS;
}

static struct place find_host(const void *pointer, size_t bytes)
{
	struct place place = {.at = (char *)(uintptr_t)pointer};
	if (find_device((uintptr_t)pointer, bytes, &place) != LL_CUDA_SUCCESS)
		place = (struct place){.at = (char *)(uintptr_t)pointer};
	return place;
}

static ll_cu_result copy(struct place to, struct place from, size_t bytes, struct ll_cu_stream *handle, bool is_async)
{
	struct ll_cu_stream *stream;
	struct sim_op op;
	uint64_t position;
	ll_cu_result status = sim_stream_of(handle, &stream);
	if (status || !bytes)
		return status;
	struct sim_action action = {.kind = SIM_ACTION_COPY, .to = to.at, .from = from.at, .bytes = bytes};
	if (is_async && !from.is_reachable) {
		action.staged = malloc(bytes);
		if (!action.staged)
			return LL_CUDA_ERROR_OUT_OF_MEMORY;
		memcpy(action.staged, from.at, bytes);
	}
	enum direction direction = !to.is_device ? FROM_CARD : from.is_device ? ON_CARD : TO_CARD;
	fill_in(&op, stream->context, direction, bytes);
	status = sim_queue(stream, &op, &action, &position);
	if (status == LL_CUDA_SUCCESS && (!is_async || !to.is_reachable))
		status = sim_wait(stream, position);
	return status;
}

static ll_cu_result copy_to_card(ll_cu_deviceptr to, const void *from, size_t bytes, struct ll_cu_stream *stream,
				 bool is_async)
{
	struct place target = {0};
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	if (!status && bytes)
		status = find_device(to, bytes, &target);
	if (!status)
		status = copy(target, find_host(from, bytes), bytes, stream, is_async);
	sim_cuda_unlock();
	return status;
}

static ll_cu_result copy_from_card(void *to, ll_cu_deviceptr from, size_t bytes, struct ll_cu_stream *stream,
				   bool is_async)
{
	struct place source = {0};
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	if (!status && bytes)
		status = find_device(from, bytes, &source);
	if (!status)
		status = copy(find_host(to, bytes), source, bytes, stream, is_async);
	sim_cuda_unlock();
	return status;
}

/* Any two addresses: what is not known to the card is taken for host memory. */
static ll_cu_result copy_any(ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes, bool must_be_known,
			     struct ll_cu_stream *stream, bool is_async)
{
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	struct place target = find_host((void *)(uintptr_t)to, bytes);
	struct place source = find_host((void *)(uintptr_t)from, bytes);
	if (!status && must_be_known && bytes && (!target.is_reachable || !source.is_reachable))
		status = LL_CUDA_ERROR_INVALID_VALUE;
	if (!status)
		status = copy(target, source, bytes, stream, is_async);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuMemcpy(ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes)
{
	SIM_ENTER();
	return copy_any(to, from, bytes, false, NULL, false);
}

ll_cu_result cuMemcpyAsync(ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return copy_any(to, from, bytes, false, stream, true);
}

ll_cu_result cuMemcpyHtoD_v2(ll_cu_deviceptr to, const void *from, size_t bytes)
{
	SIM_ENTER();
	return copy_to_card(to, from, bytes, NULL, false);
}

ll_cu_result cuMemcpyHtoDAsync_v2(ll_cu_deviceptr to, const void *from, size_t bytes, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return copy_to_card(to, from, bytes, stream, true);
}

ll_cu_result cuMemcpyDtoH_v2(void *to, ll_cu_deviceptr from, size_t bytes)
{
	SIM_ENTER();
	return copy_from_card(to, from, bytes, NULL, false);
}

ll_cu_result cuMemcpyDtoHAsync_v2(void *to, ll_cu_deviceptr from, size_t bytes, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return copy_from_card(to, from, bytes, stream, true);
}

ll_cu_result cuMemcpyDtoD_v2(ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes)
{
	SIM_ENTER();
	return copy_any(to, from, bytes, true, NULL, false);
}

ll_cu_result cuMemcpyDtoDAsync_v2(ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return copy_any(to, from, bytes, true, stream, true);
}

static ll_cu_result fill(ll_cu_deviceptr to, uint32_t value, uint32_t width, size_t count, struct ll_cu_stream *handle,
			 bool is_async)
{
	struct place target = {0};
	struct sim_op op;
	uint64_t position;
	size_t bytes;
	if (to % width || __builtin_mul_overflow(count, (size_t)width, &bytes))
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	struct ll_cu_context *context;
	struct ll_cu_stream *stream;
	ll_cu_result status = sim_current(&context);
	if (!status)
		status = sim_stream_of(handle, &stream);
	if (!status && bytes)
		status = find_device(to, bytes, &target);
	if (!status && bytes) {
		struct sim_action action = {
		    .kind = SIM_ACTION_FILL, .to = target.at, .value = value, .width = width, .bytes = bytes};
		fill_in(&op, context, ON_CARD, bytes);
		status = sim_queue(stream, &op, &action, &position);
		if (!status && !is_async)
			status = sim_wait(stream, position);
	}
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuMemsetD8_v2(ll_cu_deviceptr to, unsigned char value, size_t count)
{
	SIM_ENTER();
	return fill(to, value, 1, count, NULL, false);
}

ll_cu_result cuMemsetD16_v2(ll_cu_deviceptr to, unsigned short value, size_t count)
{
	SIM_ENTER();
	return fill(to, value, 2, count, NULL, false);
}

ll_cu_result cuMemsetD32_v2(ll_cu_deviceptr to, unsigned int value, size_t count)
{
	SIM_ENTER();
	return fill(to, value, 4, count, NULL, false);
}

ll_cu_result cuMemsetD8Async(ll_cu_deviceptr to, unsigned char value, size_t count, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return fill(to, value, 1, count, stream, true);
}

ll_cu_result cuMemsetD16Async(ll_cu_deviceptr to, unsigned short value, size_t count, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return fill(to, value, 2, count, stream, true);
}

ll_cu_result cuMemsetD32Async(ll_cu_deviceptr to, unsigned int value, size_t count, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return fill(to, value, 4, count, stream, true);
}
