#include "cuda/local/timeline.h"

#include <string.h>

#include "card/kernel.h"
#include "card/timeline.h"
#include "cuda/local/allocations.h"
#include "cuda/local/mps.h"

enum { SM_THREADS = 2048, SM_BLOCKS = 32, LISTED = 256, INDEXES_NS = 2000 };

enum param { LENGTH, TRACES, BLOCKS, AWAY, ROUND, PARAMS };

/* The layouts of src/probe/probe.h, which the simulator must not include. */
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

static ll_cu_result prepare_indexes(uint64_t out, struct sim_op *op, struct sim_action *action)
{
	*action = (struct sim_action){.kind = SIM_ACTION_INDEXES, .bytes = (size_t)op->blocks * op->threads};
	op->length_ns = INDEXES_NS;
	action->to = sim_memory_at(out, action->bytes * sizeof(uint32_t));
	return action->to ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_ILLEGAL_ADDRESS;
}

/* Returns the number of blocks that are on the SMs at once, as in kernel.c. */
static uint32_t blocks_at_once(uint32_t sms, const struct sim_op *op)
{
	uint32_t warps = (op->threads + 31) / 32, per_sm = SM_THREADS / 32 / warps;
	return sms * (per_sm < SM_BLOCKS ? per_sm : SM_BLOCKS);
}

/*
 * Returns the length on the SMs that this process may use. Blocks that run beside each other do not slow each other
 * down. So the time that kernel.c adds if more SMs are wanted than there are is subtracted here.
 */
static uint64_t length_ns(uint64_t each_ns, uint32_t card, uint32_t sms, const struct sim_op *op)
{
	uint32_t at_once = blocks_at_once(sms, op);
	uint64_t whole_ns = each_ns * ((op->blocks + at_once - 1) / at_once);
	uint32_t wanted = sim_kernel_sms(sim_cuda.world->cards[card].sm_count, op);
	return wanted > sms ? whole_ns * sms / wanted : whole_ns;
}

ll_cu_result sim_timeline_prepare(const struct ll_cu_context *context, const struct ll_cu_kernel_params *kernel,
				  const char *buffer, struct sim_op *op, struct sim_action *action)
{
	const struct sim_ptx_entry *entry = kernel->function->entry;
	uint64_t given[PARAMS] = {0};
	for (unsigned i = 0; i < entry->param_count; i++)
		sim_ptx_argument(entry, i, kernel->params, buffer, &given[i]);
	if (is_indexes(entry))
		return prepare_indexes(given[0], op, action);
	uint32_t round = given[ROUND] && given[ROUND] < op->blocks ? (uint32_t)given[ROUND] : op->blocks;
	*action = (struct sim_action){
	    .kind = SIM_ACTION_TRACE,
	    .card = context->card,
	    .to = sim_memory_at(given[TRACES], (op->blocks + round - 1) / round * sizeof(struct trace)),
	    .user = sim_memory_at(given[BLOCKS], op->blocks * sizeof(struct block)),
	    .value = given[AWAY],
	    .sequence = round,
	    .width = sim_cuda_sms(context->card),
	};
	op->length_ns = length_ns(given[LENGTH], action->card, action->width, op);
	op->is_traced = true;
	return action->to && action->user ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_ILLEGAL_ADDRESS;
}

/* ---- output at the end ---- */

struct account {
	const struct sim_action *action;
	const struct sim_op *op;
	const struct sim_world *w;
	struct sim_gap gaps[SIM_GAPS];
	unsigned gap_count;
	uint32_t at_once;
	uint64_t wave_ns;
};

/* Returns when the kernel has had that much time on the card. is_after: after an interruption at that moment; otherwise
 * before it. */
static uint64_t moment_ns(const struct account *a, uint64_t had_ns, bool is_after)
{
	uint64_t at_ns = a->op->start_ns + had_ns;
	for (unsigned i = 0; i < a->gap_count; i++) {
		if (a->gaps[i].at_ns > at_ns || (a->gaps[i].at_ns == at_ns && !is_after))
			break;
		at_ns += a->gaps[i].length_ns;
	}
	return at_ns < a->op->end_ns ? at_ns : a->op->end_ns;
}

static uint64_t card_ns(const struct account *a, uint64_t at_ns)
{
	return sim_card_clock_ns(a->w, a->action->card, at_ns);
}

/* Writes the interruptions of a round's first block, which ran in one wave. A caller that asked how many blocks fit has
 * equal rounds and waves. */
static void write_trace(const struct account *a, uint32_t round, char *to)
{
	uint64_t wave = (uint64_t)round * a->action->sequence / a->at_once;
	uint64_t from_ns = moment_ns(a, wave * a->wave_ns, true);
	uint64_t to_ns = moment_ns(a, (wave + 1) * a->wave_ns, false);
	struct trace trace = {.max_gap_ns = a->w->cards[a->action->card].clock_step_ns};
	trace.step_ns = trace.max_gap_ns;
	for (unsigned i = 0; i < a->gap_count; i++) {
		const struct sim_gap *gap = &a->gaps[i];
		if (gap->at_ns < from_ns || gap->at_ns + gap->length_ns > to_ns || gap->length_ns <= a->action->value)
			continue;
		if (gap->length_ns > trace.max_gap_ns)
			trace.max_gap_ns = gap->length_ns;
		if (trace.gap_count < LISTED) {
			trace.gaps[trace.gap_count].at_ns = card_ns(a, gap->at_ns);
			trace.gaps[trace.gap_count].length_ns =
			    card_ns(a, gap->at_ns + gap->length_ns) - card_ns(a, gap->at_ns);
		}
		trace.gap_count++;
	}
	memcpy(to, &trace, sizeof trace);
}

/* A process that may use only some SMs gets other SMs than the first process. */
static void write_blocks(const struct account *a)
{
	uint32_t count = a->w->cards[a->action->card].sm_count, sms = a->action->width;
	uint32_t first_sm = sms < count ? a->w->streams[a->action->stream_slot].context * sms % count : 0;
	for (uint32_t i = 0; i < a->op->blocks; i++) {
		uint64_t wave = i / a->at_once;
		struct block block = {
		    .start_ns = card_ns(a, moment_ns(a, wave * a->wave_ns, true)),
		    .end_ns = card_ns(a, moment_ns(a, (wave + 1) * a->wave_ns, false)),
		    .sm = (first_sm + i % sms) % count,
		    .is_done = 1,
		};
		memcpy((struct block *)a->action->user + i, &block, sizeof block);
	}
}

static void write_account(const struct sim_action *action, const struct sim_op *op)
{
	struct sim_world *w = sim_cuda.world;
	struct account a = {.action = action, .op = op, .w = w, .at_once = blocks_at_once(action->width, op)};
	sim_lock(w);
	a.gap_count = sim_timeline_gaps(w, action->stream_slot, op->id, a.gaps, SIM_GAPS);
	sim_unlock(w);
	uint64_t had_ns = op->end_ns - op->start_ns;
	for (unsigned i = 0; i < a.gap_count; i++)
		had_ns -= a.gaps[i].length_ns;
	a.wave_ns = op->wave_ns ? op->wave_ns : had_ns;
	for (uint32_t round = 0; round * action->sequence < op->blocks; round++)
		write_trace(&a, round, action->to + round * sizeof(struct trace));
	write_blocks(&a);
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
	write_account(action, op);
}
