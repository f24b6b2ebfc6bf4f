/*
 * unread.h - descriptors that were sent on a connection which has ended, and that the other side has not read.
 *
 * The kernel counts descriptors in messages that nobody has read as the sender's user's, and sends no more for anybody
 * if there are too many. They are there until the other side reads them or closes its socket. So a user could end one
 * connection after the other with unread messages. The socket of such a connection stays open here until then, so that
 * its descriptors count for its user (rights.h).
 */
#ifndef LOADLINE_DAEMON_CORE_UNREAD_H
#define LOADLINE_DAEMON_CORE_UNREAD_H

#include <stdbool.h>
#include <stdint.h>

struct ll_server;
struct ll_unread;

/* Closes the socket of a connection that has ended, at once or when the other side has read all. uid: of the other
 * side. sent: how many descriptors were sent since the other side had read all. */
void ll_unread_close(struct ll_server *server, int fd, uint32_t uid, uint32_t sent);

/* Calls count for each such socket, with what it takes of descriptors. */
void ll_unread_count(const struct ll_unread *first, void (*count)(void *data, uint32_t uid, uint64_t fds), void *data);

/* Closes the sockets of which all has been read. Returns whether any are left. */
bool ll_unread_tick(struct ll_server *server);

void ll_unread_fini(struct ll_server *server);

#endif
