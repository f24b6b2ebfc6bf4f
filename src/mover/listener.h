/*
 * listener.h - the socket on which the mover of a card is found. Private to src/mover.
 *
 * One mover at a time has the socket's lock, for as long as it lives. So a socket that is there and not served is
 * removed.
 */
#ifndef LOADLINE_MOVER_LISTENER_H
#define LOADLINE_MOVER_LISTENER_H

#include <stdbool.h>

#include "driver/cards.h"

struct ll_err;

struct ll_mover_listener {
	int fd, lock_fd;
	int spare_fd; /* kept for one who connects when there are no more descriptors */
};

/* -EBUSY: another mover serves the card. Close it also after a failure. */
int ll_mover_listener_open(struct ll_mover_listener *listener, const struct ll_card *card, const char *folder,
			   struct ll_err *err);
void ll_mover_listener_close(struct ll_mover_listener *listener, const struct ll_card *card, const char *folder);

/* One who has connected; his socket does not block. -1: nobody. *ret_has_room false: this was the last descriptor. Then
 * he is to be told so, and refused, which closes the socket. */
int ll_mover_listener_accept(struct ll_mover_listener *listener, bool *ret_has_room);
void ll_mover_listener_refuse(struct ll_mover_listener *listener, int fd);

#endif
