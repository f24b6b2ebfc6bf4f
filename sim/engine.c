#include "engine.h"

#include <errno.h>

#include "base/clock.h"
#include "command.h"
#include "kernel.h"
#include "meter.h"
#include "population.h"

enum { SM_THREADS = 2048 };

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool is_pending(const struct sim_stream *stream)
{
	return stream->done < stream->submitted;
}

static struct sim_op *head(struct sim_world *w, uint32_t stream)
{
	return sim_op_at(w, stream, w->streams[stream].done);
}

/* Walks the streams of one tenant's contexts on a card; SIM_NONE: of everybody's. */
struct walk {
	const struct sim_card *card;
	uint32_t tenant, context, stream;
};

static bool next_stream(struct sim_world *w, struct walk *walk, uint32_t *ret_stream)
{
	for (; walk->context < walk->card->context_count; walk->context++, walk->stream = 0) {
		const struct sim_context *context = &w->contexts[walk->card->contexts[walk->context]];
		if (walk->tenant != SIM_NONE && context->tenant != walk->tenant)
			continue;
		if (walk->stream < context->stream_count) {
			*ret_stream = context->streams[walk->stream++];
			return true;
		}
	}
	return false;
}

#define EACH_STREAM(w, of_card, of_tenant, index)                                                                      \
	for (struct walk walk_ = {.card = (of_card), .tenant = (of_tenant)}; next_stream(w, &walk_, &(index));)

uint64_t sim_done_ns(struct sim_world *w, uint32_t index, uint32_t generation, uint64_t position)
{
	const struct sim_stream *stream = &w->streams[index];
	if (!stream->is_used || stream->generation != generation || position + SIM_RING < stream->submitted)
		return 0;
	return position < stream->done ? sim_op_at(w, index, position)->end_ns : SIM_NEVER;
}

/* What a stream has not begun: its head, or what comes behind a head that has. NULL: nothing. */
static const struct sim_op *first_waiting(struct sim_world *w, uint32_t index)
{
	const struct sim_stream *stream = &w->streams[index];
	uint64_t position = stream->done;
	if (position < stream->submitted && sim_op_at(w, index, position)->state != SIM_OP_QUEUED)
		position++;
	return position < stream->submitted ? sim_op_at(w, index, position) : NULL;
}

static bool goes_through_queue(const struct sim_op *op)
{
	return op->kind == SIM_OP_KERNEL || op->kind == SIM_OP_WAIT;
}

/*
 * Streams beyond CUDA_DEVICE_MAX_CONNECTIONS share a hardware queue, and a queue gives out kernels and waits in the
 * order in which they came: what stands behind one of another stream that cannot begin yet does not begin either.
 */
static bool is_behind_peer(struct sim_world *w, const struct sim_context *context, uint32_t index)
{
	const struct sim_stream *stream = &w->streams[index];
	const struct sim_op *op = head(w, index);
	if (!context->has_shared_queues || !goes_through_queue(op))
		return false;
	for (uint32_t i = 0; i < context->stream_count; i++) {
		uint32_t other = context->streams[i];
		if (other == index || w->streams[other].queue != stream->queue)
			continue;
		const struct sim_op *waiting = first_waiting(w, other);
		if (waiting && waiting->id < op->id && goes_through_queue(waiting))
			return true;
	}
	return false;
}

/*
 * When the queue's head may begin, apart from waiting for room or for its context's turn. SIM_NEVER: it waits for
 * something whose end is not known yet. Operations of the legacy stream and of blocking streams hold each other up in
 * the order in which they were submitted.
 */
