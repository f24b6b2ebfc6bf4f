#include "ledger/rows.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "ledger/handle.h"
#include "ledger/liveness.h"

bool ll_slot_is_used(const struct ll_ledger_file *file, unsigned index)
{
	return atomic_load(&file->used[index / 64]) >> (index % 64) & 1;
}

void ll_slot_mark_used(struct ll_ledger_file *file, unsigned index)
{
	atomic_fetch_or(&file->used[index / 64], UINT64_C(1) << (index % 64));
}

static void zero_words(_Atomic uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		atomic_store_explicit(&words[i], 0, memory_order_relaxed);
}

static void zero_numbers(struct ll_ledger_slot *slot)
{
	zero_words(&slot->namespaces, 1);
	zero_words(&slot->start_ticks, 1);
	zero_words(slot->reserved_identity, 3);
	atomic_store_explicit(&slot->pid, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->priority, 0, memory_order_relaxed);
	zero_words(&slot->taken_ns, 1);
	zero_words(&slot->activity_ns, 1);
	zero_words(&slot->heartbeat_ns, 1);
	atomic_store_explicit(&slot->gate, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->state, 0, memory_order_relaxed);
	zero_words(&slot->want_since_ns, 1);
	zero_words(&slot->queued_ns, 1);
	atomic_store_explicit(&slot->wake_count, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->queued_launches, 0, memory_order_relaxed);
	zero_words(&slot->asked_ns, 1);
	zero_words(&slot->running_ns, 1);
	zero_words(&slot->memory_limit_bytes, 1);
	zero_words(&slot->memory_used_bytes, 1);
	zero_words(&slot->evictable_bytes, 1);
	atomic_store_explicit(&slot->compute_cap_permille, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->weight_permille, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->tenant_row, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->target_permille, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->target_watts, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->pace, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->visit, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->residency, 0, memory_order_relaxed);
	zero_words(&slot->away_bytes, 1);
	zero_words(&slot->gpu_time_ns, 1);
	zero_words(&slot->virtual_time_ns, 1);
	zero_words(&slot->token_debt_ns, 1);
	zero_words(&slot->synthetic_busy_ns, 1);
	zero_words(&slot->energy_mj, 1);
	zero_words(&slot->yields, 1);
	zero_words(slot->reserved_accounts, 2);
}

#define ZERO_TEXT(slot, field) zero_words((slot)->field, sizeof(slot)->field / sizeof(uint64_t))

void ll_slot_clean(struct ll_ledger_file *file, unsigned index)
{
	struct ll_ledger_slot *slot = &file->slots[index];
	atomic_store(&slot->token, 0);
	zero_numbers(slot);
	atomic_store_explicit(&slot->text_sequence, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->checkpoint, 0, memory_order_relaxed);
	ZERO_TEXT(slot, tenant);
	ZERO_TEXT(slot, payload);
	ZERO_TEXT(slot, note);
	ZERO_TEXT(slot, metric);
	ZERO_TEXT(slot, reserved_texts);
	atomic_fetch_and(&file->used[index / 64], ~(UINT64_C(1) << (index % 64)));
}

void ll_slot_set_flag(struct ll_ledger_slot *slot, enum ll_visit_flag flag, bool is_set)
{
	bool was_set = atomic_load_explicit(&slot->visit, memory_order_relaxed) & flag;
	if (is_set && !was_set)
		atomic_fetch_or(&slot->visit, flag);
	else if (!is_set && was_set)
		atomic_fetch_and(&slot->visit, ~(uint32_t)flag);
}

struct ll_ledger_tenant *ll_tenant_rows_at(struct ll_ledger_file *file, uint32_t row)
{
	return row >= 1 && row <= LL_LEDGER_TENANTS ? &file->tenants[row - 1] : NULL;
}

_Atomic uint32_t *ll_tenant_rows_card_word(struct ll_ledger_file *file, uint32_t row)
{
	return row >= 1 && row <= LL_LEDGER_TENANTS ? &file->card_words[row - 1] : NULL;
}

unsigned ll_tenant_rows_claims(const struct ll_ledger_file *file, unsigned row, bool is_claim_only)
{
	unsigned count = 0;
	for (unsigned i = 0; i < LL_LEDGER_CLAIMS; i++) {
		const struct ll_ledger_slot *slot = &file->slots[i];
		if (ll_slot_is_used(file, i) && slot->tenant_row == row + 1 && (slot->token || !is_claim_only))
			count++;
	}
	return count;
}

unsigned ll_tenant_rows_find(const struct ll_ledger_file *file, uint64_t id)
{
	unsigned row = 0;
	while (row < LL_LEDGER_TENANTS && file->tenants[row].id != id)
		row++;
	return row;
}

