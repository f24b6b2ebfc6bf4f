#include "card/namespace.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"

static uint64_t number_of(const char *path)
{
	struct stat st;
	return stat(path, &st) ? 0 : (uint64_t)st.st_ino;
}

uint64_t sim_namespace_own(void)
{
	char self[24] = "";
	ssize_t n = readlink("/proc/self", self, sizeof self - 1);
	return n > 0 && strtol(self, NULL, 10) == getpid() ? number_of("/proc/self/ns/pid") : 0;
}

uint64_t sim_namespace_of_time(void)
{
	return number_of("/proc/self/ns/time");
}

/* "NSpid: 4711 12 1": the pids of a process in each namespace from /proc's to its own, which is the last. */
static bool has_innermost_pid(const char *name, int32_t pid)
{
	char path[280], text[4096];
	snprintf(path, sizeof path, "/proc/%s/status", name);
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
	text[n > 0 ? n : 0] = '\0';
	char *line = strstr(text, "\nNSpid:");
	char *end = line ? strchr(line + 1, '\n') : NULL;
	if (!end)
		return false;
	*end = '\0';
	const char *last = strrchr(line, '\t');
	return last && strtol(last + 1, NULL, 10) == pid;
}

int32_t sim_namespace_find(uint64_t pid_namespace, int32_t pid)
{
	DIR *folder = sim_namespace_own() ? opendir("/proc") : NULL;
	const struct dirent *entry;
	int32_t found = 0;
	while (folder && !found && (entry = readdir(folder))) {
		char path[280];
		snprintf(path, sizeof path, "/proc/%s/ns/pid", entry->d_name);
		if (isdigit((unsigned char)entry->d_name[0]) && number_of(path) == pid_namespace &&
		    has_innermost_pid(entry->d_name, pid))
			found = (int32_t)strtol(entry->d_name, NULL, 10);
	}
	if (folder)
		closedir(folder);
	return found;
}
