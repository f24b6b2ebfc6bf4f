#include "card/population.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/nvml.h"
#include "base/clock.h"
#include "base/scope.h"
#include "card/defaults.h"
#include "card/holding.h"
#include "card/mps.h"

#define BLOCK_BYTES (UINT64_C(2) << 20)

/* Field 22 of /proc/PID/stat, and field 3. 0: no such process, or a zombie. */
static uint64_t start_ticks_of(int32_t pid)
{
	char path[40], text[512];
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	const char *at = strrchr(text, ')'); /* the name may hold anything */
	char state = 0;
	unsigned long long ticks = 0;
	if (!at || sscanf(at + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
			  &state, &ticks) != 2)
		return 0;
	return state == 'Z' || state == 'X' ? 0 : ticks;
}

uint32_t sim_proc_join(struct sim_world *w)
{
	int32_t pid = getpid();
	uint64_t ticks = start_ticks_of(pid);
	uint32_t free_slot = SIM_NONE;
	for (uint32_t i = 0; i < SIM_PROCS; i++) {
		const struct sim_proc *proc = &w->procs[i];
		if (proc->is_used && proc->pid == pid && proc->start_ticks == ticks)
			return i;
		if (!proc->is_used && free_slot == SIM_NONE)
			free_slot = i;
	}
	if (free_slot != SIM_NONE)
		*SIM_EDIT(w, &w->procs[free_slot]) = (struct sim_proc){.is_used = 1, .pid = pid, .start_ticks = ticks};
	return free_slot;
}

bool sim_proc_is_alive(const struct sim_proc *proc)
{
	return proc->is_used && start_ticks_of(proc->pid) == proc->start_ticks;
}

void sim_proc_leave(struct sim_world *w, uint32_t proc)
{
	for (uint32_t i = 0; i < SIM_CONTEXTS; i++) {
		if (w->contexts[i].is_used && w->contexts[i].proc == proc)
			sim_context_free(w, i);
	}
	for (uint32_t i = 0; i < SIM_MODULES; i++) {
		if (w->module_owner[i] == proc + 1)
			*SIM_EDIT(w, &w->module_owner[i]) = 0;
	}
	sim_holdings_drop(w, proc);
	sim_shared_events_drop(w, proc);
	sim_mps_leave(w, proc);
	*SIM_EDIT(w, &w->procs[proc].is_used) = 0;
	sim_commit(w);
}

void sim_procs_reap(struct sim_world *w, uint64_t now_ns)
{
	if (now_ns - w->reaped_ns < 5 * LL_NS_PER_MS)
		return;
	*SIM_EDIT(w, &w->reaped_ns) = now_ns;
	for (uint32_t i = 0; i < SIM_PROCS; i++) {
		const struct sim_proc *proc = &w->procs[i];
		if (proc->is_used && !sim_proc_is_alive(proc))
			sim_proc_leave(w, i);
	}
}

