#include "ledger/turn.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/tokens.h"
#include "control/turns.h"
#include "ledger/handle.h"
#include "ledger/slot.h"

/* The turn word: (1 + slot) << 48, a flag for a turn got by patience, and a count that makes each change unique. */
enum { HOLDER_SHIFT = 48 };
#define PROMOTED (UINT64_C(1) << 47)
#define COUNT_MASK (PROMOTED - 1)

struct scan {
	struct ll_turn_party parties[LL_LEDGER_CLAIMS];
	uint8_t slots[LL_LEDGER_CLAIMS];
	size_t count;
};

static unsigned holder_of(uint64_t turn)
{
	return (unsigned)(turn >> HOLDER_SHIFT);
}

static uint64_t next_turn(uint64_t turn, unsigned holder, bool is_promoted)
{
	return (uint64_t)holder << HOLDER_SHIFT | (is_promoted ? PROMOTED : 0) | ((turn + 1) & COUNT_MASK);
}

static struct ll_ledger_tenant *tenant_of(struct ll_ledger_file *file, const struct ll_ledger_slot *slot)
{
	uint32_t row = atomic_load_explicit(&slot->tenant_row, memory_order_relaxed);
	return row >= 1 && row <= LL_LEDGER_TENANTS ? &file->tenants[row - 1] : NULL;
}

/* Under MPS kernels of several programs run at once, and what each may have of the card is settled by SMs. */
static bool is_by_space(const struct ll_ledger_tenant *tenant)
{
	return atomic_load_explicit(&tenant->space_permille, memory_order_relaxed) != 0;
}

static unsigned rank_of(const struct ll_ledger_tenant *tenant)
{
	uint32_t priority = atomic_load_explicit(&tenant->priority, memory_order_relaxed);
	return priority ? priority : LL_PRIORITY_NORMAL;
}

/* What the account will hold when somebody looks after it; others' accounts are not written here. */
static int64_t tokens_at(struct ll_ledger_tenant *tenant, uint64_t now_ns)
{
	unsigned cap = atomic_load_explicit(&tenant->compute_cap_permille, memory_order_relaxed);
	if (!cap)
		return INT64_MAX;
	uint64_t at_ns = atomic_load_explicit(&tenant->tokens_at_ns, memory_order_relaxed);
	int64_t balance_ns = atomic_load_explicit(&tenant->tokens_ns, memory_order_relaxed);
	return at_ns && now_ns > at_ns ? ll_tokens_earn(balance_ns, now_ns - at_ns, cap) : balance_ns;
}

/* Whoever moves the stamp forward books the earnings: once for any number of processes of the tenant. */
static int64_t earn_tokens(struct ll_ledger_tenant *tenant, uint64_t now_ns)
{
	unsigned cap = atomic_load_explicit(&tenant->compute_cap_permille, memory_order_relaxed);
	if (!cap) {
		atomic_store_explicit(&tenant->tokens_at_ns, 0, memory_order_relaxed);
		return INT64_MAX;
	}
	uint64_t at_ns = atomic_load(&tenant->tokens_at_ns);
	if (now_ns > at_ns && atomic_compare_exchange_strong(&tenant->tokens_at_ns, &at_ns, now_ns)) {
		if (!at_ns) /* a cap that is new: the account begins empty */
			atomic_store(&tenant->tokens_ns, 0);
		else {
			int64_t balance_ns = atomic_load(&tenant->tokens_ns);
			while (!atomic_compare_exchange_weak(&tenant->tokens_ns, &balance_ns,
							     ll_tokens_earn(balance_ns, now_ns - at_ns, cap)))
				;
		}
	}
	return tokens_at(tenant, now_ns);
}