static uint64_t ready_ns(struct sim_world *w, const struct sim_card *card, uint32_t index, bool with_gap)
{
	const struct sim_stream *stream = &w->streams[index];
	const struct sim_op *op = head(w, index);
	const struct sim_context *context = &w->contexts[stream->context];
	uint64_t gap_ns = with_gap && op->kind == SIM_OP_KERNEL && stream->last_end_ns ? card->kernel_gap_ns : 0;
	uint64_t at_ns = later(op->submit_ns + card->launch_ns, stream->last_end_ns + gap_ns);
	if (op->kind == SIM_OP_WAIT) {
		uint64_t done_ns = sim_done_ns(w, op->on_stream, op->on_generation, op->on_position);
		if (done_ns == SIM_NEVER)
			return SIM_NEVER;
		at_ns = later(at_ns, done_ns);
	}
	if (is_behind_peer(w, context, index))
		return SIM_NEVER;
	if (!stream->is_legacy && !stream->is_blocking)
		return at_ns;
	for (uint32_t i = 0; i < context->stream_count; i++) {
		uint32_t other = context->streams[i];
		const struct sim_stream *peer = &w->streams[other];
		if (other == index || !(stream->is_legacy ? peer->is_blocking : peer->is_legacy))
			continue;
		if (is_pending(peer) && head(w, other)->id < op->id)
			return SIM_NEVER;
		at_ns = later(at_ns, peer->last_end_ns);
	}
	return at_ns;
}

static void complete(struct sim_world *w, uint32_t index)
{
	struct sim_stream *stream = SIM_EDIT(w, &w->streams[index]);
	struct sim_op *op = SIM_EDIT(w, head(w, index));
	op->state = SIM_OP_DONE;
	op->end_ns = w->now_ns;
	op->done_sequence = w->next_done_sequence;
	(*SIM_EDIT(w, &w->next_done_sequence))++;
	stream->last_end_ns = w->now_ns;
	stream->done++;
}

/* Begins the head if its time has come. Returns whether anything changed. */
static bool begin(struct sim_world *w, struct sim_card *card, uint32_t index)
{
	struct sim_op *op = head(w, index);
	if (ready_ns(w, card, index, true) > w->now_ns)
		return false;
	if (op->kind == SIM_OP_COPY && card->turn.copy_free_ns[op->direction] > w->now_ns)
		return false;
	SIM_EDIT(w, op)->start_ns = w->now_ns;
	switch (op->kind) {
	case SIM_OP_KERNEL:
		op->state = SIM_OP_ARRIVED;
		break;
	case SIM_OP_COPY:
		op->state = SIM_OP_RUNNING;
		op->end_ns = w->now_ns + op->length_ns;
		*SIM_EDIT(w, &card->turn.copy_free_ns[op->direction]) = op->end_ns;
		break;
	case SIM_OP_HOST:
	case SIM_OP_VALUE:
		op->state = SIM_OP_RUNNING;
		break;
	default:
		complete(w, index);
	}
	return true;
}

/* Moves a queue on as far as it goes without the SMs. */
static bool settle_queue(struct sim_world *w, struct sim_card *card, uint32_t index)
{
	bool changed = false;
	while (is_pending(&w->streams[index])) {
		const struct sim_op *op = head(w, index);
		if (op->state == SIM_OP_QUEUED && begin(w, card, index)) {
			changed = true;
		} else if (op->state == SIM_OP_RUNNING && op->kind == SIM_OP_COPY && op->end_ns <= w->now_ns) {
			complete(w, index);
			changed = true;
		} else {
			break;
		}
	}
	return changed;
}

static bool is_kernel_on_card(struct sim_world *w, uint32_t stream)
{
	if (!is_pending(&w->streams[stream]))
		return false;
	const struct sim_op *op = head(w, stream);
	return op->kind == SIM_OP_KERNEL && op->state == SIM_OP_RUNNING;
}

/* Has the tenant a kernel that runs, waits for its turn, or comes at once after the last one? */
static bool wants_card(struct sim_world *w, const struct sim_card *card, uint32_t tenant)
{
	uint32_t stream;
	EACH_STREAM(w, card, tenant, stream)
	{
		if (!is_pending(&w->streams[stream]) || head(w, stream)->kind != SIM_OP_KERNEL)
			continue;
		if (head(w, stream)->state != SIM_OP_QUEUED || ready_ns(w, card, stream, false) <= w->now_ns)
			return true;
	}
	return false;
}

/* The next tenant after `after` that wants the card, in their order on it; SIM_NONE when nobody else does. */
static uint32_t next_tenant(struct sim_world *w, const struct sim_card *card, uint32_t after)
{
	uint32_t start = 0;
	while (start < card->context_count && w->contexts[card->contexts[start]].tenant != after)
		start++;
	if (start == card->context_count)
		start--; /* nobody was before: the first is next */
	for (uint32_t i = 1; i <= card->context_count; i++) {
		uint32_t tenant = w->contexts[card->contexts[(start + i) % card->context_count]].tenant;
		if (tenant != after && wants_card(w, card, tenant))
			return tenant;
	}
	return SIM_NONE;
}

