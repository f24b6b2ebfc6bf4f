#include "mps/mps.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process_id.h"
#include "base/scope.h"

/* ---- process ---- */

uint64_t ll_mps_process_start(pid_t pid)
{
	struct ll_process_stat stat;
	return pid <= 0 || ll_process_stat_of(pid, &stat) || stat.is_dead ? 0 : stat.start_ticks;
}

uid_t ll_mps_process_user(pid_t pid)
{
	char path[64];
	struct stat st;
	snprintf(path, sizeof path, "/proc/%d", (int)pid);
	return stat(path, &st) ? (uid_t)-1 : st.st_uid;
}

/* The first word of the command line, without its folder. Waits for the process's memory lock. */
static void read_whole_name(pid_t pid, char *ret_name, size_t size)
{
	char buf[512];
	if (ll_process_read_file(pid, "cmdline", buf, sizeof buf) <= 0)
		return;
	const char *slash = strrchr(buf, '/');
	snprintf(ret_name, size, "%s", slash ? slash + 1 : buf);
}

/* The kernel cuts names at 15 characters, and MPS's daemon and server have the same first 15. The whole name of any
 * other process is not read: one that pins gigabytes of its host's memory has its memory lock for seconds. */
void ll_mps_process_name(pid_t pid, char *ret_name, size_t size)
{
	static const char cut[] = "nvidia-cuda-mps";
	char buf[32];
	ret_name[0] = '\0';
	if (ll_process_read_file(pid, "comm", buf, sizeof buf) <= 0)
		return;
	buf[strcspn(buf, "\n")] = '\0';
	snprintf(ret_name, size, "%s", buf);
	if (strcmp(buf, cut) == 0)
		read_whole_name(pid, ret_name, size);
}

bool ll_mps_process_program(pid_t pid, char *ret_path, size_t size)
{
	char link[64];
	snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
	ssize_t n = readlink(link, ret_path, size);
	if (n < 0 || (size_t)n >= size)
		return false;
	ret_path[n] = '\0';
	return true;
}

/* Whether its command line has a short option with one of these letters: "-d", "-dS". */
static bool has_flag(pid_t pid, const char *letters)
{
	char buf[512];
	ssize_t length = ll_process_read_file(pid, "cmdline", buf, sizeof buf);
	for (ssize_t i = 0; i < length; i += (ssize_t)strlen(buf + i) + 1) {
		if (buf[i] == '-' && buf[i + 1] != '-' && strpbrk(buf + i, letters))
			return true;
	}
	return false;
}

bool ll_mps_process_variable(pid_t pid, const char *name, char *ret_value, size_t size)
{
	enum { ENVIRONMENT_MAX = 256 * 1024 };
	LL_SCOPE_FREE char *buf = malloc(ENVIRONMENT_MAX);
	ssize_t length = buf ? ll_process_read_file(pid, "environ", buf, ENVIRONMENT_MAX) : -1;
	size_t name_length = strlen(name);
	for (ssize_t i = 0; i < length; i += (ssize_t)strlen(buf + i) + 1) {
		if (strncmp(buf + i, name, name_length) != 0 || buf[i + (ssize_t)name_length] != '=')
			continue;
		int n = snprintf(ret_value, size, "%s", buf + i + name_length + 1);
		return n >= 0 && (size_t)n < size;
	}
	return false;
}

void ll_mps_process_signal(pid_t pid, uint64_t start_ticks, int number)
{
	if (ll_mps_process_is(pid, start_ticks))
		kill(pid, number);
}

/* ---- search ---- */

static const char control_name[] = "nvidia-cuda-mps-control";
static const char server_name[] = "nvidia-cuda-mps-server";

static bool look_at(pid_t pid, struct ll_mps_found *found)
{
	char name[64];
	ll_mps_process_name(pid, name, sizeof name);
	bool is_server = strcmp(name, server_name) == 0;
	if (!is_server && strcmp(name, control_name) != 0)
		return false;
	/* Without -d or -f the control program is no daemon: it runs one command and ends. */
	*found = (struct ll_mps_found){.pid = pid,
				       .start_ticks = ll_mps_process_start(pid),
				       .owner = ll_mps_process_user(pid),
				       .is_server = is_server};
	if (!found->start_ticks || (!is_server && !has_flag(pid, "df")))
		return false;
	if (!ll_mps_process_variable(pid, LL_MPS_PIPE_VARIABLE, found->pipe, sizeof found->pipe))
		found->pipe[0] = '\0';
	return true;
}

size_t ll_mps_search(struct ll_mps_found *found, size_t capacity)
{
	size_t count = 0;
	DIR *processes = opendir("/proc");
	struct dirent *entry;
	while (processes && count < capacity && (entry = readdir(processes))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);
		if (pid > 0 && !*end && look_at((pid_t)pid, &found[count]))
			count++;
	}
	if (processes)
		closedir(processes);
	return count;
}
