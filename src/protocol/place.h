/*
 * place.h - the address at which loadlined is reached.
 *
 * A user's loadlined has an abstract Unix socket. Its name contains the user and the simulated world. The bound name is
 * the lock: one process has it at a time, and it is free when that process ends. Abstract names belong to the network
 * namespace. So programs in other sessions, PID and mount namespaces and private folders reach the daemon; programs in
 * a network namespace of their own do not.
 *
 * The system's loadlined serves all users. It has a socket file: /run/loadline/socket, or system/socket in the folder
 * of a simulated world. Where it serves, it governs.
 *
 * Any user may bind a name. So each side checks the other side's uid before it sends anything.
 */
#ifndef LOADLINE_PROTOCOL_PLACE_H
#define LOADLINE_PROTOCOL_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ll_err;
struct sockaddr_un;

enum { LL_PLACE_SIZE = 100 };

struct ll_place {
	/* "loadline/1000", "loadline/1000/fd01-1f3c-2faf080": without the leading NUL or @; or
	 * "/run/loadline/socket" */
	char name[LL_PLACE_SIZE];
};

/* What a device of loadline mounts into a container (cli/cdi/cdi.h): the library, in the folders for which the loader's
 * $LIB stands; the program that looks whether it is in force; and if a container may run without loadlined, a file that
 * says so. The folder of the system's socket is mounted where it is outside. */
#define LL_CONTAINER_FOLDER "/opt/loadline"
#define LL_CONTAINER_PROBE LL_CONTAINER_FOLDER "/probe"
#define LL_CONTAINER_OPTIONAL LL_CONTAINER_FOLDER "/optional"

/*
 * Finds the place that governs: the system's place if a trusted process serves it, else the place of this user.
 * sim_folder: the folder of the simulated world; NULL: the real cards. Symbolic links to a folder lead to the same
 * place. -EPERM: this user namespace maps no outer user. -errno: the folder cannot be read.
 */
int ll_place_find(const char *sim_folder, struct ll_place *ret_place, struct ll_err *err);

/* The place of this user. In a user namespace it is the place of the outer user. Errors as above. */
int ll_place_of_user(const char *sim_folder, struct ll_place *ret_place, struct ll_err *err);

/*
 * The same in two steps, for a process that lives long: find both places, which never change, and then choose the one
 * that governs now. A choice takes one or two system calls. system.name is empty if there can be no system's place.
 */
struct ll_places {
	struct ll_place user, system;
};
int ll_places_find(const char *sim_folder, struct ll_places *ret_places, struct ll_err *err);
const struct ll_place *ll_places_choose(const struct ll_places *places);

/* The system's place. -ENAMETOOLONG: the path of the simulated world is too long, or contains a semicolon. */
int ll_place_of_system(const char *sim_folder, struct ll_place *ret_place);

/*
 * The system's place of the same world as a user's place, for a caller that has only the user's place. folder: of the
 * world, if it is simulated. Returns false if there is none, or if place is the system's already.
 */
bool ll_place_system_beside(const char *place, const char *folder, struct ll_place *ret_place);

/* The socket of another service of the system, in the folder of loadlined's socket. -EINVAL: system is not the system's
 * place. -ENAMETOOLONG. */
int ll_place_beside(const struct ll_place *system, const char *name, struct ll_place *ret_place);

/* ll_place_is_system: whether it is the system's place of any world, that is, a path. ll_place_mark: the prefix in
 * messages, "" or "@". */
bool ll_place_is_system(const struct ll_place *place);
const char *ll_place_mark(const struct ll_place *place);

/* Reads a name that another process passed on. -EINVAL: none of the functions above makes such a name. */
int ll_place_read(const char *name, struct ll_place *ret_place);

/* Binds an abstract name and listens. The socket does not block and is closed on exec. -EADDRINUSE: another process has
 * bound the name. */
int ll_place_listen(const struct ll_place *place, int *ret_fd);

/*
 * Connects. The socket does not block and is closed on exec. -ECONNREFUSED: nobody listens. -EAGAIN: some thousand
 * connections wait for the listener, and no more may. -EPERM: another user has bound the name, or the socket file
 * cannot be trusted; *ret_uid is then the server's uid. ret_uid may be NULL.
 */
int ll_place_connect(const struct ll_place *place, int *ret_fd, uid_t *ret_uid);

/*
 * The same, and waits until that moment (ll_now_ns) for a place among the connections that wait. One user can fill all
 * of these places again and again; the kernel gives those that become free to who waits in here, in order. A signal
 * handler runs meanwhile, and the wait goes on. It does nothing else, so the caller chooses a moment that is near where
 * it has more to do.
 */
int ll_place_connect_by(const struct ll_place *place, uint64_t until_ns, int *ret_fd, uid_t *ret_uid);

/*
 * The place of one hold of a card, of any user (hold/hold.h). ll_place_of_hold makes a name that is new, and
 * that nobody can know before it is bound: the card, the simulated world, and a random number. ll_places_of_holds gives
 * the names of that card and world on which anybody listens now; *ret_places is for free(3). -ENAMETOOLONG: the UUID is
 * malformed. Other errors are those of ll_place_of_user, and that /proc cannot be read.
 */
int ll_place_of_hold(const char *uuid, const char *sim_folder, struct ll_place *ret_place, struct ll_err *err);
int ll_places_of_holds(const char *uuid, const char *sim_folder, struct ll_place **ret_places, size_t *ret_count,
		       struct ll_err *err);

/* Calls visit with each abstract name that begins with prefix, and on which anybody in this network namespace listens.
 * -errno: /proc/net/unix cannot be read. */
int ll_place_each(const char *prefix, void (*visit)(const char *name, void *arg), void *arg);

/* Connect to a place, whoever listens there. */
int ll_place_connect_any(const struct ll_place *place, int *ret_fd);
int ll_place_connect_any_by(const struct ll_place *place, uint64_t until_ns, int *ret_fd);

/* Checks that the other side of a connection has this process's uid. *ret_uid: its uid, as seen in this user
 * namespace. */
int ll_place_check_peer(int fd, uid_t *ret_uid);

/*
 * Checks that the other side of a connection to the system's place is trusted: root (or this process's user) owns the
 * folder of the socket, nobody else may write to it, and the other side is root or the owner of the socket file. In a
 * user namespace without root of the machine the folder, and the one above it, may be nobody's.
 * -EPERM: it is not trusted; *ret_uid: its uid.
 */
int ll_place_check_system(const char *path, int fd, uid_t *ret_uid);

/* Fills in the address of a place; returns its length. */
unsigned ll_place_address(const char *name, struct sockaddr_un *ret_address);

#endif
