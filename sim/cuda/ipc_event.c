/*
 * Events of several processes: the world has the last record of each, and whoever asks, waits or records looks there.
 */
#include <string.h>

#include "card/engine.h"
#include "card/shared_event.h"
#include "cuda/arena.h"
#include "cuda/event.h"
#include "cuda/local.h"

void sim_event_refresh(struct ll_cu_event *event)
{
	struct sim_world *w = sim_cuda.world;
	if (!event->is_shared)
		return;
	sim_lock(w);
	sim_advance_to_now(w);
	const struct sim_shared_event *shared = &w->shared_events[event->shared_slot];
	event->is_recorded = shared->is_recorded;
	event->stream_slot = shared->stream_slot;
	event->stream_generation = shared->stream_generation;
	event->position = shared->position;
	event->done_ns = sim_done_ns(w, event->stream_slot, event->stream_generation, event->position);
	event->is_done = event->done_ns != SIM_NEVER;
	sim_unlock(w);
}

void sim_event_publish(const struct ll_cu_event *event)
{
	struct sim_world *w = sim_cuda.world;
	if (!event->is_shared)
		return;
	sim_lock(w);
	struct sim_shared_event *shared = SIM_EDIT(w, &w->shared_events[event->shared_slot]);
	shared->is_recorded = event->is_recorded;
	shared->stream_slot = event->stream_slot;
	shared->stream_generation = event->stream_generation;
	shared->position = event->position;
	sim_unlock(w);
}

void sim_event_unshare(struct ll_cu_event *event)
{
	struct sim_world *w = sim_cuda.world;
	if (!event->is_shared)
		return;
	event->is_shared = false;
	sim_lock(w);
	sim_shared_event_leave(w, event->shared_slot, sim_cuda.proc);
	sim_unlock(w);
}

static bool share(struct ll_cu_event *event)
{
	struct sim_world *w = sim_cuda.world;
	if (event->is_shared)
		return true;
	sim_lock(w);
	event->shared_slot = sim_shared_event_new(w, sim_cuda.proc);
	sim_unlock(w);
	event->is_shared = event->shared_slot != SIM_NONE;
	sim_event_publish(event);
	return event->is_shared;
}

ll_cu_result cuIpcGetEventHandle(struct ll_cu_ipc_event_handle *ret_handle, struct ll_cu_event *event)
{
	SIM_ENTER();
	if (!ret_handle || !event || event->magic != SIM_MAGIC_EVENT || !(event->flags & LL_CU_EVENT_INTERPROCESS))
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	bool is_shared = share(event);
	if (is_shared) {
		struct sim_ticket ticket;
		sim_ticket_init(&ticket, SIM_TICKET_EVENT, 0, 0);
		ticket.card = event->context->card;
		ticket.slot = event->shared_slot;
		ticket.generation = sim_cuda.world->shared_events[event->shared_slot].generation;
		memcpy(ret_handle, &ticket, sizeof *ret_handle);
	}
	sim_cuda_unlock();
	return is_shared ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_OUT_OF_MEMORY;
}

ll_cu_result cuIpcOpenEventHandle(struct ll_cu_event **ret_event, struct ll_cu_ipc_event_handle handle)
{
	SIM_ENTER();
	struct sim_world *w = sim_cuda.world;
	struct ll_cu_context *context;
	struct sim_ticket ticket;
	memcpy(&ticket, &handle, sizeof ticket);
	if (!ret_event || !sim_ticket_is(&ticket, SIM_TICKET_EVENT))
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_result status = sim_current(&context);
	struct ll_cu_event *event =
	    status ? NULL : sim_event_new(context, LL_CU_EVENT_INTERPROCESS | LL_CU_EVENT_DISABLE_TIMING);
	if (!status && !event)
		status = LL_CUDA_ERROR_OUT_OF_MEMORY;
	if (event) {
		sim_lock(w);
		event->is_shared = sim_shared_event_join(w, ticket.slot, ticket.generation, sim_cuda.proc);
		sim_unlock(w);
		event->shared_slot = ticket.slot;
		if (event->is_shared) {
			*ret_event = event;
		} else {
			sim_event_drop(event);
			status = LL_CUDA_ERROR_INVALID_VALUE; /* its process is gone */
		}
	}
	sim_cuda_unlock();
	return status;
}
