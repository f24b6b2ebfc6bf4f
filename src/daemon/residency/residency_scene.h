/*
 * residency_scene.h - the input of a decision about residency: cards, their free memory, and the processes on them.
 *
 * Private to residency.c.
 */
#ifndef LOADLINE_DAEMON_RESIDENCY_RESIDENCY_SCENE_H
#define LOADLINE_DAEMON_RESIDENCY_RESIDENCY_SCENE_H

#include "daemon/residency/residency.h"
#include "rules/residency/residency_units.h"

struct ll_server;

struct ll_card_room {
	struct ll_card_room *next;
	char uuid[LL_CARD_UUID_SIZE];
	uint64_t free_bytes;
	uint64_t asked_ns; /* when its free memory was last requested; 0: the reply came, or it was never requested */
	uint64_t measured_ns; /* when free_bytes was measured; 0: something has changed since */
	uint64_t number;      /* of the last request; replies to earlier requests are out of date */
	uint64_t again_ns;    /* when the next decision is due; UINT64_MAX: only when something changes */
};

/* The cards that have jobs in common with one, and the processes on them. */
struct ll_residency_scene {
	struct ll_card_room *rooms[LL_RESIDENCY_CARDS];
	uint64_t free_bytes[LL_RESIDENCY_CARDS];
	unsigned room_count;
	struct ll_evictable *
	    *who; /* NULL: memory that processes of other cards have moved to this card (neighbours.h) */
	struct ll_residency_member *members; /* of each of who; in the order of the cards */
	size_t count;
	struct ll_residency_program *programs; /* room for count */
	size_t program_count;
	bool is_settled; /* the memory of the cards is known. It is not while processes connect to a new loadlined, or
			    the driver still frees the memory of a process that has died */
};

/* ---- rooms ---- */

const char *ll_evictable_uuid(const struct ll_evictable *evictable);

/* Returns the room of a card; NULL: it has none yet. */
struct ll_card_room *ll_card_room_find(const struct ll_residency_books *books, const char *uuid);

/* The same, and makes it if there is none; NULL: no memory. */
struct ll_card_room *ll_card_room_get(struct ll_residency_books *books, const char *uuid);

/* Frees the room of a card on which no process can be moved, and to which no memory was moved. */
void ll_card_room_drop_unused(struct ll_residency_books *books, const char *uuid);

/* Stores the free memory that a process has measured. */
void ll_card_room_note_free(struct ll_card_room *room, uint64_t free_bytes);

/* All memory of a program has been moved: earlier measurements, and replies to earlier requests, are out of date. */
void ll_card_room_request_anew(struct ll_card_room *room);

/* Whether the reply with that number is to the last request. An older library sends no number. */
bool ll_card_room_is_reply(const struct ll_card_room *room, uint64_t number);

/* ---- scenes ---- */

/* Makes the scene of the cards that have jobs in common with room. Free it with fini, also after a failure. -ENOMEM. */
int ll_residency_scene_init(struct ll_residency_scene *scene, struct ll_residency_books *books,
			    struct ll_card_room *room, uint64_t now_ns);
void ll_residency_scene_fini(struct ll_residency_scene *scene);

/* Makes the programs of the scene (rules/residency/residency_units.h). */
void ll_residency_scene_join(struct ll_residency_scene *scene, const struct ll_server *server, uint64_t now_ns);

/* Whether the free memory of each card is known. Requests it if it is not. */
bool ll_residency_scene_know_room(const struct ll_residency_scene *scene, const struct ll_residency_books *books,
				  uint64_t now_ns);

#endif