static void pause_tenant(struct sim_world *w, const struct sim_card *card, uint32_t tenant)
{
	uint32_t stream;
	EACH_STREAM(w, card, tenant, stream)
	{
		if (is_kernel_on_card(w, stream))
			sim_kernel_pause(w, head(w, stream));
	}
}

static void give_turn(struct sim_world *w, struct sim_card *card, uint32_t tenant)
{
	struct sim_turn *turn = SIM_EDIT(w, &card->turn);
	if (turn->tenant != SIM_NONE)
		pause_tenant(w, card, turn->tenant);
	turn->tenant = tenant;
	if (tenant == SIM_NONE)
		return;
	turn->switch_until_ns = w->now_ns;
	if (turn->resident != tenant && turn->resident != SIM_NONE)
		turn->switch_until_ns += card->switch_ns;
	turn->resident = tenant;
	turn->slice_end_ns = turn->switch_until_ns + card->slice_ns;
}

/* Decides whose turn it is. */
static bool settle_turn(struct sim_world *w, struct sim_card *card)
{
	const struct sim_turn *turn = &card->turn;
	if (w->now_ns < w->suspended_until_ns) {
		if (turn->tenant == SIM_NONE)
			return false;
		give_turn(w, card, SIM_NONE);
		return true;
	}
	if (w->now_ns < turn->switch_until_ns)
		return false;
	bool wants = turn->tenant != SIM_NONE && wants_card(w, card, turn->tenant);
	if (wants && w->now_ns < turn->slice_end_ns)
		return false;
	uint32_t last = turn->tenant != SIM_NONE ? turn->tenant : turn->resident;
	uint32_t next = next_tenant(w, card, last);
	if (next == SIM_NONE && wants) {
		SIM_EDIT(w, &card->turn)->slice_end_ns = w->now_ns + card->slice_ns;
		return false;
	}
	if (next == SIM_NONE && last != SIM_NONE && turn->tenant == SIM_NONE && wants_card(w, card, last))
		next = last;
	if (next == turn->tenant)
		return false;
	give_turn(w, card, next);
	return true;
}

/* Does kernel a go before kernel b? By the priority of the MPS client, of the stream, then one that has begun
 * already, then in order of submission. */
static bool goes_first(struct sim_world *w, uint32_t a, uint32_t b)
{
	const struct sim_stream *first = &w->streams[a], *second = &w->streams[b];
	int32_t client_a = w->contexts[first->context].client_priority;
	int32_t client_b = w->contexts[second->context].client_priority;
	if (client_a != client_b)
		return client_a < client_b;
	if (first->priority != second->priority)
		return first->priority < second->priority;
	if (head(w, a)->continues != head(w, b)->continues)
		return head(w, a)->continues;
	return head(w, a)->id < head(w, b)->id;
}

/* The kernel that may start next, of the contexts that are not held up. SIM_NONE: none waits. */
static uint32_t next_arrived(struct sim_world *w, const struct sim_card *card, const uint64_t *held_up)
{
	uint32_t best = SIM_NONE, stream;
	EACH_STREAM(w, card, card->turn.tenant, stream)
	{
		uint32_t context = w->streams[stream].context;
		if (!is_pending(&w->streams[stream]) || head(w, stream)->kind != SIM_OP_KERNEL ||
		    head(w, stream)->state != SIM_OP_ARRIVED || held_up[context / 64] >> context % 64 & 1)
			continue;
		if (best == SIM_NONE || goes_first(w, stream, best))
			best = stream;
	}
	return best;
}

