/*
 * system_socket.h - the listening socket of the system's loadlined, and the user that it runs as.
 *
 * systemd passes the socket (LISTEN_FDS). If loadlined is started by hand, it makes the socket itself: as root, in a
 * folder that root owns. Then it becomes an ordinary user, so that no root process parses messages of other users.
 */
#ifndef LOADLINE_DAEMON_CORE_SYSTEM_SOCKET_H
#define LOADLINE_DAEMON_CORE_SYSTEM_SOCKET_H

#include <sys/types.h>

#include "protocol/place.h"

struct ll_err;

/* Finds the account; -ENOENT: there is no such name. */
struct ll_system_user {
	uid_t uid;
	gid_t gid;
};
int ll_system_user_find(const char *name, struct ll_system_user *ret_user, struct ll_err *err);

/* Becomes that user, without supplementary groups. The process cannot become root again. */
int ll_system_user_become(const struct ll_system_user *user, struct ll_err *err);

/* The number of descriptors that systemd passed to this process, from 3 on. */
int ll_system_fds_passed(void);

/* The socket that systemd passed to this process; -1: it passed none. It is closed on exec, and does not block. */
int ll_system_socket_passed(void);

/*
 * Makes the folder if it is missing, and the socket file in it; every user may connect. owner: of the file; NULL: this
 * user. A lock keeps other processes from doing the same until this one ends. The socket does not listen yet.
 * -EADDRINUSE: another process serves there. -EPERM: other users may write to the folder.
 */
int ll_system_socket_bind(const struct ll_place *place, const struct ll_system_user *owner, int *ret_fd,
			  struct ll_err *err);

#endif
