#include "shim/residency/line.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fork.h"

void ll_line_init(struct ll_line *line)
{
	*line = (struct ll_line){.fd = -1};
	pthread_mutex_init(&line->lock, NULL);
}

static bool is_ours(const struct ll_line *line, int fd)
{
	struct stat st;
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_dev == line->device &&
	       st.st_ino == line->inode;
}

static void keep_fd(struct ll_line *line, int fd)
{
	struct stat st = {0};
	pthread_mutex_lock(&line->lock);
	fstat(fd, &st);
	line->device = st.st_dev;
	line->inode = st.st_ino;
	atomic_store(&line->fd, fd);
	pthread_mutex_unlock(&line->lock);
}

int ll_line_open(struct ll_line *line, const struct ll_port *port)
{
	union ll_message message;
	int fd;
	ll_fork_block();
	int rc = ll_port_connect(port, &fd);
	if (!rc)
		keep_fd(line, fd);
	ll_fork_unblock();
	if (rc)
		return rc;
	ll_message_init_hello(&message, LL_ROLE_PROCESS, NULL);
	return ll_line_say(line, &message, NULL, 0);
}

/* Not while another thread forks: the child would close a number that is somebody else's by then. */
void ll_line_close(struct ll_line *line)
{
	ll_fork_block();
	pthread_mutex_lock(&line->lock);
	int fd = atomic_exchange(&line->fd, -1);
	if (is_ours(line, fd))
		close(fd);
	pthread_mutex_unlock(&line->lock);
	ll_fork_unblock();
}

void ll_line_close_in_child(struct ll_line *line)
{
	int fd = atomic_exchange(&line->fd, -1);
	if (is_ours(line, fd))
		close(fd);
}

int ll_line_say(struct ll_line *line, const union ll_message *message, const int *fds, size_t fd_count)
{
	pthread_mutex_lock(&line->lock);
	int fd = atomic_load(&line->fd);
	int rc = is_ours(line, fd) ? ll_message_send(fd, message, fds, fd_count) : -ENOTCONN;
	pthread_mutex_unlock(&line->lock);
	return rc;
}

int ll_line_receive(struct ll_line *line, union ll_message *ret_message)
{
	int fds[LL_MESSAGE_FDS], fd = atomic_load(&line->fd);
	size_t count = 0;
	if (!is_ours(line, fd))
		return -ENOTCONN;
	int rc = ll_message_receive(fd, ret_message, fds, &count);
	if (!rc)
		ll_message_close_fds(fds, count);
	return rc;
}

void ll_line_wait(struct ll_line *line, int ms)
{
	struct pollfd ready = {.fd = atomic_load(&line->fd), .events = POLLIN};
	poll(&ready, 1, ms);
}
