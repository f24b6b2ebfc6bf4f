#include "ledger/claim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fork.h"
#include "base/scope.h"
#include "ledger/handle.h"
#include "ledger/liveness.h"
#include "ledger/rows.h"
#include "ledger/tenant.h"
#include "protocol/run_settings.h"

enum { RETAKE_WAIT_MS = 20 };

/* Between the two a forked child would get a descriptor that nothing in the child closes. */
static int open_own_fd(struct ll_claim *claim)
{
	ll_fork_block();
	int rc = ll_own_fd_open(claim->ledger, &claim->own);
	ll_fork_unblock();
	return rc;
}

static void forget_in_child(struct ll_fork_item *item)
{
	struct ll_claim *claim = (struct ll_claim *)((char *)item - offsetof(struct ll_claim, fork));
	ll_own_fd_close(claim->ledger, &claim->own);
	claim->slot = NULL;
}

static int refuse_hold(const struct ll_ledger *ledger, const char *card, struct ll_err *err)
{
	int pid = ledger->file->hold_pid;
	if (pid > 0)
		ll_err_set(err, -EBUSY, "card %s: pid %d already holds it", card, pid);
	else
		ll_err_set(err, -EBUSY, "card %s: another process already holds it", card);
	ll_err_hint(err, "end that one, or choose another card with -i; `loadline status` shows them");
	return -EBUSY;
}

static int lock_hold(struct ll_claim *claim, const char *card, struct ll_err *err)
{
	if (!claim->is_hold)
		return 0;
	int rc = ll_lock_try(claim->own.fd, LL_LOCK_HOLD);
	if (rc == -EAGAIN)
		return refuse_hold(claim->ledger, card, err);
	if (rc)
		return ll_err_set(err, rc, "ledger %s: lock: %s", ll_ledger_path(claim->ledger), strerror(-rc));
	claim->ledger->file->hold_pid = getpid();
	return 0;
}

/* A process that has the lock of a slot has the slot. It cleans away what a dead owner has left there. */
static bool lock_slot(struct ll_claim *claim, unsigned index, bool is_used_taken)
{
	struct ll_ledger_file *file = claim->ledger->file;
	if (ll_slot_is_used(file, index) && !is_used_taken)
		return false;
	if (ll_lock_try(claim->own.fd, LL_LOCK_SLOTS + (off_t)index))
		return false;
	if (ll_slot_is_used(file, index))
		ll_ledger_clear_slot(claim->ledger, index, claim->own.fd);
	claim->index = index;
	claim->slot = &file->slots[index];
	return true;
}

/* A tenant with very many processes leaves room for others. Two processes that come at once may both get the last slot.
 */
static int check_quota(const struct ll_claim *claim, const char *card, struct ll_err *err)
{
	unsigned row = claim->tenant_row;
	if (!row || ll_tenant_rows_claims(claim->ledger->file, row - 1, true) < LL_LEDGER_CLAIMS_OF_TENANT)
		return 0;
	ll_err_set(err, -ENOSPC, "card %s: this tenant has %d programs on the card, as many as one tenant may have",
		   card, LL_LEDGER_CLAIMS_OF_TENANT);
	return ll_err_hint(err, "`loadline status` shows them");
}

/* Slots in use are tried second, because a sweeper may have one of them locked for a moment. */
static int find_slot(struct ll_claim *claim, const char *card, struct ll_err *err)
{
	ll_ledger_sweep(claim->ledger);
	int rc = check_quota(claim, card, err);
	if (rc)
		return rc;
	for (int pass = 0; pass < 2; pass++) {
		for (unsigned i = 0; i < LL_LEDGER_CLAIMS; i++) {
			if (lock_slot(claim, i, pass > 0))
				return 0;
		}
	}
	ll_err_set(err, -ENOSPC, "card %s: the ledger is full: %d programs have claims on this card", card,
		   LL_LEDGER_CLAIMS);
	ll_err_hint(err, "`loadline status` shows them");
	return -ENOSPC;
}

