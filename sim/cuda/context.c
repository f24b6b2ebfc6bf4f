/*
 * Contexts: made, destroyed, current in a thread, limits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "card/context.h"
#include "card/defaults.h"
#include "card/engine.h"
#include "card/memory.h"
#include "card/queue.h"
#include "cuda/capture.h"

static _Thread_local struct ll_cu_context *stack[SIM_CONTEXT_STACK];
static _Thread_local int depth;

static bool is_known(const struct ll_cu_context *context)
{
	for (const struct ll_cu_context *c = sim_cuda.contexts; c; c = c->next) {
		if (c == context)
			return true;
	}
	return false;
}

static bool may_be_current(const struct ll_cu_context *context)
{
	return is_known(context) || sim_green_is_view(context);
}

ll_cu_result sim_context_status(const struct ll_cu_context *context)
{
	struct sim_world *w = sim_cuda.world;
	if (!may_be_current(context))
		return LL_CUDA_ERROR_CONTEXT_IS_DESTROYED;
	sim_lock(w);
	ll_cu_result status = (ll_cu_result)w->contexts[context->slot].error;
	sim_unlock(w);
	return status;
}

ll_cu_result sim_current(struct ll_cu_context **ret_context)
{
	if (depth == 0 || !stack[depth - 1])
		return LL_CUDA_ERROR_INVALID_CONTEXT;
	ll_cu_result status = sim_context_status(stack[depth - 1]);
	if (status == LL_CUDA_SUCCESS)
		*ret_context = stack[depth - 1]->whole ? stack[depth - 1]->whole : stack[depth - 1];
	return status;
}

/* Making a context keeps the card's front end and SMs busy now and then: others notice. */
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

/* CUDA_DEVICE_MAX_CONNECTIONS: 8 unless told, 1 to 32. */
static uint32_t connections(void)
{
	const char *text = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
	long wanted = text ? strtol(text, NULL, 10) : 0;
	return wanted < 1 ? 8 : wanted > 32 ? 32 : (uint32_t)wanted;
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
		error = 0; /* it lost its contexts, and may make others */
	uint32_t queues = connections();
	rc = is_gone || error ? -EBUSY : sim_context_new(w, card, sim_cuda.proc, queues, ret_slot);
	if (rc == 0)
		queue_creation_work(w, *ret_slot);
	*ret_wait_ns = w->cards[card].context_ns / (queues == 1 ? 2 : 1);
	sim_unlock(w);
	if (error) /* a client that its MPS server has lost */
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
	/* The memory is taken from the first moment; the call comes back when the real one would. */
	uint64_t ready_ns = ll_now_ns() + wait_ns;
	pthread_mutex_unlock(&sim_cuda.lock);
	ll_sleep_until_ns(ready_ns);
	pthread_mutex_lock(&sim_cuda.lock);
	*ret_context = context;
	return LL_CUDA_SUCCESS;
}

void sim_context_forget(struct ll_cu_context *context)
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

static void destroy(struct ll_cu_context *context)
{
	struct sim_world *w = sim_cuda.world;
	sim_wait_context(context);
	for (int i = 0; i < depth; i++) {
		if (stack[i] == context)
			stack[i] = NULL;
	}
	uint32_t slot = context->slot;
	sim_context_forget(context);
	sim_lock(w);
	sim_advance_to_now(w);
	uint64_t gone_ns = ll_now_ns() + w->cards[w->contexts[slot].card].context_ns / 2;
	sim_context_free(w, slot);
	sim_unlock(w);
	pthread_mutex_unlock(&sim_cuda.lock);
	ll_sleep_until_ns(gone_ns);
	pthread_mutex_lock(&sim_cuda.lock);
}

/* A green context is current to one thread at a time. */
static bool use(struct ll_cu_context *context)
{
	if (context->whole && context->uses && !pthread_equal(context->thread, pthread_self()))
		return false;
	context->thread = pthread_self();
	context->uses++;
	return true;
}

static void leave(struct ll_cu_context *context)
{
	if (context && may_be_current(context) && context->uses)
		context->uses--;
}

