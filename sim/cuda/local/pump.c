/*
 * Carries out the actions of operations that are done in the model: copies bytes, writes records, stamps events, in the
 * order of the world. Every thread that calls the library does it. So does one thread of the library, so that a program
 * that only reads its memory sees it change.
 */
#include "cuda/local/pump.h"

#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "card/context.h"
#include "card/engine.h"
#include "card/queue.h"
#include "cuda/local/current.h"
#include "cuda/local/event.h"
#include "cuda/local/observed.h"
#include "cuda/local/pool.h"
#include "cuda/local/state.h"
#include "cuda/local/timeline.h"

enum {
	REAP_BATCH = 64,
	LOOK_AGAIN_NS = 2000000, /* another program may have ended, and the turn come earlier than planned */
	POLL_VALUE_NS = 200000,
};

struct reaped {
	struct sim_op op;
	bool is_dropped;
};

/* The layout of src/hold/payload.h's struct ll_record. */
struct record {
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t gap_ns;
	uint32_t flags;
	_Atomic uint32_t sequence;
};

_Static_assert(sizeof(struct record) == 32, "32 bytes, as the kernels write it");

static void write_record(const struct sim_action *action, const struct sim_op *op)
{
	struct record *record = (void *)action->to;
	record->start_ns = sim_card_clock_ns(sim_cuda.world, action->card, op->start_ns);
	record->end_ns = sim_card_clock_ns(sim_cuda.world, action->card, op->end_ns);
	record->gap_ns = op->gap_ns;
	record->flags = op->flags;
	atomic_store_explicit(&record->sequence, action->sequence, memory_order_release);
}

/* A program may poll a word that a copy writes, so words are written whole. */
static void copy_row(char *to, const char *from, size_t bytes)
{
	uint32_t word;
	if (bytes == sizeof word && (uintptr_t)to % sizeof word == 0) {
		memcpy(&word, from, sizeof word);
		atomic_store_explicit((_Atomic uint32_t *)(void *)to, word, memory_order_release);
	} else {
		memmove(to, from, bytes);
	}
}

static void fill_row(const struct sim_action *action, char *to)
{
	for (size_t i = 0; i < action->bytes; i += action->width)
		memcpy(to + i, &action->value, action->width); /* the low bytes come first */
}

static void move_rows(const struct sim_action *action)
{
	const struct sim_rows *rows = &action->rows;
	const char *from = action->staged ? action->staged : action->from;
	for (size_t z = 0; z == 0 || z < rows->depth; z++) {
		for (size_t y = 0; y == 0 || y < rows->height; y++) {
			char *to = action->to + z * rows->to_slice + y * rows->to_pitch;
			if (action->kind == SIM_ACTION_COPY)
				copy_row(to, from + z * rows->from_slice + y * rows->from_pitch, action->bytes);
			else
				fill_row(action, to);
		}
	}
}

static void write_value(const struct sim_action *action)
{
	if (action->is_wide)
		atomic_store_explicit((_Atomic uint64_t *)(void *)action->to, action->value, memory_order_release);
	else
		atomic_store_explicit((_Atomic uint32_t *)(void *)action->to, (uint32_t)action->value,
				      memory_order_release);
}

static struct sim_action *add_action(const struct sim_action *action)
{
	static const struct sim_action nothing;
	struct sim_action *copy = malloc(sizeof *copy);
	if (!copy)
		return NULL;
	*copy = action ? *action : nothing;
	copy->next = sim_cuda.actions;
	copy->link = &sim_cuda.actions;
	if (copy->next)
		copy->next->link = &copy->next;
	sim_cuda.actions = copy;
	return copy;
}

static void drop_action(struct sim_action *action)
{
	*action->link = action->next;
	if (action->next)
		action->next->link = action->link;
	free(action->staged);
	free(action->activity);
	free(action);
}

