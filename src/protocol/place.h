/*
 * place.h - where loadlined is reached: an abstract Unix socket, named after the user and the simulated world.
 *
 * The bind of the name is the lock: one process has it at a time, and it goes with that process. Abstract names belong
 * to the network namespace. So programs in other sessions, PID and mount namespaces and private folders reach it, those
 * in a network namespace of their own do not.
 *
 * Anybody may bind a name. So each side looks at the other's uid before it says anything.
 */
#ifndef LOADLINE_PROTOCOL_PLACE_H
#define LOADLINE_PROTOCOL_PLACE_H

#include <sys/types.h>

struct ll_err;

enum { LL_PLACE_SIZE = 100 };

struct ll_place {
	char
	    name[LL_PLACE_SIZE]; /* "loadline/1000", "loadline/1000/fd01-1f3c-2faf080": without the NUL or @ in front */
};

/*
 * Finds the place of this user. In a user namespace it is that of the user outside. sim_folder: the folder of the
 * simulated world; NULL: the real cards. Symbolic links to a folder lead to the same place. -EPERM: this user namespace
 * maps no user outside. -errno: the folder cannot be looked at.
 */
int ll_place_find(const char *sim_folder, struct ll_place *ret_place, struct ll_err *err);

/* Takes a name that somebody passed on. -EINVAL: it is not one that ll_place_find makes. */
int ll_place_read(const char *name, struct ll_place *ret_place);

/* Binds the name and listens. The socket does not block and is closed on exec. -EADDRINUSE: somebody has the name. */
int ll_place_listen(const struct ll_place *place, int *ret_fd);

/*
 * Connects. The socket does not block and is closed on exec. -ECONNREFUSED: nobody listens. -EAGAIN: who listens takes
 * no connections, and has some thousand waiting. -EPERM: another user has the name; *ret_uid: who, NULL is fine.
 */
int ll_place_connect(const struct ll_place *place, int *ret_fd, uid_t *ret_uid);

/*
 * The place of the hold of a card, whoever its user is: hold/seat.h. It is named after the card and the simulated
 * world. connect_any does not look at the other side's user. -ENAMETOOLONG: the UUID is none. Other errors are those of
 * ll_place_find and ll_place_connect.
 */
int ll_place_of_card(const char *uuid, const char *sim_folder, struct ll_place *ret_place, struct ll_err *err);
int ll_place_connect_any(const struct ll_place *place, int *ret_fd);

/* Whether the other side of a connection has this process's uid. *ret_uid: its uid, as seen in this user namespace. */
int ll_place_check_peer(int fd, uid_t *ret_uid);

#endif