static void write_slot(struct ll_claim *claim, const struct ll_claim_wish *wish)
{
	struct ll_ledger_slot *slot = claim->slot;
	struct ll_process_id self = ll_process_self();
	ll_slot_mark_used(claim->ledger->file, claim->index);
	slot->pid = self.pid;
	slot->start_ticks = self.start_ticks;
	slot->namespaces = self.namespaces;
	slot->priority = wish->priority;
	slot->taken_ns = ll_now_ns();
	slot->heartbeat_ns = ll_now_ns();
	slot->state = LL_CLAIM_STARTING;
	slot->tenant_row = wish->tenant_row;
	slot->memory_used_bytes = 0;
	slot->memory_limit_bytes = wish->memory_limit_bytes;
	slot->compute_cap_permille = wish->compute_cap_permille;
	slot->weight_permille = wish->weight_permille ? wish->weight_permille : LL_DEFAULT_WEIGHT_PERMILLE;
	LL_TEXT_PUT(slot, tenant, wish->tenant);
	LL_TEXT_PUT(slot, payload, wish->payload);
	do {
		claim->token = atomic_fetch_add(&claim->ledger->file->next_token, 1) + 1;
	} while (!claim->token); /* a damaged count may give 0, which means no claim */
	atomic_store(&slot->token, claim->token);
}

/* The join keeps the row. It is another tenant's only if the program has closed the descriptor of the join. */
static int check_tenant(const struct ll_ledger *ledger, unsigned tenant_row, struct ll_err *err)
{
	if (tenant_row > LL_LEDGER_TENANTS)
		return ll_err_set(err, -EINVAL, "claim: there is no tenant's row %u", tenant_row - 1);
	if (tenant_row && !ledger->file->tenants[tenant_row - 1].id)
		return ll_err_set(err, -ESTALE, "claim: its tenant has ended");
	return 0;
}

static int take_claim(struct ll_claim *claim, const struct ll_claim_wish *wish, const char *card, struct ll_err *err)
{
	int rc = check_tenant(claim->ledger, wish->tenant_row, err);
	if (rc)
		return rc;
	rc = open_own_fd(claim);
	if (rc)
		return ll_err_set(err, rc, "ledger %s: %s", ll_ledger_path(claim->ledger), strerror(-rc));
	rc = lock_hold(claim, card, err);
	if (!rc)
		rc = find_slot(claim, card, err);
	if (!rc)
		write_slot(claim, wish);
	return rc;
}

static void free_claim(struct ll_claim *claim)
{
	if (claim->former)
		free_claim(claim->former);
	ll_own_fd_close(claim->ledger, &claim->own);
	pthread_mutex_destroy(&claim->text_mutex);
	pthread_mutex_destroy(&claim->own_mutex);
	free(claim);
}

int ll_claim_take(struct ll_ledger *ledger, const struct ll_claim_wish *wish, const char *card,
		  struct ll_claim **ret_claim, struct ll_err *err)
{
	LL_SCOPE_NO_CANCEL;
	struct ll_claim *claim = calloc(1, sizeof *claim);
	if (!claim)
		return ll_err_set(err, -ENOMEM, "claim: %s", strerror(ENOMEM));
	claim->ledger = ledger;
	claim->own = LL_OWN_FD_NONE;
	claim->tenant_row = wish->tenant_row;
	claim->is_hold = wish->priority == LL_PRIORITY_HOLD;
	claim->fork.in_child = forget_in_child;
	pthread_mutex_init(&claim->text_mutex, NULL);
	pthread_mutex_init(&claim->own_mutex, NULL);
	ll_fork_add(&claim->fork);
	int rc = take_claim(claim, wish, card, err);
	if (rc) {
		ll_fork_remove(&claim->fork);
		free_claim(claim);
		return rc;
	}
	*ret_claim = claim;
	return 0;
}