static void finish_action(struct sim_action *action, const struct sim_op *op)
{
	bool has_happened = op->state == SIM_OP_DONE;
	if (!action)
		return; /* the driver's own work */
	if (action->activity)
		sim_activity_end(action->activity, op);
	switch (action->kind) {
	case SIM_ACTION_RECORD:
		if (has_happened)
			write_record(action, op);
		break;
	case SIM_ACTION_TRACE:
	case SIM_ACTION_INDEXES:
		if (has_happened)
			sim_timeline_act(action, op);
		break;
	case SIM_ACTION_COPY:
	case SIM_ACTION_FILL:
		if (has_happened)
			move_rows(action);
		break;
	case SIM_ACTION_WRITE:
		if (has_happened)
			write_value(action);
		break;
	case SIM_ACTION_VALUE:
		sim_cuda.value_waiting--;
		break;
	case SIM_ACTION_EVENT:
		sim_event_happened(action->event, action->stream_slot, action->position, op->end_ns);
		break;
	case SIM_ACTION_HOST:
		sim_cuda.host_waiting--;
		break;
	case SIM_ACTION_FREE:
		sim_freed_in_order(action);
		break;
	case SIM_ACTION_NONE:
		break;
	}
	drop_action(action);
}

/* Returns the stream of this process whose oldest completed operation completed first. */
static uint32_t first_finished(struct sim_world *w)
{
	uint32_t best = SIM_NONE;
	uint64_t best_sequence = UINT64_MAX;
	for (const struct ll_cu_context *context = sim_cuda.contexts; context; context = context->next) {
		const struct sim_context *shared = &w->contexts[context->slot];
		for (uint32_t i = 0; i < shared->stream_count; i++) {
			uint32_t slot = shared->streams[i];
			const struct sim_stream *stream = &w->streams[slot];
			if (stream->reaped == stream->done)
				continue;
			uint64_t sequence = sim_op_at(w, slot, stream->reaped)->done_sequence;
			if (sequence < best_sequence) {
				best_sequence = sequence;
				best = slot;
			}
		}
	}
	return best;
}

static unsigned collect_ops(struct sim_world *w, struct sim_op ops[REAP_BATCH])
{
	unsigned count = 0;
	for (uint32_t slot; count < REAP_BATCH && (slot = first_finished(w)) != SIM_NONE;) {
		struct sim_stream *stream = &w->streams[slot];
		ops[count++] = *sim_op_at(w, slot, stream->reaped);
		SIM_EDIT(w, stream)->reaped++;
		sim_stream_collect(w, slot);
		sim_commit(w);
	}
	return count;
}

static bool has_pending(struct sim_world *w)
{
	for (const struct ll_cu_context *context = sim_cuda.contexts; context; context = context->next) {
		const struct sim_context *shared = &w->contexts[context->slot];
		for (uint32_t i = 0; i < shared->stream_count; i++) {
			if (w->streams[shared->streams[i]].done < w->streams[shared->streams[i]].submitted)
				return true;
		}
	}
	return false;
}

/* Whether a wait for a value in memory has ended. Only this process can read the memory. */
static bool is_value_reached(const struct sim_action *action)
{
	uint64_t value, wanted = action->value, mask = action->is_wide ? UINT64_MAX : UINT32_MAX;
	if (action->is_wide)
		value = atomic_load_explicit((_Atomic uint64_t *)(void *)action->to, memory_order_acquire);
	else
		value = atomic_load_explicit((_Atomic uint32_t *)(void *)action->to, memory_order_acquire);
	switch (action->width) {
	case LL_CU_STREAM_WAIT_VALUE_EQ:
		return value == wanted;
	case LL_CU_STREAM_WAIT_VALUE_AND:
		return (value & wanted) != 0;
	case LL_CU_STREAM_WAIT_VALUE_NOR:
		return (~(value | wanted) & mask) != 0;
	default: /* the sign of the difference decides, so that counters may wrap */
		return action->is_wide ? (int64_t)(value - wanted) >= 0 : (int32_t)(uint32_t)(value - wanted) >= 0;
	}
}

