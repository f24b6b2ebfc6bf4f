#include "cuda_timeline.h"

#include <string.h>

#include "cuda_mps.h"
#include "kernel.h"
#include "timeline.h"

enum { SM_THREADS = 2048, LISTED = 256, INDEXES_NS = 2000 };

enum param { LENGTH, TRACES, BLOCKS, AWAY, ROUND, PARAMS };

/* The layouts of src/probe/trace.h, which the simulator must not include. */
struct trace {
	uint64_t max_gap_ns;
	uint64_t step_ns;
	uint32_t gap_count;
	uint32_t unused;
	struct {
		uint64_t at_ns, length_ns;
	} gaps[LISTED];
};

struct block {
	uint64_t start_ns, end_ns;
	uint32_t sm, is_done;
};

_Static_assert(sizeof(struct trace) == 24 + LISTED * 16 && sizeof(struct block) == 24, "as the kernels write them");

static bool is_indexes(const struct sim_ptx_entry *entry)
{
	return strcmp(entry->name, "write_index") == 0 && entry->param_count == 1 && entry->params[0].size == 8;
}

bool sim_timeline_is(const struct sim_ptx_entry *entry)
{
	if (is_indexes(entry))
		return true;
	if (strcmp(entry->name, "probe_timeline") != 0 || entry->param_count != PARAMS)
		return false;
	for (unsigned i = 0; i < PARAMS; i++) {
		if (entry->params[i].size != 8)
			return false;
	}
	return true;
}

/* ---- queueing ---- */

static ll_cu_result queue_indexes(struct ll_cu_stream *stream, uint64_t out, const struct sim_op *whole)
{
	struct sim_op op = *whole;
	struct sim_action action = {.kind = SIM_ACTION_INDEXES, .bytes = (size_t)op.blocks * op.threads};
	op.length_ns = INDEXES_NS;
	action.to = sim_memory_at(out, action.bytes * sizeof(uint32_t));
	return action.to ? sim_queue(stream, &op, &action, NULL) : LL_CUDA_ERROR_ILLEGAL_ADDRESS;
}

/*
 * How long a round takes on the SMs that this process may use. Blocks that fit beside each other do not slow each other
 * down: what the model adds for SMs that are wanted by more blocks than there are SMs (kernel.c) is taken off before.
 */
static uint64_t round_ns(uint64_t each_ns, uint32_t card, const struct sim_op *op)
{
	uint32_t sms = sim_cuda_sms(card);
	uint32_t at_once = sms * (op->threads < SM_THREADS ? SM_THREADS / op->threads : 1);
	uint64_t length_ns = each_ns * ((op->blocks + at_once - 1) / at_once);
	uint32_t wanted = sim_kernel_sms(sim_cuda.world->cards[card].sm_count, op);
	return wanted > sms ? length_ns * sms / wanted : length_ns;
}

ll_cu_result sim_timeline_queue(struct ll_cu_stream *stream, const struct ll_cu_kernel_params *kernel,
				const char *buffer, const struct sim_op *whole)
{
	const struct sim_ptx_entry *entry = kernel->function->entry;
	uint64_t given[PARAMS] = {0};
	for (unsigned i = 0; i < entry->param_count; i++)
		sim_kernel_param(entry, i, kernel->params, buffer, &given[i]);
	if (is_indexes(entry))
		return queue_indexes(stream, given[0], whole);
	uint32_t per_round = given[ROUND] && given[ROUND] < whole->blocks ? (uint32_t)given[ROUND] : whole->blocks;
	uint32_t rounds = (whole->blocks + per_round - 1) / per_round;
	struct trace *traces = (void *)sim_memory_at(given[TRACES], rounds * sizeof *traces);
	struct block *blocks = (void *)sim_memory_at(given[BLOCKS], whole->blocks * sizeof *blocks);
	ll_cu_result status = traces && blocks ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_ILLEGAL_ADDRESS;
	for (uint32_t i = 0; status == LL_CUDA_SUCCESS && i < rounds; i++) {
		struct sim_action action = {
		    .kind = SIM_ACTION_TRACE,
		    .card = stream->context->card,
		    .to = (void *)&traces[i],
		    .user = &blocks[i * per_round],
		    .value = given[AWAY],
		    .width = sim_cuda_sms(stream->context->card),
		};
		struct sim_op op = *whole;
		op.blocks = i + 1 < rounds ? per_round : whole->blocks - i * per_round;
		op.length_ns = round_ns(given[LENGTH], action.card, &op);
		op.is_traced = true;
		op.continues = i > 0;
		status = sim_queue(stream, &op, &action, NULL);
	}
	return status;
}

/* ---- what was written when it is done ---- */

static void write_trace(const struct sim_action *action, const struct sim_op *op)
{
	struct sim_world *w = sim_cuda.world;
	struct sim_gap gaps[SIM_GAPS];
	struct trace trace = {.max_gap_ns = op->gap_ns, .step_ns = w->cards[action->card].clock_step_ns};
	sim_lock(w);
	unsigned count = sim_timeline_gaps(w, action->stream_slot, op->id, gaps, SIM_GAPS);
	sim_unlock(w);
	for (unsigned i = 0; i < count; i++) {
		if (gaps[i].length_ns <= action->value)
			continue;
		if (trace.gap_count < LISTED) {
			trace.gaps[trace.gap_count].at_ns = sim_card_clock_ns(w, action->card, gaps[i].at_ns);
			trace.gaps[trace.gap_count].length_ns = gaps[i].length_ns;
		}
		trace.gap_count++;
	}
	memcpy(action->to, &trace, sizeof trace);
}

/* A process that may use some SMs only has not the first process's. */
static void write_blocks(const struct sim_action *action, const struct sim_op *op)
{
	const struct sim_world *w = sim_cuda.world;
	uint32_t count = w->cards[action->card].sm_count, sms = action->width;
	uint32_t from_sm = sms < count ? w->streams[action->stream_slot].context * sms % count : 0;
	struct block block = {
	    .start_ns = sim_card_clock_ns(w, action->card, op->start_ns),
	    .end_ns = sim_card_clock_ns(w, action->card, op->end_ns),
	    .is_done = 1,
	};
	for (uint32_t i = 0; i < op->blocks; i++) {
		block.sm = (from_sm + i % sms) % count;
		memcpy((struct block *)action->user + i, &block, sizeof block);
	}
}

static void write_indexes(const struct sim_action *action)
{
	for (uint32_t i = 0; i < action->bytes; i++)
		memcpy(action->to + i * sizeof i, &i, sizeof i);
}

void sim_timeline_act(const struct sim_action *action, const struct sim_op *op)
{
	if (action->kind == SIM_ACTION_INDEXES) {
		write_indexes(action);
		return;
	}
	write_trace(action, op);
	write_blocks(action, op);
}
