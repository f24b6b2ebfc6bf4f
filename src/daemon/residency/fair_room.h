/*
 * fair_room.h - how much one user may have of what all users share.
 *
 * A user may have at most a quarter of what is left free for everybody. So one user alone gets a fifth of all, and the
 * next one a fifth of the rest. Whoever comes finds room, unless very many users have taken all that they can: n of
 * them leave 0.8^n of all. (It is the dynamic threshold of shared buffers in switches: Choudhury and Hahne, 1998.)
 */
#ifndef LOADLINE_DAEMON_RESIDENCY_FAIR_ROOM_H
#define LOADLINE_DAEMON_RESIDENCY_FAIR_ROOM_H

#include <stdbool.h>
#include <stdint.h>

enum { LL_FAIR_ROOM_PART = 4 };

struct ll_fair_room {
	uint64_t size;      /* of the whole */
	uint64_t all, user; /* what all users have, and of it this one */
};

/* Whether the user may have `more` too. */
static inline bool ll_fair_room_permits(const struct ll_fair_room *room, uint64_t more)
{
	uint64_t free = room->size > room->all ? room->size - room->all : 0;
	return room->user <= free / LL_FAIR_ROOM_PART && more <= free - LL_FAIR_ROOM_PART * room->user;
}

static inline void ll_fair_room_count(struct ll_fair_room *room, bool is_user, uint64_t amount)
{
	room->all += amount;
	room->user += is_user ? amount : 0;
}

#endif
