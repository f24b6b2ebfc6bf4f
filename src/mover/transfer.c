#include "mover/transfer.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct ll_transfer {
	const struct ll_transfer_engine *engine;
	struct ll_cu_event *done;
	bool is_begun;            /* something may run */
	struct ll_mapping memory; /* the handles'; of a block that goes to the host there is none */
};

/* ---- the engine ---- */

/* Kernels never run here: no stacks, no heap. */
static void shrink_context(const struct ll_cuda *cuda)
{
	cuda->cuCtxSetLimit(LL_CU_LIMIT_STACK_SIZE, 0);
	cuda->cuCtxSetLimit(LL_CU_LIMIT_PRINTF_FIFO_SIZE, 0);
	cuda->cuCtxSetLimit(LL_CU_LIMIT_MALLOC_HEAP_SIZE, 0);
}

int ll_transfer_engine_init(struct ll_transfer_engine *engine, const struct ll_card *card, struct ll_err *err)
{
	*engine = (struct ll_transfer_engine){0};
	int rc = ll_card_cuda_device(card, &engine->cuda, &engine->device, err);
	if (rc)
		return rc;
	const struct ll_cuda *cuda = engine->cuda;
	ll_cu_result status = cuda->cuCtxCreate(&engine->context, LL_CU_CTX_SCHED_BLOCKING_SYNC, engine->device);
	if (status != LL_CUDA_SUCCESS)
		return ll_cuda_fail(cuda, status, err, "card %s: make a CUDA context", card->label);
	shrink_context(cuda);
	status = cuda->cuStreamCreate(&engine->out, LL_CU_STREAM_NON_BLOCKING);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuStreamCreate(&engine->in, LL_CU_STREAM_NON_BLOCKING);
	if (status != LL_CUDA_SUCCESS) {
		ll_transfer_engine_fini(engine);
		return ll_cuda_fail(cuda, status, err, "card %s: make a stream", card->label);
	}
	engine->releaser = ll_releaser_new(cuda, engine->context);
	if (engine->releaser)
		return 0;
	ll_transfer_engine_fini(engine);
	return ll_err_set(err, -ENOMEM, "card %s: a thread that releases memory: %s", card->label, strerror(ENOMEM));
}

void ll_transfer_engine_fini(struct ll_transfer_engine *engine)
{
	ll_releaser_free(engine->releaser);
	engine->releaser = NULL;
	if (engine->context)
		engine->cuda->cuCtxDestroy(engine->context);
	engine->context = NULL;
}

int ll_transfer_engine_check(const struct ll_transfer_engine *engine, struct ll_err *err)
{
	ll_cu_result status = engine->cuda->cuStreamQuery(engine->out);
	if (status == LL_CUDA_SUCCESS || status == LL_CUDA_ERROR_NOT_READY)
		return 0;
	return ll_cuda_fail(engine->cuda, status, err, "the mover's context");
}

uint64_t ll_transfer_free_bytes(const struct ll_transfer_engine *engine)
{
	size_t free_bytes, total_bytes;
	ll_cu_result status = engine->cuda->cuMemGetInfo(&free_bytes, &total_bytes);
	return status == LL_CUDA_SUCCESS ? free_bytes : 0;
}

/* ---- transfers ---- */

static ll_cu_result import_handles(struct ll_transfer *transfer, const int *fds, const uint64_t *handle_bytes,
				   uint32_t count)
{
	const struct ll_cuda *cuda = transfer->engine->cuda;
	ll_cu_result status = LL_CUDA_SUCCESS;
	for (uint32_t i = 0; i < count && status == LL_CUDA_SUCCESS; i++) {
		ll_cu_mem_handle handle;
		status = cuda->cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fds[i],
							      LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
		if (status == LL_CUDA_SUCCESS)
			status = ll_mapping_add(&transfer->memory, cuda, handle, handle_bytes[i]);
	}
	return status;
}

/* One place, cut where pinned pieces end. */
static ll_cu_result copy_place(const struct ll_transfer *transfer, enum ll_transfer_direction direction,
			       ll_cu_deviceptr at, struct ll_mover_place place)
{
	const struct ll_transfer_engine *engine = transfer->engine;
	ll_cu_result status = LL_CUDA_SUCCESS;
	while (place.bytes && status == LL_CUDA_SUCCESS) {
		uint64_t to_end = LL_MOVER_POOL_STEP_BYTES - place.offset % LL_MOVER_POOL_STEP_BYTES;
		uint64_t part = place.bytes < to_end ? place.bytes : to_end;
		char *host = ll_mover_pool_at(engine->pool, place.offset);
		status = direction == LL_TRANSFER_OUT ? engine->cuda->cuMemcpyDtoHAsync(host, at, part, engine->out)
						      : engine->cuda->cuMemcpyHtoDAsync(at, host, part, engine->in);
		at += part;
		place.offset += part;
		place.bytes -= part;
	}
	return status;
}

static struct ll_cu_stream *stream_of(const struct ll_transfer_engine *engine, enum ll_transfer_direction direction)
{
	return direction == LL_TRANSFER_OUT ? engine->out : engine->in;
}

