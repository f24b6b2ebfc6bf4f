/*
 * preload.h - the parts of libloadline-events.so: the decision whether it times launches, the hooks' way to time one,
 * the events and the thread that harvests them, the clock of a context, the names of kernels.
 */
#ifndef LOADLINE_TRACE_PRELOAD_PRELOAD_H
#define LOADLINE_TRACE_PRELOAD_PRELOAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "shim/interpose/reentry.h"
#include "shim/interpose/stream.h"
#include "shim/interpose/work.h"
#include "trace/trace.h"

/* ---- tracing ---- */

/*
 * Decides whether libloadline-events.so times the launches of this process, and records its allocations and
 * frees.
 *
 * `loadline trace` preloads the library if CUPTI may not work. CUPTI starts in cuInit, so the decision is made after
 * it: at the first hooked call that has a context. Until then each hook asks. In a process that is not traced by events
 * each hook only calls the driver. A forked child decides again.
 *
 * A program under the limits of `loadline run` also has the governing library, which comes before this one
 * (shim/interpose/real.h). So a launch has waited for its turn when it comes here.
 */

enum ll_trace_answer {
	LL_TRACE_UNDECIDED, /* not decided yet */
	LL_TRACE_WITHOUT_EVENTS,
	LL_TRACE_BY_EVENTS,
};

extern _Atomic int ll_trace_answer;

/* Decides, if the process has a context. Returns the answer, which may still be LL_TRACE_UNDECIDED. */
int ll_trace_decide(void);

/* Whether launches are timed. After the decision this is one load. */
static inline bool ll_trace_is_by_events(void)
{
	int answer = atomic_load_explicit(&ll_trace_answer, memory_order_relaxed);
	if (__builtin_expect(answer == LL_TRACE_UNDECIDED, 0))
		answer = ll_trace_decide();
	return answer == LL_TRACE_BY_EVENTS;
}

/* Records an allocation or a free of device memory (LL_TRACE_ALLOCATE, LL_TRACE_FREE). bytes: size of the allocation;
 * the size of a free is looked up. Call it inside a LL_REENTRY_SCOPE. */
void ll_trace_note_memory(enum ll_trace_kind kind, ll_cu_deviceptr address, uint64_t bytes);

/* ---- launch ---- */

/*
 * Times a launch for a hook, which calls it before and after the driver.
 *
 * The launch's context is that of its stream, which need not be the thread's current one. If it cannot be made current,
 * the launch is not timed. A launch into a stream that is being captured is not timed, because the card does not run it
 * yet.
 */

struct ll_trace_launch;

struct ll_traced_launch {
	struct ll_trace_launch *timed; /* NULL: the launch is not timed */
	struct ll_cu_context *context;
	bool is_elsewhere; /* the context is not the thread's current one */
	int errno_before;
	ll_cu_result status; /* the driver's result; LL_TRACED_LAUNCH_LOST until the driver returns */
};

/* The thread was cancelled, or an exception passed, in the driver's call. */
#define LL_TRACED_LAUNCH_LOST ((ll_cu_result)-1)

/* stream: as the driver gets it; for a variant with per-thread default streams, ll_stream_per_thread of it. */
struct ll_traced_launch ll_traced_launch_begin(struct ll_cu_stream *stream, struct ll_work work);
void ll_traced_launch_end(struct ll_traced_launch *launch);

/* Declares a launch that ends when its scope is left, in whatever way. */
#define LL_TRACED_LAUNCH_SCOPE(launch, stream, work)                                                                   \
	struct ll_traced_launch launch __attribute__((cleanup(ll_traced_launch_end))) =                                \
	    ll_traced_launch_begin(stream, work)

/* ---- events ---- */

/*
 * Times a program's launches on the card, by a timing event before each launch and one after it.
 *
 * The times are relative to an anchor (below), whose time on CLOCK_MONOTONIC is known. A launch seems some 5 us
 * longer than its kernel, because the events take time themselves (doc/facts.md). A graph's launch is one row. The
 * caller must not time a launch into a stream that is being captured.
 *
 * The context must be current in begin and end. A launch calls the driver twice, to record its events. A thread
 * harvests the launches that have ended every 2 to 20 ms: it calls the driver twice for each, and writes a record.
 * Events are reused. One lock guards the lists. It is held during calls of the driver only to make events and contexts.
 */

