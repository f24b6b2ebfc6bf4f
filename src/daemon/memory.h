/*
 * memory.h - gives each process of a job its part of the job's memory on a card (control/grants.h).
 *
 * What a process that ended used stays in the books until the driver has given it back. A want that fits only then is
 * answered then.
 */
#ifndef LOADLINE_DAEMON_MEMORY_H
#define LOADLINE_DAEMON_MEMORY_H

#include "daemon/claims.h"

/* 93 to 121 ms passed from a kill to the end of the bytes on the card (doc/facts.md). */
#define LL_LEAVING_NS UINT64_C(150000000)

/* How long others may take to give up what their pools keep in reserve. */
#define LL_RESERVES_NS UINT64_C(50000000)

int ll_memory_init(struct ll_server *server);
void ll_memory_fini(struct ll_server *server);

/* A claim that is new, or came with a page. */
void ll_memory_begin(struct ll_job_claim *claim);

/* Takes what the claim uses into what is leaving, before its slot is taken away. Returns whether it used any. */
bool ll_memory_leave(struct ll_job_claim *claim);

/* Whether the slot has a want that was not answered. */
bool ll_memory_has_want(const struct ll_job_claim *claim);

/* A process rang: looks at the card if there is something about memory to decide. */
void ll_memory_wake(struct ll_server *server, struct ll_job_claim *claim);

/* Claims or limits have changed: decides anew. */
void ll_memory_settle(struct ll_server *server, struct ll_job_card *card);

/* What adopted orders say of bytes that had not been given back. death_ns: when a process last ended there. */
void ll_memory_adopt(struct ll_job_card *card, uint64_t death_ns);

uint64_t ll_memory_leaving_bytes(const struct ll_job_card *card);

/* All that its processes use, and what is leaving. */
uint64_t ll_memory_used_bytes(const struct ll_job_card *card);

void ll_memory_forget(struct ll_job_card *card);

#endif
