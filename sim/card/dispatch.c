#include "card/dispatch.h"

#include "card/kernel.h"
#include "card/meter.h"
#include "card/queue.h"

static uint64_t earlier_ns(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Returns -1, 0 or 1: the kernels of a have a higher, the same, or a lower priority than those of b. The priority of
 * the MPS client counts first. */
static int compare_priority(const struct sim_world *w, uint32_t a, uint32_t b)
{
	const struct sim_stream *first = &w->streams[a], *second = &w->streams[b];
	int32_t client_a = w->contexts[first->context].client_priority;
	int32_t client_b = w->contexts[second->context].client_priority;
	if (client_a != client_b)
		return client_a < client_b ? -1 : 1;
	return (first->priority > second->priority) - (first->priority < second->priority);
}

static bool has_higher_priority(const struct sim_world *w, uint32_t a, uint32_t b)
{
	return a != SIM_NONE && b != SIM_NONE && compare_priority(w, a, b) < 0;
}

static bool is_waiting(struct sim_world *w, uint32_t stream)
{
	if (!sim_queue_is_pending(&w->streams[stream]) || sim_queue_is_off(w, stream))
		return false;
	const struct sim_op *op = sim_queue_head(w, stream);
	return op->kind == SIM_OP_KERNEL && (op->state == SIM_OP_ARRIVED || op->has_yielded);
}

/* Returns the stream of the kernel that may start or continue next, among contexts that are not blocked. SIM_NONE: no
 * kernel waits. */
static uint32_t next_waiting(struct sim_world *w, const struct sim_card *card, const uint64_t *held_up)
{
	uint32_t best = SIM_NONE, stream;
	SIM_EACH_STREAM(w, card, card->turn.tenant, stream)
	{
		uint32_t context = w->streams[stream].context;
		if (!is_waiting(w, stream) || held_up[context / 64] >> context % 64 & 1)
			continue;
		int order = best == SIM_NONE ? -1 : compare_priority(w, stream, best);
		if (order < 0 || (order == 0 && sim_queue_head(w, stream)->id < sim_queue_head(w, best)->id))
			best = stream;
	}
	return best;
}

/* Returns the number of threads for which a context has room on its own SMs, or on those of its partition. */
static uint64_t own_room(struct sim_world *w, const struct sim_card *card, uint32_t context_index)
{
	const struct sim_context *context = &w->contexts[context_index];
	uint64_t room = (uint64_t)context->sm_limit * SIM_SM_THREADS;
	uint32_t stream;
	if (context->sm_limit >= card->sm_count)
		return room;
	SIM_EACH_STREAM(w, card, context->tenant, stream)
	{
		const struct sim_context *peer = &w->contexts[w->streams[stream].context];
		bool shares = peer == context || (context->partition && peer->partition == context->partition);
		if (shares && sim_queue_has_kernel(w, stream))
			room -= earlier_ns(room, sim_kernel_threads(peer->sm_limit, sim_queue_head(w, stream)));
	}
	return room;
}

/* Ends and resumes the kernels on the SMs. The threads of those that continue are subtracted from *room. */
static bool settle_running(struct sim_world *w, uint32_t card_index, uint64_t *room)
{
	struct sim_card *card = &w->cards[card_index];
	bool changed = false;
	uint32_t stream;
	SIM_EACH_STREAM(w, card, card->turn.tenant, stream)
	{
		if (!sim_queue_has_kernel(w, stream))
			continue;
		struct sim_op *op = sim_queue_head(w, stream);
		if (op->paused_ns) {
			sim_kernel_resume(w, card_index, op);
			changed = true;
		}
		if (op->end_ns <= w->now_ns) {
			sim_queue_complete(w, stream);
			changed = true;
			continue;
		}
		*room -= earlier_ns(*room, sim_kernel_threads(w->contexts[w->streams[stream].context].sm_limit, op));
	}
	return changed;
}

/*
 * Starts the kernels that fit. A context whose next kernel does not fit is blocked. If the card has no room for the
 * kernel, all kernels of lower priority are blocked too, and *ret_held is the kernel's stream; otherwise *ret_held is
 * SIM_NONE.
 */
static bool start_waiting(struct sim_world *w, uint32_t card_index, uint64_t room, uint32_t *ret_held)
{
	const struct sim_card *card = &w->cards[card_index];
	uint64_t held_up[SIM_CONTEXTS / 64] = {0};
	bool changed = false;
	*ret_held = SIM_NONE;
	for (uint32_t stream; (stream = next_waiting(w, card, held_up)) != SIM_NONE;) {
		struct sim_op *op = sim_queue_head(w, stream);
		uint32_t context = w->streams[stream].context, sms = w->contexts[context].sm_limit;
		uint64_t threads = sim_kernel_threads(sms, op);
		if (has_higher_priority(w, *ret_held, stream))
			break;
		if (threads > room || threads > own_room(w, card, context)) {
			held_up[context / 64] |= UINT64_C(1) << context % 64;
			if (threads > room && *ret_held == SIM_NONE)
				*ret_held = stream;
			continue;
		}
		room -= threads;
		if (op->has_yielded)
			sim_kernel_go_on(w, op);
		else
			sim_kernel_start(w, card_index, sms, op);
		changed = true;
	}
	return changed;
}

/* Whether a kernel of higher priority waits for the room that this one would use. held: the kernels that wait for room
 * on the card. */
static bool is_in_the_way(struct sim_world *w, uint32_t stream, uint32_t held)
{
	const struct sim_context *context = &w->contexts[w->streams[stream].context];
	for (uint32_t i = 0; i < context->stream_count; i++) {
		uint32_t other = context->streams[i];
		if (is_waiting(w, other) && has_higher_priority(w, other, stream))
			return true;
	}
	return has_higher_priority(w, held, stream);
}

/* Blocks stay on the SMs until they end. Between two waves a kernel makes room for a kernel of higher priority. */
static bool make_room(struct sim_world *w, const struct sim_card *card, uint32_t held)
{
	bool changed = false;
	uint32_t stream;
	SIM_EACH_STREAM(w, card, card->turn.tenant, stream)
	{
		if (!sim_queue_has_kernel(w, stream))
			continue;
		struct sim_op *op = sim_queue_head(w, stream);
		if (sim_kernel_to_boundary_ns(w, op) == 0 && is_in_the_way(w, stream, held)) {
			sim_kernel_yield(w, op);
			changed = true;
		}
	}
	return changed;
}

bool sim_dispatch_settle(struct sim_world *w, uint32_t card_index)
{
	struct sim_card *card = &w->cards[card_index];
	if (card->turn.tenant == SIM_NONE || w->now_ns < card->turn.switch_until_ns)
		return false;
	uint64_t room = (uint64_t)card->sm_count * SIM_SM_THREADS;
	uint32_t held;
	bool changed = settle_running(w, card_index, &room);
	if (card->turn.is_ending)
		return changed;
	changed |= start_waiting(w, card_index, room, &held);
	changed |= make_room(w, card, held);
	return changed;
}

uint64_t sim_dispatch_next_ns(struct sim_world *w, uint32_t card_index)
{
	const struct sim_card *card = &w->cards[card_index];
	const uint64_t nobody[SIM_CONTEXTS / 64] = {0};
	uint64_t next_ns = SIM_NEVER;
	uint32_t stream, waiting = next_waiting(w, card, nobody);
	SIM_EACH_STREAM(w, card, card->turn.tenant, stream)
	{
		if (waiting == SIM_NONE || !sim_queue_has_kernel(w, stream) || !has_higher_priority(w, waiting, stream))
			continue;
		const struct sim_op *op = sim_queue_head(w, stream);
		uint64_t left_ns = sim_kernel_to_boundary_ns(w, op);
		if (left_ns != SIM_NEVER)
			next_ns = earlier_ns(next_ns, w->now_ns + (left_ns ? left_ns : op->wave_ns));
	}
	return next_ns;
}

/* Returns the load of the card between now and the next event. */
struct sim_load sim_dispatch_load(struct sim_world *w, uint32_t card_index)
{
	const struct sim_card *card = &w->cards[card_index];
	struct sim_load load = {0};
	for (int d = 0; d < 2; d++)
		load.is_copying[d] = card->turn.copy_free_ns[d] > w->now_ns;
	if (card->turn.tenant == SIM_NONE || w->now_ns < w->suspended_until_ns)
		return load;
	/* Switching contexts occupies the front end, although no SM works. */
	load.is_busy = w->now_ns < card->turn.switch_until_ns;
	if (load.is_busy)
		return load;
	double sms = 0, fma_sms = 0, tensor_sms = 0, dram_sms = 0, threads = 0;
	uint32_t stream;
	SIM_EACH_STREAM(w, card, card->turn.tenant, stream)
	{
		if (!sim_queue_has_kernel(w, stream))
			continue;
		const struct sim_op *op = sim_queue_head(w, stream);
		uint32_t limit = w->contexts[w->streams[stream].context].sm_limit;
		load.is_busy = true;
		double own_sms = sim_kernel_sms(limit, op);
		sms += own_sms;
		fma_sms += op->is_fma ? own_sms : 0;
		tensor_sms += op->is_tensor ? own_sms : 0;
		dram_sms += op->is_dram ? own_sms : 0;
		threads += (double)sim_kernel_threads(limit, op);
	}
	double scale = sms > card->sm_count ? card->sm_count / sms : 1;
	load.sm = sms * scale / card->sm_count;
	load.fma = fma_sms * scale / card->sm_count;
	load.tensor = tensor_sms * scale / card->sm_count * card->tensor_reach_percent / 100;
	load.dram = dram_sms * scale / card->sm_count * card->dram_reach_percent / 100;
	load.occupancy = threads / ((double)card->sm_count * SIM_SM_THREADS);
	if (load.occupancy > 1)
		load.occupancy = 1;
	return load;
}