/* Checks the heads of queues that only this process can end. Wakes the thread of host functions if one may run. */
static void look_at_own_heads(struct sim_world *w)
{
	for (const struct ll_cu_context *context = sim_cuda.contexts; context; context = context->next) {
		const struct sim_context *shared = &w->contexts[context->slot];
		for (uint32_t i = 0; i < shared->stream_count; i++) {
			uint32_t slot = shared->streams[i];
			const struct sim_stream *stream = &w->streams[slot];
			const struct sim_op *op = sim_op_at(w, slot, stream->done);
			if (stream->done == stream->submitted || op->state != SIM_OP_RUNNING)
				continue;
			if (op->kind == SIM_OP_HOST)
				pthread_cond_signal(&sim_cuda.host);
			else if (op->kind == SIM_OP_VALUE && is_value_reached((void *)(uintptr_t)op->cookie))
				sim_finish(w, slot, stream->done);
		}
	}
}

uint64_t sim_cuda_pump(void)
{
	struct sim_world *w = sim_cuda.world;
	if (!w || sim_cuda.is_dead || !sim_cuda.contexts)
		return SIM_NEVER;
	for (;;) {
		struct sim_op ops[REAP_BATCH];
		uint64_t next_ns = SIM_NEVER;
		sim_lock(w);
		sim_advance_to_now(w);
		if (sim_cuda.host_waiting || sim_cuda.value_waiting) {
			look_at_own_heads(w);
			sim_advance_to_now(w);
		}
		unsigned count = collect_ops(w, ops);
		if (has_pending(w)) {
			uint64_t again_ns = w->now_ns + (sim_cuda.value_waiting ? POLL_VALUE_NS : LOOK_AGAIN_NS);
			next_ns = sim_next_event_ns(w);
			next_ns = next_ns < again_ns ? next_ns : again_ns;
		}
		sim_unlock(w);
		for (unsigned i = 0; i < count; i++)
			finish_action((void *)(uintptr_t)ops[i].cookie, &ops[i]);
		if (count)
			pthread_cond_broadcast(&sim_cuda.reaped);
		if (count < REAP_BATCH)
			return next_ns;
	}
}

static void wait_until(pthread_cond_t *condition, uint64_t at_ns)
{
	struct timespec ts = {
	    .tv_sec = (time_t)(at_ns / LL_NS_PER_S),
	    .tv_nsec = (long)(at_ns % LL_NS_PER_S),
	};
	if (at_ns == SIM_NEVER)
		pthread_cond_wait(condition, &sim_cuda.lock);
	else
		pthread_cond_timedwait(condition, &sim_cuda.lock, &ts);
}

static void *run_worker(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "sim-cuda");
	prctl(PR_SET_TIMERSLACK, 1UL);
	pthread_mutex_lock(&sim_cuda.lock);
	while (!sim_cuda.is_dead)
		wait_until(&sim_cuda.queued, sim_cuda_pump());
	pthread_mutex_unlock(&sim_cuda.lock);
	return NULL;
}

struct start {
	void *(*run)(void *);
	sem_t has_begun;
};

static void *begin_thread(void *arg)
{
	struct start *start = arg;
	void *(*run)(void *) = start->run;
	sem_post(&start->has_begun);
	return run(NULL);
}

/*
 * Starts a thread, and returns when it runs. A thread that is starting holds locks of the C library or of a sanitizer.
 * If the program forked then, the child would keep these locks for ever.
 */
static void start_thread(void *(*run)(void *), bool *has_thread)
{
	if (*has_thread)
		return;
	struct start start = {.run = run};
	sem_init(&start.has_begun, 0, 0);
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, old;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	/* The thread handles no signals, because they belong to the program. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	*has_thread = pthread_create(&thread, &attr, begin_thread, &start) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	while (*has_thread && sem_wait(&start.has_begun) != 0)
		; /* interrupted by a signal */
	sem_destroy(&start.has_begun);
	pthread_attr_destroy(&attr);
}

void sim_worker_start(void)
{
	start_thread(run_worker, &sim_cuda.has_worker);
}

/* Finds a host function that may run. The local lock and the world's lock must be held. */
static struct sim_action *next_host_function(struct sim_world *w)
{
	for (const struct ll_cu_context *context = sim_cuda.contexts; context; context = context->next) {
		const struct sim_context *shared = &w->contexts[context->slot];
		for (uint32_t i = 0; i < shared->stream_count; i++) {
			uint32_t slot = shared->streams[i];
			const struct sim_stream *stream = &w->streams[slot];
			const struct sim_op *op = sim_op_at(w, slot, stream->done);
			if (stream->done < stream->submitted && op->kind == SIM_OP_HOST && op->state == SIM_OP_RUNNING)
				return (void *)(uintptr_t)op->cookie;
		}
	}
	return NULL;
}

