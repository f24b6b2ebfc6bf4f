/*
 * residency_scene.h - what residency.h decides about: cards, what is free on them, and the processes on them.
 *
 * Private to residency.c.
 */
#ifndef LOADLINE_DAEMON_RESIDENCY_SCENE_H
#define LOADLINE_DAEMON_RESIDENCY_SCENE_H

#include "control/residency_units.h"
#include "daemon/residency.h"

struct ll_server;

struct ll_card_room {
	struct ll_card_room *next;
	char uuid[LL_CARD_UUID_SIZE];
	uint64_t free_bytes;
	uint64_t asked_ns;    /* when it was asked last; 0: it was answered, or never asked */
	uint64_t measured_ns; /* 0: something has changed since */
	uint64_t number;      /* of what was asked last; answers to earlier questions are true no more */
	uint64_t again_ns;    /* the next decision is due; UINT64_MAX: not by time */
};

/* The cards that have jobs in common with one, and the processes on them. */
struct ll_residency_scene {
	struct ll_card_room *rooms[LL_RESIDENCY_CARDS];
	uint64_t free_bytes[LL_RESIDENCY_CARDS];
	unsigned room_count;
	struct ll_evictable **who;           /* NULL: what others have moved to this card (neighbours.h) */
	struct ll_residency_member *members; /* of each of who; in the order of the cards */
	size_t count;
	struct ll_residency_program *programs; /* room for count */
	size_t program_count;
	bool is_settled; /* what the cards have is known: processes connect again to a loadlined that is new, and the
			    driver has a dead one's memory for a moment */
};

/* ---- rooms ---- */

const char *ll_evictable_uuid(const struct ll_evictable *evictable);

/* NULL: the card has none yet. */
struct ll_card_room *ll_card_room_find(const struct ll_residency_books *books, const char *uuid);

/* NULL: no memory. */
struct ll_card_room *ll_card_room_get(struct ll_residency_books *books, const char *uuid);

/* A process has measured so much. */
void ll_card_room_note_free(struct ll_card_room *room, uint64_t free_bytes);

/* A program's memory has come or gone as a whole: what was measured before, and is answered now, is wrong by that. */
void ll_card_room_request_anew(struct ll_card_room *room);

/* Whether it answers what was asked last. An older library says no number. */
bool ll_card_room_is_reply(const struct ll_card_room *room, uint64_t number);

/* ---- scenes ---- */

/* Free with fini, also after a failure. -ENOMEM. */
int ll_residency_scene_init(struct ll_residency_scene *scene, struct ll_residency_books *books,
			    struct ll_card_room *room, uint64_t now_ns);
void ll_residency_scene_fini(struct ll_residency_scene *scene);

/* Makes the programs (control/residency_units.h). */
void ll_residency_scene_join(struct ll_residency_scene *scene, const struct ll_server *server, uint64_t now_ns);

/* Whether what is free on each card is known. Asks for it if it is not. */
bool ll_residency_scene_know_room(const struct ll_residency_scene *scene, const struct ll_residency_books *books,
				  uint64_t now_ns);

#endif
