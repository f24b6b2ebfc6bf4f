#include "sensor/process.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/clock.h"
#include "base/process_id.h"
#include "base/scope.h"
#include "base/utf8.h"

enum { PATH_SIZE = 48, STATUS_SIZE = 1024 };

/* Reads the beginning of a file of /proc/PID. Returns "" if it cannot be read. */
static void read_file(uint32_t pid, const char *name, char *ret_text, size_t size)
{
	char path[PATH_SIZE];
	snprintf(path, sizeof path, "/proc/%u/%s", pid, name);
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, ret_text, size - 1);
	ret_text[length > 0 ? length : 0] = '\0';
}

/* The owner of the folder /proc/PID is root if the process cannot be dumped, so the file is read. */
static uint32_t read_uid(uint32_t pid)
{
	char text[STATUS_SIZE];
	unsigned uid = 0;
	read_file(pid, "status", text, sizeof text);
	const char *line = strstr(text, "\nUid:");
	return line && sscanf(line, "\nUid: %u", &uid) == 1 ? uid : UINT32_MAX;
}

/* Takes what the kernel knows already, so that a file system of a user's (FUSE) is not asked. */
static bool read_identity(const char *path, struct statx *ret_file)
{
	return statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MODE | STATX_UID | STATX_INO, ret_file) ==
	       0;
}

/*
 * The path counts only if that file, as this process sees it, is the one that runs, and if it is root's. A user who has
 * a mount namespace can show another file at any path, and a user can write to an own file.
 */
static void read_program(uint32_t pid, char ret_program[LL_SENSE_PATH_SIZE])
{
	char link[PATH_SIZE], path[LL_SENSE_PATH_SIZE];
	struct statx running, here;
	snprintf(link, sizeof link, "/proc/%u/exe", pid);
	ssize_t length = readlink(link, path, sizeof path - 1);
	ret_program[0] = '\0';
	if (length <= 0 || length >= (ssize_t)sizeof path - 1)
		return;
	path[length] = '\0';
	if (!read_identity(link, &running) || running.stx_uid != 0 || (running.stx_mode & (S_IWGRP | S_IWOTH)) != 0 ||
	    !read_identity(path, &here) || running.stx_ino != here.stx_ino ||
	    running.stx_dev_major != here.stx_dev_major || running.stx_dev_minor != here.stx_dev_minor)
		return;
	ll_message_text_set(ret_program, LL_SENSE_PATH_SIZE, path);
}

static void read_ancestors(uint32_t pid, uint32_t ret_ancestors[LL_SENSE_ANCESTORS])
{
	struct ll_process_stat stat;
	for (int i = 0; i < LL_SENSE_ANCESTORS && pid > 1; i++) {
		if (ll_process_stat_of((pid_t)pid, &stat) || stat.parent <= 0)
			return;
		pid = ret_ancestors[i] = (uint32_t)stat.parent;
	}
}

static uint64_t age_of(uint64_t start_ticks, uint64_t now_ns)
{
	uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t start_ns = start_ticks / ticks * LL_NS_PER_S + start_ticks % ticks * LL_NS_PER_S / ticks;
	return now_ns > start_ns ? now_ns - start_ns : 0;
}

void ll_sense_read_process(struct ll_message_sense_process *process, uint64_t now_ns)
{
	char name[LL_COMMAND_SIZE], cgroup[LL_CGROUP_SIZE] = "";
	struct ll_process_stat stat;
	process->age_ns = UINT64_MAX;
	process->uid = UINT32_MAX;
	if (ll_process_stat_of((pid_t)process->pid, &stat))
		return;
	process->start_ticks = stat.start_ticks;
	process->age_ns = age_of(stat.start_ticks, now_ns);
	process->uid = read_uid(process->pid);
	read_ancestors(process->pid, process->ancestors);
	read_file(process->pid, "comm", name, sizeof name);
	name[strcspn(name, "\n")] = '\0';
	ll_message_text_set(process->command, sizeof process->command, name);
	read_program(process->pid, process->program);
	ll_cgroup_read((pid_t)process->pid, cgroup, sizeof cgroup);
	ll_message_text_set(process->cgroup, sizeof process->cgroup, cgroup);
}
