/*
 * memory.h - gives each process of a job its part of the job's memory on a card (rules/residency/grants.h).
 *
 * The memory of an ended process stays in the books until the driver has freed it. A want that fits only after that is
 * replied to after that.
 */
#ifndef LOADLINE_DAEMON_RESIDENCY_MEMORY_H
#define LOADLINE_DAEMON_RESIDENCY_MEMORY_H

#include "daemon/jobs/claims.h"

/* The driver frees a process's memory while the kernel ends the process, or executes its next program, which took 93 to
 * 121 ms after a kill (doc/facts.md). */
#define LL_LEAVING_NS UINT64_C(150000000)

/* The time that other processes have to free the reserve of their pools. */
#define LL_RESERVES_NS UINT64_C(50000000)

int ll_memory_init(struct ll_server *server);
void ll_memory_fini(struct ll_server *server);

/* Starts a claim that is new, or that was adopted with a page. */
void ll_memory_begin(struct ll_job_claim *claim);

/* Counts the claim's used memory as leaving, unless the driver has it back (is_freed). Call it before the slot is
 * released. Returns whether the claim used any memory. */
bool ll_memory_leave(struct ll_job_claim *claim, bool is_freed);

/* Whether the slot has a want without a reply. */
bool ll_memory_has_want(const struct ll_job_claim *claim);

/* A process has sent WAKE: decides about the card's memory if there is something to decide. */
void ll_memory_wake(struct ll_server *server, struct ll_job_claim *claim);

/* Claims or limits have changed: decides again. */
void ll_memory_settle(struct ll_server *server, struct ll_job_card *card);

/* Adopts what the orders say about memory that the driver had not freed yet. death_ns: when a process last ended on the
 * card. */
void ll_memory_adopt(struct ll_job_card *card, uint64_t death_ns);

uint64_t ll_memory_leaving_bytes(const struct ll_job_card *card);

/* The used memory of its processes, and the memory that is leaving. */
uint64_t ll_memory_used_bytes(const struct ll_job_card *card);

void ll_memory_forget(struct ll_job_card *card);

#endif