static void run_host_function(struct sim_world *w, const struct sim_action *action)
{
	struct sim_action call = *action;
	pthread_mutex_unlock(&sim_cuda.lock);
	if (call.callback)
		call.callback(call.stream, LL_CUDA_SUCCESS, call.user);
	else
		call.host(call.user);
	pthread_mutex_lock(&sim_cuda.lock);
	sim_lock(w);
	sim_advance_to_now(w);
	sim_finish(w, call.stream_slot, call.position);
	sim_unlock(w);
	sim_cuda_pump();
	pthread_cond_signal(&sim_cuda.queued);
}

static void *run_host_functions(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "sim-cuda-host");
	pthread_mutex_lock(&sim_cuda.lock);
	while (!sim_cuda.is_dead) {
		sim_lock(sim_cuda.world);
		struct sim_action *action = next_host_function(sim_cuda.world);
		sim_unlock(sim_cuda.world);
		if (action)
			run_host_function(sim_cuda.world, action);
		else
			pthread_cond_wait(&sim_cuda.host, &sim_cuda.lock);
	}
	pthread_mutex_unlock(&sim_cuda.lock);
	return NULL;
}

void sim_host_thread_start(void)
{
	start_thread(run_host_functions, &sim_cuda.has_host_thread);
}

static bool is_full(const struct ll_cu_stream *stream)
{
	struct sim_world *w = sim_cuda.world;
	sim_lock(w);
	const struct sim_stream *shared = &w->streams[stream->slot];
	bool full = shared->submitted - shared->reaped == SIM_RING;
	sim_unlock(w);
	return full;
}

static void wait_for_room(struct ll_cu_stream *stream)
{
	/* The pump may have made room itself, which wakes nobody. */
	uint64_t next_ns = sim_cuda_pump();
	stream->waiting++;
	if (is_full(stream))
		wait_until(&sim_cuda.reaped, next_ns);
	if (--stream->waiting == 0)
		pthread_cond_broadcast(&sim_cuda.reaped);
}

ll_cu_result sim_wait_for_others(struct ll_cu_stream *stream)
{
	while (stream->waiting) {
		ll_cu_result status = sim_context_status(stream->context);
		if (status)
			return status;
		uint64_t next_ns = sim_cuda_pump();
		if (stream->waiting)
			wait_until(&sim_cuda.reaped, next_ns);
	}
	return LL_CUDA_SUCCESS;
}

ll_cu_result sim_queue(struct ll_cu_stream *stream, struct sim_op *op, const struct sim_action *action,
		       uint64_t *ret_position)
{
	struct sim_world *w = sim_cuda.world;
	struct sim_action *copy = add_action(action);
	if (!copy)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	copy->stream_slot = stream->slot;
	copy->activity = sim_activity_begin(stream, op, action);
	op->cookie = (uintptr_t)copy;
	for (;;) {
		ll_cu_result status = sim_context_status(stream->context);
		if (status) {
			drop_action(copy);
			return status;
		}
		sim_lock(w);
		sim_advance_to_now(w);
		copy->position = w->streams[stream->slot].submitted;
		uint64_t position;
		int rc = sim_submit(w, stream->slot, op, &position);
		sim_unlock(w);
		if (rc == 0) {
			if (ret_position)
				*ret_position = position;
			pthread_cond_signal(&sim_cuda.queued);
			return LL_CUDA_SUCCESS;
		}
		wait_for_room(stream);
	}
}

static bool is_position_reaped(const struct ll_cu_stream *stream, uint64_t position)
{
	struct sim_world *w = sim_cuda.world;
	sim_lock(w);
	const struct sim_stream *shared = &w->streams[stream->slot];
	bool is_reaped = !shared->is_used || shared->generation != stream->generation || shared->reaped > position;
	sim_unlock(w);
	return is_reaped;
}

