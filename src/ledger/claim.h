/*
 * claim.h - one party's claim on a card: taken, kept up to date by its owner, released.
 *
 * A claim belongs to the process that took it. A forked child's copies are dead: the child's lock descriptor
 * is closed at fork, and every function here does nothing on them. kill -9 needs no release: see ledger.h.
 *
 * The setters are single relaxed or release stores into the shared page: no system call, no lock, any thread
 * of the owner. On a claim that was lost they do nothing.
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
	unsigned tenant_row; /* 1 + a row this process has joined (tenant.h), whose limits are the claim's; 0: none */
};

/*
 * Takes a free slot; its state is LL_CLAIM_STARTING. card is for messages ("0"). For LL_PRIORITY_HOLD -EBUSY when
 * another live claim holds the card ("card 0: pid 123 already holds it"); two that come at once: one wins.
 * -ENOSPC when all 256 are live, or 128 of the same tenant. -ESTALE when the tenant's row is nobody's: join again. The
 * claim ends before the ledger is closed.
 */
int ll_claim_take(struct ll_ledger *ledger, const struct ll_claim_wish *wish, const char *card,
		  struct ll_claim **ret_claim, struct ll_err *err);

/* Clears the slot, then frees its lock and the handle. NULL is fine. */
void ll_claim_release(struct ll_claim *claim);

/*
 * Gives the slot and its lock back, and keeps the handle: from then on the claim is lost, as others' clearing makes it.
 * Only where nothing is charged to it.
 */
void ll_claim_leave(struct ll_claim *claim);

/*
 * Whether others have cleared it: its process had closed the descriptor with its lock, and they looked before the next
 * beat. One load. Its owner may take another, which is told whom it succeeds: the lost one is put away, but stays in
 * memory as long as its successor, for threads may be about to look at it.
 */
bool ll_claim_is_lost(const struct ll_claim *claim);
void ll_claim_succeed(struct ll_claim *claim, struct ll_claim *lost);

/* The number in "0/17". */
unsigned ll_claim_index(const struct ll_claim *claim);

void ll_claim_set_state(struct ll_claim *claim, enum ll_claim_state state);
/* Either also clears the other one. metric: "util", "sm", "occupancy", "power"; cut at 15 bytes. */
void ll_claim_set_target(struct ll_claim *claim, const char *metric, unsigned permille);
void ll_claim_set_target_watts(struct ll_claim *claim, const char *metric, unsigned watts);

/* For holds. What programs have is counted in memory.h. */
void ll_claim_set_memory(struct ll_claim *claim, uint64_t used_bytes);
void ll_claim_set_payload(struct ll_claim *claim, const char *name); /* cut at 15 bytes */
void ll_claim_set_note(struct ll_claim *claim, const char *note);    /* cut at 63 bytes */

void ll_claim_add_gpu_time(struct ll_claim *claim, uint64_t ns);
void ll_claim_add_synthetic(struct ll_claim *claim, uint64_t busy_ns, uint64_t energy_mj);
void ll_claim_add_yield(struct ll_claim *claim);

/* Work is queued or running from here on; it ended at now_ns. See ll_ledger_activity_ns. */
void ll_claim_set_active(struct ll_claim *claim);
void ll_claim_set_idle(struct ll_claim *claim, uint64_t now_ns);

/*
 * Says "still here" and makes sure of it: where the program closed our descriptor, or replaced it, the lock is taken
 * again on a new one. About 1 µs; call it about once a second. -ESTALE when the claim was cleared in between: take
 * another. -ECHILD in a forked child.
 */
int ll_claim_beat(struct ll_claim *claim, uint64_t now_ns, struct ll_err *err);

/*
 * Takes a claim of the settings' tenant, whose row is made where there is none. card is for messages. Errors as
 * ll_tenant_join and ll_claim_take; the row stays joined, also then, until the ledger is closed.
 */
int ll_run_settings_claim(const struct ll_run_settings *settings, struct ll_ledger *ledger, const char *card,
			  unsigned *ret_row, struct ll_claim **ret_claim, struct ll_err *err);

#endif
