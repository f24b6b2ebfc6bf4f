#include "card/presence.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "card/attach.h"

/* A high number, because programs close or reuse low descriptors. */
enum { HIGH_FD = 512 };

/* A separate open file description of the world's file, so that no other descriptor of the process shares the lock. */
static int own_fd = -1;
/* A mapping of that description. It keeps the lock when the program closes all its descriptors, and ends with the
 * process's memory, so at exec too. A forked child does not have it. */
static void *own_map = MAP_FAILED;
static dev_t own_device;
static ino_t own_inode;

/* The program may have closed the descriptor and opened another file with the same number. */
static bool is_own(int fd)
{
	struct stat st;
	return fd >= 0 && !fstat(fd, &st) && st.st_dev == own_device && st.st_ino == own_inode;
}

enum { MAP_BYTES = 1 };

static void forget_in_child(void)
{
	if (is_own(own_fd))
		close(own_fd);
	own_fd = -1;
	own_map = MAP_FAILED;
}

static void drop_presence(void)
{
	if (own_map != MAP_FAILED)
		munmap(own_map, MAP_BYTES);
	forget_in_child();
}

static void keep_presence(void)
{
	own_map = mmap(NULL, MAP_BYTES, PROT_READ, MAP_SHARED, own_fd, 0);
	if (own_map != MAP_FAILED)
		madvise(own_map, MAP_BYTES, MADV_DONTFORK);
}

static void at_fork(void)
{
	pthread_atfork(NULL, NULL, forget_in_child);
}

static int open_again(void)
{
	char path[40];
	snprintf(path, sizeof path, "/proc/self/fd/%d", sim_world_fd());
	int low = open(path, O_RDWR | O_CLOEXEC);
	int high = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, HIGH_FD);
	if (high < 0)
		return low;
	close(low);
	return high;
}

static int set_lock(uint32_t slot)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};
	int rc;
	do
		rc = fcntl(own_fd, F_OFD_SETLK, &lock);
	while (rc && errno == EINTR);
	return rc;
}

bool sim_presence_take(uint32_t slot)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct stat st;
	pthread_once(&once, at_fork);
	drop_presence();
	own_fd = open_again();
	if (own_fd < 0 || fstat(own_fd, &st))
		return false;
	own_device = st.st_dev;
	own_inode = st.st_ino;
	keep_presence();
	return own_map != MAP_FAILED && set_lock(slot) == 0;
}

bool sim_presence_is_taken(uint32_t slot)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};
	int fd = sim_world_fd();
	return fd < 0 || fcntl(fd, F_OFD_GETLK, &lock) || lock.l_type != F_UNLCK;
}
