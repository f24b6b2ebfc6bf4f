#include "card/kernel.h"

#include <math.h>

#include "card/queue.h"
#include "card/timeline.h"

enum { SM_BLOCKS = 32 };

/* A timed kernel counts by the card's clock, which drifts. It ends at its first read of the clock at or after the
 * end. */
static uint64_t host_length_ns(const struct sim_card *card, uint64_t length_ns)
{
	return length_ns + (uint64_t)(int64_t)ceil(-(double)length_ns * card->drift_ppm * 1e-6) + 2;
}

/* The kernel saw a reason to stop. It ends now, and so does every running kernel of its epoch. Queued kernels notice it
 * when they start. */
static void stop_epoch(struct sim_world *w, uint32_t card_index, struct sim_op *op)
{
	const struct sim_card *card = &w->cards[card_index];
	op->end_ns = w->now_ns + card->clock_step_ns;
	if (op->module == SIM_NONE)
		return;
	*SIM_EDIT(w, &w->stopped_epoch[op->module]) = op->epoch;
	for (uint32_t c = 0; c < card->context_count; c++) {
		const struct sim_context *context = &w->contexts[card->contexts[c]];
		for (uint32_t i = 0; i < context->stream_count; i++) {
			const struct sim_stream *stream = &w->streams[context->streams[i]];
			struct sim_op *other = sim_op_at(w, context->streams[i], stream->done);
			if (stream->done == stream->submitted || other == op || other->kind != SIM_OP_KERNEL ||
			    other->state != SIM_OP_RUNNING || other->module != op->module ||
			    other->epoch != op->epoch || other->flags)
				continue;
			SIM_EDIT(w, other)->flags = SIM_RECORD_STOPPED;
			other->end_ns = w->now_ns + card->clock_step_ns;
		}
	}
}

/* A grid that would occupy more SMs than its context may use takes longer in proportion. */
static uint64_t work_length_ns(const struct sim_card *card, uint32_t sms, const struct sim_op *op)
{
	uint32_t wanted = sim_kernel_sms(card->sm_count, op);
	return wanted > sms ? (uint64_t)((double)op->length_ns * wanted / sms) : op->length_ns;
}

/* Returns how many waves the blocks need. */
static uint64_t count_waves(uint32_t sms, const struct sim_op *op)
{
	uint32_t warps = (op->threads + 31) / 32, per_sm = SIM_SM_THREADS / 32 / (warps ? warps : 1);
	uint64_t at_once = (uint64_t)sms * (per_sm < SM_BLOCKS ? per_sm ? per_sm : 1 : SM_BLOCKS);
	return (op->blocks + at_once - 1) / at_once;
}

/* A kernel with an epoch, or one that meets another, has a single wave; the programs that launch such kernels choose
 * their grids so. */
static void cut_into_waves(const struct sim_card *card, uint32_t sms, struct sim_op *op)
{
	uint64_t count = op->epoch || op->meeting ? 1 : count_waves(sms, op);
	if (count < 2)
		return;
	op->wave_ns = op->is_timed ? host_length_ns(card, op->length_ns) : work_length_ns(card, sms, op) / count;
	op->is_timed = 0; /* the length counts for each wave of blocks, so blocks that have not started do not end
			     during a pause */
	op->left_ns = op->wave_ns * count;
	op->end_ns = op->resumed_ns + op->left_ns;
}

uint64_t sim_kernel_to_boundary_ns(const struct sim_world *w, const struct sim_op *op)
{
	if (!op->wave_ns || op->paused_ns || op->end_ns <= w->now_ns)
		return SIM_NEVER;
	return (op->end_ns - w->now_ns) % op->wave_ns;
}

void sim_kernel_yield(struct sim_world *w, struct sim_op *op)
{
	sim_kernel_pause(w, op);
	op->has_yielded = 1;
}

void sim_kernel_go_on(struct sim_world *w, struct sim_op *op)
{
	SIM_EDIT(w, op);
	sim_timeline_note(w, op);
	op->has_yielded = 0;
	op->paused_ns = 0;
	op->resumed_ns = w->now_ns;
	op->end_ns = w->now_ns + op->left_ns;
}

/* Returns the running kernel that it meets; NULL: there is none now. */
static struct sim_op *find_partner(struct sim_world *w, const struct sim_op *op)
{
	for (uint32_t c = 0; c < w->slot_count; c++) {
		uint32_t stream;
		SIM_EACH_STREAM(w, &w->cards[c], SIM_NONE, stream)
		{
			struct sim_op *other = sim_queue_has_kernel(w, stream) ? sim_queue_head(w, stream) : NULL;
			if (other && other != op && other->meeting == op->meeting && !other->paused_ns)
				return other;
		}
	}
	return NULL;
}

