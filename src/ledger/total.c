#include "ledger/total.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "ledger/handle.h"
#include "ledger/liveness.h"
#include "ledger/rows.h"

bool ll_total_add(_Atomic uint64_t *sum, uint64_t bytes, uint64_t limit_bytes)
{
	uint64_t old = *sum;
	do {
		if (bytes && (old > limit_bytes || bytes > limit_bytes - old))
			return false;
	} while (!atomic_compare_exchange_weak(sum, &old, old + bytes));
	return true;
}

uint64_t ll_total_take(_Atomic uint64_t *sum, uint64_t bytes)
{
	uint64_t old = *sum;
	uint64_t taken;
	do {
		taken = bytes < old ? bytes : old;
	} while (!atomic_compare_exchange_weak(sum, &old, old - taken));
	return taken;
}

/* Claims that were withdrawn have no memory, although their slots may not be clean yet. */
static uint64_t claim_bytes(const struct ll_ledger_file *file, unsigned index, unsigned row)
{
	const struct ll_ledger_slot *slot = &file->slots[index];
	bool is_counted = ll_slot_is_used(file, index) && slot->token && slot->tenant_row == row + 1;
	return is_counted ? slot->memory_used_bytes : 0;
}

void ll_total_remake(struct ll_ledger_file *file, unsigned row)
{
	struct ll_ledger_tenant *tenant = &file->tenants[row];
	uint64_t old = tenant->memory_used_bytes;
	uint64_t sum = 0;
	for (unsigned i = 0; i < LL_LEDGER_CLAIMS; i++) {
		uint64_t bytes = claim_bytes(file, i, row);
		sum = bytes > UINT64_MAX - sum ? UINT64_MAX : sum + bytes;
	}
	atomic_compare_exchange_strong(&tenant->memory_used_bytes, &old, sum);
}

static void remake_with_guard(struct ll_ledger *ledger, unsigned row, unsigned index, int lock_fd)
{
	struct ll_guard guard = {.ledger = ledger, .row = row, .index = index, .lock_fd = lock_fd};
	do {
		ll_guard_take(&guard);
		ll_total_remake(ledger->file, row);
	} while (!ll_guard_free(&guard));
}

void ll_total_leave(struct ll_ledger *ledger, unsigned index, int lock_fd)
{
	struct ll_ledger_slot *slot = &ledger->file->slots[index];
	uint32_t tenant_row = slot->tenant_row;
	atomic_store(&slot->token, 0);
	if (tenant_row && tenant_row <= LL_LEDGER_TENANTS)
		remake_with_guard(ledger, tenant_row - 1, index, lock_fd);
}

/* The lock of a slot tells whether the guard's holder lives (total.h). Others keep the lock of the withdrawn claim, so
 * the lock of a free slot is taken instead. If all slots are in use, the next refused reservation makes the total anew.
 */
static void remake_with_free_slot(struct ll_ledger *ledger, unsigned row)
{
	for (unsigned i = 0; i < LL_LEDGER_CLAIMS; i++) {
		off_t byte = LL_LOCK_SLOTS + (off_t)i;
		if (ll_slot_is_used(ledger->file, i) || ll_lock_try(ledger->scan.fd, byte))
			continue;
		remake_with_guard(ledger, row, i, ledger->scan.fd);
		ll_lock_free(ledger->scan.fd, byte);
		return;
	}
}

bool ll_total_withdraw(struct ll_ledger *ledger, unsigned index, uint64_t token)
{
	struct ll_ledger_slot *slot = &ledger->file->slots[index];
	uint32_t tenant_row = slot->tenant_row;
	if (!token || !atomic_compare_exchange_strong(&slot->token, &token, 0))
		return false;
	if (tenant_row && tenant_row <= LL_LEDGER_TENANTS)
		remake_with_free_slot(ledger, tenant_row - 1);
	return true;
}

