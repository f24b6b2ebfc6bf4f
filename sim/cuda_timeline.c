#include "cuda_timeline.h"

#include <string.h>

#include "cuda_launch.h"
#include "cuda_mps.h"
#include "kernel.h"
#include "timeline.h"

enum { SM_THREADS = 2048, LISTED = 32, PARAMS = 4 };

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

/* Blocks that fit on the SMs that this process may use. */
static uint32_t blocks_at_once(uint32_t sms, const struct sim_op *op)
{
	uint32_t at_once = sms * (op->threads < SM_THREADS ? SM_THREADS / op->threads : 1);
	return op->blocks < at_once ? op->blocks : at_once;
}

static uint32_t rounds_of(const struct sim_action *action, const struct sim_op *op)
{
	return (op->blocks + action->width - 1) / action->width;
}

/* The blocks of a round run side by side and do not slow each other down: what the model will add for an SM's being
 * shared by blocks (kernel.c) is taken off before. */
static uint64_t length_ns(uint64_t each_ns, uint32_t rounds, uint32_t card, uint32_t sms, const struct sim_op *op)
{
	uint32_t wanted = sim_kernel_sms(sim_cuda.world->cards[card].sm_count, op);
	return wanted > sms ? each_ns * rounds * sms / wanted : each_ns * rounds;
}

static ll_cu_result set_indexes(uint64_t out, const struct sim_op *op, struct sim_action *action)
{
	action->kind = SIM_ACTION_INDEXES;
	action->bytes = (size_t)op->blocks * op->threads;
	action->to = sim_memory_at(out, action->bytes * sizeof(uint32_t));
	return action->to ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_ILLEGAL_ADDRESS;
}

ll_cu_result sim_timeline_set(const struct ll_cu_function *function, void **params, const char *buffer,
			      struct sim_op *op, struct sim_action *action)
{
	uint64_t given[PARAMS] = {0};
	for (unsigned i = 0; i < function->entry->param_count; i++)
		sim_kernel_param(function->entry, i, params, buffer, &given[i]);
	if (is_indexes(function->entry)) {
		op->length_ns = 2000;
		return set_indexes(given[0], op, action);
	}
	action->kind = SIM_ACTION_TRACE;
	action->card = function->module->context->card;
	action->to = sim_memory_at(given[1], sizeof(struct trace));
	action->user = sim_memory_at(given[2], op->blocks * sizeof(struct block));
	action->value = given[3];
	uint32_t sms = sim_cuda_sms(action->card);
	action->width = blocks_at_once(sms, op);
	action->bytes = sms;
	op->is_traced = true;
	op->length_ns = length_ns(given[0], rounds_of(action, op), action->card, sms, op);
	return action->to && action->user ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_ILLEGAL_ADDRESS;
}

/* When it had been on the card for so long. */
static uint64_t moment_ns(const struct sim_op *op, const struct sim_gap *gaps, unsigned count, uint64_t on_card_ns)
{
	uint64_t at_ns = op->start_ns + on_card_ns;
	for (unsigned i = 0; i < count && gaps[i].at_ns < at_ns; i++)
		at_ns += gaps[i].length_ns;
	return at_ns < op->end_ns ? at_ns : op->end_ns;
}

static void write_trace(const struct sim_action *action, const struct sim_op *op, const struct sim_gap *gaps,
			unsigned count)
{
	const struct sim_world *w = sim_cuda.world;
	struct trace trace = {
	    .max_gap_ns = op->gap_ns,
	    .step_ns = w->cards[action->card].clock_step_ns,
	};
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

/* Of a process that may use some SMs only: not the first process's. */
static uint32_t first_sm(const struct sim_action *action, const struct sim_world *w)
{
	uint32_t count = w->cards[action->card].sm_count, sms = (uint32_t)action->bytes;
	uint32_t context = w->streams[action->stream_slot].context;
	return sms < count ? context * sms % count : 0;
}

static void write_blocks(const struct sim_action *action, const struct sim_op *op, const struct sim_gap *gaps,
			 unsigned count)
{
	const struct sim_world *w = sim_cuda.world;
	uint32_t rounds = rounds_of(action, op), from_sm = first_sm(action, w);
	uint64_t on_card_ns = op->end_ns - op->start_ns;
	for (unsigned i = 0; i < count; i++)
		on_card_ns -= gaps[i].length_ns;
	for (uint32_t i = 0; i < op->blocks; i++) {
		uint64_t round = i / action->width;
		uint64_t start_ns = moment_ns(op, gaps, count, on_card_ns * round / rounds);
		uint64_t end_ns = moment_ns(op, gaps, count, on_card_ns * (round + 1) / rounds);
		struct block block = {
		    .start_ns = sim_card_clock_ns(w, action->card, start_ns),
		    .end_ns = sim_card_clock_ns(w, action->card, end_ns),
		    .sm = (from_sm + i % action->width % (uint32_t)action->bytes) % w->cards[action->card].sm_count,
		    .is_done = 1,
		};
		memcpy((char *)action->user + i * sizeof block, &block, sizeof block);
	}
}

static void write_indexes(const struct sim_action *action)
{
	for (uint32_t i = 0; i < action->bytes; i++)
		memcpy(action->to + i * sizeof i, &i, sizeof i);
}

void sim_timeline_act(const struct sim_action *action, const struct sim_op *op)
{
	struct sim_gap gaps[SIM_GAPS];
	if (action->kind == SIM_ACTION_INDEXES) {
		write_indexes(action);
		return;
	}
	sim_lock(sim_cuda.world);
	unsigned count = sim_timeline_gaps(sim_cuda.world, action->stream_slot, op->id, gaps, SIM_GAPS);
	sim_unlock(sim_cuda.world);
	write_trace(action, op, gaps, count);
	write_blocks(action, op, gaps, count);
}
