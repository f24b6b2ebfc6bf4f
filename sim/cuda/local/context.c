/*
 * Contexts: make, destroy, set their stack limit; and the cards' primary contexts.
 */
#include "cuda/local/context.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "card/context.h"
#include "card/defaults.h"
#include "card/engine.h"
#include "card/memory.h"
#include "card/queue.h"
#include "cuda/local/allocations.h"
#include "cuda/local/array.h"
#include "cuda/local/capture.h"
#include "cuda/local/current.h"
#include "cuda/local/module.h"
#include "cuda/local/pump.h"
#include "cuda/local/stream.h"

/* Making a context occupies the card's front end and SMs several times, which other programs notice. */
static void queue_creation_work(struct sim_world *w, uint32_t slot)
{
	enum { BURSTS = 3 };
	const struct sim_context *shared = &w->contexts[slot];
	uint64_t work_ns = w->cards[shared->card].context_work_ns;
	for (int i = 0; work_ns && i < BURSTS; i++) {
		uint64_t position;
		struct sim_op op = {
		    .kind = SIM_OP_KERNEL,
		    .length_ns = work_ns / BURSTS,
		    .module = SIM_NONE,
		    .blocks = w->cards[shared->card].sm_count,
		    .threads = 256,
		};
		sim_submit(w, shared->streams[0], &op, &position);
	}
}

static ll_cu_result make_shared(uint32_t card, uint32_t *ret_slot, uint64_t *ret_wait_ns)
{
	struct sim_world *w = sim_cuda.world;
	int rc;
	sim_lock(w);
	sim_advance_to_now(w);
	uint32_t physical = w->cards[card].parent == SIM_NONE ? card : w->cards[card].parent;
	bool is_gone = w->cards[physical].is_gone;
	uint32_t error = w->procs[sim_cuda.proc].mps.error;
	if (error == LL_CUDA_ERROR_MPS_CLIENT_TERMINATED)
		error = 0; /* its contexts were terminated, and it may make others */
	bool is_told;
	uint32_t queues = sim_rm_connections(&is_told);
	rc = is_gone || error ? -EBUSY : sim_context_new(w, card, sim_cuda.proc, queues, ret_slot);
	if (rc == 0)
		queue_creation_work(w, *ret_slot);
	*ret_wait_ns = w->cards[card].context_ns / (queues == 1 ? 2 : 1);
	sim_unlock(w);
	if (error) /* a client whose MPS server has failed */
		return (ll_cu_result)error;
	return rc == 0        ? LL_CUDA_SUCCESS
	       : rc == -EBUSY ? LL_CUDA_ERROR_DEVICE_UNAVAILABLE
			      : LL_CUDA_ERROR_OUT_OF_MEMORY;
}

ll_cu_result sim_context_make(ll_cu_device device, unsigned flags, struct ll_cu_context **ret_context)
{
	uint64_t wait_ns;
	struct ll_cu_context *context = calloc(1, sizeof *context);
	if (!context)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	context->card = sim_cuda.devices[device];
	ll_cu_result status = make_shared(context->card, &context->slot, &wait_ns);
	if (status) {
		free(context);
		return status;
	}
	const struct sim_context *shared = &sim_cuda.world->contexts[context->slot];
	context->magic = SIM_MAGIC_CONTEXT;
	context->generation = shared->generation;
	context->device = device;
	context->id = ++sim_cuda.last_context_id;
	context->flags = flags;
	context->printf_bytes = 1 << 20;
	context->heap_bytes = 8 << 20;
	context->legacy = (struct ll_cu_stream){
	    .magic = SIM_MAGIC_STREAM,
	    .slot = shared->streams[0],
	    .generation = sim_cuda.world->streams[shared->streams[0]].generation,
	    .context = context,
	};
	context->next = sim_cuda.contexts;
	sim_cuda.contexts = context;
	sim_worker_start();
	/* The memory is in use at once; the call returns after the time of the real driver. */
	uint64_t ready_ns = ll_now_ns() + wait_ns;
	pthread_mutex_unlock(&sim_cuda.lock);
	sim_rm_open(&context->groups, context->card, context->slot);
	ll_sleep_until_ns(ready_ns);
	pthread_mutex_lock(&sim_cuda.lock);
	*ret_context = context;
	return LL_CUDA_SUCCESS;
}