static void clear_claim(struct ll_claim *claim)
{
	if (!ll_claim_is_ours(claim))
		return;
	if (claim->is_hold)
		claim->ledger->file->hold_pid = 0;
	if (ll_own_fd_is_ours(claim->ledger, &claim->own))
		ll_ledger_clear_slot(claim->ledger, claim->index, claim->own.fd);
	else
		atomic_store(&claim->slot->token, 0); /* the lock is lost: the next process that looks takes the slot */
}

void ll_claim_release(struct ll_claim *claim)
{
	if (!claim)
		return;
	ll_fork_remove(&claim->fork);
	clear_claim(claim);
	free_claim(claim);
}

void ll_claim_leave(struct ll_claim *claim)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&claim->own_mutex);
	clear_claim(claim);
	ll_own_fd_close(claim->ledger, &claim->own);
}

bool ll_claim_is_lost(const struct ll_claim *claim)
{
	return claim->slot && !ll_claim_is_ours(claim);
}

/* The lost claim may have taken its lock again, and would keep an empty slot from others. */
void ll_claim_succeed(struct ll_claim *claim, struct ll_claim *lost)
{
	ll_fork_remove(&lost->fork);
	pthread_mutex_lock(&lost->own_mutex);
	ll_own_fd_close(lost->ledger, &lost->own);
	pthread_mutex_unlock(&lost->own_mutex);
	claim->former = lost;
}

unsigned ll_claim_index(const struct ll_claim *claim)
{
	return claim->index;
}

void ll_claim_set_state(struct ll_claim *claim, enum ll_claim_state state)
{
	if (ll_claim_is_ours(claim))
		atomic_store_explicit(&claim->slot->state, state, memory_order_release);
}

static void set_target(struct ll_claim *claim, const char *metric, unsigned permille, unsigned watts)
{
	if (!ll_claim_is_ours(claim))
		return;
	LL_SCOPE_LOCK(&claim->text_mutex);
	atomic_store_explicit(&claim->slot->target_permille, permille, memory_order_relaxed);
	atomic_store_explicit(&claim->slot->target_watts, watts, memory_order_relaxed);
	LL_TEXT_PUT(claim->slot, metric, metric);
}

void ll_claim_set_target(struct ll_claim *claim, const char *metric, unsigned permille)
{
	set_target(claim, metric, permille, 0);
}

void ll_claim_set_target_watts(struct ll_claim *claim, const char *metric, unsigned watts)
{
	set_target(claim, metric, 0, watts);
}

void ll_claim_set_memory(struct ll_claim *claim, uint64_t used_bytes)
{
	if (ll_claim_is_ours(claim))
		atomic_store_explicit(&claim->slot->memory_used_bytes, used_bytes, memory_order_relaxed);
}

void ll_claim_set_payload(struct ll_claim *claim, const char *name)
{
	if (!ll_claim_is_ours(claim))
		return;
	LL_SCOPE_LOCK(&claim->text_mutex);
	LL_TEXT_PUT(claim->slot, payload, name);
}

void ll_claim_set_note(struct ll_claim *claim, const char *note)
{
	if (!ll_claim_is_ours(claim))
		return;
	LL_SCOPE_LOCK(&claim->text_mutex);
	LL_TEXT_PUT(claim->slot, note, note);
}

void ll_claim_add_gpu_time(struct ll_claim *claim, uint64_t ns)
{
	if (ll_claim_is_ours(claim))
		atomic_fetch_add_explicit(&claim->slot->gpu_time_ns, ns, memory_order_relaxed);
}

void ll_claim_add_synthetic(struct ll_claim *claim, uint64_t busy_ns, uint64_t energy_mj)
{
	if (!ll_claim_is_ours(claim))
		return;
	atomic_fetch_add_explicit(&claim->slot->synthetic_busy_ns, busy_ns, memory_order_relaxed);
	atomic_fetch_add_explicit(&claim->slot->energy_mj, energy_mj, memory_order_relaxed);
}