static bool read_party(struct ll_ledger_file *file, unsigned index, uint64_t now_ns, struct ll_turn_party *ret_party)
{
	struct ll_ledger_slot *slot = &file->slots[index];
	uint64_t since_ns = atomic_load(&slot->want_since_ns);
	struct ll_ledger_tenant *tenant = tenant_of(file, slot);
	if (!since_ns || !tenant || is_by_space(tenant) || !atomic_load_explicit(&slot->token, memory_order_relaxed))
		return false;
	*ret_party = (struct ll_turn_party){
	    .rank = rank_of(tenant),
	    .virtual_ns = atomic_load_explicit(&tenant->virtual_time_ns, memory_order_relaxed),
	    .waited_ns = now_ns > since_ns ? now_ns - since_ns : 0,
	    .has_tokens = tokens_at(tenant, now_ns) > 0,
	};
	return true;
}

/* It is stopped, hangs, or is dead and not yet cleared away: the turn is not for it until it looks again. */
static bool is_deaf(struct ll_ledger_file *file, unsigned index, uint64_t now_ns)
{
	return now_ns > atomic_load_explicit(&file->slots[index].heartbeat_ns, memory_order_relaxed) + LL_TURN_DEAF_NS;
}

/* Everybody who wants the card and is there, but for the slot `except`. */
static void scan_parties(struct ll_ledger_file *file, unsigned except, uint64_t now_ns, struct scan *ret_scan)
{
	ret_scan->count = 0;
	for (unsigned word = 0; word < LL_LEDGER_CLAIMS / 64; word++) {
		for (uint64_t bits = atomic_load(&file->used[word]); bits; bits &= bits - 1) {
			unsigned index = word * 64 + (unsigned)__builtin_ctzll(bits);
			if (index != except && !is_deaf(file, index, now_ns) &&
			    read_party(file, index, now_ns, &ret_scan->parties[ret_scan->count]))
				ret_scan->slots[ret_scan->count++] = (uint8_t)index;
		}
	}
}

