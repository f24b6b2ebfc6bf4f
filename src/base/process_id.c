#include "base/process_id.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"

enum { FIELD_STATE = 3, FIELD_PARENT = 4, FIELD_FLAGS = 9, FIELD_THREADS = 20, FIELD_START = 22 };

/* PF_EXITING of the kernel, which proc(5) shows in the flags. */
#define FLAG_EXITING UINT64_C(4)

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

int ll_process_parse_stat(const char *text, struct ll_process_stat *ret_stat)
{
	/* "pid (name) " comes before field 3. The name may contain any character, including ')'. */
	const char *end = strrchr(text, ')');
	if (!end || end[1] != ' ')
		return -EIO;
	const char *fields = end + 2;
	/* The first thread may end before the others. Only the end of the last thread makes the process a zombie. */
	bool is_dead = (*fields == 'Z' || *fields == 'X' || *fields == 'x') && stat_field(fields, FIELD_THREADS) <= 1;
	*ret_stat = (struct ll_process_stat){.pid = (pid_t)strtoul(text, NULL, 10),
					     .parent = (pid_t)stat_field(fields, FIELD_PARENT),
					     .start_ticks = stat_field(fields, FIELD_START),
					     .is_dead = is_dead,
					     .is_exiting = stat_field(fields, FIELD_FLAGS) & FLAG_EXITING,
					     .is_runnable = *fields == 'R',
					     .is_stopped = *fields == 'T' || *fields == 't'};
	return 0;
}

static ssize_t read_beginning(const char *path, char *ret_text, size_t size)
{
	size_t used = 0;
	ssize_t n = 0;
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && used < size - 1 && (n = read(fd, ret_text + used, size - 1 - used)) > 0)
		used += (size_t)n;
	int code = errno;
	bool has_failed = fd < 0 || n < 0;
	ret_text[has_failed ? 0 : used] = '\0';
	return has_failed ? -code : (ssize_t)used;
}

ssize_t ll_process_read_file(pid_t pid, const char *name, char *ret_text, size_t size)
{
	char path[64];
	if (pid)
		snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	else
		snprintf(path, sizeof path, "/proc/self/%s", name);
	return read_beginning(path, ret_text, size);
}

bool ll_process_parse_uids(const char *status, uint32_t ret_uids[4])
{
	const char *next = strstr(status, "\nUid:");
	next = next ? next + strlen("\nUid:") : NULL;
	for (int i = 0; next && i < 4; i++) {
		char *end;
		ret_uids[i] = (uint32_t)strtoul(next, &end, 10);
		next = end == next ? NULL : end;
	}
	return next;
}

/* "NSpid:	4711	1": a number for each namespace from that of /proc down. */
bool ll_process_parse_nested(const char *status)
{
	const char *line = strstr(status, "\nNSpid:");
	char *next = NULL;
	if (!line)
		return false;
	strtol(line + strlen("\nNSpid:"), &next, 10);
	next += strspn(next, "\t ");
	return *next >= '0' && *next <= '9';
}

bool ll_process_is_nested(pid_t pid)
{
	char text[1 << 14];
	return ll_process_read_file(pid, "status", text, sizeof text) > 0 && ll_process_parse_nested(text);
}

int ll_process_read_stat(const char *name, struct ll_process_stat *ret_stat)
{
	char path[40], text[1024];
	snprintf(path, sizeof path, "/proc/%s/stat", name);
	ssize_t n = read_beginning(path, text, sizeof text);
	return n < 0 ? (int)n : ll_process_parse_stat(text, ret_stat);
}

int ll_process_stat_of(pid_t pid, struct ll_process_stat *ret_stat)
{
	char name[24];
	snprintf(name, sizeof name, "%d", (int)pid);
	return ll_process_read_stat(name, ret_stat);
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
	if (ll_process_read_stat("self", &stat) < 0)
		return self;
	self.start_ticks = stat.start_ticks;
	self.namespaces = ll_process_namespaces();
	return self;
}

bool ll_process_has_own_proc(void)
{
	struct ll_process_stat stat = {0};
	return ll_process_read_stat("self", &stat) == 0 && stat.pid == getpid();
}

bool ll_process_is_gone(const struct ll_process_id *process, uint64_t own_namespaces)
{
	if (!own_namespaces || process->namespaces != own_namespaces)
		return false;
	struct ll_process_stat stat = {0};
	int rc = ll_process_stat_of(process->pid, &stat);
	bool is_gone = rc ? rc == -ENOENT || rc == -ESRCH : stat.start_ticks != process->start_ticks || stat.is_dead;
	return is_gone && ll_process_has_own_proc();
}
