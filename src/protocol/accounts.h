/*
 * accounts.h - counts, for the processes of a job, the memory that they used on a card over time, and the time that
 * they waited, by cause. The page itself has the GPU time (gpu_time_ns).
 *
 * The unit of memory over time is LL_MEMORY_UNIT times one millisecond. At each change of its used memory, a process
 * adds "change times moment" to a sum (memory_moments). The moment is in milliseconds since the process took the slot.
 * The daemon computes memory over time as "used memory now times now, minus that sum". If a process is killed between
 * the writes of the two words, one change is counted wrongly.
 */
#ifndef LOADLINE_PROTOCOL_ACCOUNTS_H
#define LOADLINE_PROTOCOL_ACCOUNTS_H

#include <stdint.h>

#include "protocol/page.h"

/* ---- a process, in its own slot; now_ns is a time of the page's clock ---- */

/* The process calls these at each change of the memory that the slot uses. */
void ll_accounts_note_charge(struct ll_page_slot *slot, uint64_t units, uint64_t now_ns);
void ll_accounts_note_release(struct ll_page_slot *slot, uint64_t units, uint64_t now_ns);

void ll_accounts_note_wait(struct ll_page_slot *slot, enum ll_wait cause, uint64_t ns);

/* ---- the daemon ---- */

/* Reads the account of the process that has the slot. The account begins when the process took the slot. */
void ll_accounts_read(const struct ll_page_slot *slot, uint64_t now_ns, struct ll_accounts *ret_accounts);

/* Reads the sum over all processes of the job on that card. Ended processes are included. */
void ll_accounts_read_card(const struct ll_page *page, unsigned card, uint64_t now_ns,
			   struct ll_accounts *ret_accounts);

/* Adds the account of an ended process to the account of the card. Call it before the slot's token is cleared. */
void ll_accounts_end(struct ll_page *page, const struct ll_page_slot *slot, uint64_t now_ns);

#endif
