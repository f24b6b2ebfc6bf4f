/*
 * residency_card.h - the rules of residency.h on one card: which programs wait for room, which can be evicted, and
 * when.
 *
 * Private to residency.c.
 */
#ifndef LOADLINE_RULES_RESIDENCY_RESIDENCY_CARD_H
#define LOADLINE_RULES_RESIDENCY_RESIDENCY_CARD_H

#include "rules/residency/residency.h"

/* Room of a card for a waiting program. */
struct ll_residency_room {
	uint64_t now_bytes;
	uint64_t sure_bytes; /* when the evictions that have begun have ended */
	uint64_t soon_bytes; /* when also the requested evictions have ended */
};

/* A card, with the programs on it. */
struct ll_residency_card {
	const struct ll_residency_program *programs;
	size_t count;
	uint64_t free_bytes, now_ns;
	struct ll_residency_room room;            /* without what is kept for others */
	const struct ll_residency_program *front; /* the first program that waits for evictions; NULL: none */
};

/* Sets room. */
void ll_residency_card_init(struct ll_residency_card *card);

/* ---- a waiting program ---- */

/* wants_resume: it is away, and one of its threads waits for the card. is_short: an allocation of it waits for room.
 * is_stuck: it is resuming and lacks room. */
bool ll_residency_wants_resume(const struct ll_residency_program *program);
bool ll_residency_is_short(const struct ll_residency_program *program);
bool ll_residency_is_stuck(const struct ll_residency_program *program);

/* The order of service: whether a is served before b. */
bool ll_residency_goes_before(const struct ll_residency_program *a, const struct ll_residency_program *b);

/* The room that the program needs, without the margin. */
uint64_t ll_residency_least_bytes(const struct ll_residency_program *program);

/* Whether the card has room for the program: now, or, if it can begin early, when running evictions have ended. */
bool ll_residency_card_has_room(const struct ll_residency_card *card, const struct ll_residency_program *waiting);

/* Whether the card has room for it when all requested evictions have ended. */
bool ll_residency_card_has_room_soon(const struct ll_residency_card *card, const struct ll_residency_program *waiting);

/* Whether the card has room for it when all programs are evicted that may be. */
bool ll_residency_card_can_serve(const struct ll_residency_card *card, const struct ll_residency_program *waiting);

/* Whether its allocation cannot get room, whichever programs are evicted. */
bool ll_residency_card_is_hopeless(const struct ll_residency_card *card, const struct ll_residency_program *waiting);

/* When enough programs may be evicted for it. UINT64_MAX: it is not known, because a program is needed whose last
 * eviction failed. */
uint64_t ll_residency_card_served_ns(const struct ll_residency_card *card, const struct ll_residency_program *waiting);

/* Whether card->front, which can be served at served_ns, would wait longer if the program behind got room now. */
bool ll_residency_card_delays_front(const struct ll_residency_card *card, const struct ll_residency_program *behind,
				    uint64_t served_ns);

/* Keeps room of the card for the waiting program. */
void ll_residency_card_keep_room(struct ll_residency_card *card, const struct ll_residency_program *waiting);

/* ---- evictions ---- */

/* Returns the index of the program that is evicted first for the waiting one, and when. count: none. */
size_t ll_residency_card_first_to_evict(const struct ll_residency_card *card,
					const struct ll_residency_program *waiting, uint64_t *ret_at_ns);

/* Returns the index of the resuming program that shall free its memory on the card again, because other resuming
 * programs lack that room. count: none. */
size_t ll_residency_card_who_stays(const struct ll_residency_card *card);

#endif