void ll_claim_add_yield(struct ll_claim *claim)
{
	if (ll_claim_is_ours(claim))
		atomic_fetch_add_explicit(&claim->slot->yields, 1, memory_order_relaxed);
}

void ll_claim_set_active(struct ll_claim *claim)
{
	if (ll_claim_is_ours(claim))
		atomic_store_explicit(&claim->slot->activity_ns, LL_ACTIVITY_NOW, memory_order_release);
}

void ll_claim_set_idle(struct ll_claim *claim, uint64_t now_ns)
{
	if (ll_claim_is_ours(claim))
		atomic_store_explicit(&claim->slot->activity_ns, now_ns, memory_order_release);
}

/* The program has closed our descriptor, which freed the locks. The descriptor is not closed again, because its number
 * may be another file's by now. */
static int retake_locks(struct ll_claim *claim)
{
	int rc = open_own_fd(claim);
	if (rc)
		return rc;
	rc = ll_lock_wait(claim->own.fd, LL_LOCK_SLOTS + (off_t)claim->index, RETAKE_WAIT_MS);
	if (!rc && claim->is_hold)
		rc = ll_lock_try(claim->own.fd, LL_LOCK_HOLD);
	return rc;
}

int ll_claim_beat(struct ll_claim *claim, uint64_t now_ns, struct ll_err *err)
{
	LL_SCOPE_NO_CANCEL;
	if (!claim->slot) /* a thread of the parent may have held the lock at the fork */
		return ll_err_set(err, -ECHILD, "claim %u: belongs to the parent process", claim->index);
	LL_SCOPE_LOCK(&claim->own_mutex);
	if (ll_claim_is_lost(claim))
		return ll_err_set(err, -ESTALE, "claim %u: was cleared by another process", claim->index);
	if (!ll_own_fd_is_ours(claim->ledger, &claim->own)) {
		int rc = retake_locks(claim);
		if (rc) {
			ll_own_fd_close(claim->ledger,
					&claim->own); /* without the lock the descriptor would seem to be in order */
			return ll_err_set(err, -ESTALE, "claim %u: its lock was lost: %s", claim->index, strerror(-rc));
		}
	}
	if (!ll_claim_is_ours(claim)) {
		ll_own_fd_close(claim->ledger,
				&claim->own); /* the descriptor may have the lock of a slot that is not ours */
		return ll_err_set(err, -ESTALE, "claim %u: was cleared by another process", claim->index);
	}
	atomic_store_explicit(&claim->slot->heartbeat_ns, now_ns, memory_order_relaxed);
	return 0;
}

struct ll_tenant_wish ll_run_settings_wish(const struct ll_run_settings *settings)
{
	return (struct ll_tenant_wish){
	    .id = settings->id,
	    .name = settings->tenant,
	    .priority = settings->priority,
	    .memory_limit_bytes = settings->memory_limit_bytes,
	    .memory_request_bytes = settings->memory_request_bytes,
	    .compute_cap_permille = settings->compute_cap_permille,
	    .weight_permille = settings->weight_permille,
	    .space_permille = settings->space_permille,
	};
}

int ll_run_settings_claim(const struct ll_run_settings *settings, struct ll_ledger *ledger, const char *card,
			  unsigned *ret_row, struct ll_claim **ret_claim, struct ll_err *err)
{
	const struct ll_tenant_wish tenant = ll_run_settings_wish(settings);
	unsigned row;
	int rc = ll_tenant_join(ledger, &tenant, &row, err);
	if (rc < 0)
		return rc;
	struct ll_claim_wish claim = {.priority = tenant.priority, .tenant = tenant.name, .tenant_row = row + 1};
	rc = ll_claim_take(ledger, &claim, card, ret_claim, err);
	if (rc == 0)
		*ret_row = row;
	return rc;
}
