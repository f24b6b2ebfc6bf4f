/*
 * neighbour.h - to which other card of the host memory goes that leaves its card, and when it has to go on from there.
 *
 * Pure. A neighbour is a card whose memory the program's own card uses directly, over NVLink. Nobody may use it: no
 * program has a claim there, and nobody has memory there but programs whose own memory was moved there, and synthetic
 * loads, which give way. If there is none, memory goes to the host.
 */
#ifndef LOADLINE_CONTROL_NEIGHBOUR_H
#define LOADLINE_CONTROL_NEIGHBOUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nobody's memory: what the driver has for itself, and some MiB for each process that has seen the card. A context
 * takes 250 MiB and more (doc/facts.md). */
#define LL_NEIGHBOUR_QUIET_BYTES UINT64_C(0x8000000)

/* Left free there, so that a program can begin: its context, and its first allocations. */
#define LL_NEIGHBOUR_RESERVE_BYTES UINT64_C(0x80000000)

struct ll_neighbour_view {
	uint64_t free_bytes;
	uint64_t used_bytes;  /* but for synthetic loads */
	uint64_t moved_bytes; /* of programs of other cards: is there, or on its way. It may not be in used_bytes yet */
	bool is_claimed;
};

/* Whether somebody uses the card, so that memory of other cards' programs has to go. */
bool ll_neighbour_is_wanted(const struct ll_neighbour_view *card);

/* The card to which so many bytes go: of those that nobody uses and that have room for all of it, the one with the most
 * room; of equals the first. count: there is none. */
size_t ll_neighbour_choose(const struct ll_neighbour_view *cards, size_t count, uint64_t bytes);

#endif
