/*
 * packet.h - packets with file descriptors over Unix sockets (SOCK_SEQPACKET).
 */
#ifndef LOADLINE_BASE_PACKET_H
#define LOADLINE_BASE_PACKET_H

#include <stdbool.h>
#include <stddef.h>

enum { LL_PACKET_FDS = 64 }; /* descriptors in a packet, at most */

/* Sends one packet with copies of the descriptors; the caller keeps its descriptors. Waits while the socket is full; a
 * non-blocking socket returns -EAGAIN instead. -EPIPE or -ECONNRESET: the other side has closed the connection; no
 * signal is sent. */
int ll_packet_send(int fd, const void *bytes, size_t length, const int *fds, size_t fd_count);

/*
 * Receives one packet of exactly that length. The caller owns its descriptors, which are closed on exec. Waits for a
 * packet, unless waits is false: then -EAGAIN. -EPIPE: the other side has closed the connection. -EMFILE: this process
 * has no room for the descriptors; those that arrived are closed, and the bytes are valid. -EPROTO: a packet of another
 * length, or with more descriptors.
 */
int ll_packet_receive(int fd, bool waits, void *ret_bytes, size_t length, int *ret_fds, size_t capacity,
		      size_t *ret_fd_count);

/* The same for a packet of at most that length. -EPROTO: it is longer. flags: of recv(); 0, MSG_DONTWAIT, or with it
 * MSG_PEEK: the packet stays in the socket, and the descriptors are copies. */
int ll_packet_receive_up_to(int fd, int flags, void *ret_bytes, size_t length, size_t *ret_length, int *ret_fds,
			    size_t capacity, size_t *ret_fd_count);

#endif
