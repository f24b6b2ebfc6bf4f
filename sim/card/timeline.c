#include "card/timeline.h"

void sim_timeline_note(struct sim_world *w, const struct sim_op *op)
{
	if (!op->is_traced)
		return;
	struct sim_gap_ring *ring = &w->gaps[(size_t)(op - &w->ops[0][0]) / SIM_RING];
	*SIM_EDIT(w, &ring->gaps[ring->next % SIM_GAPS]) =
	    (struct sim_gap){.op_id = op->id, .at_ns = op->paused_ns, .length_ns = w->now_ns - op->paused_ns};
	(*SIM_EDIT(w, &ring->next))++;
}

unsigned sim_timeline_gaps(const struct sim_world *w, uint32_t stream, uint64_t op_id, struct sim_gap *gaps,
			   unsigned capacity)
{
	const struct sim_gap_ring *ring = &w->gaps[stream];
	unsigned count = 0;
	uint64_t from = ring->next > SIM_GAPS ? ring->next - SIM_GAPS : 0;
	for (uint64_t i = from; i < ring->next && count < capacity; i++) {
		const struct sim_gap *gap = &ring->gaps[i % SIM_GAPS];
		if (gap->op_id == op_id)
			gaps[count++] = *gap;
	}
	return count;
}
