/* The port over the mapped file of a card's ledger: each function is the ledger's own. */
#include <stdlib.h>

#include "ledger/account.h"
#include "ledger/claim.h"
#include "ledger/contender.h"
#include "ledger/gang.h"
#include "ledger/handle.h"
#include "ledger/layout.h"
#include "ledger/ledger.h"
#include "ledger/memory.h"
#include "ledger/port.h"
#include "ledger/tenant.h"
#include "ledger/turn.h"

int ll_port_open(const struct ll_run_settings *settings, const char *uuid, bool is_created,
		 struct ll_ledger **ret_ledger, struct ll_err *err)
{
	return ll_ledger_open(settings->folder, uuid, is_created, ret_ledger, err);
}

void ll_port_close(struct ll_ledger *ledger)
{
	ll_ledger_close(ledger);
}

int ll_port_claim(const struct ll_run_settings *settings, struct ll_ledger *ledger, const char *uuid,
		  struct ll_claim **ret_claim, struct ll_err *err)
{
	unsigned row;
	int rc = ll_run_settings_claim(settings, ledger, uuid, &row, ret_claim, err);
	if (rc == 0)
		ll_claim_set_state(*ret_claim, LL_CLAIM_RUNNING);
	return rc;
}

void ll_port_leave(struct ll_claim *claim)
{
	ll_claim_leave(claim);
}

bool ll_port_is_lost(const struct ll_claim *claim)
{
	return ll_claim_is_lost(claim);
}

void ll_port_succeed(struct ll_claim *claim, struct ll_claim *lost)
{
	ll_claim_succeed(claim, lost);
}

int ll_port_beat(struct ll_claim *claim, uint64_t now_ns)
{
	return ll_claim_beat(claim, now_ns, NULL);
}

unsigned ll_port_index(const struct ll_claim *claim)
{
	return ll_claim_index(claim);
}

void ll_port_set_note(struct ll_claim *claim, const char *note)
{
	ll_claim_set_note(claim, note);
}

void ll_port_note_lost(struct ll_ledger *ledger, uint64_t tenant_id, uint64_t now_ns)
{
	ll_tenant_note_lost(ledger, tenant_id, now_ns);
}

void ll_port_note_had(struct ll_ledger *ledger, uint64_t tenant_id)
{
	ll_tenant_note_had(ledger, tenant_id);
}

int ll_port_reserve(struct ll_claim *claim, uint64_t bytes)
{
	return ll_memory_reserve(claim, bytes);
}

void ll_port_charge_memory(struct ll_claim *claim, uint64_t bytes)
{
	ll_memory_charge(claim, bytes);
}

void ll_port_release(struct ll_claim *claim, uint64_t bytes)
{
	ll_memory_release(claim, bytes);
}

void ll_port_read_memory(const struct ll_claim *claim, struct ll_memory_view *ret_view)
{
	ll_memory_look(claim, ret_view);
}

void ll_port_set_residency(struct ll_claim *claim, const struct ll_memory_residency *residency)
{
	ll_memory_set_residency(claim, residency);
}

/* Gives the tenant's row. False: it has none there. */
static bool find_tenant(struct ll_ledger *ledger, uint64_t tenant_id, struct ll_tenant_info *ret_tenant)
{
	struct ll_tenant_info *tenants = calloc(LL_LEDGER_TENANTS, sizeof *tenants);
	size_t count = tenants ? ll_tenant_list(ledger, tenants, LL_LEDGER_TENANTS) : 0;
	bool is_found = false;
	for (size_t i = 0; i < count && i < LL_LEDGER_TENANTS && !is_found; i++) {
		is_found = tenants[i].id == tenant_id;
		if (is_found)
			*ret_tenant = tenants[i];
	}
	free(tenants);
	return is_found;
}

bool ll_port_read_tenant(struct ll_ledger *ledger, uint64_t tenant_id, struct ll_memory_view *ret_view)
{
	struct ll_tenant_info tenant;
	if (!find_tenant(ledger, tenant_id, &tenant))
		return false;
	*ret_view =
	    (struct ll_memory_view){.limit_bytes = tenant.memory_limit_bytes, .used_bytes = tenant.memory_used_bytes};
	return true;
}

bool ll_port_read_limit(struct ll_ledger *ledger, uint64_t tenant_id, uint64_t *ret_bytes)
{
	return ll_tenant_memory_limit(ledger, tenant_id, ret_bytes);
}

