#include "ledger/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"

enum { FIELD_STATE = 3, FIELD_THREADS = 20, FIELD_START = 22 };

/* The text after "pid (name) ", which begins with field 3; the name may hold anything, ')' too. */
static const char *read_stat(const char *path, char *buf, size_t size)
{
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	ssize_t n = read(fd, buf, size - 1);
	if (n <= 0)
		return NULL;
	buf[n] = '\0';
	const char *end = strrchr(buf, ')');
	return end && end[1] == ' ' ? end + 2 : NULL;
}

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
	char buf[1024];
	struct ll_process_id self = {.pid = getpid()};
	const char *fields = read_stat("/proc/self/stat", buf, sizeof buf);
	if (!fields)
		return self;
	self.start_ticks = stat_field(fields, FIELD_START);
	self.namespaces = ll_process_namespaces();
	return self;
}

bool ll_process_is_gone(const struct ll_process_id *process, uint64_t own_namespaces)
{
	if (!own_namespaces || process->namespaces != own_namespaces)
		return false;
	char path[40];
	char buf[1024];
	snprintf(path, sizeof path, "/proc/%d/stat", (int)process->pid);
	errno = 0;
	const char *fields = read_stat(path, buf, sizeof buf);
	if (!fields)
		return errno == ENOENT || errno == ESRCH;
	if (stat_field(fields, FIELD_START) != process->start_ticks)
		return true;
	/* The first thread may end before the others: only the last one makes the process a zombie. */
	return (*fields == 'Z' || *fields == 'X') && stat_field(fields, FIELD_THREADS) <= 1;
}