/* Lets both kernels progress, or lets this one spin alone. */
static void meet_partner(struct sim_world *w, struct sim_op *op)
{
	struct sim_op *partner = find_partner(w, op);
	op->end_ns = SIM_NEVER;
	if (!partner)
		return;
	SIM_EDIT(w, partner);
	op->left_ns = partner->left_ns < op->left_ns ? partner->left_ns : op->left_ns;
	partner->left_ns = op->left_ns;
	op->resumed_ns = partner->resumed_ns = w->now_ns;
	op->end_ns = partner->end_ns = w->now_ns + op->left_ns;
}

static void part_from_partner(struct sim_world *w, struct sim_op *op)
{
	struct sim_op *partner = find_partner(w, op);
	if (!partner)
		return;
	SIM_EDIT(w, partner)->left_ns = op->left_ns;
	partner->end_ns = SIM_NEVER;
}

void sim_kernel_start(struct sim_world *w, uint32_t card_index, uint32_t sms, struct sim_op *op)
{
	const struct sim_card *card = &w->cards[card_index];
	SIM_EDIT(w, op);
	op->state = SIM_OP_RUNNING;
	op->start_ns = w->now_ns;
	op->resumed_ns = w->now_ns;
	op->gap_ns = card->clock_step_ns;
	op->left_ns = work_length_ns(card, sms, op);
	op->end_ns = w->now_ns + (op->is_timed ? host_length_ns(card, op->length_ns) : op->left_ns);
	cut_into_waves(card, sms, op);
	if (op->meeting)
		meet_partner(w, op);
	if (!op->epoch)
		return;
	if (op->module != SIM_NONE && w->stopped_epoch[op->module] == op->epoch) {
		op->flags = SIM_RECORD_STOPPED;
		op->end_ns = w->now_ns + card->clock_step_ns;
	} else if (op->late_after_ns && sim_card_clock_ns(w, card_index, w->now_ns) > op->late_after_ns) {
		op->flags = SIM_RECORD_LATE;
		stop_epoch(w, card_index, op);
	}
}

void sim_kernel_pause(struct sim_world *w, struct sim_op *op)
{
	SIM_EDIT(w, op);
	uint64_t ran_ns = op->end_ns == SIM_NEVER ? 0 : w->now_ns - op->resumed_ns;
	op->left_ns -= ran_ns < op->left_ns ? ran_ns : op->left_ns;
	op->paused_ns = w->now_ns;
	if (op->meeting)
		part_from_partner(w, op);
}

void sim_kernel_resume(struct sim_world *w, uint32_t card_index, struct sim_op *op)
{
	SIM_EDIT(w, op);
	uint64_t gap_ns = w->now_ns - op->paused_ns;
	sim_timeline_note(w, op);
	if (gap_ns > op->gap_ns)
		op->gap_ns = gap_ns;
	op->paused_ns = 0;
	op->resumed_ns = w->now_ns;
	if (op->flags) {
		op->end_ns = w->now_ns;
	} else if (op->meeting) {
		meet_partner(w, op);
	} else if (op->epoch && op->gap_limit_ns && gap_ns > op->gap_limit_ns) {
		op->flags = SIM_RECORD_GAP;
		stop_epoch(w, card_index, op);
	} else if (op->epoch && op->module != SIM_NONE && w->stopped_epoch[op->module] == op->epoch) {
		op->flags = SIM_RECORD_STOPPED;
		op->end_ns = w->now_ns + w->cards[card_index].clock_step_ns;
	} else if (op->is_timed) {
		uint64_t end_ns = op->start_ns + host_length_ns(&w->cards[card_index], op->length_ns);
		op->end_ns = end_ns > w->now_ns ? end_ns : w->now_ns;
	} else {
		op->end_ns = w->now_ns + op->left_ns;
	}
}

uint64_t sim_kernel_threads(uint32_t sms, const struct sim_op *op)
{
	uint64_t capacity = (uint64_t)sms * SIM_SM_THREADS;
	uint64_t threads = (uint64_t)op->blocks * op->threads;
	return threads < capacity ? threads : capacity;
}

uint32_t sim_kernel_sms(uint32_t sms, const struct sim_op *op)
{
	return op->blocks < sms ? op->blocks : sms;
}