static ll_cu_result copy_block(const struct ll_transfer *transfer, enum ll_transfer_direction direction,
			       ll_cu_deviceptr block)
{
	const struct ll_transfer_engine *engine = transfer->engine;
	bool is_out = direction == LL_TRANSFER_OUT;
	ll_cu_deviceptr memory = transfer->memory.address;
	return engine->cuda->cuMemcpyDtoDAsync(is_out ? block : memory, is_out ? memory : block, transfer->memory.bytes,
					       stream_of(engine, direction));
}

static ll_cu_result copy_places(const struct ll_transfer *transfer, enum ll_transfer_direction direction,
				ll_cu_deviceptr at, struct ll_transfer_store store)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	for (uint32_t i = 0; i < store.place_count && status == LL_CUDA_SUCCESS; i++) {
		status = copy_place(transfer, direction, at, store.places[i]);
		at += store.places[i].bytes;
	}
	return status;
}

/* A block that goes to the host has no memory of a program in it. */
static ll_cu_result begin_copies(struct ll_transfer *transfer, enum ll_transfer_direction direction,
				 struct ll_transfer_store store)
{
	const struct ll_cuda *cuda = transfer->engine->cuda;
	ll_cu_result status = cuda->cuEventCreate(&transfer->done, LL_CU_EVENT_DISABLE_TIMING);
	if (status != LL_CUDA_SUCCESS)
		return status;
	transfer->is_begun = true;
	if (store.block && transfer->memory.bytes)
		status = copy_block(transfer, direction, store.block);
	else
		status = copy_places(transfer, direction, store.block ? store.block : transfer->memory.address, store);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuEventRecord(transfer->done, stream_of(transfer->engine, direction));
	return status;
}

static ll_cu_result map_handles(struct ll_transfer *transfer, const int *fds, const uint64_t *handle_bytes,
				uint32_t count)
{
	const struct ll_transfer_engine *engine = transfer->engine;
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < count; i++)
		bytes += handle_bytes[i];
	ll_cu_result status = ll_mapping_reserve(&transfer->memory, engine->cuda, bytes);
	if (status == LL_CUDA_SUCCESS)
		status = import_handles(transfer, fds, handle_bytes, count);
	return status == LL_CUDA_SUCCESS ? ll_mapping_allow(&transfer->memory, engine->cuda, engine->device) : status;
}

/* count 0: the block of the store goes to its places. */
static int new_transfer(const struct ll_transfer_engine *engine, enum ll_transfer_direction direction, const int *fds,
			const uint64_t *handle_bytes, uint32_t count, struct ll_transfer_store store,
			struct ll_transfer **ret_transfer, struct ll_err *err)
{
	struct ll_transfer *transfer = calloc(1, sizeof *transfer);
	if (!transfer)
		return ll_err_set(err, -ENOMEM, "a transfer: %s", strerror(ENOMEM));
	transfer->engine = engine;
	ll_cu_result status = count ? map_handles(transfer, fds, handle_bytes, count) : LL_CUDA_SUCCESS;
	if (status == LL_CUDA_SUCCESS)
		status = begin_copies(transfer, direction, store);
	if (status == LL_CUDA_SUCCESS) {
		*ret_transfer = transfer;
		return 0;
	}
	ll_transfer_free(transfer);
	return ll_cuda_fail(engine->cuda, status, err, "copy memory %s", direction == LL_TRANSFER_OUT ? "out" : "in");
}

int ll_transfer_new(const struct ll_transfer_engine *engine, enum ll_transfer_direction direction, const int *fds,
		    const uint64_t *handle_bytes, uint32_t count, struct ll_transfer_store store,
		    struct ll_transfer **ret_transfer, struct ll_err *err)
{
	return new_transfer(engine, direction, fds, handle_bytes, count, store, ret_transfer, err);
}

int ll_transfer_new_to_host(const struct ll_transfer_engine *engine, struct ll_transfer_store store,
			    struct ll_transfer **ret_transfer, struct ll_err *err)
{
	return new_transfer(engine, LL_TRANSFER_OUT, NULL, NULL, 0, store, ret_transfer, err);
}

int ll_transfer_is_done(struct ll_transfer *transfer, struct ll_err *err)
{
	ll_cu_result status = transfer->engine->cuda->cuEventQuery(transfer->done);
	if (status == LL_CUDA_SUCCESS) {
		transfer->is_begun = false;
		return 0;
	}
	if (status == LL_CUDA_ERROR_NOT_READY)
		return -EAGAIN;
	return ll_cuda_fail(transfer->engine->cuda, status, err, "copy memory");
}

void ll_transfer_free(struct ll_transfer *transfer)
{
	if (!transfer)
		return;
	const struct ll_cuda *cuda = transfer->engine->cuda;
	if (transfer->is_begun)
		cuda->cuCtxSynchronize();
	if (transfer->done)
		cuda->cuEventDestroy(transfer->done);
	ll_releaser_put(transfer->engine->releaser, &transfer->memory);
	free(transfer);
}
