/*
 * ledger.h - the shared page of one card. Each process on the card writes there what it claims, and reads what others
 * claim.
 *
 * A ledger is a file of fixed size, `UUID.ledger`, that every process on the card maps. The file is complete before it
 * gets its name. It is never removed. Claims are in claim.h, the bytes in layout.h.
 *
 * Liveness. The owner of a claim holds an open-file-description lock on the claim's byte, on a description that it
 * opened itself. The kernel frees the lock when the owner ends, however it ends, in every PID namespace. But a child
 * that inherited the description by a bare clone() keeps the lock. So a claim is dead if its lock is free, or if a
 * scanner in the owner's PID namespace sees that the owner (pid and start time) is gone. Whoever lists or sweeps clears
 * dead claims. Commands also look into the PID namespaces below theirs (proc.h).
 *
 * Any thread may call the functions of a ledger, but for close.
 */
#ifndef LOADLINE_LEDGER_LEDGER_H
#define LOADLINE_LEDGER_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/words.h"

struct ll_err;
struct ll_ledger;

/* A copy of one claim. Each word is whole; the words are not all of one instant. */
struct ll_claim_info {
	unsigned index;   /* "0/17" in status is card 0, index 17 */
	pid_t pid;        /* in its own PID namespace */
	bool is_pid_ours; /* the caller is in that namespace too */
	enum ll_priority priority;
	enum ll_claim_state state;
	char tenant[64];
	char payload[16];
	char metric[16];                              /* what a hold's target is about: "util", "power", … */
	char note[64];                                /* one phrase on the state, for people; may be empty */
	uint64_t taken_ns, heartbeat_ns, activity_ns; /* CLOCK_MONOTONIC */
	uint64_t memory_limit_bytes, memory_used_bytes;
	enum ll_claim_residency residency;
	enum ll_claim_checkpoint checkpoint;
	uint64_t evictable_bytes, away_bytes; /* see memory.h */
	uint64_t want_since_ns;               /* CLOCK_MONOTONIC since when it has launches that wait or run; 0: none */
	unsigned compute_cap_permille, weight_permille;
	unsigned target_permille, target_watts; /* a hold's: one of them is 0 */
	uint64_t gpu_time_ns, synthetic_busy_ns, energy_mj, yields;
	unsigned gate;
	unsigned tenant_row; /* 1 + row of its tenant; 0: none */
	/* of that row, as `loadline set` left it; of a claim without a tenant its own class, and 0 */
	enum ll_priority tenant_priority;
	uint64_t tenant_request_bytes, tenant_used_bytes;
};

/*
 * Maps the ledger of this card. With is_created, a missing ledger is made, and its folder too (file.h). A ledger of
 * another version that nobody uses is then made anew.
 *
 * -ENOENT: there is no ledger, and is_created is false. -EPERM: the folder or the file is not this user's alone.
 * -EBADMSG: the file is truncated or corrupt. -EPROTO: the file is of another version, and in use. Each text names the
 * file, and the hint says what to do.
 */
int ll_ledger_open(const char *folder, const char *uuid, bool is_created, struct ll_ledger **ret_ledger,
		   struct ll_err *err);

/* Unmaps it. Claims taken through it must have been released. NULL is fine. */
void ll_ledger_close(struct ll_ledger *ledger);

/* Copies the live claims in index order, at most capacity; returns how many there are. Dead ones are cleared first. */
size_t ll_ledger_list(struct ll_ledger *ledger, struct ll_claim_info *claims, size_t capacity);

/* Writes what the driver's checkpoint has done to a process into all its claims here. pid: in this PID namespace. */
void ll_ledger_note_checkpoint(struct ll_ledger *ledger, pid_t pid, enum ll_claim_checkpoint checkpoint);

/* Clears dead claims, then dead tenants. Returns how many claims it has cleared. Some µs, plus 15 µs for each live
 * claim. */
size_t ll_ledger_sweep(struct ll_ledger *ledger);

/*
 * Returns when a governed program last had work on the card: a live claim that is not a hold. LL_ACTIVITY_NOW: one has
 * work queued or running. Else the latest moment at which one had (CLOCK_MONOTONIC); 0: never. It is made for a pacer's
 * loop: no system call, well under a µs. A program that was killed at work counts until the next sweep.
 */
uint64_t ll_ledger_activity_ns(const struct ll_ledger *ledger);

/*
 * Returns when the claim of a program that had memory was last cleared (CLOCK_MONOTONIC); 0: never. A killed program's
 * claim is free as soon as its descriptors are closed. The driver may take longer to give its memory to others.
 */
uint64_t ll_ledger_death_ns(const struct ll_ledger *ledger);

/* Returns the path of the file, for messages. */
const char *ll_ledger_path(const struct ll_ledger *ledger);

#endif
