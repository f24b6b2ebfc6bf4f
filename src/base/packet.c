#include "base/packet.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room for the descriptors of one packet. */
union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(LL_PACKET_FDS * sizeof(int))];
};

int ll_packet_send(int fd, const void *bytes, size_t length, const int *fds, size_t fd_count)
{
	union control control = {.bytes = {0}};
	struct iovec part = {(void *)(uintptr_t)bytes, length};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	if (fd_count > LL_PACKET_FDS)
		return -EINVAL;
	if (fd_count) {
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(fd_count * sizeof *fds);
		struct cmsghdr *item = CMSG_FIRSTHDR(&header);
		item->cmsg_level = SOL_SOCKET;
		item->cmsg_type = SCM_RIGHTS;
		item->cmsg_len = CMSG_LEN(fd_count * sizeof *fds);
		memcpy(CMSG_DATA(item), fds, fd_count * sizeof *fds);
	}
	ssize_t sent;
	do
		sent = sendmsg(fd, &header, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

static size_t take_fds(struct msghdr *header, int fds[LL_PACKET_FDS])
{
	size_t count = 0;
	for (struct cmsghdr *item = CMSG_FIRSTHDR(header); item; item = CMSG_NXTHDR(header, item)) {
		if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS)
			continue;
		count = (item->cmsg_len - CMSG_LEN(0)) / sizeof *fds;
		memcpy(fds, CMSG_DATA(item), count * sizeof *fds);
	}
	return count;
}

int ll_packet_receive_up_to(int fd, int flags, void *ret_bytes, size_t length, size_t *ret_length, int *ret_fds,
			    size_t capacity, size_t *ret_fd_count)
{
	union control control;
	int fds[LL_PACKET_FDS];
	struct iovec part = {ret_bytes, length};
	struct msghdr header = {
	    .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
	ssize_t got;
	do
		got = recvmsg(fd, &header, MSG_CMSG_CLOEXEC | MSG_TRUNC | flags);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	size_t count = take_fds(&header, fds);
	int rc = 0;
	if (got == 0 && count == 0)
		rc = -EPIPE;
	else if (header.msg_flags & MSG_CTRUNC)
		rc = -EMFILE;
	else if ((size_t)got > length || count > capacity)
		rc = -EPROTO;
	for (size_t i = 0; i < count; i++) {
		if (rc)
			close(fds[i]);
		else
			ret_fds[i] = fds[i];
	}
	if (!rc) {
		*ret_length = (size_t)got;
		*ret_fd_count = count;
	}
	return rc;
}

int ll_packet_receive(int fd, bool waits, void *ret_bytes, size_t length, int *ret_fds, size_t capacity,
		      size_t *ret_fd_count)
{
	int fds[LL_PACKET_FDS];
	size_t got = 0, count = 0;
	int flags = waits ? 0 : MSG_DONTWAIT;
	int rc = ll_packet_receive_up_to(fd, flags, ret_bytes, length, &got, fds, LL_PACKET_FDS, &count);
	if (rc)
		return rc;
	bool is_wrong = got != length || count > capacity;
	for (size_t i = 0; i < count; i++) {
		if (is_wrong)
			close(fds[i]);
		else
			ret_fds[i] = fds[i];
	}
	if (!is_wrong)
		*ret_fd_count = count;
	return is_wrong ? -EPROTO : 0;
}
