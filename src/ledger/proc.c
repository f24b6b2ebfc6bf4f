#include "ledger/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "ledger/handle.h"
#include "ledger/ledger.h"
#include "ledger/liveness.h"
#include "ledger/rows.h"
#include "ledger/total.h"

#define SILENT_NS (3 * LL_NS_PER_S)

enum { PATH_SIZE = 320, STATUS_SIZE = 4096, TIME_NAMESPACE_SHIFT = 32 };

/* The owner of a claim, and what the search of all processes has found of it. */
struct suspect {
	unsigned index;
	uint64_t token;
	struct ll_process_id owner;
	bool is_visible; /* a process of its PID namespace is seen here, so all processes of it are */
	bool is_there;
};

static bool is_suspect(const struct ll_ledger *ledger, unsigned index, uint64_t now_ns, struct suspect *ret_suspect)
{
	const struct ll_ledger_slot *slot = &ledger->file->slots[index];
	struct suspect suspect = {.index = index, .token = slot->token};
	suspect.owner =
	    (struct ll_process_id){.pid = slot->pid, .start_ticks = slot->start_ticks, .namespaces = slot->namespaces};
	uint64_t difference = suspect.owner.namespaces ^ ledger->namespaces;
	bool is_elsewhere =
	    suspect.owner.namespaces && ledger->namespaces && difference && !(difference >> TIME_NAMESPACE_SHIFT);
	if (!ll_slot_is_used(ledger->file, index) || !suspect.token || !is_elsewhere ||
	    ll_contender_elapsed_ns(slot->heartbeat_ns, now_ns) < SILENT_NS)
		return false;
	*ret_suspect = suspect;
	return true;
}

/* Returns the process's number in its own PID namespace; 0: /proc does not tell it. */
static pid_t innermost_pid(const char *name)
{
	char path[PATH_SIZE], text[STATUS_SIZE];
	snprintf(path, sizeof path, "/proc/%s/status", name);
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	text[length < 0 ? 0 : length] = '\0';
	char *line = strstr(text, "\nNSpid:");
	char *end = line ? strchr(line + 1, '\n') : NULL;
	if (!end)
		return 0;
	*end = '\0';
	const char *last = strrchr(line, '\t');
	return last ? (pid_t)strtol(last + 1, NULL, 10) : 0;
}

static bool is_of_namespace(const char *name, uint64_t namespaces)
{
	char path[PATH_SIZE];
	struct stat st;
	snprintf(path, sizeof path, "/proc/%s/ns/pid", name);
	return !stat(path, &st) && (uint32_t)st.st_ino == (uint32_t)namespaces;
}

/* False: /proc tells nothing of a process that may be an owner. */
static bool compare_owners(struct suspect *suspects, size_t count, const char *name)
{
	struct ll_process_stat stat = {0};
	int rc = ll_process_stat(name, &stat);
	if (rc)
		return rc == -ENOENT || rc == -ESRCH;
	for (size_t i = 0; i < count; i++) {
		struct suspect *suspect = &suspects[i];
		if (!suspect->is_visible)
			suspect->is_visible = is_of_namespace(name, suspect->owner.namespaces);
		if (stat.is_dead || stat.start_ticks != suspect->owner.start_ticks)
			continue;
		pid_t pid = innermost_pid(name);
		suspect->is_there |= !pid || pid == suspect->owner.pid;
	}
	return true;
}

static bool walk_processes(struct suspect *suspects, size_t count)
{
	DIR *folder = ll_process_has_own_proc() ? opendir("/proc") : NULL;
	const struct dirent *entry;
	bool is_complete = folder;
	while (is_complete && (entry = readdir(folder)))
		is_complete =
		    !isdigit((unsigned char)entry->d_name[0]) || compare_owners(suspects, count, entry->d_name);
	if (folder)
		closedir(folder);
	return is_complete;
}

size_t ll_ledger_sweep_below(struct ll_ledger *ledger)
{
	LL_SCOPE_NO_CANCEL;
	size_t swept = ll_ledger_sweep(ledger), count = 0;
	LL_SCOPE_FREE struct suspect *suspects = calloc(LL_LEDGER_CLAIMS, sizeof *suspects);
	uint64_t now_ns = ll_now_ns();
	for (unsigned i = 0; suspects && i < LL_LEDGER_CLAIMS; i++)
		count += is_suspect(ledger, i, now_ns, &suspects[count]);
	if (!count || !walk_processes(suspects, count))
		return swept;
	LL_SCOPE_LOCK(&ledger->mutex);
	for (size_t i = 0; i < count && ll_ledger_has_scan(ledger); i++) {
		const struct suspect *suspect = &suspects[i];
		swept += suspect->is_visible && !suspect->is_there &&
			 ll_total_withdraw(ledger, suspect->index, suspect->token);
	}
	return swept;
}

enum { INFO_SIZE = 4096, FIRST_BYTE_FIELD = 7 };

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

/* Returns FIRST, the first locked byte, of "lock: 1: OFDLCK ADVISORY READ -1 fe:00:1234 FIRST LAST"; 0: the line is
 * another one. */
static unsigned long long first_locked(char *line)
{
	char *rest = NULL, *word = strtok_r(line, " \t", &rest);
	bool is_lock = word && strcmp(word, "lock:") == 0;
	for (int i = 0; is_lock && word && i < FIRST_BYTE_FIELD; i++) {
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
