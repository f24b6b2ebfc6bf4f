/*
 * system_socket.h - the listening socket of the system's loadlined, and the user that it runs as.
 *
 * systemd passes the socket (LISTEN_FDS). Started by hand, loadlined makes it: as root, in a folder that is root's, and
 * then becomes an ordinary user, who parses what others send.
 */
#ifndef LOADLINE_DAEMON_SYSTEM_SOCKET_H
#define LOADLINE_DAEMON_SYSTEM_SOCKET_H

#include <sys/types.h>

#include "protocol/place.h"

struct ll_err;

/* The account; -ENOENT: there is none of that name. */
struct ll_system_user {
	uid_t uid;
	gid_t gid;
};
int ll_system_user_find(const char *name, struct ll_system_user *ret_user, struct ll_err *err);

/* Becomes that user, without other groups and without a way back. */
int ll_system_user_become(const struct ll_system_user *user, struct ll_err *err);

/* How many descriptors systemd passed to this process, from 3 on. */
int ll_system_fds_passed(void);

/* The socket that systemd passed to this process; -1: it passed none. It is closed on exec, and does not block. */
int ll_system_socket_passed(void);

/*
 * Makes the folder if it is missing, and the socket file in it, for everybody to connect. owner: of the file; NULL:
 * this user. Until this process ends no other does the same. The socket does not listen yet. -EADDRINUSE: somebody
 * serves there. -EPERM: others may write the folder.
 */
int ll_system_socket_bind(const struct ll_place *place, const struct ll_system_user *owner, int *ret_fd,
			  struct ll_err *err);

#endif
