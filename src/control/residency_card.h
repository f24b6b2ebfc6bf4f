/*
 * residency_card.h - residency.h's rules on one card: who waits for its room, who can make room, and when.
 *
 * Private to residency.c.
 */
#ifndef LOADLINE_CONTROL_RESIDENCY_CARD_H
#define LOADLINE_CONTROL_RESIDENCY_CARD_H

#include "control/residency.h"

/* What a card has for one that waits. */
struct ll_residency_room {
	uint64_t now_bytes;
	uint64_t sure_bytes; /* when all that is going has gone */
	uint64_t soon_bytes; /* when also those have left that were asked to */
};

/* A card, with the programs on it. */
struct ll_residency_card {
	const struct ll_residency_program *programs;
	size_t count;
	uint64_t free_bytes, now_ns;
	struct ll_residency_room room;            /* what is not kept for others */
	const struct ll_residency_program *front; /* the first that waits for others to leave; NULL: none */
};

/* Sets room. */
void ll_residency_card_init(struct ll_residency_card *card);

/* ---- one that waits ---- */

/* It is away, and wants to return; an allocation of it waits; it returns, and lacks room. */
bool ll_residency_is_returner(const struct ll_residency_program *program);
bool ll_residency_is_short(const struct ll_residency_program *program);
bool ll_residency_is_stuck(const struct ll_residency_program *program);

/* The order of service. */
bool ll_residency_goes_before(const struct ll_residency_program *a, const struct ll_residency_program *b);

/* Without the margin. */
uint64_t ll_residency_least_bytes(const struct ll_residency_program *program);

/* Whether there is room for it: now, or as others' memory leaves, if it can begin then. */
bool ll_residency_card_has_room(const struct ll_residency_card *card, const struct ll_residency_program *waiting);

/* Whether there will be when those have left that were asked to. */
bool ll_residency_card_has_room_soon(const struct ll_residency_card *card, const struct ll_residency_program *waiting);

/* Whether there can be, if all leave that may. */
bool ll_residency_card_can_serve(const struct ll_residency_card *card, const struct ll_residency_program *waiting);

/* Whether it is sure that its allocation gets no room, whoever leaves. */
bool ll_residency_card_is_hopeless(const struct ll_residency_card *card, const struct ll_residency_program *waiting);

/* When enough others may have left for it. UINT64_MAX: it is not known, for it takes a program that could not leave
 * when it was asked. */
uint64_t ll_residency_card_served_ns(const struct ll_residency_card *card, const struct ll_residency_program *waiting);

/* Whether the card's front, which can be served at served_ns, would wait longer if the one behind got room now. */
bool ll_residency_card_delays_front(const struct ll_residency_card *card, const struct ll_residency_program *behind,
				    uint64_t served_ns);

/* Keeps room for one that waits until it is there. */
void ll_residency_card_keep_room(struct ll_residency_card *card, const struct ll_residency_program *waiting);

/* ---- who leaves ---- */

/* The program that leaves first for it, and when. count: nobody. */
size_t ll_residency_card_first_to_leave(const struct ll_residency_card *card,
					const struct ll_residency_program *waiting, uint64_t *ret_at_ns);

/* The program that shall free what has come back, because others that return lack that room. count: none. */
size_t ll_residency_card_who_stays(const struct ll_residency_card *card);

#endif
