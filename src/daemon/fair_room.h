/*
 * fair_room.h - how much one user may have of what all users share.
 *
 * A user may have more as long as it has no more than what is left free for everybody. So one user alone gets half, two
 * users who take all that they can get a third each, n users 1/(n + 1) each, and as much stays free for the next one.
 * (It is the dynamic threshold of shared buffers in switches: Choudhury and Hahne, 1998.)
 */
#ifndef LOADLINE_DAEMON_FAIR_ROOM_H
#define LOADLINE_DAEMON_FAIR_ROOM_H

#include <stdbool.h>
#include <stdint.h>

struct ll_fair_room {
	uint64_t size;      /* of the whole */
	uint64_t all, user; /* what all users have, and of it this one */
};

/* Whether the user may have `more` too. */
static inline bool ll_fair_room_permits(const struct ll_fair_room *room, uint64_t more)
{
	uint64_t taken = room->all + room->user;
	return taken <= room->size && more <= room->size - taken;
}

static inline void ll_fair_room_count(struct ll_fair_room *room, bool is_user, uint64_t amount)
{
	room->all += amount;
	room->user += is_user ? amount : 0;
}

#endif
