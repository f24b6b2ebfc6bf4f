/*
 * place.h - where loadlined is reached.
 *
 * A user's loadlined has an abstract Unix socket, named after the user and the simulated world. The bind of the name is
 * the lock: one process has it at a time, and it goes with that process. Abstract names belong to the network
 * namespace. So programs in other sessions, PID and mount namespaces and private folders reach it, those in a network
 * namespace of their own do not.
 *
 * The system's loadlined, which serves all users, has a socket file: /run/loadline/socket, or system/socket in the
 * folder of a simulated world. It governs where it serves.
 *
 * Anybody may bind a name. So each side looks at the other's uid before it says anything.
 */
#ifndef LOADLINE_PROTOCOL_PLACE_H
#define LOADLINE_PROTOCOL_PLACE_H

#include <stdbool.h>
#include <sys/types.h>

struct ll_err;
struct sockaddr_un;

enum { LL_PLACE_SIZE = 100 };

struct ll_place {
	/* "loadline/1000", "loadline/1000/fd01-1f3c-2faf080": without the NUL or @ in front; or "/run/loadline/socket"
	 */
	char name[LL_PLACE_SIZE];
};

/*
 * Finds who governs: the system's place if somebody serves it who can be trusted, else that of this user. sim_folder:
 * the folder of the simulated world; NULL: the real cards. Symbolic links to a folder lead to the same place. -EPERM:
 * this user namespace maps no user outside. -errno: the folder cannot be looked at.
 */
int ll_place_find(const char *sim_folder, struct ll_place *ret_place, struct ll_err *err);

/* The place of this user. In a user namespace it is that of the user outside. Errors as above. */
int ll_place_of_user(const char *sim_folder, struct ll_place *ret_place, struct ll_err *err);

/*
 * The same in two steps, for who lives long: both places, which stay as they are, and who governs now. Choosing needs
 * one system call or two. system.name: empty if there can be none.
 */
struct ll_places {
	struct ll_place user, system;
};
int ll_places_find(const char *sim_folder, struct ll_places *ret_places, struct ll_err *err);
const struct ll_place *ll_places_choose(const struct ll_places *places);

/* The system's place. -ENAMETOOLONG: the path of the simulated world is too long for one, or has a semicolon. */
int ll_place_of_system(const char *sim_folder, struct ll_place *ret_place);

/*
 * The system's place of the world that a user's place is of, for who knows no more. folder: of the world, if it is a
 * simulated one. False: there is none, or place is the system's already.
 */
bool ll_place_system_beside(const char *place, const char *folder, struct ll_place *ret_place);

/* Whether it is a system's place: a path, whatever the world. And what stands in front of it for people: "" or "@". */
bool ll_place_is_system(const struct ll_place *place);
const char *ll_place_mark(const struct ll_place *place);

/* Takes a name that somebody passed on. -EINVAL: it is not one that the functions above make. */
int ll_place_read(const char *name, struct ll_place *ret_place);

/* Binds an abstract name and listens. The socket does not block and is closed on exec. -EADDRINUSE: somebody has the
 * name. */
int ll_place_listen(const struct ll_place *place, int *ret_fd);

/*
 * Connects. The socket does not block and is closed on exec. -ECONNREFUSED: nobody listens. -EAGAIN: who listens takes
 * no connections, and has some thousand waiting. -EPERM: another user has the name, or the socket file cannot be
 * trusted; *ret_uid: who serves there, NULL is fine.
 */
int ll_place_connect(const struct ll_place *place, int *ret_fd, uid_t *ret_uid);

/*
 * The place of the hold of a card, whoever its user is: hold/hold_socket.h. It is named after the card and the
 * simulated world. connect_any does not look at the other side's user. -ENAMETOOLONG: the UUID is none. Other errors
 * are those of ll_place_of_user and ll_place_connect.
 */
int ll_place_of_card(const char *uuid, const char *sim_folder, struct ll_place *ret_place, struct ll_err *err);
int ll_place_connect_any(const struct ll_place *place, int *ret_fd);

/* Whether the other side of a connection has this process's uid. *ret_uid: its uid, as seen in this user namespace. */
int ll_place_check_peer(int fd, uid_t *ret_uid);

/*
 * Whether the other side of a connection to the system's place is the system's: the folder of the socket is root's (or
 * this process's own), nobody else may write there, and the other side is root or the owner of the socket file. -EPERM:
 * it is not; *ret_uid: its uid.
 */
int ll_place_check_system(const char *path, int fd, uid_t *ret_uid);

/* Fills in the address of a place; returns its length. */
unsigned ll_place_address(const char *name, struct sockaddr_un *ret_address);

#endif
