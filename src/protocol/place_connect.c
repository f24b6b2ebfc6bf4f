/* How all connect (place.h), the preloaded library too. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "protocol/place.h"

enum { US_PER_S = 1000000 };

/* The socket blocks for this call alone. */
static int connect_and_wait(int fd, const struct sockaddr_un *address, socklen_t length, uint64_t wait_ns)
{
	int flags = fcntl(fd, F_GETFL);
	uint64_t wait_us = wait_ns / LL_NS_PER_US + 1; /* 0 is for ever */
	struct timeval wait = {.tv_sec = (time_t)(wait_us / US_PER_S), .tv_usec = (suseconds_t)(wait_us % US_PER_S)};
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait) || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK))
		return -errno;
	int rc = connect(fd, (const struct sockaddr *)address, length) ? -errno : 0;
	return fcntl(fd, F_SETFL, flags) && !rc ? -errno : rc;
}

static int connect_until(int fd, const struct sockaddr_un *address, socklen_t length, uint64_t until_ns)
{
	int rc = connect(fd, (const struct sockaddr *)address, length) ? -errno : 0;
	while (rc == -EAGAIN || rc == -EINTR) {
		uint64_t now_ns = ll_now_ns();
		if (now_ns >= until_ns)
			return -EAGAIN;
		rc = connect_and_wait(fd, address, length, until_ns - now_ns);
	}
	return rc;
}

int ll_place_connect_any_by(const struct ll_place *place, uint64_t until_ns, int *ret_fd)
{
	struct sockaddr_un address;
	socklen_t length = ll_place_address(place->name, &address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	int rc = connect_until(fd, &address, length, until_ns);
	if (!rc)
		*ret_fd = fd;
	else
		close(fd);
	return rc == -ENOENT || rc == -ENOTDIR ? -ECONNREFUSED : rc; /* without the file nobody listens */
}

int ll_place_connect_any(const struct ll_place *place, int *ret_fd)
{
	return ll_place_connect_any_by(place, 0, ret_fd);
}