/* Starts the thread. -errno: it cannot be started. */
int ll_trace_events_start(struct ll_trace_writer *writer);

/* Call them before a context is destroyed, or before the primary context of a device may be. They wait for the
 * context's work, 1 s at most. */
void ll_trace_events_forget(struct ll_cu_context *context);
void ll_trace_events_forget_device(ll_cu_device device);

/* Call it before a stream is destroyed, because another stream may get its handle. */
void ll_trace_events_forget_stream(struct ll_timing_stream name);

/* Ends the timing at the end of the process: waits for the work of all contexts. No launch is timed afterwards. */
void ll_trace_events_finish(void);

/* Forgets everything in a forked child. It frees nothing, because a thread of the parent may have held the lock. */
void ll_trace_events_reset(void);

/* Finds the number of a context in records, and its device. False: it cannot be timed. */
bool ll_trace_events_place(struct ll_cu_context *context, uint32_t *ret_number, uint32_t *ret_device);

/* ---- anchor ---- */

/*
 * Converts the times of a context's timing events to CLOCK_MONOTONIC.
 *
 * An anchor is an event whose time is known. A thread records it in a stream of its own and waits for it, so the card
 * reached it between two readings of the host's clock. These two times are the anchor's bracket. The time that the
 * driver gives between this anchor and the one before narrows the bracket. So a long wait does no harm, and the
 * conversion follows the card's clock, which drifts by some us per second (doc/facts.md).
 *
 * An event's time is that of its anchor, plus the time that the driver gives between the two. The anchor is the newest
 * one when the event is recorded. The driver gives a single-precision number of ms, exact to 8 ns up to 100 ms.
 */

struct ll_trace_anchor;

struct ll_trace_anchors {
	struct ll_cu_stream *stream;
	struct ll_trace_anchor *newest;
	struct ll_trace_anchor *spare;
	uint64_t made_ns;
};

/* Makes the stream and the first anchors, and waits for them. The context must be current. False: an error of the
 * driver. */
bool ll_trace_anchors_init(struct ll_trace_anchors *anchors);

/* Destroys the stream and the anchors' events. Call it with the lock held. Anchors that are still joined must not be
 * used afterwards. */
void ll_trace_anchors_fini(struct ll_trace_anchors *anchors);

/* Makes a new anchor if the newest is 100 ms old. The context must be current. lock guards join and leave; the function
 * takes it, but not while it waits. */
void ll_trace_anchors_renew(struct ll_trace_anchors *anchors, pthread_mutex_t *lock);

/* Returns the newest anchor for an event that is recorded now. The anchor stays valid until leave. Call both with the
 * lock held. */
struct ll_trace_anchor *ll_trace_anchor_join(struct ll_trace_anchors *anchors);
void ll_trace_anchor_leave(struct ll_trace_anchors *anchors, struct ll_trace_anchor *anchor);

/* *ret_ns: when the card reached the event. LL_CUDA_ERROR_NOT_READY: not yet. Otherwise the driver's error. It calls
 * the driver once. */
ll_cu_result ll_trace_anchor_time(const struct ll_trace_anchor *anchor, struct ll_cu_event *event, uint64_t *ret_ns);

/* ---- names ---- */

/*
 * The names of launched kernels in a trace's file. The driver is asked once for each kernel.
 *
 * Another kernel may get the handle of a kernel whose module, library or context is gone, so all names are forgotten
 * then. The table has a fixed size, and a kernel has a few possible slots. If these are in use, one is replaced, and
 * the driver is asked again when the replaced kernel is launched next.
 *
 * The caller holds a lock in find and reset. forget may be called from any thread.
 */

/* Returns the number of the launch's name in the writer's file: the kernel's name, or that of the driver's function. */
uint32_t ll_trace_names_find(struct ll_trace_writer *writer, const struct ll_work *work);

/* Call it before handles become invalid. */
void ll_trace_names_forget(void);

#endif
