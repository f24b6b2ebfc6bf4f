/*
 * claim.h - a process's claim on a card. The process takes the claim, keeps it up to date, and releases it.
 *
 * A claim belongs to the process that took it. A forked child's copy is dead: the child closes the descriptor with the
 * lock at the fork, and every function here does nothing on such a copy. A process that was killed need not release its
 * claim (ledger.h).
 *
 * Each setter is a single relaxed or release store into the shared page. It makes no system call and takes no lock. Any
 * thread of the owner may call it. It does nothing on a claim that was lost.
 */
#ifndef LOADLINE_LEDGER_CLAIM_H
#define LOADLINE_LEDGER_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger/ledger.h"

struct ll_claim;
struct ll_run_settings;

struct ll_claim_wish {
	enum ll_priority priority;
	const char *tenant;  /* cut at 63 bytes; NULL: "" */
	const char *payload; /* holds; NULL: "" */
	uint64_t memory_limit_bytes;
	unsigned compute_cap_permille;
	unsigned weight_permille; /* 0 is taken as 1000 */
	unsigned
	    tenant_row; /* 1 + a row that this process has joined (tenant.h), whose limits hold for the claim; 0: none
			 */
};

/*
 * Takes a free slot. Its state is LL_CLAIM_STARTING. card is for messages ("0"). The caller releases the claim before
 * it closes the ledger.
 *
 * -EBUSY, for LL_PRIORITY_HOLD: another live claim holds the card ("card 0: pid 123 already holds it"). Of two that
 * come at once one gets the claim. -ENOSPC: all 256 slots are live, or 128 of the same tenant. -ESTALE: the tenant's
 * row is free; join again.
 */
int ll_claim_take(struct ll_ledger *ledger, const struct ll_claim_wish *wish, const char *card,
		  struct ll_claim **ret_claim, struct ll_err *err);

/* Clears the slot, then frees the lock and the handle. NULL is fine. */
void ll_claim_release(struct ll_claim *claim);

/*
 * Gives the slot and its lock back, and keeps the handle. From then on the claim is lost, as if others had cleared it.
 * Nothing may be charged to the claim.
 */
void ll_claim_leave(struct ll_claim *claim);

/*
 * Whether others have cleared the claim. They do so if its process has closed the descriptor with the lock, and they
 * look before the next beat. One load. The owner may take another claim, and says by ll_claim_succeed that it succeeds
 * the lost one. The lost claim stays in memory as long as its successor, because threads may be about to look at it.
 */
bool ll_claim_is_lost(const struct ll_claim *claim);
void ll_claim_succeed(struct ll_claim *claim, struct ll_claim *lost);

/* The number in "0/17". */
unsigned ll_claim_index(const struct ll_claim *claim);

void ll_claim_set_state(struct ll_claim *claim, enum ll_claim_state state);
/* Each also clears the other one's target. metric: "util", "sm", "occupancy", "power"; cut at 15 bytes. */
void ll_claim_set_target(struct ll_claim *claim, const char *metric, unsigned permille);
void ll_claim_set_target_watts(struct ll_claim *claim, const char *metric, unsigned watts);

/* For holds. memory.h counts what programs have. */
void ll_claim_set_memory(struct ll_claim *claim, uint64_t used_bytes);
void ll_claim_set_payload(struct ll_claim *claim, const char *name); /* cut at 15 bytes */
void ll_claim_set_note(struct ll_claim *claim, const char *note);    /* cut at 63 bytes */

void ll_claim_add_gpu_time(struct ll_claim *claim, uint64_t ns);
void ll_claim_add_synthetic(struct ll_claim *claim, uint64_t busy_ns, uint64_t energy_mj);
void ll_claim_add_yield(struct ll_claim *claim);

/* set_active: the claim has work from here on. set_idle: its work ended at now_ns. See ll_ledger_activity_ns. */
void ll_claim_set_active(struct ll_claim *claim);
void ll_claim_set_idle(struct ll_claim *claim, uint64_t now_ns);

/*
 * Says that the owner lives. If the program has closed our descriptor, or replaced it, the function takes the lock
 * again on a new one. Call it about once a second; it takes about 1 µs. -ESTALE: the claim was cleared in between; take
 * another one. -ECHILD: in a forked child.
 */
int ll_claim_beat(struct ll_claim *claim, uint64_t now_ns, struct ll_err *err);

/*
 * Takes a claim of the settings' tenant. It makes the tenant's row if there is none. card is for messages. Errors are
 * those of ll_tenant_join and ll_claim_take. The row stays joined until the ledger is closed, even after an error.
 */
int ll_run_settings_claim(const struct ll_run_settings *settings, struct ll_ledger *ledger, const char *card,
			  unsigned *ret_row, struct ll_claim **ret_claim, struct ll_err *err);

#endif