static void forget_context(struct ll_cu_context *context)
{
	struct ll_cu_context **link = &sim_cuda.contexts;
	while (*link && *link != context)
		link = &(*link)->next;
	while (context->modules)
		sim_module_forget(context->modules);
	sim_arrays_forget(context);
	sim_memory_free_context(context);
	if (*link)
		*link = context->next;
	while (context->streams) {
		struct ll_cu_stream *stream = context->streams;
		context->streams = stream->next;
		sim_stream_forget(stream);
	}
	context->magic = 0;
	free(context);
}

void sim_context_destroy(struct ll_cu_context *context)
{
	struct sim_world *w = sim_cuda.world;
	sim_wait_context(context);
	sim_current_forget(context);
	uint32_t slot = context->slot;
	struct sim_rm_groups groups = context->groups;
	forget_context(context);
	sim_lock(w);
	sim_advance_to_now(w);
	uint64_t gone_ns = ll_now_ns() + w->cards[w->contexts[slot].card].context_ns / 2;
	sim_context_free(w, slot);
	sim_unlock(w);
	pthread_mutex_unlock(&sim_cuda.lock);
	sim_rm_close(&groups);
	ll_sleep_until_ns(gone_ns);
	pthread_mutex_lock(&sim_cuda.lock);
}

ll_cu_result sim_primary_retain(struct ll_cu_context **ret_context, ll_cu_device device)
{
	if (!ret_context)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (device < 0 || device >= sim_cuda.device_count)
		return LL_CUDA_ERROR_INVALID_DEVICE;
	sim_cuda_lock();
	ll_cu_result status = LL_CUDA_SUCCESS;
	if (!sim_cuda.primaries[device]) {
		struct ll_cu_context *context;
		status = sim_context_make(device, sim_cuda.primary_flags[device], &context);
		if (status == LL_CUDA_SUCCESS) {
			context->is_primary = true;
			sim_cuda.primaries[device] = context;
		}
	}
	if (status == LL_CUDA_SUCCESS) {
		sim_cuda.primaries[device]->primary_references++;
		*ret_context = sim_cuda.primaries[device];
	}
	sim_cuda_unlock();
	return status;
}

ll_cu_result sim_primary_drop(ll_cu_device device, bool at_once)
{
	if (device < 0 || device >= sim_cuda.device_count)
		return LL_CUDA_ERROR_INVALID_DEVICE;
	sim_cuda_lock();
	struct ll_cu_context *context = sim_cuda.primaries[device];
	ll_cu_result status = context || at_once ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_CONTEXT;
	if (context && (at_once || --context->primary_references == 0)) {
		sim_cuda.primaries[device] = NULL;
		sim_context_destroy(context);
	}
	sim_cuda_unlock();
	return status;
}

ll_cu_result sim_context_set_stack(const struct ll_cu_context *context, size_t bytes)
{
	struct sim_world *w = sim_cuda.world;
	ll_cu_result status = LL_CUDA_SUCCESS;
	if (bytes > 512 << 10)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_lock(w);
	sim_advance_to_now(w);
	struct sim_context *shared = &w->contexts[context->slot];
	uint64_t own_bytes = sim_context_own_bytes(w, shared, bytes);
	if (own_bytes > shared->own_bytes &&
	    !sim_proc_has_room(w, context->card, shared->proc, own_bytes - shared->own_bytes)) {
		status = LL_CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		SIM_EDIT(w, shared)->own_bytes = own_bytes;
		shared->stack_bytes = bytes;
	}
	sim_unlock(w);
	return status;
}