uint64_t sim_context_used_bytes(const struct sim_context *context)
{
	uint64_t small = (context->small_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
	return context->own_bytes + context->large_bytes + small;
}

static bool is_on_card(const struct sim_world *w, const struct sim_context *context, uint32_t card)
{
	return context->is_used && (context->card == card || w->cards[context->card].parent == card);
}

uint64_t sim_proc_used_bytes(struct sim_world *w, uint32_t card, uint32_t proc)
{
	uint64_t bytes = sim_holding_bytes(w, card, proc);
	for (uint32_t i = 0; i < SIM_CONTEXTS; i++) {
		const struct sim_context *context = &w->contexts[i];
		if (is_on_card(w, context, card) && context->proc == proc)
			bytes += sim_context_used_bytes(context);
	}
	return bytes ? bytes + SIM_PROCESS_BYTES : 0;
}

uint64_t sim_card_used_bytes(struct sim_world *w, uint32_t card)
{
	uint64_t bytes = w->cards[card].foreign_bytes + sim_holding_bytes(w, card, SIM_NONE);
	for (uint32_t i = 0; i < SIM_CONTEXTS; i++) {
		if (is_on_card(w, &w->contexts[i], card))
			bytes += sim_context_used_bytes(&w->contexts[i]);
	}
	bool is_in_sight = false;
	for (uint32_t i = 0; i < SIM_PROCS; i++)
		is_in_sight |= w->procs[i].is_used && (w->procs[i].cards >> card & 1);
	return is_in_sight ? bytes + SIM_PROCESS_BYTES : bytes;
}

bool sim_card_has_room(struct sim_world *w, uint32_t card, uint64_t bytes)
{
	uint64_t used = sim_card_used_bytes(w, card), total = w->cards[card].memory_bytes;
	return used <= total && bytes <= total - used;
}

bool sim_proc_has_room(struct sim_world *w, uint32_t card, uint32_t proc, uint64_t bytes)
{
	return sim_card_has_room(w, card, bytes) && bytes <= sim_mps_room_bytes(w, card, proc);
}

unsigned sim_context_count(struct sim_world *w, uint32_t card, uint32_t proc)
{
	unsigned count = 0;
	for (uint32_t i = 0; i < SIM_CONTEXTS; i++) {
		const struct sim_context *context = &w->contexts[i];
		if (is_on_card(w, context, card) && (proc == SIM_NONE || context->proc == proc))
			count++;
	}
	return count;
}

/* Contexts of other processes: an MPS server and its clients are one. */
static bool has_strangers(struct sim_world *w, uint32_t card, uint32_t proc)
{
	for (uint32_t i = 0; i < SIM_CONTEXTS; i++) {
		const struct sim_context *context = &w->contexts[i];
		if (is_on_card(w, context, card) && sim_mps_owner(w, context->proc) != sim_mps_owner(w, proc))
			return true;
	}
	return false;
}

static bool mode_refuses(struct sim_world *w, uint32_t card, uint32_t proc)
{
	uint32_t physical = w->cards[card].parent == SIM_NONE ? card : w->cards[card].parent;
	switch (w->cards[physical].compute_mode) {
	case LL_NVML_COMPUTEMODE_PROHIBITED:
		return true;
	case LL_NVML_COMPUTEMODE_EXCLUSIVE_THREAD:
	case LL_NVML_COMPUTEMODE_EXCLUSIVE_PROCESS:
		return has_strangers(w, card, proc);
	default:
		return false;
	}
}

uint64_t sim_context_own_bytes(struct sim_world *w, const struct sim_context *context, uint64_t stack_bytes)
{
	uint64_t bytes;
	if (!sim_mps_context_bytes(w, context, stack_bytes, &bytes))
		bytes = sim_context_bytes(&w->cards[context->card], stack_bytes) - context->saved_bytes;
	return bytes;
}

int sim_context_new(struct sim_world *w, uint32_t card, uint32_t proc, uint32_t connections, uint32_t *ret_context)
{
	if (mode_refuses(w, card, proc))
		return -EBUSY;
	uint32_t index = 0;
	while (index < SIM_CONTEXTS && w->contexts[index].is_used)
		index++;
	if (index == SIM_CONTEXTS || w->cards[card].context_count == SIM_CARD_CONTEXTS)
		return -ENOSPC;
	struct sim_context *context = SIM_EDIT(w, &w->contexts[index]);
	*context = (struct sim_context){
	    .is_used = 1,
	    .generation = context->generation + 1,
	    .card = card,
	    .proc = proc,
	    .tenant = index,
	    .sm_limit = w->cards[card].sm_count,
	    .stack_bytes = SIM_DEFAULT_STACK_BYTES,
	    .saved_bytes = connections == 1 ? SIM_LEAN_BYTES : 0,
	};
	sim_mps_context_init(w, context);
	uint64_t own_bytes = sim_context_own_bytes(w, context, SIM_DEFAULT_STACK_BYTES);
	if (!sim_proc_has_room(w, card, proc, own_bytes)) {
		context->is_used = 0;
		return -ENOMEM;
	}
	context->own_bytes = own_bytes;
	uint32_t legacy;
	int rc = sim_stream_new(w, index, 0, false, &legacy);
	if (rc < 0) {
		context->is_used = 0;
		return rc;
	}
	w->streams[legacy].is_legacy = 1;
	w->streams[legacy].queue = SIM_NONE; /* its own */
	context->connections = connections;
	struct sim_card *on = SIM_EDIT(w, &w->cards[card]);
	on->contexts[on->context_count++] = (uint16_t)index;
	*ret_context = index;
	return 0;
}

static void drop_queue(struct sim_world *w, struct sim_stream *stream, uint32_t index)
{
	for (uint64_t position = stream->done; position < stream->submitted; position++) {
		struct sim_op *op = sim_op_at(w, index, position);
		sim_save(w, &op->state, sizeof op->state);
		sim_save(w, &op->end_ns, 2 * sizeof op->end_ns);
		op->state = SIM_OP_DROPPED;
		op->end_ns = w->now_ns;
		op->done_sequence = w->next_done_sequence;
		(*SIM_EDIT(w, &w->next_done_sequence))++;
	}
	SIM_EDIT(w, stream)->done = stream->submitted;
}

static bool has_tenant(const struct sim_world *w, const struct sim_card *card, uint32_t tenant)
{
	for (uint32_t i = 0; i < card->context_count; i++) {
		if (w->contexts[card->contexts[i]].tenant == tenant)
			return true;
	}
	return false;
}

void sim_context_free(struct sim_world *w, uint32_t index)
{
	struct sim_context *context = SIM_EDIT(w, &w->contexts[index]);
	for (uint32_t i = 0; i < context->stream_count; i++)
		SIM_EDIT(w, &w->streams[context->streams[i]])->is_used = 0;
	context->is_used = 0;
	struct sim_card *card = SIM_EDIT(w, &w->cards[context->card]);
	for (uint32_t i = 0; i < card->context_count; i++) {
		if (card->contexts[i] == index)
			card->contexts[i--] = card->contexts[--card->context_count];
	}
	/* An MPS server's state stays on the card for its other clients. */
	bool is_last = !has_tenant(w, card, context->tenant);
	if (is_last && card->turn.tenant == context->tenant)
		card->turn.tenant = SIM_NONE;
	if (is_last && card->turn.resident == context->tenant)
		card->turn.resident = SIM_NONE;
	sim_commit(w);
}

void sim_context_lose(struct sim_world *w, uint32_t index, uint32_t error)
{
	struct sim_context *context = SIM_EDIT(w, &w->contexts[index]);
	for (uint32_t i = 0; i < context->stream_count; i++) {
		drop_queue(w, &w->streams[context->streams[i]], context->streams[i]);
		/* Dropped operations are consistent one stream at a time, and the undo log is finite. */
		sim_commit(w);
	}
	SIM_EDIT(w, context)->error = error;
	struct sim_turn *turn = SIM_EDIT(w, &w->cards[context->card].turn);
	if (turn->tenant == index)
		turn->tenant = SIM_NONE;
	sim_commit(w);
}

int sim_stream_new(struct sim_world *w, uint32_t context_index, int32_t priority, bool is_blocking,
		   uint32_t *ret_stream)
{
	struct sim_context *context = &w->contexts[context_index];
	uint32_t index = 0;
	while (index < SIM_STREAMS && w->streams[index].is_used)
		index++;
	if (index == SIM_STREAMS || context->stream_count == SIM_CONTEXT_STREAMS)
		return -ENOSPC;
	struct sim_stream *stream = SIM_EDIT(w, &w->streams[index]);
	*stream = (struct sim_stream){
	    .is_used = 1,
	    .generation = stream->generation + 1,
	    .context = context_index,
	    .priority = priority,
	    .is_blocking = is_blocking,
	};
	SIM_EDIT(w, context)->streams[context->stream_count] = (uint16_t)index;
	context->stream_count++;
	if (context->connections) {
		stream->queue = context->next_queue % context->connections;
		context->has_shared_queues |= context->next_queue >= context->connections;
		context->next_queue++;
	}
	*ret_stream = index;
	return 0;
}

void sim_stream_collect(struct sim_world *w, uint32_t index)
{
	struct sim_stream *stream = &w->streams[index];
	if (!stream->is_closing || stream->reaped != stream->submitted)
		return;
	struct sim_context *context = SIM_EDIT(w, &w->contexts[stream->context]);
	for (uint32_t i = 0; i < context->stream_count; i++) {
		if (context->streams[i] == index)
			context->streams[i] = context->streams[--context->stream_count];
	}
	SIM_EDIT(w, stream)->is_used = 0;
}

void sim_stream_close(struct sim_world *w, uint32_t index)
{
	SIM_EDIT(w, &w->streams[index])->is_closing = 1;
	sim_stream_collect(w, index);
}

uint32_t sim_module_new(struct sim_world *w, uint32_t proc)
{
	for (uint32_t i = 0; i < SIM_MODULES; i++) {
		if (w->module_owner[i])
			continue;
		*SIM_EDIT(w, &w->module_owner[i]) = proc + 1;
		*SIM_EDIT(w, &w->stopped_epoch[i]) = 0;
		return i;
	}
	return SIM_NONE;
}

void sim_module_free(struct sim_world *w, uint32_t module)
{
	if (module != SIM_NONE)
		*SIM_EDIT(w, &w->module_owner[module]) = 0;
}

static void report_xid(struct sim_world *w, uint32_t card, uint32_t xid)
{
	struct sim_xid *report = SIM_EDIT(w, &w->xids[w->next_xid % SIM_XIDS]);
	*report = (struct sim_xid){.sequence = w->next_xid, .card = card, .xid = xid};
	(*SIM_EDIT(w, &w->next_xid))++;
}

/* A fault in one client of an MPS server is one in all of its clients on that card. */
static void lose_with_neighbours(struct sim_world *w, uint32_t index, uint32_t error)
{
	const struct sim_context *context = &w->contexts[index];
	const struct sim_proc *proc = &w->procs[context->proc];
	sim_context_lose(w, index, error);
	if (proc->mps.server && !proc->mps.error)
		sim_mps_fault(w, proc->mps.server - 1, context->card, error, 0);
}

void sim_card_xid(struct sim_world *w, uint32_t card, uint32_t xid, uint32_t error, int32_t pid)
{
	for (uint32_t i = 0; i < SIM_CONTEXTS; i++) {
		const struct sim_context *context = &w->contexts[i];
		if (is_on_card(w, context, card) && (pid == 0 || w->procs[context->proc].pid == pid))
			lose_with_neighbours(w, i, error);
	}
	report_xid(w, card, xid);
}

void sim_report_fault(struct sim_world *w, uint32_t context, uint32_t xid, uint32_t error)
{
	report_xid(w, w->contexts[context].card, xid);
	lose_with_neighbours(w, context, error);
}
