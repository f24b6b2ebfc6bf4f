/*
 * Events: positions in streams, with the time at which they were reached.
 */
#include "cuda/local/event.h"
#include "base/clock.h"
#include "cuda/enter.h"
#include "cuda/local/capture.h"
#include "cuda/local/capture_work.h"
#include "cuda/local/current.h"
#include "cuda/local/pool.h"
#include "cuda/local/queue.h"
#include "cuda/local/stream.h"

ll_cu_result cuEventCreate(struct ll_cu_event **ret_event, unsigned int flags)
{
	SIM_ENTER();
	if (!ret_event || flags > 7)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (flags & LL_CU_EVENT_INTERPROCESS && !(flags & LL_CU_EVENT_DISABLE_TIMING))
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	struct ll_cu_event *event = status ? NULL : sim_event_new(context, flags);
	if (!status && !event)
		status = LL_CUDA_ERROR_OUT_OF_MEMORY;
	if (event)
		*ret_event = event;
	sim_cuda_unlock();
	return status;
}

static bool is_event(const struct ll_cu_event *event)
{
	return event && event->magic == SIM_MAGIC_EVENT;
}

ll_cu_result cuEventDestroy_v2(struct ll_cu_event *event)
{
	SIM_ENTER();
	if (!is_event(event))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	sim_cuda_lock();
	sim_event_unshare(event);
	event->magic = 0;
	sim_event_drop(event);
	sim_cuda_unlock();
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuEventRecordWithFlags(struct ll_cu_event *event, struct ll_cu_stream *handle, unsigned int flags)
{
	SIM_ENTER();
	if (!is_event(event))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	if (flags > LL_CU_EVENT_RECORD_EXTERNAL)
		return LL_CUDA_ERROR_INVALID_VALUE;
	struct ll_cu_stream *stream;
	sim_cuda_lock();
	ll_cu_result status = sim_stream_for_work(handle, &stream);
	if (status == LL_CUDA_SUCCESS)
		status =
		    stream->capture ? sim_capture_record(stream, event, flags) : sim_event_queue_record(event, stream);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuEventRecord(struct ll_cu_event *event, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return cuEventRecordWithFlags(event, stream, 0);
}

/* An event that was never recorded counts as reached. */
static ll_cu_result query_event(struct ll_cu_event *event)
{
	sim_event_refresh(event);
	ll_cu_result status = sim_context_status(event->context);
	if (status)
		return status;
	if (event->capture_id)
		return sim_capture_refuse_event(event);
	return event->is_recorded && !event->is_done ? LL_CUDA_ERROR_NOT_READY : LL_CUDA_SUCCESS;
}

ll_cu_result cuEventQuery(struct ll_cu_event *event)
{
	SIM_ENTER();
	if (!is_event(event))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	sim_cuda_lock();
	ll_cu_result status = query_event(event);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuEventSynchronize(struct ll_cu_event *event)
{
	SIM_ENTER();
	if (!is_event(event))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	sim_cuda_lock();
	ll_cu_result status = query_event(event);
	while (event->is_shared && status == LL_CUDA_ERROR_NOT_READY) {
		/* The stream may be another process's, which does not wake this one. */
		sim_cuda_unlock();
		ll_sleep_until_ns(ll_now_ns() + 200 * LL_NS_PER_US);
		sim_cuda_lock();
		status = query_event(event);
	}
	if (status == LL_CUDA_ERROR_NOT_READY) {
		struct ll_cu_stream stream = {
		    .slot = event->stream_slot, .generation = event->stream_generation, .context = event->context};
		status = sim_wait(&stream, event->position);
	}
	if (status == LL_CUDA_SUCCESS)
		sim_pools_synchronised(
		    &(struct ll_cu_stream){.slot = event->stream_slot, .generation = event->stream_generation});
	sim_cuda_unlock();
	return status;
}

static ll_cu_result read_elapsed(float *ret_ms, struct ll_cu_event *start, struct ll_cu_event *end)
{
	if (!ret_ms)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!is_event(start) || !is_event(end) || (start->flags | end->flags) & LL_CU_EVENT_DISABLE_TIMING)
		return LL_CUDA_ERROR_INVALID_HANDLE;
	sim_cuda_lock();
	bool are_recorded = (start->is_recorded || start->capture_id) && (end->is_recorded || end->capture_id);
	ll_cu_result status = are_recorded ? query_event(start) : LL_CUDA_ERROR_INVALID_HANDLE;
	if (!status)
		status = query_event(end);
	if (!status)
		*ret_ms = (float)((double)(int64_t)(end->done_ns - start->done_ns) * 1e-6);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuEventElapsedTime(float *ret_ms, struct ll_cu_event *start, struct ll_cu_event *end)
{
	SIM_ENTER();
	return read_elapsed(ret_ms, start, end);
}

ll_cu_result cuEventElapsedTime_v2(float *ret_ms, struct ll_cu_event *start, struct ll_cu_event *end)
{
	SIM_ENTER();
	return read_elapsed(ret_ms, start, end);
}
