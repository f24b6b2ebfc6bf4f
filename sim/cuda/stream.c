/*
 * Streams: make, destroy, query, wait; waits for events; host functions; attributes.
 */
#include "cuda/local/stream.h"
#include "card/context.h"
#include "cuda/enter.h"
#include "cuda/local/allocations.h"
#include "cuda/local/capture.h"
#include "cuda/local/capture_work.h"
#include "cuda/local/current.h"
#include "cuda/local/pool.h"
#include "cuda/local/queue.h"

ll_cu_result cuStreamCreateWithPriority(struct ll_cu_stream **ret_stream, unsigned int flags, int priority)
{
	SIM_ENTER();
	if (!ret_stream || flags & ~(unsigned)LL_CU_STREAM_NON_BLOCKING)
		return LL_CUDA_ERROR_INVALID_VALUE;
	priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	if (status == LL_CUDA_SUCCESS)
		status = sim_stream_make(context, flags, priority, ret_stream);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuStreamCreate(struct ll_cu_stream **ret_stream, unsigned int flags)
{
	return cuStreamCreateWithPriority(ret_stream, flags, 0);
}

ll_cu_result cuStreamDestroy_v2(struct ll_cu_stream *stream)
{
	SIM_ENTER();
	struct sim_world *w = sim_cuda.world;
	if (!stream || stream == LL_CU_STREAM_LEGACY || stream == LL_CU_STREAM_PER_THREAD ||
	    stream->magic != SIM_MAGIC_STREAM)
		return LL_CUDA_ERROR_INVALID_HANDLE;
	sim_cuda_lock();
	struct ll_cu_stream **link = &stream->context->streams;
	while (*link && *link != stream)
		link = &(*link)->next;
	if (*link)
		*link = stream->next;
	sim_lock(w);
	/* Queued operations are still done. */
	sim_stream_close(w, stream->slot);
	sim_unlock(w);
	sim_stream_forget(stream);
	sim_cuda_unlock();
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuStreamGetPriority(struct ll_cu_stream *handle, int *ret_priority)
{
	SIM_ENTER();
	struct ll_cu_stream *stream;
	sim_cuda_lock();
	ll_cu_result status = ret_priority ? sim_stream_of(handle, &stream) : LL_CUDA_ERROR_INVALID_VALUE;
	if (status == LL_CUDA_SUCCESS)
		*ret_priority = stream->priority;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuStreamGetFlags(struct ll_cu_stream *handle, unsigned int *ret_flags)
{
	SIM_ENTER();
	struct ll_cu_stream *stream;
	sim_cuda_lock();
	ll_cu_result status = ret_flags ? sim_stream_of(handle, &stream) : LL_CUDA_ERROR_INVALID_VALUE;
	if (status == LL_CUDA_SUCCESS)
		*ret_flags = stream->flags;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuStreamGetCtx(struct ll_cu_stream *handle, struct ll_cu_context **ret_context)
{
	SIM_ENTER();
	struct ll_cu_stream *stream;
	sim_cuda_lock();
	ll_cu_result status = ret_context ? sim_stream_of(handle, &stream) : LL_CUDA_ERROR_INVALID_VALUE;
	if (status == LL_CUDA_SUCCESS)
		*ret_context = stream->green ? &stream->green->view : stream->context;
	sim_cuda_unlock();
	return status;
}

static bool is_idle(const struct ll_cu_stream *stream)
{
	struct sim_world *w = sim_cuda.world;
	sim_lock(w);
	bool idle = w->streams[stream->slot].reaped == w->streams[stream->slot].submitted;
	sim_unlock(w);
	return idle;
}

ll_cu_result cuStreamQuery(struct ll_cu_stream *handle)
{
	SIM_ENTER();
	struct ll_cu_stream *stream;
	sim_cuda_lock();
	ll_cu_result status = sim_stream_for_work(handle, &stream);
	if (status == LL_CUDA_SUCCESS && stream->capture)
		status = sim_capture_refuse(stream);
	else if (status == LL_CUDA_SUCCESS)
		status = sim_wait_for_others(stream);
	if (status == LL_CUDA_SUCCESS && !is_idle(stream))
		status = LL_CUDA_ERROR_NOT_READY;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuStreamSynchronize(struct ll_cu_stream *handle)
{
	SIM_ENTER();
	struct ll_cu_stream *stream;
	sim_cuda_lock();
	ll_cu_result status = sim_stream_for_work(handle, &stream);
	if (status == LL_CUDA_SUCCESS)
		status = stream->capture ? sim_capture_refuse(stream) : sim_wait_all(stream);
	if (status == LL_CUDA_SUCCESS)
		sim_pools_synchronised(stream);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuStreamWaitEvent(struct ll_cu_stream *handle, struct ll_cu_event *event, unsigned int flags)
{
	SIM_ENTER();
	if (flags > 1)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!event || event->magic != SIM_MAGIC_EVENT)
		return LL_CUDA_ERROR_INVALID_HANDLE;
	struct ll_cu_stream *stream;
	bool is_captured = false;
	sim_cuda_lock();
	ll_cu_result status = sim_stream_for_work(handle, &stream);
	if (status == LL_CUDA_SUCCESS)
		status = sim_capture_wait(stream, event, flags, &is_captured);
	if (status == LL_CUDA_SUCCESS && !is_captured)
		status = sim_event_queue_wait(event, stream);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuLaunchHostFunc(struct ll_cu_stream *handle, ll_cu_host_fn function, void *user)
{
	SIM_ENTER();
	if (!function)
		return LL_CUDA_ERROR_INVALID_VALUE;
	struct sim_action action = {.kind = SIM_ACTION_HOST, .host = function, .user = user};
	struct ll_cu_graph_node_params params = {.type = LL_CU_GRAPH_NODE_TYPE_HOST, .host = {function, user}};
	struct ll_cu_stream *stream;
	sim_cuda_lock();
	ll_cu_result status = sim_stream_for_work(handle, &stream);
	if (status == LL_CUDA_SUCCESS)
		status = stream->capture ? sim_capture_work(stream, &params) : sim_host_queue(stream, &action);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuStreamAddCallback(struct ll_cu_stream *handle, ll_cu_stream_callback callback, void *user,
				 unsigned int flags)
{
	SIM_ENTER();
	if (!callback || flags)
		return LL_CUDA_ERROR_INVALID_VALUE;
	struct sim_action action = {.kind = SIM_ACTION_HOST, .callback = callback, .stream = handle, .user = user};
	struct ll_cu_stream *stream;
	sim_cuda_lock();
	ll_cu_result status = sim_stream_for_work(handle, &stream);
	if (status == LL_CUDA_SUCCESS)
		status = stream->capture ? sim_capture_refuse(stream) : sim_host_queue(stream, &action);
	sim_cuda_unlock();
	return status;
}

static union ll_cu_launch_attribute_value *find_attribute(struct ll_cu_stream *stream,
							  enum ll_cu_launch_attribute_id attribute)
{
	switch (attribute) {
	case LL_CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		return &stream->access_window;
	case LL_CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		return &stream->sync_policy;
	case LL_CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		return &stream->memory_domain;
	case LL_CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		return &stream->memory_domain_map;
	default:
		return NULL;
	}
}

ll_cu_result cuStreamGetAttribute(struct ll_cu_stream *handle, enum ll_cu_launch_attribute_id attribute,
				  union ll_cu_launch_attribute_value *ret_value)
{
	SIM_ENTER();
	struct ll_cu_stream *stream;
	sim_cuda_lock();
	ll_cu_result status = ret_value ? sim_stream_of(handle, &stream) : LL_CUDA_ERROR_INVALID_VALUE;
	if (status == LL_CUDA_SUCCESS && attribute == LL_CU_LAUNCH_ATTRIBUTE_PRIORITY)
		ret_value->priority = stream->priority;
	else if (status == LL_CUDA_SUCCESS && !find_attribute(stream, attribute))
		status = LL_CUDA_ERROR_INVALID_VALUE;
	else if (status == LL_CUDA_SUCCESS)
		*ret_value = *find_attribute(stream, attribute);
	sim_cuda_unlock();
	return status;
}

static void set_priority(struct ll_cu_stream *stream, int priority)
{
	struct sim_world *w = sim_cuda.world;
	stream->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
	sim_lock(w);
	SIM_EDIT(w, &w->streams[stream->slot])->priority = stream->priority;
	sim_unlock(w);
}

ll_cu_result cuStreamSetAttribute(struct ll_cu_stream *handle, enum ll_cu_launch_attribute_id attribute,
				  const union ll_cu_launch_attribute_value *value)
{
	SIM_ENTER();
	struct ll_cu_stream *stream;
	sim_cuda_lock();
	ll_cu_result status = value ? sim_stream_of(handle, &stream) : LL_CUDA_ERROR_INVALID_VALUE;
	if (status == LL_CUDA_SUCCESS && attribute == LL_CU_LAUNCH_ATTRIBUTE_PRIORITY)
		set_priority(stream, value->priority);
	else if (status == LL_CUDA_SUCCESS && !find_attribute(stream, attribute))
		status = LL_CUDA_ERROR_INVALID_VALUE;
	else if (status == LL_CUDA_SUCCESS)
		*find_attribute(stream, attribute) = *value;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuStreamCopyAttributes(struct ll_cu_stream *to_handle, struct ll_cu_stream *from_handle)
{
	SIM_ENTER();
	struct ll_cu_stream *to, *from;
	sim_cuda_lock();
	ll_cu_result status = sim_stream_of(to_handle, &to);
	if (status == LL_CUDA_SUCCESS)
		status = sim_stream_of(from_handle, &from);
	if (status == LL_CUDA_SUCCESS && to->context != from->context)
		status = LL_CUDA_ERROR_INVALID_VALUE;
	if (status == LL_CUDA_SUCCESS) {
		to->access_window = from->access_window;
		to->sync_policy = from->sync_policy;
		to->memory_domain = from->memory_domain;
		to->memory_domain_map = from->memory_domain_map;
		set_priority(to, from->priority);
	}
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuStreamGetId(struct ll_cu_stream *handle, unsigned long long *ret_id)
{
	SIM_ENTER();
	struct ll_cu_stream *stream;
	sim_cuda_lock();
	ll_cu_result status = ret_id ? sim_stream_of(handle, &stream) : LL_CUDA_ERROR_INVALID_VALUE;
	/* Slots are reused, generations are not. */
	if (status == LL_CUDA_SUCCESS)
		*ret_id = (unsigned long long)stream->generation * SIM_STREAMS + stream->slot + 1;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuStreamGetDevice(struct ll_cu_stream *handle, ll_cu_device *ret_device)
{
	SIM_ENTER();
	struct ll_cu_stream *stream;
	sim_cuda_lock();
	ll_cu_result status = ret_device ? sim_stream_of(handle, &stream) : LL_CUDA_ERROR_INVALID_VALUE;
	if (status == LL_CUDA_SUCCESS)
		*ret_device = stream->context->device;
	sim_cuda_unlock();
	return status;
}

/* It could only matter for managed memory, and the host would not notice a difference. */
ll_cu_result cuStreamAttachMemAsync(struct ll_cu_stream *handle, ll_cu_deviceptr address, size_t bytes,
				    unsigned int flags)
{
	SIM_ENTER();
	struct ll_cu_stream *stream;
	struct sim_op op = {.kind = SIM_OP_MARK, .module = SIM_NONE};
	(void)bytes;
	if (flags != 1 && flags != 2 && flags != 4)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_result status = sim_stream_for_work(handle, &stream);
	if (status == LL_CUDA_SUCCESS && !sim_memory_find(address))
		status = LL_CUDA_ERROR_INVALID_VALUE;
	if (status == LL_CUDA_SUCCESS)
		status = stream->capture ? sim_capture_refuse(stream) : sim_queue(stream, &op, NULL, NULL);
	sim_cuda_unlock();
	return status;
}