static ll_cu_result push(struct ll_cu_context *context)
{
	if (depth == SIM_CONTEXT_STACK)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!use(context))
		return LL_CUDA_ERROR_INVALID_CONTEXT;
	stack[depth++] = context;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuCtxCreate_v2(struct ll_cu_context **ret_context, unsigned int flags, ll_cu_device device)
{
	SIM_ENTER();
	if (!ret_context || flags & ~(unsigned)LL_CU_CTX_FLAGS_MASK)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (device < 0 || device >= sim_cuda.device_count)
		return LL_CUDA_ERROR_INVALID_DEVICE;
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_context_make(device, flags, &context);
	if (status == LL_CUDA_SUCCESS) {
		*ret_context = context;
		status = push(context);
	}
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuCtxCreate_v4(struct ll_cu_context **ret_context, struct ll_cu_ctx_create_params *params,
			    unsigned int flags, ll_cu_device device)
{
	return params ? LL_CUDA_ERROR_NOT_SUPPORTED : cuCtxCreate_v2(ret_context, flags, device);
}

ll_cu_result cuGLCtxCreate_v2(struct ll_cu_context **ret_context, unsigned int flags, ll_cu_device device)
{
	SIM_ENTER();
	return cuCtxCreate_v2(ret_context, flags, device);
}

ll_cu_result cuVDPAUCtxCreate_v2(struct ll_cu_context **ret_context, unsigned int flags, ll_cu_device device,
				 ll_vdp_device vdp_device, ll_vdp_get_proc_address *vdp_get_proc_address)
{
	SIM_ENTER();
	(void)vdp_device;
	(void)vdp_get_proc_address;
	return cuCtxCreate_v2(ret_context, flags, device);
}

ll_cu_result cuCtxDestroy_v2(struct ll_cu_context *context)
{
	SIM_ENTER();
	sim_cuda_lock();
	ll_cu_result status = LL_CUDA_SUCCESS;
	if (!is_known(context) || context->is_primary)
		status = LL_CUDA_ERROR_INVALID_CONTEXT;
	else
		destroy(context);
	while (depth && !stack[depth - 1])
		depth--;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuCtxAttach(struct ll_cu_context **ret_context, unsigned int flags)
{
	SIM_ENTER();
	struct ll_cu_context *context = depth ? stack[depth - 1] : NULL;
	if (!ret_context || flags)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!context)
		return LL_CUDA_ERROR_INVALID_CONTEXT;
	sim_cuda_lock();
	context->attaches++;
	*ret_context = context;
	sim_cuda_unlock();
	return LL_CUDA_SUCCESS;
}

/* Only of the thread's current one. */
ll_cu_result cuCtxDetach(struct ll_cu_context *context)
{
	SIM_ENTER();
	if (!context || !depth || stack[depth - 1] != context)
		return LL_CUDA_ERROR_INVALID_CONTEXT;
	sim_cuda_lock();
	bool is_last = !context->attaches;
	context->attaches -= !is_last;
	sim_cuda_unlock();
	return is_last ? cuCtxDestroy_v2(context) : LL_CUDA_SUCCESS;
}

ll_cu_result cuCtxPushCurrent_v2(struct ll_cu_context *context)
{
	SIM_ENTER();
	sim_cuda_lock();
	ll_cu_result status = may_be_current(context) ? push(context) : LL_CUDA_ERROR_INVALID_CONTEXT;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuCtxPopCurrent_v2(struct ll_cu_context **ret_context)
{
	SIM_ENTER();
	if (depth == 0)
		return LL_CUDA_ERROR_INVALID_CONTEXT;
	depth--;
	sim_cuda_lock();
	leave(stack[depth]);
	sim_cuda_unlock();
	if (ret_context)
		*ret_context = stack[depth];
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuCtxSetCurrent(struct ll_cu_context *context)
{
	SIM_ENTER();
	sim_cuda_lock();
	ll_cu_result status = LL_CUDA_SUCCESS;
	if (!context) {
		if (depth)
			leave(stack[--depth]);
	} else if (!may_be_current(context) || (depth && !use(context))) {
		status = LL_CUDA_ERROR_INVALID_CONTEXT;
	} else if (depth) {
		leave(stack[depth - 1]);
		stack[depth - 1] = context;
	} else {
		status = push(context);
	}
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuCtxGetCurrent(struct ll_cu_context **ret_context)
{
	SIM_ENTER();
	if (!ret_context)
		return LL_CUDA_ERROR_INVALID_VALUE;
	*ret_context = depth ? stack[depth - 1] : NULL;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuCtxGetDevice(ll_cu_device *ret_device)
{
	SIM_ENTER();
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = ret_device ? sim_current(&context) : LL_CUDA_ERROR_INVALID_VALUE;
	if (status == LL_CUDA_SUCCESS)
		*ret_device = context->device;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuCtxGetFlags(unsigned int *ret_flags)
{
	SIM_ENTER();
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = ret_flags ? sim_current(&context) : LL_CUDA_ERROR_INVALID_VALUE;
	if (status == LL_CUDA_SUCCESS)
		*ret_flags = context->flags;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuCtxGetApiVersion(struct ll_cu_context *context, unsigned int *ret_version)
{
	SIM_ENTER();
	if (!ret_version)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_result status = !context || is_known(context) ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_CONTEXT;
	sim_cuda_unlock();
	if (status == LL_CUDA_SUCCESS)
		*ret_version = 3020;
	return status;
}

ll_cu_result cuCtxGetId(struct ll_cu_context *context, unsigned long long *ret_id)
{
	SIM_ENTER();
	if (!ret_id)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_result status = LL_CUDA_SUCCESS;
	if (!context)
		status = sim_current(&context);
	else if (!is_known(context))
		status = LL_CUDA_ERROR_INVALID_CONTEXT;
	if (status == LL_CUDA_SUCCESS)
		*ret_id = context->id;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuCtxSynchronize(void)
{
	SIM_ENTER();
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	if (status == LL_CUDA_SUCCESS)
		status = sim_capture_refuse_context(context);
	if (status == LL_CUDA_SUCCESS)
		status = sim_wait_context(context);
	if (status == LL_CUDA_SUCCESS)
		sim_pools_synchronised(NULL);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuCtxSynchronize_v2(struct ll_cu_context *context)
{
	SIM_ENTER();
	sim_cuda_lock();
	ll_cu_result status = context ? LL_CUDA_SUCCESS : sim_current(&context);
	if (status == LL_CUDA_SUCCESS)
		status = is_known(context) ? sim_wait_context(context) : LL_CUDA_ERROR_INVALID_CONTEXT;
	if (status == LL_CUDA_SUCCESS)
		sim_pools_synchronised(NULL);
	sim_cuda_unlock();
	return status;
}

static ll_cu_result set_stack(const struct ll_cu_context *context, size_t bytes)
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

ll_cu_result cuCtxSetLimit(enum ll_cu_limit limit, size_t value)
{
	SIM_ENTER();
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	if (status == LL_CUDA_SUCCESS) {
		switch (limit) {
		case LL_CU_LIMIT_STACK_SIZE:
			status = set_stack(context, value);
			break;
		case LL_CU_LIMIT_PRINTF_FIFO_SIZE:
			context->printf_bytes = value;
			break;
		case LL_CU_LIMIT_MALLOC_HEAP_SIZE:
			context->heap_bytes = value;
			break;
		default:
			status = LL_CUDA_ERROR_UNSUPPORTED_LIMIT;
		}
	}
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuCtxGetLimit(size_t *ret_value, enum ll_cu_limit limit)
{
	SIM_ENTER();
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = ret_value ? sim_current(&context) : LL_CUDA_ERROR_INVALID_VALUE;
	if (status == LL_CUDA_SUCCESS) {
		switch (limit) {
		case LL_CU_LIMIT_STACK_SIZE:
			sim_lock(sim_cuda.world);
			*ret_value = sim_cuda.world->contexts[context->slot].stack_bytes;
			sim_unlock(sim_cuda.world);
			break;
		case LL_CU_LIMIT_PRINTF_FIFO_SIZE:
			*ret_value = context->printf_bytes;
			break;
		case LL_CU_LIMIT_MALLOC_HEAP_SIZE:
			*ret_value = context->heap_bytes;
			break;
		default:
			status = LL_CUDA_ERROR_UNSUPPORTED_LIMIT;
		}
	}
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuCtxGetStreamPriorityRange(int *ret_least, int *ret_greatest)
{
	SIM_ENTER();
	if (ret_least)
		*ret_least = 0;
	if (ret_greatest)
		*ret_greatest = -5;
	return LL_CUDA_SUCCESS;
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

ll_cu_result cuDevicePrimaryCtxRetain(struct ll_cu_context **ret_context, ll_cu_device device)
{
	SIM_ENTER();
	return sim_primary_retain(ret_context, device);
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
		destroy(context);
	}
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuDevicePrimaryCtxRelease_v2(ll_cu_device device)
{
	SIM_ENTER();
	return sim_primary_drop(device, false);
}

ll_cu_result cuDevicePrimaryCtxReset_v2(ll_cu_device device)
{
	SIM_ENTER();
	return sim_primary_drop(device, true);
}

ll_cu_result cuDevicePrimaryCtxSetFlags_v2(ll_cu_device device, unsigned int flags)
{
	SIM_ENTER();
	if (device < 0 || device >= sim_cuda.device_count)
		return LL_CUDA_ERROR_INVALID_DEVICE;
	if (flags & ~(unsigned)LL_CU_CTX_FLAGS_MASK)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	sim_cuda.primary_flags[device] = flags;
	if (sim_cuda.primaries[device])
		sim_cuda.primaries[device]->flags = flags;
	sim_cuda_unlock();
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuDevicePrimaryCtxGetState(ll_cu_device device, unsigned int *ret_flags, int *ret_active)
{
	SIM_ENTER();
	if (device < 0 || device >= sim_cuda.device_count)
		return LL_CUDA_ERROR_INVALID_DEVICE;
	if (!ret_flags || !ret_active)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	*ret_flags = sim_cuda.primary_flags[device];
	*ret_active = sim_cuda.primaries[device] != NULL;
	sim_cuda_unlock();
	return LL_CUDA_SUCCESS;
}