size_t ll_port_list_processes(struct ll_ledger *ledger, uint64_t tenant_id, struct ll_port_process *processes,
			      size_t capacity)
{
	struct ll_tenant_info tenant;
	if (!find_tenant(ledger, tenant_id, &tenant))
		return 0;
	struct ll_claim_info *claims = calloc(LL_LEDGER_CLAIMS, sizeof *claims);
	size_t listed = claims ? ll_ledger_list(ledger, claims, LL_LEDGER_CLAIMS) : 0, count = 0;
	for (size_t i = 0; i < listed && i < LL_LEDGER_CLAIMS; i++) {
		if (claims[i].tenant_row != tenant.row + 1 || !claims[i].is_pid_ours)
			continue;
		if (count < capacity)
			processes[count] = (struct ll_port_process){.pid = (unsigned)claims[i].pid,
								    .used_bytes = claims[i].memory_used_bytes};
		count++;
	}
	free(claims);
	return count;
}

/* A page that is made anew counts its tokens anew, so the time goes with the token. */
static uint64_t stamp_of(const struct ll_ledger_slot *slot, uint64_t token)
{
	return token ? token ^ slot->taken_ns << 16 : 0;
}

uint64_t ll_port_stamp(const struct ll_claim *claim)
{
	return ll_claim_is_ours(claim) ? stamp_of(claim->slot, claim->token) : 0;
}

bool ll_port_has_stamp(const struct ll_ledger *ledger, unsigned index, uint64_t stamp)
{
	const struct ll_ledger_slot *slot = &ledger->file->slots[index % LL_LEDGER_CLAIMS];
	return stamp && stamp_of(slot, slot->token) == stamp;
}

uint64_t ll_port_death_ns(const struct ll_ledger *ledger)
{
	return ll_ledger_death_ns(ledger);
}

uint64_t ll_port_sweep(struct ll_ledger *ledger)
{
	ll_ledger_sweep(ledger);
	return ll_ledger_death_ns(ledger);
}

unsigned ll_port_ask_reserves(struct ll_claim *claim, uint64_t now_ns)
{
	return ll_siblings_ask(claim, now_ns);
}

unsigned ll_port_unanswered(const struct ll_claim *claim)
{
	return ll_siblings_unanswered(claim);
}

bool ll_port_is_asked(const struct ll_claim *claim)
{
	return ll_siblings_do_ask(claim);
}

void ll_port_answer(struct ll_claim *claim)
{
	ll_siblings_answer(claim);
}

void ll_port_want(struct ll_claim *claim, uint64_t now_ns)
{
	ll_turn_want(claim, now_ns);
}

void ll_port_rest(struct ll_claim *claim, uint64_t now_ns)
{
	ll_turn_rest(claim, now_ns);
}

void ll_port_set_pace(struct ll_claim *claim, enum ll_pace pace)
{
	ll_turn_set_pace(claim, pace);
}

void ll_port_set_waits_on_card(struct ll_claim *claim, bool waits)
{
	ll_turn_set_waits_on_card(claim, waits);
}

void ll_port_look(struct ll_claim *claim, struct ll_turn *turn, uint64_t now_ns, uint64_t queued_ns,
		  struct ll_turn_look *ret_look)
{
	ll_turn_look(claim, turn, now_ns, queued_ns, ret_look);
}

void ll_port_look_first(struct ll_claim *claim, const struct ll_ledger *first, uint64_t tenant_id, uint32_t launches,
			uint64_t now_ns, struct ll_gang *gang)
{
	ll_gang_look(claim, first, tenant_id, launches, now_ns, gang);
}

bool ll_port_is_fresh(uint64_t at_ns, uint64_t now_ns)
{
	return ll_gang_is_fresh(at_ns, now_ns);
}

bool ll_port_is_in_turn(const struct ll_claim *claim)
{
	return ll_turn_is_mine(claim);
}

_Atomic uint32_t *ll_port_gate(struct ll_claim *claim)
{
	return ll_turn_gate(claim);
}

bool ll_port_open_gate(struct ll_claim *claim, enum ll_gate how, uint64_t now_ns)
{
	return ll_turn_open_gate(claim, how, now_ns);
}

void ll_port_shut_gate(struct ll_claim *claim)
{
	ll_turn_shut_gate(claim);
}

_Atomic uint32_t *ll_port_card_word(const struct ll_claim *claim)
{
	return ll_turn_card_word(claim);
}

uint32_t ll_port_wake_count(const struct ll_claim *claim)
{
	return ll_turn_wake_count(claim);
}

void ll_port_sleep(struct ll_claim *claim, uint32_t wake_count, uint64_t until_ns)
{
	ll_turn_sleep(claim, wake_count, until_ns);
}

void ll_port_wake(struct ll_claim *claim)
{
	ll_turn_wake(claim);
}

void ll_port_charge(struct ll_claim *claim, uint64_t start_ns, uint64_t end_ns, uint64_t fresh_ns)
{
	ll_account_charge(claim, start_ns, end_ns, fresh_ns);
}
