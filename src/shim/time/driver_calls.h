/*
 * driver_calls.h - which threads of this process are inside a call of the driver that uses the card.
 *
 * Before another process may take the program's memory off the card, no thread may be between its look at a gate and
 * its return from the driver. So every hook of a function that uses the card enters here before it looks at any gate,
 * and leaves when the driver has returned (LL_DRIVER_CALL). Functions that are not governed have hooks for this alone
 * (interpose/hooks_passing.def). Hooks that do not enter are listed in interpose/hooks_no_card.def, with the reason.
 * tests/shim/driver_calls_hooks.c calls every hook and compares.
 *
 * Each thread has a slot of its own: one cache line with the name of the function that the thread is inside. To enter,
 * a thread stores the name and then reads the slot's is_shut. To leave, it stores NULL. Neither runs a fence. The slow
 * side writes is_shut in all slots and then calls membarrier, which makes each thread of the process run a full fence.
 * So either the thread sees that its slot is shut, or the slow side sees the name. If the kernel refuses membarrier,
 * every entry runs a fence instead.
 *
 * Slots are in memory of the library that is never unmapped. They are not in the thread's own storage, because a thread
 * may end without notice. A thread gives its slot back at its end. If a thread ended inside a call, the next wait
 * clears its slot; it asks the kernel whether the thread lives. A forked child has the slot of its one thread, and its
 * calls are open.
 *
 * A call that is made inside another one, by the driver or by a callback, counts as part of it, and never waits.
 * The library's own calls by ll_real() from its own threads do not count.
 */
#ifndef LOADLINE_SHIM_TIME_DRIVER_CALLS_H
#define LOADLINE_SHIM_TIME_DRIVER_CALLS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A thread's slot. */
struct ll_driver_call {
	_Atomic(const char *) function; /* the function that the thread is inside; NULL: none */
	_Atomic uint32_t is_shut;       /* the thread reads it after it has written function */
	_Atomic int32_t thread;         /* gettid's; 0: nobody has the slot */
	_Atomic bool waits_for_turn;    /* the thread is inside, and waits for the program's turn */
} __attribute__((aligned(64)));

/* The calling thread's slot. Before the thread's first call, and if entries need a fence, it is a slot that is never
 * free, so that the thread takes the slow way. Never NULL. initial-exec, because reading it must not allocate. */
extern _Thread_local struct ll_driver_call *ll_driver_call_own __attribute__((tls_model("initial-exec")));

/* ---- what hooks do ---- */

/* Enters `function`, a text that is never freed. call: ll_driver_call_own. False: the thread has not entered, because
 * it is inside a call already, has no slot yet, or its slot is shut. Calls nothing. */
static inline __attribute__((always_inline)) bool ll_driver_call_enter_fast(struct ll_driver_call *call,
									    const char *function)
{
	if (__builtin_expect(atomic_load_explicit(&call->function, memory_order_relaxed) != NULL, 0))
		return false;
	atomic_store_explicit(&call->function, function, memory_order_relaxed);
	atomic_signal_fence(
	    memory_order_seq_cst); /* the compiler keeps the order; membarrier does it for the processor */
	if (__builtin_expect(atomic_load_explicit(&call->is_shut, memory_order_relaxed) == 0, 1))
		return true;
	atomic_store_explicit(&call->function, NULL, memory_order_release);
	return false;
}

/* The same for entries that the fast way refuses. Gives the thread a slot, and waits while the calls are shut. NULL:
 * there is nothing to leave, because the thread leaves the outer call later, or because there was no memory for a slot.
 * Keeps errno. */
struct ll_driver_call *ll_driver_call_enter_slow(const char *function);

/* Leaves. All that the driver wrote and read comes before the store. */
static inline __attribute__((always_inline)) void ll_driver_call_leave(struct ll_driver_call *call)
{
	atomic_store_explicit(&call->function, NULL, memory_order_release);
}

/* Leaves at the end of a scope, for a call that was entered. */
static inline void ll_driver_call_leave_entered(struct ll_driver_call **call)
{
	ll_driver_call_leave(*call);
}

static inline __attribute__((always_inline)) struct ll_driver_call *ll_driver_call_enter(const char *function)
{
	struct ll_driver_call *call = ll_driver_call_own;
	return ll_driver_call_enter_fast(call, function) ? call : ll_driver_call_enter_slow(function);
}

static inline void ll_driver_call_leave_scope(struct ll_driver_call **call)
{
	if (*call)
		ll_driver_call_leave(*call);
}

/* The first line of a hook. The thread is inside until the end of the scope, also if it is cancelled or an exception
 * passes through. */
#define LL_DRIVER_CALL(symbol)                                                                                         \
	struct ll_driver_call *driver_call_ __attribute__((cleanup(ll_driver_call_leave_scope), unused)) =             \
	    ll_driver_call_enter(#symbol)

/* The calling thread begins (true) or ends to wait for the program's turn. */
void ll_driver_call_wait_for_turn(bool waits);

/*
 * A thread that is inside, but waits in the library before it has called the driver, steps out, and in again before it
 * goes on. Stepping in waits while the calls are shut. Nothing happens if the thread is not inside.
 */
void ll_driver_call_step_out(void);
void ll_driver_call_step_in(void);

/* ---- the slow side ---- */

/*
 * Shuts the calls: a thread that would enter one waits until they are open again. Threads that are inside stay there.
 * Each shut needs one ll_driver_calls_open. Does not wait for threads.
 *
 * Returns 0. Returns a negative errno if the kernel now refuses the membarrier that it granted before (the program has
 * put itself into a sandbox). The calls are shut then too, but a thread that is inside may not be seen yet.
 */
int ll_driver_calls_shut(void);
void ll_driver_calls_open(void);

/* How many threads wait because the calls are shut. And: has `tell` called by each thread that begins to wait. */
unsigned ll_driver_calls_count_waiting(void);
void ll_driver_calls_tell_waiting(void (*tell)(void));

enum { LL_DRIVER_CALLS_NAMED = 8 };

/* Who is inside. The calling thread is left out. */
struct ll_driver_calls_inside {
	unsigned count;
	struct {
		int thread;           /* gettid's */
		const char *function; /* the outermost that the thread is inside; never freed */
		bool waits_for_turn;
	} named[LL_DRIVER_CALLS_NAMED]; /* the first of them */
};

/*
 * Waits until no other thread is inside, or until deadline_ns (CLOCK_MONOTONIC): a call can stay in the driver for
 * long, where a stream is full or a copy waits for kernels. After ll_driver_calls_shut returned 0, a count of 0 holds
 * until ll_driver_calls_open.
 *
 * Returns 0 and who is inside at the end; count 0: nobody. Returns -ENOMEM if a thread once got no slot for want of
 * memory: then it is not known who is inside.
 */
int ll_driver_calls_wait(uint64_t deadline_ns, struct ll_driver_calls_inside *ret_inside);

#endif