ll_cu_result sim_wait(struct ll_cu_stream *stream, uint64_t position)
{
	struct ll_cu_context *context = stream->context;
	struct ll_cu_stream copy = *stream; /* the handle may be destroyed during the wait */
	for (;;) {
		uint64_t next_ns = sim_cuda_pump();
		if (is_position_reaped(&copy, position))
			return sim_context_status(context);
		wait_until(&sim_cuda.reaped, next_ns);
	}
}

ll_cu_result sim_wait_all(struct ll_cu_stream *stream)
{
	struct sim_world *w = sim_cuda.world;
	sim_lock(w);
	uint64_t submitted = w->streams[stream->slot].submitted;
	sim_unlock(w);
	return submitted ? sim_wait(stream, submitted - 1) : sim_context_status(stream->context);
}

/* Whether everything is done that was submitted to the context before operation `id`. A context that was destroyed has
 * nothing to do. */
static bool is_context_reaped(const struct ll_cu_context *context, uint32_t generation, uint64_t id)
{
	struct sim_world *w = sim_cuda.world;
	bool is_reaped = true;
	sim_lock(w);
	const struct sim_context *shared = &w->contexts[context->slot];
	for (uint32_t i = 0; shared->generation == generation && i < shared->stream_count; i++) {
		uint32_t slot = shared->streams[i];
		const struct sim_stream *stream = &w->streams[slot];
		if (stream->reaped < stream->submitted && sim_op_at(w, slot, stream->reaped)->id < id)
			is_reaped = false;
	}
	sim_unlock(w);
	return is_reaped;
}

void sim_wait_card(uint32_t card)
{
	sim_lock(sim_cuda.world);
	uint64_t id = sim_cuda.world->next_op_id;
	sim_unlock(sim_cuda.world);
	for (;;) {
		uint64_t next_ns = sim_cuda_pump();
		bool is_reaped = true;
		for (const struct ll_cu_context *c = sim_cuda.contexts; c; c = c->next)
			is_reaped &= c->card != card || is_context_reaped(c, c->generation, id);
		if (is_reaped)
			return;
		wait_until(&sim_cuda.reaped, next_ns);
	}
}

/* Whether rows from `first` on overlap the bytes. A record or a value has no length. */
static bool do_touch(const char *first, const struct sim_action *action, size_t pitch, size_t slice, const char *at,
		     size_t bytes)
{
	const struct sim_rows *rows = &action->rows;
	size_t length = (action->bytes ? action->bytes : sizeof(struct record)) +
			(rows->height ? rows->height - 1 : 0) * pitch + (rows->depth ? rows->depth - 1 : 0) * slice;
	return first && first < at + bytes && at < first + length;
}

static bool is_touched(const char *at, size_t bytes)
{
	for (const struct sim_action *action = sim_cuda.actions; action; action = action->next) {
		const struct sim_rows *rows = &action->rows;
		if (do_touch(action->to, action, rows->to_pitch, rows->to_slice, at, bytes) ||
		    do_touch(action->from, action, rows->from_pitch, rows->from_slice, at, bytes))
			return true;
	}
	return false;
}

void sim_wait_bytes(const char *at, size_t bytes)
{
	for (;;) {
		uint64_t next_ns = sim_cuda_pump();
		if (!sim_cuda.contexts || !is_touched(at, bytes))
			return;
		wait_until(&sim_cuda.reaped, next_ns);
	}
}

ll_cu_result sim_wait_context(struct ll_cu_context *context)
{
	uint32_t generation = context->generation;
	sim_lock(sim_cuda.world);
	uint64_t id = sim_cuda.world->next_op_id;
	sim_unlock(sim_cuda.world);
	for (;;) {
		uint64_t next_ns = sim_cuda_pump();
		ll_cu_result status = sim_context_status(context);
		if (status || is_context_reaped(context, generation, id))
			return status;
		wait_until(&sim_cuda.reaped, next_ns);
	}
}

void sim_cuda_lock(void)
{
	pthread_mutex_lock(&sim_cuda.lock);
	sim_cuda_pump();
}

void sim_cuda_unlock(void)
{
	pthread_mutex_unlock(&sim_cuda.lock);
}