/*
 * How often a waiter looks before it sleeps, and how many pauses of 10 to 50 ns are between two looks: 32 after the
 * first look, twice as many after each further one, 256 at most. That is 20 to 70 us in all. To sleep and to be woken
 * takes longer if many wait. A holder is inside for some 50 ns, and comes back soon if the program allocates much. If
 * waiters look as often as that, the holder loses the cache line at each step. Then 16 waiters take seven times as long
 * as one after the other (doc/benchmarks.md).
 */
enum { LOOKS = 8, FIRST_SHIFT = 5, LAST_SHIFT = 8, SLOT_SHIFT = 32, COUNT_SHIFT = 48 };

#define LOOK_NS (10 * LL_NS_PER_MS)
#define STUCK_NS (500 * LL_NS_PER_MS)
#define SLOT_MASK UINT64_C(0x7fff)
#define CLEARS (UINT64_C(1) << 47)
#define WHO_MASK ((UINT64_C(1) << COUNT_SHIFT) - 1)

/* initial-exec, because a thread's first reservation must not allocate. */
static __thread uint32_t own_tid __attribute__((tls_model("initial-exec")));
static __thread uint64_t own_count __attribute__((tls_model("initial-exec")));

static struct ll_ledger_tenant *guarded_tenant(const struct ll_guard *guard)
{
	return &guard->ledger->file->tenants[guard->row];
}

static uint64_t make_word(const struct ll_guard *guard)
{
	if (!own_tid)
		own_tid = (uint32_t)syscall(SYS_gettid);
	uint64_t clears = guard->lock_fd >= 0 ? CLEARS : 0;
	return ++own_count << COUNT_SHIFT | clears | (uint64_t)(guard->index + 1) << SLOT_SHIFT | own_tid;
}

static bool is_slot_lock_free(const struct ll_guard *guard, unsigned index)
{
	struct ll_ledger *ledger = guard->ledger;
	off_t byte = LL_LOCK_SLOTS + (off_t)index;
	if (guard->lock_fd >= 0)
		return ll_lock_is_free(guard->lock_fd, byte);
	/* Another thread of this process that has the mutex sweeps. It looks for itself, or is the holder. */
	if (pthread_mutex_trylock(&ledger->mutex))
		return false;
	bool is_free = ll_ledger_has_scan(ledger) && ll_lock_is_free(ledger->scan.fd, byte);
	pthread_mutex_unlock(&ledger->mutex);
	return is_free;
}

static bool is_thread_gone(pid_t pid, uint64_t word)
{
	return syscall(SYS_tgkill, pid, (pid_t)(uint32_t)word, 0) && errno == ESRCH;
}

static bool is_owner_gone(const struct ll_ledger *ledger, const struct ll_ledger_slot *slot, uint64_t word)
{
	struct ll_process_id owner = {
	    .pid = slot->pid,
	    .start_ticks = slot->start_ticks,
	    .namespaces = slot->namespaces,
	};
	if (!ledger->namespaces || owner.namespaces != ledger->namespaces)
		return false;
	return ll_process_is_gone(&owner, ledger->namespaces) || is_thread_gone(owner.pid, word);
}

/* A word that no holder writes counts as dead too, because a damaged page must stop nobody. */
static bool is_holder_dead(const struct ll_guard *guard, uint64_t word)
{
	uint64_t number = word >> SLOT_SHIFT & SLOT_MASK;
	bool is_clearing = word & CLEARS;
	if (!number || number > LL_LEDGER_CLAIMS)
		return true;
	unsigned index = (unsigned)number - 1;
	const struct ll_ledger_slot *slot = &guard->ledger->file->slots[index];
	if (index == guard->index && guard->lock_fd >= 0)
		return true; /* the holder had the lock that is ours now */
	if (index == guard->index && !is_clearing)
		return is_thread_gone(getpid(), word);
	if (is_clearing ? slot->token != 0 : slot->tenant_row != guard->row + 1)
		return true;
	return is_slot_lock_free(guard, index) || (!is_clearing && is_owner_gone(guard->ledger, slot, word));
}

