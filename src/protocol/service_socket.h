/*
 * service_socket.h - the listening socket of a service beside loadlined, which loadlined alone may use:
 * loadline-keeper, loadline-notify.
 */
#ifndef LOADLINE_PROTOCOL_SERVICE_SOCKET_H
#define LOADLINE_PROTOCOL_SERVICE_SOCKET_H

#include <sys/types.h>

struct ll_err;

/* The socket that systemd passed to this process, which does not block and is closed on exec; -1: it passed none. */
int ll_service_socket_passed(void);

/*
 * Makes the socket NAME in the folder of loadlined's socket, and listens. Only the client and root can open it.
 * sim_folder: of the simulated world; NULL: the real cards. -errno: the file or its folder cannot be made.
 */
int ll_service_socket_bind(const char *name, const char *sim_folder, uid_t client, int *ret_fd, struct ll_err *err);

/* loadlined's side: connects to a service, which must run as root or as this user. -errno; -EPERM: it is another
 * user's. */
int ll_service_socket_connect(const char *path, int *ret_fd);

/* The uid of loadlined: of the user NAME; NULL: of user loadline, or without rights this user, in a simulated world.
 * -ENOENT: there is no such user. */
int ll_service_client_find(const char *name, uid_t *ret_uid, struct ll_err *err);

#endif
