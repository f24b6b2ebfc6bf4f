#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "ledger/layout.h"
#include "ledger/tenant.h"

enum { PATH_SIZE = 320, INFO_SIZE = 4096, START = 7 };

static bool is_ledger(int folder_fd, const char *name, const char *uuid)
{
	char target[512], file[160];
	ssize_t length = readlinkat(folder_fd, name, target, sizeof target - 1);
	int n = snprintf(file, sizeof file, "/%s.ledger", uuid);
	if (length < n)
		return false;
	target[length] = '\0';
	return strcmp(target + length - n, file) == 0;
}

/* "lock: 1: OFDLCK ADVISORY READ -1 fe:00:1234 FIRST LAST": the first byte that is locked; 0: another line. */
static unsigned long long first_locked(char *line)
{
	char *rest = NULL, *word = strtok_r(line, " \t", &rest);
	bool is_lock = word && strcmp(word, "lock:") == 0;
	for (int i = 0; is_lock && word && i < START; i++) {
		word = strtok_r(NULL, " \t", &rest);
		is_lock = i != 1 || (word && strcmp(word, "OFDLCK") == 0);
	}
	return is_lock && word ? strtoull(word, NULL, 10) : 0;
}

static bool find_row(pid_t pid, const char *name, unsigned *ret_row)
{
	char path[PATH_SIZE], text[INFO_SIZE];
	snprintf(path, sizeof path, "/proc/%d/fdinfo/%s", (int)pid, name);
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (length < 0)
		return false;
	text[length] = '\0';
	char *rest = NULL;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		unsigned long long byte = first_locked(line);
		if (byte < LL_LOCK_TENANTS || byte >= LL_LOCK_TENANTS + LL_LEDGER_TENANTS)
			continue;
		*ret_row = (unsigned)(byte - LL_LOCK_TENANTS);
		return true;
	}
	return false;
}

bool ll_tenant_of_process(pid_t pid, const char *uuid, unsigned *ret_row)
{
	char path[PATH_SIZE];
	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	DIR *folder = opendir(path);
	const struct dirent *entry;
	bool is_found = false;
	while (folder && !is_found && (entry = readdir(folder)))
		is_found = is_ledger(dirfd(folder), entry->d_name, uuid) && find_row(pid, entry->d_name, ret_row);
	if (folder)
		closedir(folder);
	return is_found;
}
