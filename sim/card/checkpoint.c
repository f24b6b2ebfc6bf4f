#include "card/checkpoint.h"

#include <errno.h>

#include "card/memory.h"
#include "card/process.h"
#include "card/queue.h"

uint32_t sim_checkpoint_find(const struct sim_world *w, int pid)
{
	for (uint32_t i = 0; i < SIM_PROCS; i++) {
		if (w->procs[i].is_used && sim_proc_pid(w, i) == pid && sim_proc_is_alive(w, i))
			return i;
	}
	return SIM_NONE;
}

void sim_checkpoint_set(struct sim_world *w, uint32_t proc, enum sim_stop stop)
{
	uint32_t *state = SIM_EDIT(w, &w->procs[proc].stop);
	__atomic_store_n(state, stop, __ATOMIC_RELEASE);
}

bool sim_checkpoint_is_busy(struct sim_world *w, uint32_t proc)
{
	for (uint32_t i = 0; i < SIM_STREAMS; i++) {
		const struct sim_stream *stream = &w->streams[i];
		if (stream->is_used && w->contexts[stream->context].proc == proc && sim_queue_is_pending(stream))
			return true;
	}
	return false;
}

int sim_checkpoint_restore(struct sim_world *w, uint32_t proc)
{
	sim_checkpoint_set(w, proc, SIM_STOP_LOCKED);
	for (uint32_t i = 0; i < w->slot_count; i++) {
		if (sim_card_used_bytes(w, i) <= w->cards[i].memory_bytes)
			continue;
		sim_checkpoint_set(w, proc, SIM_STOP_CHECKPOINTED);
		return -ENOMEM;
	}
	return 0;
}
