/*
 * server.h - the mover: one process for each card and user, which takes programs' memory off the card and brings it
 * back.
 *
 * Programs and commands talk to it as protocol.h says. control/residency.h decides who leaves and who returns. The
 * mover copies; a program frees and makes its own memory. One thread does all this; another one pins the pool (pool.h).
 */
#ifndef LOADLINE_MOVER_SERVER_H
#define LOADLINE_MOVER_SERVER_H

#include <stdbool.h>

#include "driver/cards.h"

struct ll_err;

struct ll_mover_config {
	const struct ll_card *card;
	const char *folder;       /* the socket is there (folder.h) */
	const char *version;      /* of this program */
	uint64_t pool_bytes;      /* the pool's budget; 0: ll_mover_pool_default_budget */
	bool has_no_neighbours;   /* memory never goes to neighbour cards */
	uint64_t linger_ns;       /* the mover ends when it has had no program for so long; 0: never */
	int stop_fd;              /* the mover ends when this can be read; -1: none */
	void (*is_ready)(void *); /* called once, when programs can connect; may be NULL */
	void *data;
};

/*
 * Serves until it is to end. A program whose memory is in the pool then gets it back first, unless the card has no room
 * for it: such a program takes its memory out of the pool's file by itself, when there is room.
 *
 * Returns 0. -EBUSY: another mover serves the card. Errors of the driver, of the pool and of the socket.
 */
int ll_mover_serve(const struct ll_mover_config *config, struct ll_err *err);

#endif