/* Threads for which a context has room on the SMs that it may use: its own, or its partition's. */
static uint64_t own_room(struct sim_world *w, const struct sim_card *card, uint32_t context_index)
{
	const struct sim_context *context = &w->contexts[context_index];
	uint64_t room = (uint64_t)context->sm_limit * SM_THREADS;
	uint32_t stream;
	if (context->sm_limit >= card->sm_count)
		return room;
	EACH_STREAM(w, card, context->tenant, stream)
	{
		const struct sim_context *peer = &w->contexts[w->streams[stream].context];
		bool shares = peer == context || (context->partition && peer->partition == context->partition);
		if (shares && is_kernel_on_card(w, stream))
			room -= earlier(room, sim_kernel_threads(peer->sm_limit, head(w, stream)));
	}
	return room;
}

/* The next round of a kernel's blocks is there before any kernel that waits gets the room. */
static void continue_kernel(struct sim_world *w, uint32_t stream)
{
	if (!is_pending(&w->streams[stream]) || !head(w, stream)->continues)
		return;
	struct sim_op *op = SIM_EDIT(w, head(w, stream));
	op->state = SIM_OP_ARRIVED;
	op->start_ns = w->now_ns;
}

/* Ends, resumes and starts kernels of the tenant that has the card. */
static bool settle_kernels(struct sim_world *w, uint32_t card_index)
{
	struct sim_card *card = &w->cards[card_index];
	bool changed = false;
	if (card->turn.tenant == SIM_NONE || w->now_ns < card->turn.switch_until_ns)
		return false;
	uint64_t room = (uint64_t)card->sm_count * SM_THREADS, held_up[SIM_CONTEXTS / 64] = {0};
	uint32_t stream;
	EACH_STREAM(w, card, card->turn.tenant, stream)
	{
		if (!is_kernel_on_card(w, stream))
			continue;
		struct sim_op *op = head(w, stream);
		if (op->paused_ns) {
			sim_kernel_resume(w, card_index, op);
			changed = true;
		}
		if (op->end_ns <= w->now_ns) {
			complete(w, stream);
			continue_kernel(w, stream);
			changed = true;
			continue;
		}
		room -= earlier(room, sim_kernel_threads(w->contexts[w->streams[stream].context].sm_limit, op));
	}
	while ((stream = next_arrived(w, card, held_up)) != SIM_NONE) {
		struct sim_op *op = head(w, stream);
		uint32_t context = w->streams[stream].context;
		uint32_t sms = w->contexts[context].sm_limit;
		uint64_t threads = sim_kernel_threads(sms, op);
		if (threads > room || threads > own_room(w, card, context)) {
			held_up[context / 64] |= UINT64_C(1) << context % 64;
			continue;
		}
		room -= threads;
		sim_kernel_start(w, card_index, sms, op);
		changed = true;
	}
	return changed;
}

static void settle_card(struct sim_world *w, uint32_t card_index)
{
	struct sim_card *card = &w->cards[card_index];
	bool changed;
	do {
		changed = settle_kernels(w, card_index);
		uint32_t stream;
		EACH_STREAM(w, card, SIM_NONE, stream)
		changed |= settle_queue(w, card, stream);
		changed |= settle_turn(w, card);
		sim_commit(w);
	} while (changed);
}

static uint64_t next_card_event_ns(struct sim_world *w, uint32_t card_index)
{
	const struct sim_card *card = &w->cards[card_index];
	const struct sim_turn *turn = &card->turn;
	uint64_t next_ns = SIM_NEVER;
	bool is_on = turn->tenant != SIM_NONE && w->now_ns >= turn->switch_until_ns;
	if (turn->tenant != SIM_NONE && w->now_ns < turn->switch_until_ns)
		next_ns = turn->switch_until_ns;
	if (is_on && turn->slice_end_ns > w->now_ns && next_tenant(w, card, turn->tenant) != SIM_NONE)
		next_ns = earlier(next_ns, turn->slice_end_ns);
	uint32_t stream;
	EACH_STREAM(w, card, SIM_NONE, stream)
	{
		if (!is_pending(&w->streams[stream]))
			continue;
		const struct sim_op *op = head(w, stream);
		bool has_turn = is_on && w->contexts[w->streams[stream].context].tenant == turn->tenant;
		uint64_t at_ns = SIM_NEVER;
		if (op->state == SIM_OP_QUEUED) {
			at_ns = ready_ns(w, card, stream, true);
			if (op->kind == SIM_OP_COPY && at_ns <= w->now_ns)
				at_ns = card->turn.copy_free_ns[op->direction];
		} else if (op->state == SIM_OP_RUNNING &&
			   (op->kind == SIM_OP_COPY || (op->kind == SIM_OP_KERNEL && has_turn))) {
			at_ns = op->end_ns;
		}
		if (at_ns > w->now_ns)
			next_ns = earlier(next_ns, at_ns);
	}
	return next_ns;
}

