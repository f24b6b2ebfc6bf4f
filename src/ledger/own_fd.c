#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "ledger/handle.h"
#include "ledger/lock.h"

enum { MARK_BASE = 1 << 30 };

struct ll_own_fd ll_own_fd_mark(int fd)
{
	static _Atomic unsigned count;
	off_t mark = (off_t)MARK_BASE + atomic_fetch_add(&count, 1);
	return (struct ll_own_fd){.fd = fd, .mark = lseek(fd, mark, SEEK_SET)};
}

bool ll_own_fd_is_ours(const struct ll_ledger *ledger, const struct ll_own_fd *own)
{
	struct stat st;
	return own->fd >= 0 && lseek(own->fd, 0, SEEK_CUR) == own->mark && !fstat(own->fd, &st) &&
	       st.st_dev == ledger->device && st.st_ino == ledger->inode;
}

void ll_own_fd_close(const struct ll_ledger *ledger, struct ll_own_fd *own)
{
	if (ll_own_fd_is_ours(ledger, own))
		close(own->fd);
	*own = LL_OWN_FD_NONE;
}

static bool is_same_file(const struct ll_ledger *ledger, int fd)
{
	struct stat st;
	return !fstat(fd, &st) && st.st_dev == ledger->device && st.st_ino == ledger->inode;
}

/* By a descriptor, because the file may have lost its name; by the name, because the descriptor may be closed. */
int ll_own_fd_open(const struct ll_ledger *ledger, struct ll_own_fd *own)
{
	char by_fd[40];
	snprintf(by_fd, sizeof by_fd, "/proc/self/fd/%d", ledger->scan.fd);
	int fd = ll_own_fd_is_ours(ledger, &ledger->scan) ? ll_lock_open(by_fd) : -1;
	if (fd < 0)
		fd = ll_lock_open(ledger->path);
	if (fd < 0)
		return fd;
	if (!is_same_file(ledger, fd)) {
		close(fd);
		return -ENOENT;
	}
	*own = ll_own_fd_mark(fd);
	return 0;
}
