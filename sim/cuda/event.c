/*
 * Events: marks in streams, with the time at which they were reached.
 */
#include "cuda/event.h"

#include <stdlib.h>

#include "base/clock.h"
#include "cuda/capture.h"

static struct ll_cu_event *events;

void sim_event_hold(struct ll_cu_event *event)
{
	event->references++;
}

void sim_event_drop(struct ll_cu_event *event)
{
	if (--event->references > 0)
		return;
	*event->link = event->next;
	if (event->next)
		event->next->link = event->link;
	free(event->captured.at);
	free(event);
}

void sim_event_happened(struct ll_cu_event *event, uint32_t stream_slot, uint64_t position, uint64_t done_ns)
{
	/* It may have been recorded again since: then only the later record counts. */
	if (event->stream_slot == stream_slot && event->position == position) {
		event->is_done = true;
		event->done_ns = done_ns;
	}
	sim_event_drop(event);
}

struct ll_cu_event *sim_event_new(struct ll_cu_context *context, unsigned flags)
{
	struct ll_cu_event *event = calloc(1, sizeof *event);
	if (event) {
		event->magic = SIM_MAGIC_EVENT;
		event->flags = flags;
		event->references = 1;
		event->context = context;
		event->next = events;
		event->link = &events;
		if (events)
			events->link = &event->next;
		events = event;
	}
	return event;
}

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

ll_cu_result sim_event_queue_record(struct ll_cu_event *event, struct ll_cu_stream *stream)
{
	struct sim_op op = {.kind = SIM_OP_MARK, .module = SIM_NONE};
	struct sim_action action = {.kind = SIM_ACTION_EVENT, .event = event};
	uint64_t position;
	uint32_t slot = stream->slot, generation = stream->generation;
	sim_event_hold(event);
	ll_cu_result status = sim_queue(stream, &op, &action, &position);
	if (status) {
		sim_event_drop(event);
		return status;
	}
	event->is_recorded = true;
	event->is_done = false;
	event->stream_slot = slot;
	event->stream_generation = generation;
	event->position = position;
	event->capture_id = 0;
	sim_event_publish(event);
	return LL_CUDA_SUCCESS;
}

ll_cu_result sim_event_queue_wait(struct ll_cu_event *event, struct ll_cu_stream *stream)
{
	sim_event_refresh(event);
	struct sim_op op = {
	    .kind = SIM_OP_WAIT,
	    .on_stream = event->stream_slot,
	    .on_generation = event->stream_generation,
	    .on_position = event->position,
	    .module = SIM_NONE,
	};
	return event->is_recorded ? sim_queue(stream, &op, NULL, NULL) : LL_CUDA_SUCCESS;
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
static ll_cu_result query(struct ll_cu_event *event)
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
	ll_cu_result status = query(event);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuEventSynchronize(struct ll_cu_event *event)
{
	SIM_ENTER();
	if (!is_event(event))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	sim_cuda_lock();
	ll_cu_result status = query(event);
	while (event->is_shared && status == LL_CUDA_ERROR_NOT_READY) {
		/* It may be another process's stream, and nobody wakes us. */
		sim_cuda_unlock();
		ll_sleep_until_ns(ll_now_ns() + 200 * LL_NS_PER_US);
		sim_cuda_lock();
		status = query(event);
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

static ll_cu_result elapsed(float *ret_ms, struct ll_cu_event *start, struct ll_cu_event *end)
{
	if (!ret_ms)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!is_event(start) || !is_event(end) || (start->flags | end->flags) & LL_CU_EVENT_DISABLE_TIMING)
		return LL_CUDA_ERROR_INVALID_HANDLE;
	sim_cuda_lock();
	bool are_recorded = (start->is_recorded || start->capture_id) && (end->is_recorded || end->capture_id);
	ll_cu_result status = are_recorded ? query(start) : LL_CUDA_ERROR_INVALID_HANDLE;
	if (!status)
		status = query(end);
	if (!status)
		*ret_ms = (float)((double)(int64_t)(end->done_ns - start->done_ns) * 1e-6);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuEventElapsedTime(float *ret_ms, struct ll_cu_event *start, struct ll_cu_event *end)
{
	SIM_ENTER();
	return elapsed(ret_ms, start, end);
}

ll_cu_result cuEventElapsedTime_v2(float *ret_ms, struct ll_cu_event *start, struct ll_cu_event *end)
{
	SIM_ENTER();
	return elapsed(ret_ms, start, end);
}