uint64_t sim_next_event_ns(struct sim_world *w)
{
	uint64_t next_ns = SIM_NEVER;
	for (uint32_t i = 0; i < w->slot_count; i++)
		next_ns = earlier(next_ns, next_card_event_ns(w, i));
	for (unsigned i = 0; i < SIM_EVENTS; i++) {
		if (w->events[i].at_ns)
			next_ns = earlier(next_ns, w->events[i].at_ns);
	}
	if (w->suspended_until_ns > w->now_ns)
		next_ns = earlier(next_ns, w->suspended_until_ns);
	return next_ns;
}

/* What the card does between now and the next event. */
static struct sim_load load_of(struct sim_world *w, uint32_t card_index)
{
	const struct sim_card *card = &w->cards[card_index];
	struct sim_load load = {0};
	for (int d = 0; d < 2; d++)
		load.is_copying[d] = card->turn.copy_free_ns[d] > w->now_ns;
	if (card->turn.tenant == SIM_NONE || w->now_ns < w->suspended_until_ns)
		return load;
	/* Changing contexts keeps the front end busy, though no SM works. */
	load.is_busy = w->now_ns < card->turn.switch_until_ns;
	if (load.is_busy)
		return load;
	double sms = 0, fma_sms = 0, threads = 0;
	uint32_t stream;
	EACH_STREAM(w, card, card->turn.tenant, stream)
	{
		if (!is_kernel_on_card(w, stream))
			continue;
		const struct sim_op *op = head(w, stream);
		uint32_t limit = w->contexts[w->streams[stream].context].sm_limit;
		load.is_busy = true;
		sms += sim_kernel_sms(limit, op);
		fma_sms += op->is_fma ? sim_kernel_sms(limit, op) : 0;
		threads += (double)sim_kernel_threads(limit, op);
	}
	double scale = sms > card->sm_count ? card->sm_count / sms : 1;
	load.sm = sms * scale / card->sm_count;
	load.fma = fma_sms * scale / card->sm_count;
	load.occupancy = threads / ((double)card->sm_count * SM_THREADS);
	if (load.occupancy > 1)
		load.occupancy = 1;
	return load;
}

static void run_due_events(struct sim_world *w)
{
	for (unsigned i = 0; i < SIM_EVENTS; i++) {
		struct sim_event *event = &w->events[i];
		if (!event->at_ns || event->at_ns > w->now_ns)
			continue;
		SIM_EDIT(w, event)->at_ns = 0;
		/* It was checked when it was put off; what it cannot do now, it does not do. */
		sim_command_run(w, event->text, SIM_COMMAND_LIVE, NULL);
		sim_commit(w);
	}
}

static void settle(struct sim_world *w)
{
	run_due_events(w);
	for (uint32_t i = 0; i < w->slot_count; i++)
		settle_card(w, i);
	/* A wait for another card's stream may have come true there. */
	for (uint32_t i = 0; i + 1 < w->slot_count; i++)
		settle_card(w, i);
}

/* The time in which contexts had the card with kernels running: what is switched counts for the next one. */
static void charge_turn(struct sim_world *w, const struct sim_card *card, uint64_t length_ns)
{
	bool is_switching = w->now_ns < card->turn.switch_until_ns;
	for (uint32_t c = 0; c < card->context_count && card->turn.tenant != SIM_NONE; c++) {
		struct sim_context *context = &w->contexts[card->contexts[c]];
		bool runs = is_switching;
		for (uint32_t i = 0; i < context->stream_count && context->tenant == card->turn.tenant; i++)
			runs |= is_kernel_on_card(w, context->streams[i]);
		if (runs && context->tenant == card->turn.tenant)
			*SIM_EDIT(w, &context->card_ns) += length_ns;
	}
}

