/*
 * neighbour.h - chooses the card of the host to which evicted memory is copied, and decides when the memory must be
 * copied on to the host.
 *
 * Pure. A neighbour is a card whose memory the program's own card uses directly, over NVLink. It must be unused: no
 * program has a claim there, and the only memory there is that of evicted programs, and of synthetic loads, which
 * yield. If there is no such card, memory is copied to the host.
 */
#ifndef LOADLINE_RULES_RESIDENCY_NEIGHBOUR_H
#define LOADLINE_RULES_RESIDENCY_NEIGHBOUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory that does not count as use: the driver's own, and some MiB for each process that has opened the card. A
 * context takes 250 MiB and more (doc/facts.md). */
#define LL_NEIGHBOUR_QUIET_BYTES UINT64_C(0x8000000)

/* Memory that is left free there, so that a program can start: its context and its first allocations. */
#define LL_NEIGHBOUR_RESERVE_BYTES UINT64_C(0x80000000)

struct ll_neighbour_view {
	uint64_t free_bytes;
	uint64_t used_bytes;  /* without synthetic loads */
	uint64_t moved_bytes; /* memory of other cards' programs that is there, or being copied there. used_bytes may
				 not include it yet */
	bool is_claimed;
};

/* Whether a program uses the card, so that memory of other cards' programs must be copied on. */
bool ll_neighbour_is_wanted(const struct ll_neighbour_view *card);

/* Returns the card to which so many bytes are copied: of the unused cards with room for all of it, the one with the
 * most room; of equals the first. count: there is none. */
size_t ll_neighbour_choose(const struct ll_neighbour_view *cards, size_t count, uint64_t bytes);

#endif