/* No cancellation point, because syscall() is none. */
static void sleep_on(_Atomic uint32_t *futex)
{
	struct timespec wait = {.tv_nsec = (long)LOOK_NS};
	syscall(SYS_futex, futex, FUTEX_WAIT, 1, &wait, NULL, 0);
}

static bool swap_guard(struct ll_ledger_tenant *tenant, uint64_t from, uint64_t to)
{
	return atomic_compare_exchange_strong(&tenant->guard, &from, to);
}

/* The word that is in our way, and since when. The time counts, and not the number of sleeps: a signal may cut a sleep
 * short. */
struct patience {
	uint64_t word, since_ns, looked_ns;
};

static bool may_rob(const struct ll_guard *guard, struct patience *patience, uint64_t word)
{
	uint64_t now_ns = ll_now_ns();
	if (word != patience->word) {
		*patience = (struct patience){.word = word, .since_ns = now_ns, .looked_ns = now_ns};
		return false;
	}
	if (now_ns - patience->looked_ns < LOOK_NS)
		return false;
	patience->looked_ns = now_ns;
	return now_ns - patience->since_ns >= STUCK_NS || is_holder_dead(guard, word);
}

/*
 * The futex word is set before each look at the guard. So a holder that is seen there sees the word when it leaves. A
 * waiter that was woken sets the word again, because others may still be asleep.
 */
static bool wait_for(const struct ll_guard *guard, struct ll_ledger_tenant *tenant)
{
	struct patience patience = {0};
	for (;;) {
		atomic_store(&tenant->guard_waiters, 1);
		uint64_t word = tenant->guard;
		if (!word && swap_guard(tenant, 0, guard->word))
			return false;
		if (!word)
			continue;
		/* This is a signal handler above our own thread's hold. The thread cannot go on before the handler. */
		bool is_below_us = (word & WHO_MASK) == (guard->word & WHO_MASK);
		if ((is_below_us || may_rob(guard, &patience, word)) && swap_guard(tenant, word, guard->word))
			return true;
		sleep_on(&tenant->guard_waiters);
	}
}

static void pause_for(unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
#if defined(__x86_64__)
		__builtin_ia32_pause();
#elif defined(__aarch64__)
		__asm__ volatile("isb"); /* yield takes no time */
#endif
	}
}

static bool spin_for(const struct ll_guard *guard, struct ll_ledger_tenant *tenant)
{
	unsigned shift = FIRST_SHIFT;
	for (int look = 0; look < LOOKS; look++) {
		if (!atomic_load_explicit(&tenant->guard, memory_order_relaxed) && swap_guard(tenant, 0, guard->word))
			return true;
		pause_for(1U << shift);
		shift += shift < LAST_SHIFT;
	}
	return false;
}

bool ll_guard_take(struct ll_guard *guard)
{
	struct ll_ledger_tenant *tenant = guarded_tenant(guard);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &guard->cancel_state);
	guard->word = make_word(guard);
	if (spin_for(guard, tenant))
		return false;
	int code = errno;
	bool is_taken_over = wait_for(guard, tenant);
	errno = code;
	return is_taken_over;
}

bool ll_guard_free(struct ll_guard *guard)
{
	struct ll_ledger_tenant *tenant = guarded_tenant(guard);
	bool is_kept = swap_guard(tenant, guard->word, 0);
	if (is_kept && tenant->guard_waiters && atomic_exchange(&tenant->guard_waiters, 0)) {
		int code = errno;
		syscall(SYS_futex, &tenant->guard_waiters, FUTEX_WAKE, 1, NULL, NULL, 0);
		errno = code;
	}
	pthread_setcancelstate(guard->cancel_state, NULL);
	return is_kept;
}

void ll_guard_in_child(void)
{
	own_tid = 0;
}
