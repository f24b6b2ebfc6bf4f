#include "shim/time/driver_calls.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/guest.h"
#include "base/scope.h"

enum { CHUNK_SLOTS = 128 };
#define LOOK_NS (200 * LL_NS_PER_US)

/* An array of slots. Chunks are added and never freed. */
struct chunk {
	struct ll_driver_call slots[CHUNK_SLOTS];
	_Atomic(struct chunk *) next;
};

static struct chunk first_chunk;
static struct ll_driver_call nobody = {.function = "a thread without a slot"};

_Thread_local struct ll_driver_call *ll_driver_call_own __attribute__((tls_model("initial-exec"))) = &nobody;
/* The calling thread's slot, also if entries need a fence; NULL: the thread has none. */
static _Thread_local struct ll_driver_call *own_slot __attribute__((tls_model("initial-exec")));

/* Guards the owners of slots, the list of chunks, and shut_count. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_prepared, has_key, needs_fences;
static pthread_key_t key;
static struct ll_fork_item fork_item;
static unsigned shut_count;
static _Atomic uint32_t is_shut;     /* a futex; 1: shut_count is not 0 */
static _Atomic bool has_lost_thread; /* a thread got no slot */
static _Atomic unsigned waiting;     /* threads that wait because the calls are shut */
static void (*_Atomic tell_waiting)(void);

static int32_t own_thread(void)
{
	return (int32_t)syscall(SYS_gettid);
}

/* loops over the slots of all chunks */
#define EACH_SLOT(slot)                                                                                                \
	for (struct chunk *chunk = &first_chunk; chunk;                                                                \
	     chunk = atomic_load_explicit(&chunk->next, memory_order_acquire))                                         \
		for (struct ll_driver_call * (slot) = chunk->slots; (slot) < chunk->slots + CHUNK_SLOTS; (slot)++)

static void clear_slot(struct ll_driver_call *slot)
{
	atomic_store(&slot->waits_for_turn, false);
	atomic_store(&slot->function, NULL);
	atomic_store(&slot->thread, 0);
}

static void set_shut(uint32_t value)
{
	atomic_store(&is_shut, value);
	EACH_SLOT(slot)
	atomic_store(&slot->is_shut, value);
}

/* ---- threads come and go ---- */

/* Runs at the end of a thread. If a later destructor of the program calls the driver, the thread gets a slot again. */
static void give_slot_back(void *slot)
{
	ll_driver_call_own = &nobody;
	own_slot = NULL;
	clear_slot(slot);
}

static void keep_own_slot_in_child(struct ll_fork_item *item)
{
	(void)item;
	pthread_mutex_init(&lock, NULL);
	shut_count = 0;
	set_shut(0);
	EACH_SLOT(slot)
	{
		if (slot == own_slot)
			atomic_store(&slot->thread, own_thread());
		else
			clear_slot(slot);
	}
}

/* Call it before the first slot is given to a thread. The lock is held. */
static void prepare_slots(void)
{
	if (is_prepared)
		return;
	is_prepared = true;
	needs_fences = ll_thread_barrier_allow() != 0;
	has_key = pthread_key_create(&key, give_slot_back) == 0;
	fork_item.in_child = keep_own_slot_in_child;
	ll_fork_add(&fork_item);
}

/* Returns a free slot, or the slot of an ended thread that had the same thread id. The lock is held. */
static struct ll_driver_call *find_slot(int32_t thread)
{
	struct ll_driver_call *found = NULL;
	EACH_SLOT(slot)
	{
		int32_t owner = atomic_load(&slot->thread);
		if (owner == thread)
			return slot;
		if (!owner && !found)
			found = slot;
	}
	return found;
}

/* Adds a chunk and returns its first slot; NULL: no memory. The lock is held. */
static struct ll_driver_call *add_chunk(void)
{
	struct chunk *last = &first_chunk, *next;
	struct chunk *added = aligned_alloc(_Alignof(struct chunk), sizeof *added);
	if (!added)
		return NULL;
	memset(added, 0, sizeof *added);
	for (size_t i = 0; i < CHUNK_SLOTS; i++)
		atomic_store(&added->slots[i].is_shut, atomic_load(&is_shut));
	while ((next = atomic_load(&last->next)))
		last = next;
	atomic_store(&last->next, added);
	return added->slots;
}

/* Gives the calling thread a slot. Returns the slot; NULL: no memory. */
static struct ll_driver_call *give_slot_to_thread(void)
{
	int32_t thread = own_thread();
	LL_SCOPE_NO_CANCEL;
	pthread_mutex_lock(&lock);
	prepare_slots();
	struct ll_driver_call *slot = find_slot(thread);
	slot = slot ? slot : add_chunk();
	if (slot) {
		clear_slot(slot);
		atomic_store(&slot->thread, thread);
	}
	bool is_fast = !needs_fences;
	pthread_mutex_unlock(&lock);
	if (!slot) {
		atomic_store(&has_lost_thread, true);
		return NULL;
	}
	if (has_key)
		pthread_setspecific(key, slot);
	own_slot = slot;
	if (is_fast)
		ll_driver_call_own = slot;
	return slot;
}

/* ---- entering ---- */

