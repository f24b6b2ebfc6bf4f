#include "ledger/slot.h"

#include "ledger/process.h"
#include "ledger/text.h"

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
	zero_words(&slot->reserved_memory, 1);
	atomic_store_explicit(&slot->compute_cap_permille, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->weight_permille, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->tenant_row, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->target_permille, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->target_watts, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->pace, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->visit, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->reserved_visit, 0, memory_order_relaxed);
	zero_words(slot->reserved_limits, 1);
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
	atomic_store_explicit(&slot->reserved_text, 0, memory_order_relaxed);
	ZERO_TEXT(slot, tenant);
	ZERO_TEXT(slot, payload);
	ZERO_TEXT(slot, note);
	ZERO_TEXT(slot, metric);
	ZERO_TEXT(slot, reserved_texts);
	atomic_fetch_and(&file->used[index / 64], ~(UINT64_C(1) << (index % 64)));
}

static void copy_numbers(const struct ll_ledger_slot *slot, struct ll_claim_info *info)
{
	info->pid = slot->pid;
	info->priority = (enum ll_priority)slot->priority;
	info->state = (enum ll_claim_state)slot->state;
	info->taken_ns = slot->taken_ns;
	info->heartbeat_ns = slot->heartbeat_ns;
	info->activity_ns = slot->activity_ns;
	info->memory_limit_bytes = slot->memory_limit_bytes;
	info->memory_used_bytes = slot->memory_used_bytes;
	info->want_since_ns = slot->want_since_ns;
	info->compute_cap_permille = slot->compute_cap_permille;
	info->weight_permille = slot->weight_permille;
	info->target_permille = slot->target_permille;
	info->target_watts = slot->target_watts;
	info->gpu_time_ns = slot->gpu_time_ns;
	info->synthetic_busy_ns = slot->synthetic_busy_ns;
	info->energy_mj = slot->energy_mj;
	info->yields = slot->yields;
	info->gate = slot->gate;
	info->tenant_row = slot->tenant_row <= LL_LEDGER_TENANTS ? slot->tenant_row : 0;
}

bool ll_slot_copy(const struct ll_ledger_file *file, unsigned index, uint64_t own_namespaces,
		  struct ll_claim_info *ret_info)
{
	const struct ll_ledger_slot *slot = &file->slots[index];
	uint64_t token = slot->token;
	if (!token || !ll_slot_is_used(file, index))
		return false;
	struct ll_claim_info info = {.index = index};
	copy_numbers(slot, &info);
	info.is_pid_ours = own_namespaces && slot->namespaces == own_namespaces;
	LL_TEXT_GET(slot, tenant, info.tenant);
	LL_TEXT_GET(slot, payload, info.payload);
	LL_TEXT_GET(slot, note, info.note);
	LL_TEXT_GET(slot, metric, info.metric);
	if (slot->token != token)
		return false;
	*ret_info = info;
	return true;
}