static void ring(struct ll_ledger_slot *slot)
{
	int saved_errno = errno;
	atomic_fetch_add(&slot->bell, 1);
	syscall(SYS_futex, &slot->bell, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	errno = saved_errno;
}

static void shut_and_ring(struct ll_ledger_slot *slot)
{
	atomic_store(&slot->gate, LL_GATE_SHUT);
	ring(slot);
}

/* When a claim gets the turn its waiting begins anew: patience is about the time without it. */
static bool pass_turn(struct ll_ledger_file *file, uint64_t turn, unsigned to, bool is_promoted, uint64_t now_ns)
{
	if (!atomic_compare_exchange_strong(&file->turn, &turn, next_turn(turn, to + 1, is_promoted)))
		return false;
	atomic_store(&file->turn_since_ns, now_ns);
	return true;
}

static void free_turn(struct ll_ledger_file *file, uint64_t turn, uint64_t now_ns)
{
	if (atomic_compare_exchange_strong(&file->turn, &turn, next_turn(turn, 0, false)))
		atomic_store(&file->turn_since_ns, now_ns);
}

static void restart_waiting(struct ll_ledger_slot *slot, uint64_t now_ns)
{
	uint64_t since_ns = atomic_load(&slot->want_since_ns);
	while (since_ns && !atomic_compare_exchange_weak(&slot->want_since_ns, &since_ns, now_ns))
		;
}

static void give(struct ll_claim *claim, const struct scan *scan, size_t best, uint64_t turn, uint64_t now_ns)
{
	struct ll_ledger_file *file = claim->ledger->file;
	struct ll_ledger_slot *to = &file->slots[scan->slots[best]];
	if (!pass_turn(file, turn, scan->slots[best], ll_turns_is_impatient(&scan->parties[best]), now_ns))
		return;
	restart_waiting(claim->slot, now_ns);
	shut_and_ring(to);
}

static uint64_t least_virtual_ns(const struct scan *scan)
{
	uint64_t least_ns = UINT64_MAX;
	for (size_t i = 0; i < scan->count; i++) {
		if (scan->parties[i].virtual_ns < least_ns)
			least_ns = scan->parties[i].virtual_ns;
	}
	return least_ns;
}

void ll_turn_want(struct ll_claim *claim, uint64_t now_ns)
{
	struct ll_ledger_slot *slot = claim->slot;
	if (!slot || atomic_load(&slot->want_since_ns))
		return;
	struct ll_ledger_file *file = claim->ledger->file;
	struct ll_ledger_tenant *tenant = tenant_of(file, slot);
	struct scan scan;
	scan.count = 0;
	if (!tenant || !is_by_space(tenant))
		scan_parties(file, claim->index, now_ns, &scan);
	if (tenant && scan.count) {
		uint64_t virtual_ns = atomic_load(&tenant->virtual_time_ns);
		uint64_t back_ns = ll_turns_come_back_ns(virtual_ns, least_virtual_ns(&scan));
		if (back_ns > virtual_ns) /* a sibling that charged meanwhile is right: then it is no pause */
			atomic_compare_exchange_strong(&tenant->virtual_time_ns, &virtual_ns, back_ns);
	}
	ll_claim_set_active(claim);
	atomic_store(&slot->heartbeat_ns, now_ns);
	atomic_store(&slot->want_since_ns, now_ns);
	for (size_t i = 0; i < scan.count; i++) {
		struct ll_ledger_slot *other = &file->slots[scan.slots[i]];
		if (atomic_load(&other->gate) != LL_GATE_SHUT)
			shut_and_ring(other);
	}
}

void ll_turn_rest(struct ll_claim *claim, uint64_t now_ns)
{
	struct ll_ledger_slot *slot = claim->slot;
	if (!slot || !atomic_load(&slot->want_since_ns))
		return;
	struct ll_ledger_file *file = claim->ledger->file;
	atomic_store(&slot->gate, LL_GATE_SHUT);
	atomic_store(&slot->want_since_ns, 0);
	atomic_store(&slot->queued_ns, 0);
	ll_claim_set_idle(claim, now_ns);
	uint64_t turn = atomic_load(&file->turn);
	if (holder_of(turn) != claim->index + 1)
		return;
	struct scan scan;
	scan_parties(file, claim->index, now_ns, &scan);
	size_t best = ll_turns_best(scan.parties, scan.count);
	if (best < scan.count)
		give(claim, &scan, best, turn, now_ns);
	else
		free_turn(file, turn, now_ns);
}

/* Whether the turn may be taken from whoever the word names. */
static bool may_take(struct ll_ledger_file *file, const struct ll_turn_party *self, uint64_t turn, uint64_t now_ns)
{
	struct ll_turn_party holder;
	unsigned index = holder_of(turn);
	if (index == 0 || index > LL_LEDGER_CLAIMS || !read_party(file, index - 1, now_ns, &holder))
		return true;
	uint64_t since_ns = atomic_load(&file->turn_since_ns);
	uint64_t held_ns = now_ns > since_ns ? now_ns - since_ns : 0;
	if (ll_turns_preempts(self, &holder, held_ns, turn & PROMOTED))
		return true;
	return held_ns > LL_TURN_DEAF_NS && is_deaf(file, index - 1, now_ns);
}

/* A better one than us: then the turn is its to take, or the holder's to give to it. */
static bool is_for_another(const struct scan *scan, const struct ll_turn_party *self)
{
	size_t best = ll_turns_best(scan->parties, scan->count);
	if (best == scan->count)
		return false;
	struct ll_turn_party pair[2] = {*self, scan->parties[best]};
	return ll_turns_best(pair, 2) == 1;
}

/*
 * Whether a program of a higher class is on the card, even if it wants nothing now: its next launch shall not find more
 * queued than the bound, which an open gate does not keep.
 */
static bool has_superior(struct ll_ledger_file *file, unsigned self, unsigned rank)
{
	for (unsigned word = 0; word < LL_LEDGER_CLAIMS / 64; word++) {
		for (uint64_t bits = atomic_load(&file->used[word]); bits; bits &= bits - 1) {
			unsigned index = word * 64 + (unsigned)__builtin_ctzll(bits);
			struct ll_ledger_tenant *tenant = tenant_of(file, &file->slots[index]);
			if (index != self && tenant && !is_by_space(tenant) && rank_of(tenant) < rank)
				return true;
		}
	}
	return false;
}

/* A holder whose gate is open does not know yet that it is not alone. */
static void shut_out(struct ll_ledger_file *file, uint64_t turn)
{
	unsigned holder = holder_of(turn);
	if (holder >= 1 && holder <= LL_LEDGER_CLAIMS && atomic_load(&file->slots[holder - 1].gate) != LL_GATE_SHUT)
		shut_and_ring(&file->slots[holder - 1]);
}

static void try_take(struct ll_claim *claim, const struct ll_turn_party *self, const struct scan *scan, uint64_t turn,
		     uint64_t now_ns)
{
	struct ll_ledger_file *file = claim->ledger->file;
	shut_out(file, turn);
	if (!self->has_tokens || !may_take(file, self, turn, now_ns) || is_for_another(scan, self))
		return;
	unsigned former = holder_of(turn);
	if (!pass_turn(file, turn, claim->index, ll_turns_is_impatient(self), now_ns))
		return;
	if (former >= 1 && former <= LL_LEDGER_CLAIMS) {
		restart_waiting(&file->slots[former - 1], now_ns);
		shut_and_ring(&file->slots[former - 1]);
	}
}

/* The holder's side: give way or not. True while it may go on launching. */
static bool keep_turn(struct ll_claim *claim, struct ll_turn *turn, const struct ll_turn_party *self,
		      const struct scan *scan, uint64_t word, uint64_t now_ns, uint64_t queued_ns)
{
	struct ll_ledger_file *file = claim->ledger->file;
	size_t best = ll_turns_best(scan->parties, scan->count);
	uint64_t since_ns = atomic_load(&file->turn_since_ns);
	uint64_t held_ns = now_ns > since_ns ? now_ns - since_ns : 0;
	if (best == scan->count || !ll_turns_gives_way(self, &scan->parties[best], held_ns, word & PROMOTED)) {
		turn->ending_since_ns = 0;
		return self->has_tokens;
	}
	if (!turn->ending_since_ns)
		turn->ending_since_ns = now_ns;
	if (queued_ns <= LL_TURN_DRAINED_NS || now_ns - turn->ending_since_ns >= LL_TURN_DRAIN_NS) {
		turn->ending_since_ns = 0;
		give(claim, scan, best, word, now_ns);
	}
	return false;
}

void ll_turn_look(struct ll_claim *claim, struct ll_turn *turn, uint64_t now_ns, uint64_t queued_ns,
		  struct ll_turn_look *ret_look)
{
	*ret_look = (struct ll_turn_look){.tokens_ns = INT64_MAX};
	struct ll_ledger_slot *slot = claim->slot;
	struct ll_ledger_file *file = slot ? claim->ledger->file : NULL;
	struct ll_ledger_tenant *tenant = slot ? tenant_of(file, slot) : NULL;
	if (!tenant) {
		ret_look->may_launch = true;
		return;
	}
	atomic_store_explicit(&slot->heartbeat_ns, now_ns, memory_order_relaxed);
	atomic_store_explicit(&slot->queued_ns, queued_ns, memory_order_relaxed);
	if (is_by_space(tenant)) {
		ret_look->may_launch = ret_look->is_alone = true;
		ret_look->priority = rank_of(tenant);
		return;
	}
	unsigned cap = atomic_load_explicit(&tenant->compute_cap_permille, memory_order_relaxed);
	ret_look->tokens_ns = earn_tokens(tenant, now_ns);
	ret_look->tokens_at_ns =
	    cap && ret_look->tokens_ns <= 0 ? now_ns + ll_tokens_wait_ns(ret_look->tokens_ns, cap) : 0;
	ret_look->priority = rank_of(tenant);
	struct ll_turn_party self;
	struct scan scan;
	scan_parties(file, claim->index, now_ns, &scan);
	ret_look->waiting_claims = (unsigned)scan.count;
	if (!read_party(file, claim->index, now_ns, &self))
		return;
	uint64_t word = atomic_load(&file->turn);
	if (holder_of(word) != claim->index + 1) {
		turn->ending_since_ns = 0;
		try_take(claim, &self, &scan, word, now_ns);
		word = atomic_load(&file->turn);
	}
	if (holder_of(word) == claim->index + 1) {
		self.waited_ns = 0;
		ret_look->may_launch = keep_turn(claim, turn, &self, &scan, word, now_ns, queued_ns);
	}
	ret_look->is_holder = ll_turn_is_mine(claim);
	ret_look->is_alone =
	    ret_look->may_launch && !cap && scan.count == 0 && !has_superior(file, claim->index, self.rank);
}

void ll_turn_charge(struct ll_claim *claim, uint64_t gpu_ns)
{
	struct ll_ledger_slot *slot = claim->slot;
	struct ll_ledger_tenant *tenant = slot ? tenant_of(claim->ledger->file, slot) : NULL;
	ll_claim_add_gpu_time(claim, gpu_ns);
	if (!tenant)
		return;
	unsigned weight = atomic_load_explicit(&tenant->weight_permille, memory_order_relaxed);
	atomic_fetch_add_explicit(&tenant->gpu_time_ns, gpu_ns, memory_order_relaxed);
	atomic_fetch_add(&tenant->virtual_time_ns, ll_turns_virtual_ns(gpu_ns, weight));
	if (atomic_load_explicit(&tenant->compute_cap_permille, memory_order_relaxed))
		atomic_fetch_sub(&tenant->tokens_ns, (int64_t)gpu_ns);
}

bool ll_turn_holder(const struct ll_ledger *ledger, unsigned *ret_index)
{
	unsigned holder = holder_of(atomic_load(&ledger->file->turn));
	if (holder < 1 || holder > LL_LEDGER_CLAIMS)
		return false;
	*ret_index = holder - 1;
	return true;
}

bool ll_turn_is_mine(const struct ll_claim *claim)
{
	return holder_of(atomic_load_explicit(&claim->ledger->file->turn, memory_order_relaxed)) == claim->index + 1;
}

_Atomic uint32_t *ll_turn_gate(struct ll_claim *claim)
{
	struct ll_ledger_slot *slot = claim->slot;
	return slot ? &slot->gate : NULL;
}

/* Opened first and looked after: who comes after the look finds it open and shuts it. */
bool ll_turn_open_gate(struct ll_claim *claim, enum ll_gate how, uint64_t now_ns)
{
	struct ll_ledger_slot *slot = claim->slot;
	if (!slot)
		return false;
	struct ll_ledger_file *file = claim->ledger->file;
	struct ll_ledger_tenant *tenant = tenant_of(file, slot);
	atomic_store(&slot->gate, how);
	if (tenant && is_by_space(tenant))
		return true;
	struct scan scan;
	scan_parties(file, claim->index, now_ns, &scan);
	if (scan.count == 0 && tenant && !atomic_load(&tenant->compute_cap_permille) && ll_turn_is_mine(claim) &&
	    !has_superior(file, claim->index, rank_of(tenant)))
		return true;
	atomic_store(&slot->gate, LL_GATE_SHUT);
	return false;
}

void ll_turn_shut_gate(struct ll_claim *claim)
{
	struct ll_ledger_slot *slot = claim->slot;
	if (slot)
		atomic_store(&slot->gate, LL_GATE_SHUT);
}

uint32_t ll_turn_bell(const struct ll_claim *claim)
{
	struct ll_ledger_slot *slot = claim->slot;
	return slot ? atomic_load(&slot->bell) : 0;
}

void ll_turn_ring(struct ll_claim *claim)
{
	struct ll_ledger_slot *slot = claim->slot;
	if (slot)
		ring(slot);
}

void ll_turn_sleep(struct ll_claim *claim, uint32_t bell, uint64_t until_ns)
{
	struct ll_ledger_slot *slot = claim->slot;
	uint64_t now_ns = ll_now_ns();
	if (!slot || until_ns <= now_ns)
		return;
	int saved_errno = errno;
	uint64_t left_ns = until_ns - now_ns;
	struct timespec timeout = {.tv_sec = (time_t)(left_ns / LL_NS_PER_S), .tv_nsec = (long)(left_ns % LL_NS_PER_S)};
	syscall(SYS_futex, &slot->bell, FUTEX_WAIT, bell, &timeout, NULL, 0);
	errno = saved_errno;
}