/* The row may have been another tenant's, which had other cards. */
void ll_tenant_rows_zero(struct ll_ledger_tenant *tenant)
{
	tenant->guard = 0;
	tenant->guard_waiters = 0;
	tenant->memory_used_bytes = 0;
	tenant->gpu_time_ns = 0;
	tenant->virtual_time_ns = 0;
	tenant->tokens_ns = 0;
	tenant->tokens_at_ns = 0;
	tenant->gang_turn_until_ns = 0;
	tenant->first_card = 0;
	tenant->others_busy_ns = 0;
	tenant->ending_ns = 0;
	tenant->others_launches = 0;
	tenant->lost_since_ns = 0;
	tenant->lost_seen_ns = 0;
	tenant->reserved_limits = 0;
	tenant->reserved_text = 0;
	for (size_t i = 0; i < sizeof tenant->reserved / sizeof *tenant->reserved; i++)
		tenant->reserved[i] = 0;
}

static void clear_row(struct ll_ledger_tenant *tenant)
{
	atomic_store(&tenant->id, 0);
	ll_tenant_rows_zero(tenant);
	tenant->priority = 0;
	tenant->memory_limit_bytes = 0;
	tenant->memory_request_bytes = 0;
	tenant->compute_cap_permille = 0;
	tenant->weight_permille = 0;
	tenant->space_permille = 0;
	tenant->taken_ns = 0;
	LL_TEXT_PUT(tenant, name, "");
}

static bool may_be_dead(const struct ll_ledger_file *file, unsigned row)
{
	return file->tenants[row].id && !ll_tenant_rows_claims(file, row, false);
}

/* Looks for claims again under the lock, because its last holder may have taken one before it let go. */
static void clear_if_dead(struct ll_ledger *ledger, unsigned row)
{
	off_t byte = LL_LOCK_TENANTS + (off_t)row;
	if (!may_be_dead(ledger->file, row) || ll_lock_try(ledger->scan.fd, byte))
		return;
	if (may_be_dead(ledger->file, row))
		clear_row(&ledger->file->tenants[row]);
	ll_lock_free(ledger->scan.fd, byte);
}

void ll_tenant_rows_sweep(struct ll_ledger *ledger)
{
	bool has_row = false;
	for (unsigned i = 0; i < LL_LEDGER_TENANTS && !has_row; i++)
		has_row = ledger->file->tenants[i].id != 0;
	if (!has_row || ll_lock_try(ledger->scan.fd, LL_LOCK_JOIN))
		return;
	for (unsigned i = 0; i < LL_LEDGER_TENANTS; i++)
		clear_if_dead(ledger, i);
	ll_lock_free(ledger->scan.fd, LL_LOCK_JOIN);
}

enum { WORD_BYTES = 8, COPY_TRIES = 1000 };

void ll_text_put(_Atomic uint32_t *text_sequence, _Atomic uint64_t *words, size_t word_count, const char *text)
{
	uint32_t sequence = atomic_load(text_sequence) | 1;
	size_t left = strnlen(text ? text : "", word_count * WORD_BYTES - 1);
	atomic_store(text_sequence, sequence);
	for (size_t i = 0; i < word_count; i++) {
		uint64_t word = 0;
		size_t n = left < WORD_BYTES ? left : WORD_BYTES;
		if (n)
			memcpy(&word, text + i * WORD_BYTES, n);
		left -= n;
		atomic_store_explicit(&words[i], word, memory_order_release);
	}
	atomic_store(text_sequence, sequence + 1);
}

static void clean_text(char *text, size_t size)
{
	text[size - 1] = '\0';
	ll_utf8_clean(text);
}

static bool try_text(const _Atomic uint32_t *text_sequence, const _Atomic uint64_t *words, size_t word_count,
		     char *text)
{
	uint32_t sequence = atomic_load(text_sequence);
	for (size_t w = 0; w < word_count; w++) {
		uint64_t word = atomic_load_explicit(&words[w], memory_order_acquire);
		memcpy(text + w * WORD_BYTES, &word, WORD_BYTES);
	}
	return !(sequence & 1) && atomic_load(text_sequence) == sequence;
}

/* Gives up after some tries, because a writer may have been stopped half-way, or may never pause. An empty text is
 * better than halves of two texts. */
void ll_text_get(const _Atomic uint32_t *text_sequence, const _Atomic uint64_t *words, size_t word_count, char *text)
{
	bool is_whole = false;
	for (int i = 0; i < COPY_TRIES && !is_whole; i++)
		is_whole = try_text(text_sequence, words, word_count, text);
	if (!is_whole)
		text[0] = '\0';
	clean_text(text, word_count * WORD_BYTES);
}

void ll_slot_wake(struct ll_ledger_slot *slot)
{
	int saved_errno = errno;
	atomic_fetch_add(&slot->wake_count, 1);
	syscall(SYS_futex, &slot->wake_count, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	errno = saved_errno;
}