/* One step: everything up to the next event, or to limit_ns. */
static void step(struct sim_world *w, uint64_t limit_ns)
{
	uint64_t to_ns = earlier(limit_ns, sim_next_event_ns(w));
	for (uint32_t i = 0; i < w->slot_count; i++)
		to_ns = earlier(to_ns, sim_meter_edge_ns(&w->cards[i]));
	to_ns = later(to_ns, w->now_ns);
	uint64_t length_ns = to_ns - w->now_ns;
	for (uint32_t i = 0; i < w->slot_count; i++) {
		struct sim_load load = load_of(w, i);
		sim_meter_add(w, i, length_ns, &load);
		if (load.is_busy)
			charge_turn(w, &w->cards[i], length_ns);
	}
	*SIM_EDIT(w, &w->now_ns) = to_ns;
	for (uint32_t i = 0; i < w->slot_count; i++) {
		if (sim_meter_edge_ns(&w->cards[i]) <= to_ns)
			sim_meter_close(w, i);
	}
	sim_commit(w);
}

/* Nobody looked for minutes and nothing ran: the windows of that time are nobody's concern. */
static void skip_idle_time(struct sim_world *w, uint64_t now_ns)
{
	const uint64_t keep_ns = 30 * LL_NS_PER_S;
	if (now_ns < w->now_ns + 2 * keep_ns || sim_next_event_ns(w) != SIM_NEVER)
		return;
	uint64_t skip_ns = (now_ns - w->now_ns - keep_ns) / (200 * LL_NS_PER_MS) * (200 * LL_NS_PER_MS);
	for (uint32_t i = 0; i < w->slot_count; i++)
		sim_meter_skip(w, i, skip_ns);
	*SIM_EDIT(w, &w->now_ns) += skip_ns;
	sim_commit(w);
}

void sim_advance(struct sim_world *w, uint64_t now_ns, uint64_t wall_offset_ns)
{
	sim_procs_reap(w, now_ns);
	*SIM_EDIT(w, &w->wall_offset_ns) = wall_offset_ns;
	sim_commit(w);
	settle(w);
	skip_idle_time(w, now_ns);
	while (w->now_ns < now_ns) {
		step(w, now_ns);
		settle(w);
	}
}

void sim_advance_to_now(struct sim_world *w)
{
	/* Only a jump of the wall clock is news; smaller differences are what lies between reading two clocks. */
	const uint64_t jump_ns = 2 * LL_NS_PER_MS;
	uint64_t offset_ns = sim_wall_offset_ns(), before_ns = w->wall_offset_ns;
	uint64_t change_ns = offset_ns > before_ns ? offset_ns - before_ns : before_ns - offset_ns;
	sim_advance(w, ll_now_ns(), change_ns > jump_ns ? offset_ns : before_ns);
}

uint64_t sim_wall_offset_ns(void)
{
	uint64_t best_ns = UINT64_MAX, offset_ns = 0;
	for (int i = 0; i < 3 && best_ns > 2 * LL_NS_PER_US; i++) {
		uint64_t begun_ns = ll_now_ns(), wall_ns = ll_wall_ns(), took_ns = ll_now_ns() - begun_ns;
		if (took_ns < best_ns) {
			best_ns = took_ns;
			offset_ns = wall_ns - begun_ns - took_ns / 2;
		}
	}
	return offset_ns;
}

int sim_submit(struct sim_world *w, uint32_t index, const struct sim_op *op, uint64_t *ret_position)
{
	struct sim_stream *stream = &w->streams[index];
	if (stream->submitted - stream->reaped == SIM_RING)
		return -EAGAIN;
	/* The slot is nobody's until submitted grows, so filling it needs no undo. */
	struct sim_op *slot = sim_op_at(w, index, stream->submitted);
	*slot = *op;
	slot->id = w->next_op_id;
	slot->state = SIM_OP_QUEUED;
	slot->submit_ns = w->now_ns;
	(*SIM_EDIT(w, &w->next_op_id))++;
	*ret_position = stream->submitted;
	SIM_EDIT(w, stream)->submitted++;
	sim_commit(w);
	return 0;
}

void sim_finish(struct sim_world *w, uint32_t index, uint64_t position)
{
	if (w->streams[index].done == position && is_pending(&w->streams[index]))
		complete(w, index);
	sim_commit(w);
}
