#include "ledger/liveness.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"

int ll_lock_open(const char *path)
{
	int low = open(path, O_RDWR | O_CLOEXEC);
	if (low < 0)
		return -errno;
	int high = fcntl(low, F_DUPFD_CLOEXEC, LL_LOCK_HIGH_FD);
	if (high < 0)
		return low;
	close(low);
	return high;
}

/* bytes 0: to the end of all files. */
static int set_lock(int fd, off_t byte, off_t bytes, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = bytes};
	int rc;
	do {
		rc = fcntl(fd, F_OFD_SETLK, &lock);
	} while (rc && errno == EINTR);
	if (!rc)
		return 0;
	return errno == EACCES ? -EAGAIN : -errno;
}

int ll_lock_try(int fd, off_t byte)
{
	return set_lock(fd, byte, 1, F_WRLCK);
}

int ll_lock_try_shared(int fd, off_t byte)
{
	return set_lock(fd, byte, 1, F_RDLCK);
}

int ll_lock_try_all(int fd, off_t byte)
{
	return set_lock(fd, byte, 0, F_WRLCK);
}

bool ll_lock_is_free(int fd, off_t byte)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
	return !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type == F_UNLCK;
}

int ll_lock_wait(int fd, off_t byte, unsigned wait_ms)
{
	/* Not F_OFD_SETLKW, which would hang while the holder is stopped. */
	uint64_t deadline_ns = ll_now_ns() + wait_ms * LL_NS_PER_MS;
	for (;;) {
		int rc = ll_lock_try(fd, byte);
		if (rc != -EAGAIN)
			return rc;
		uint64_t now_ns = ll_now_ns();
		if (now_ns >= deadline_ns)
			return -ETIMEDOUT;
		ll_sleep_until_ns(now_ns + LL_NS_PER_MS);
	}
}

void ll_lock_free(int fd, off_t byte)
{
	set_lock(fd, byte, 1, F_UNLCK);
}

uint64_t ll_contender_elapsed_ns(uint64_t since_ns, uint64_t now_ns)
{
	if (now_ns >= since_ns)
		return now_ns - since_ns;
	return since_ns - now_ns > LL_CONTENDER_AHEAD_NS ? UINT64_MAX : 0;
}
