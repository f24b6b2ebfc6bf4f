#include "ledger/liveness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"

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

enum { FIELD_STATE = 3, FIELD_THREADS = 20, FIELD_START = 22 };

static uint64_t stat_field(const char *fields, int wanted)
{
	for (int i = FIELD_STATE; i < wanted; i++) {
		fields = strchr(fields, ' ');
		if (!fields)
			return 0;
		fields++;
	}
	return strtoull(fields, NULL, 10);
}

int ll_process_stat(const char *name, struct ll_process_stat *ret_stat)
{
	char path[40];
	char buf[1024];
	snprintf(path, sizeof path, "/proc/%s/stat", name);
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, buf, sizeof buf - 1);
	if (n <= 0)
		return n ? -errno : -EIO;
	buf[n] = '\0';
	/* "pid (name) " comes before field 3. The name may have any letter, ')' too. */
	const char *end = strrchr(buf, ')');
	if (!end || end[1] != ' ')
		return -EIO;
	const char *fields = end + 2;
	/* The first thread may end before the others. Only the end of the last thread makes the process a zombie. */
	bool is_dead = (*fields == 'Z' || *fields == 'X') && stat_field(fields, FIELD_THREADS) <= 1;
	*ret_stat = (struct ll_process_stat){
	    .pid = (pid_t)strtoul(buf, NULL, 10), .start_ticks = stat_field(fields, FIELD_START), .is_dead = is_dead};
	return 0;
}

uint64_t ll_process_namespaces(void)
{
	struct stat pid_ns;
	struct stat time_ns;
	if (stat("/proc/self/ns/pid", &pid_ns))
		return 0;
	uint64_t time_inode = stat("/proc/self/ns/time", &time_ns) ? 0 : (uint64_t)time_ns.st_ino;
	return (uint64_t)pid_ns.st_ino ^ (time_inode << 32);
}

struct ll_process_id ll_process_self(void)
{
	struct ll_process_stat stat = {0};
	struct ll_process_id self = {.pid = getpid()};
	if (ll_process_stat("self", &stat) < 0)
		return self;
	self.start_ticks = stat.start_ticks;
	self.namespaces = ll_process_namespaces();
	return self;
}

bool ll_process_has_own_proc(void)
{
	struct ll_process_stat stat = {0};
	return ll_process_stat("self", &stat) == 0 && stat.pid == getpid();
}

bool ll_process_is_gone(const struct ll_process_id *process, uint64_t own_namespaces)
{
	if (!own_namespaces || process->namespaces != own_namespaces)
		return false;
	char name[24];
	struct ll_process_stat stat = {0};
	snprintf(name, sizeof name, "%d", (int)process->pid);
	int rc = ll_process_stat(name, &stat);
	bool is_gone = rc ? rc == -ENOENT || rc == -ESRCH : stat.start_ticks != process->start_ticks || stat.is_dead;
	return is_gone && ll_process_has_own_proc();
}

uint64_t ll_contender_elapsed_ns(uint64_t since_ns, uint64_t now_ns)
{
	if (now_ns >= since_ns)
		return now_ns - since_ns;
	return since_ns - now_ns > LL_CONTENDER_AHEAD_NS ? UINT64_MAX : 0;
}
