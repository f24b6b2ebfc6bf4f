#include "daemon/core/unread.h"

#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/core/server.h"

struct ll_unread {
	struct ll_unread *next;
	int fd;
	uint32_t uid, sent;
};

static bool has_unread(int fd)
{
	int bytes = 0;
	return ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes;
}

void ll_unread_close(struct ll_server *server, int fd, uint32_t uid, uint32_t sent)
{
	struct ll_unread *unread = sent && has_unread(fd) ? malloc(sizeof *unread) : NULL;
	if (!unread) {
		close(fd);
		return;
	}
	shutdown(fd, SHUT_RDWR);
	*unread = (struct ll_unread){server->unread, fd, uid, sent};
	server->unread = unread;
	server->wants_tick = true;
}

void ll_unread_count(const struct ll_unread *first, void (*count)(void *data, uint32_t uid, uint64_t fds), void *data)
{
	for (const struct ll_unread *unread = first; unread; unread = unread->next)
		count(data, unread->uid, 1 + (uint64_t)unread->sent);
}

bool ll_unread_tick(struct ll_server *server)
{
	struct ll_unread **at = &server->unread;
	while (*at) {
		struct ll_unread *unread = *at;
		if (has_unread(unread->fd)) {
			at = &unread->next;
			continue;
		}
		*at = unread->next;
		close(unread->fd);
		free(unread);
	}
	return server->unread;
}

void ll_unread_fini(struct ll_server *server)
{
	while (server->unread) {
		struct ll_unread *next = server->unread->next;
		close(server->unread->fd);
		free(server->unread);
		server->unread = next;
	}
}
