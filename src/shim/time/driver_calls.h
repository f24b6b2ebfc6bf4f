/*
 * driver_calls.h - which threads of this process are inside a call of the driver that uses the card.
 *
 * The program's memory may be evicted from the card only while no thread is between its check of a gate and its return
 * from the driver. So every hook of a function that uses the card enters a driver call here before it checks any gate,
 * and leaves the driver call when the driver has returned (LL_DRIVER_CALL). Some functions have hooks for this purpose
 * alone (PASS in abi/cuda.def). The hooks that do not enter are BODY_NO_CARD there. tests/shim/driver_calls_hooks.c
 * calls every hook and compares.
 *
 * Each thread has a slot of its own: one cache line with the name of the function that the thread is inside. To enter,
 * a thread stores the name and then reads the slot's is_shut. To leave, it stores NULL. Neither runs a fence. The
 * thread that shuts the calls writes is_shut in all slots and then calls membarrier, which makes each thread of the
 * process run a full fence. So either the entering thread sees that its slot is shut, or the shutting thread sees the
 * function's name. If the kernel refuses membarrier, every entry runs a fence instead.
 *
 * Slots are in memory of the library that is never unmapped. They are not in thread-local storage, because a thread may
 * end while another thread reads its slot. A thread frees its slot when it ends. If a thread ended inside a call,
 * ll_driver_calls_wait clears its slot: it asks the kernel whether the thread is alive. A forked child keeps the slot
 * of its only thread, and its calls are open.
 *
 * A nested call, made by the driver or by a callback inside another call, counts as part of the outer call and never
 * waits. Calls that the library's own threads make by ll_real() do not count.
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
	_Atomic int32_t thread;         /* thread id from gettid; 0: the slot is free */
	_Atomic bool waits_for_turn;    /* the thread is inside a call, and waits for the program's turn */
} __attribute__((aligned(64)));

/* The calling thread's slot. Before the thread's first call, and if entries need a fence, this points to a shared slot
 * that is always occupied, so the thread uses ll_driver_call_enter_slow. Never NULL. The TLS model is initial-exec,
 * because reading the variable must not allocate memory. */
extern _Thread_local struct ll_driver_call *ll_driver_call_own __attribute__((tls_model("initial-exec")));

/* ---- what hooks do ---- */

/* Enters a driver call. function: the name, never freed. call: ll_driver_call_own. Returns false if the thread has not
 * entered: it is inside a call already, it has no slot yet, or its slot is shut. Calls no other function. */
static inline __attribute__((always_inline)) bool ll_driver_call_enter_fast(struct ll_driver_call *call,
									    const char *function)
{
	if (__builtin_expect(atomic_load_explicit(&call->function, memory_order_relaxed) != NULL, 0))
		return false;
	atomic_store_explicit(&call->function, function, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst); /* keeps the order of the two accesses in the compiler; membarrier
						      keeps it in the processor */
	if (__builtin_expect(atomic_load_explicit(&call->is_shut, memory_order_relaxed) == 0, 1))
		return true;
	atomic_store_explicit(&call->function, NULL, memory_order_release);
	return false;
}

/* Enters a driver call when ll_driver_call_enter_fast returned false. Gives the thread a slot, and waits while the
 * calls are shut. Returns NULL if the caller must not leave: the thread is inside an outer call, or there was no memory
 * for a slot. Does not change errno. */
struct ll_driver_call *ll_driver_call_enter_slow(const char *function);

/* Leaves a driver call. The store has release order, so all reads and writes of the driver happen before it. */
static inline __attribute__((always_inline)) void ll_driver_call_leave(struct ll_driver_call *call)
{
	atomic_store_explicit(&call->function, NULL, memory_order_release);
}

/* A cleanup function for a variable that points to an entered call. Leaves the call. */
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

/* The first line of a hook. The thread is inside the call until the end of the scope. It also leaves the call if it is
 * cancelled or if an exception unwinds the scope. */
#define LL_DRIVER_CALL(symbol)                                                                                         \
	struct ll_driver_call *driver_call_ __attribute__((cleanup(ll_driver_call_leave_scope), unused)) =             \
	    ll_driver_call_enter(#symbol)

/* Notes in the calling thread's slot whether the thread waits for the program's turn. */
void ll_driver_call_wait_for_turn(bool waits);

/*
 * For a thread that is inside a call and waits in the library before it has called the driver. step_out leaves the call
 * for the time of the wait. step_in enters the call again, and waits while the calls are shut. If the thread is not
 * inside a call, both do nothing.
 */
void ll_driver_call_step_out(void);
void ll_driver_call_step_in(void);

/* ---- the slow side ---- */

/*
 * Shuts the calls: a thread that tries to enter waits until the calls are open again. Threads that are already inside
 * continue. Each ll_driver_calls_shut needs one ll_driver_calls_open. Does not wait for the threads inside.
 *
 * Returns 0. Returns a negative errno if the kernel refuses a membarrier that it allowed before, for example because
 * the program has entered a sandbox. Then the calls are shut too, but ll_driver_calls_wait may miss a thread that is
 * inside.
 */
int ll_driver_calls_shut(void);
void ll_driver_calls_open(void);

/* count_waiting returns how many threads wait because the calls are shut. tell_waiting sets a function that each thread
 * calls before it begins such a wait. */
unsigned ll_driver_calls_count_waiting(void);
void ll_driver_calls_tell_waiting(void (*tell)(void));

enum { LL_DRIVER_CALLS_NAMED = 8 };

/* The threads that are inside a driver call, without the calling thread. */
struct ll_driver_calls_inside {
	unsigned count;
	struct {
		int thread;           /* thread id from gettid */
		const char *function; /* the outermost function that the thread is inside; never freed */
		bool waits_for_turn;
	} named[LL_DRIVER_CALLS_NAMED]; /* the first LL_DRIVER_CALLS_NAMED of the threads */
};

/*
 * Waits until no other thread is inside a call, or until deadline_ns (CLOCK_MONOTONIC). A call can stay in the driver
 * for long if a stream's queue is full or a copy waits for kernels. If ll_driver_calls_shut returned 0 before, a count
 * of 0 stays true until ll_driver_calls_open.
 *
 * Returns 0, and in ret_inside the threads that are inside at the end. Returns -ENOMEM if there once was no memory for
 * a thread's slot: then the library does not know which threads are inside.
 */
int ll_driver_calls_wait(uint64_t deadline_ns, struct ll_driver_calls_inside *ret_inside);

/* ---- a full memory fence in every thread of this process (membarrier(2)) ---- */

/* Asks the kernel for permission, once before the first barrier. Returns 0. Returns a negative errno if the kernel has
 * no such barrier (before Linux 4.14) or if a sandbox refuses the call. */
int ll_thread_barrier_allow(void);

/* When this returns 0, every thread of the process has run a full fence. Otherwise returns a negative errno. */
int ll_thread_barrier(void);

/* ---- waits ---- */

/*
 * Counts how often the program waited until all launched work of a stream or context was done.
 *
 * The hooks of functions that wait for a whole stream or context count here, before they wait. cuEventSynchronize is
 * not counted, because a program that keeps ten kernels queued waits for the event of the oldest one.
 *
 * The count is of the whole process. Threads that count at once may lose a few.
 */

void ll_waits_count(void);

/* Returns the number of waits since the process began. */
uint64_t ll_waits_read(void);

#endif