static bool enter_with_fence(struct ll_driver_call *slot, const char *function)
{
	atomic_store(&slot->function, function);
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load(&slot->is_shut))
		return true;
	ll_driver_call_leave(slot);
	return false;
}

static void wait_until_open(void)
{
	void (*tell)(void) = atomic_load(&tell_waiting);
	atomic_fetch_add(&waiting, 1);
	if (tell)
		tell();
	syscall(SYS_futex, &is_shut, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
	atomic_fetch_sub(&waiting, 1);
}

struct ll_driver_call *ll_driver_call_enter_slow(const char *function)
{
	int errno_before = errno;
	struct ll_driver_call *slot = own_slot ? own_slot : give_slot_to_thread();
	bool is_outermost = slot && !atomic_load_explicit(&slot->function, memory_order_relaxed);
	while (is_outermost && !enter_with_fence(slot, function))
		wait_until_open();
	errno = errno_before;
	return is_outermost ? slot : NULL;
}

/* The name of the call that the thread has stepped out of; NULL: none. */
static _Thread_local const char *stepped_out __attribute__((tls_model("initial-exec")));

void ll_driver_call_step_out(void)
{
	if (!own_slot)
		return;
	stepped_out = atomic_load_explicit(&own_slot->function, memory_order_relaxed);
	if (stepped_out)
		ll_driver_call_leave(own_slot);
}

void ll_driver_call_step_in(void)
{
	if (stepped_out)
		ll_driver_call_enter_slow(stepped_out);
	stepped_out = NULL;
}

unsigned ll_driver_calls_count_waiting(void)
{
	return atomic_load(&waiting);
}

void ll_driver_calls_tell_waiting(void (*tell)(void))
{
	atomic_store(&tell_waiting, tell);
}

void ll_driver_call_wait_for_turn(bool waits)
{
	if (own_slot)
		atomic_store_explicit(&own_slot->waits_for_turn, waits, memory_order_relaxed);
}

/* ---- the slow side ---- */

int ll_driver_calls_shut(void)
{
	LL_SCOPE_NO_CANCEL;
	pthread_mutex_lock(&lock);
	if (shut_count++ == 0)
		set_shut(1);
	bool needs_barrier = is_prepared && !needs_fences;
	pthread_mutex_unlock(&lock);
	atomic_thread_fence(memory_order_seq_cst);
	return needs_barrier ? ll_thread_barrier() : 0;
}

void ll_driver_calls_open(void)
{
	LL_SCOPE_NO_CANCEL;
	pthread_mutex_lock(&lock);
	bool opens = shut_count && --shut_count == 0;
	if (opens)
		set_shut(0);
	pthread_mutex_unlock(&lock);
	if (opens)
		syscall(SYS_futex, &is_shut, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static bool is_thread_gone(int32_t thread)
{
	return thread && syscall(SYS_tgkill, getpid(), thread, 0) != 0 && errno == ESRCH;
}

/* Clears the slot of a thread that ended inside a call. Checks again under the lock, because a new thread with the same
 * thread id may use the slot now. */
static bool clear_if_gone(struct ll_driver_call *slot)
{
	if (!is_thread_gone(atomic_load(&slot->thread)))
		return false;
	pthread_mutex_lock(&lock);
	bool is_gone = is_thread_gone(atomic_load(&slot->thread));
	if (is_gone)
		clear_slot(slot);
	pthread_mutex_unlock(&lock);
	return is_gone;
}

static struct ll_driver_calls_inside look_inside(void)
{
	struct ll_driver_calls_inside inside = {0};
	EACH_SLOT(slot)
	{
		const char *function = atomic_load(&slot->function);
		if (!function || slot == own_slot || clear_if_gone(slot))
			continue;
		if (inside.count < LL_DRIVER_CALLS_NAMED) {
			inside.named[inside.count].thread = atomic_load(&slot->thread);
			inside.named[inside.count].function = function;
			inside.named[inside.count].waits_for_turn = atomic_load(&slot->waits_for_turn);
		}
		inside.count++;
	}
	return inside;
}

int ll_driver_calls_wait(uint64_t deadline_ns, struct ll_driver_calls_inside *ret_inside)
{
	LL_SCOPE_NO_CANCEL;
	int errno_before = errno;
	uint64_t now_ns = 0;
	struct ll_driver_calls_inside inside = look_inside();
	while (inside.count && (now_ns = ll_now_ns()) < deadline_ns) {
		uint64_t look_ns = now_ns + LOOK_NS;
		ll_sleep_until_ns(look_ns < deadline_ns ? look_ns : deadline_ns);
		inside = look_inside();
	}
	errno = errno_before;
	if (atomic_load(&has_lost_thread))
		return -ENOMEM;
	*ret_inside = inside;
	return 0;
}

/* ---- waits ---- */

static _Atomic uint64_t counted;

void ll_waits_count(void)
{
	uint64_t count = atomic_load_explicit(&counted, memory_order_relaxed);
	atomic_store_explicit(&counted, count + 1, memory_order_relaxed);
}

uint64_t ll_waits_read(void)
{
	return atomic_load_explicit(&counted, memory_order_relaxed);
}
