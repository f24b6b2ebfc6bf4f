/*
 * What streams carry: attributes, their number, their card, memory attached to them.
 */
#include "cuda/capture.h"
#include "cuda/local.h"

static union ll_cu_launch_attribute_value *kept(struct ll_cu_stream *stream, enum ll_cu_launch_attribute_id attribute)
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
	else if (status == LL_CUDA_SUCCESS && !kept(stream, attribute))
		status = LL_CUDA_ERROR_INVALID_VALUE;
	else if (status == LL_CUDA_SUCCESS)
		*ret_value = *kept(stream, attribute);
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
	else if (status == LL_CUDA_SUCCESS && !kept(stream, attribute))
		status = LL_CUDA_ERROR_INVALID_VALUE;
	else if (status == LL_CUDA_SUCCESS)
		*kept(stream, attribute) = *value;
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
	/* Slots are given out again, generations are not. */
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

/* Of managed memory alone it could mean something, and to the host's eye it changes nothing. */
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
