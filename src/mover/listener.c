#include "mover/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/packet.h"
#include "mover/protocol.h"
#include "protocol/words.h"

enum { BACKLOG = 64 };

static int listen_at(const char *folder, const char *name, int *ret_fd)
{
	struct sockaddr_un address;
	int folder_fd;
	int fd = ll_packet_socket(folder, name, &folder_fd, &address);
	if (fd < 0)
		return fd;
	bool listens = bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 && listen(fd, BACKLOG) == 0;
	int rc = listens ? 0 : -errno;
	close(folder_fd);
	if (rc)
		close(fd);
	else
		*ret_fd = fd;
	return rc;
}

static int open_spare(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int ll_mover_listener_open(struct ll_mover_listener *listener, const struct ll_card *card, const char *folder,
			   struct ll_err *err)
{
	char name[LL_UUID_SIZE + sizeof LL_MOVER_SOCKET_SUFFIX], path[PATH_MAX];
	snprintf(name, sizeof name, "%s" LL_MOVER_SOCKET_SUFFIX, card->uuid);
	snprintf(path, sizeof path, "%s/%s-lock", folder, name);
	listener->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (listener->lock_fd < 0)
		return ll_err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (flock(listener->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return ll_err_set(err, -EBUSY, "card %s: another mover serves it", card->label);
	snprintf(path, sizeof path, "%s/%s", folder, name);
	unlink(path);
	listener->spare_fd = open_spare();
	int rc = listen_at(folder, name, &listener->fd);
	return rc ? ll_err_set(err, rc, "%s: %s", path, strerror(-rc)) : 0;
}

void ll_mover_listener_close(struct ll_mover_listener *listener, const struct ll_card *card, const char *folder)
{
	char path[PATH_MAX];
	if (listener->fd >= 0) {
		snprintf(path, sizeof path, "%s/%s" LL_MOVER_SOCKET_SUFFIX, folder, card->uuid);
		unlink(path);
		close(listener->fd);
	}
	if (listener->lock_fd >= 0)
		close(listener->lock_fd);
	if (listener->spare_fd >= 0)
		close(listener->spare_fd);
}

int ll_mover_listener_accept(struct ll_mover_listener *listener, bool *ret_has_room)
{
	int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	*ret_has_room = fd >= 0;
	if (fd >= 0 || (errno != EMFILE && errno != ENFILE) || listener->spare_fd < 0)
		return fd;
	close(listener->spare_fd);
	listener->spare_fd = -1;
	fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		listener->spare_fd = open_spare();
	return fd;
}

void ll_mover_listener_refuse(struct ll_mover_listener *listener, int fd)
{
	close(fd);
	if (listener->spare_fd < 0)
		listener->spare_fd = open_spare();
}
