/*
 * accounts.h - what the processes of a job have had of a card: memory over time, and waits by their cause. The time at
 * work is in the page itself (gpu_time_ns).
 *
 * Memory over time is counted in units of LL_MEMORY_UNIT, times milliseconds. A process does not add up areas: at each
 * change of what it uses it adds the change times its moment, in milliseconds since the slot was taken. What it uses
 * now, times now, less that sum is the area. A process that is killed between the two words leaves one change wrong.
 */
#ifndef LOADLINE_PROTOCOL_ACCOUNTS_H
#define LOADLINE_PROTOCOL_ACCOUNTS_H

#include <stdint.h>

#include "protocol/page.h"

/* ---- a process, in its own slot; now_ns: of the page's clock ---- */

/* Beside each change of what the slot uses. */
void ll_accounts_note_charge(struct ll_page_slot *slot, uint64_t units, uint64_t now_ns);
void ll_accounts_note_release(struct ll_page_slot *slot, uint64_t units, uint64_t now_ns);

void ll_accounts_note_wait(struct ll_page_slot *slot, enum ll_wait cause, uint64_t ns);

/* ---- the daemon ---- */

/* Of the process that has the slot, from when it took it. */
void ll_accounts_read(const struct ll_page_slot *slot, uint64_t now_ns, struct ll_accounts *ret_accounts);

/* Of all processes that the job has, or had, on that card. */
void ll_accounts_read_card(const struct ll_page *page, unsigned card, uint64_t now_ns,
			   struct ll_accounts *ret_accounts);

/* The process has ended: what it had goes to the card's account. Before the slot's token goes. */
void ll_accounts_end(struct ll_page *page, const struct ll_page_slot *slot, uint64_t now_ns);

#endif
