#include "ledger/below.h"

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
#include "ledger/contender.h"
#include "ledger/handle.h"
#include "ledger/process.h"
#include "ledger/slot.h"
#include "ledger/total.h"

#define SILENT_NS (3 * LL_NS_PER_S)

enum { PATH_SIZE = 300, STATUS_SIZE = 4096, TIME_NAMESPACE_SHIFT = 32 };

/* The owner of a claim, and what a walk over all processes has found of it. */
struct suspect {
	unsigned index;
	uint64_t token;
	struct ll_process_id owner;
	bool is_visible; /* a process of its PID namespace is seen here, so all of them are */
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

/* The process's number in its own PID namespace; 0: it is not told. */
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

/* False: nothing can be told of a process, which may be an owner. */
static bool compare(struct suspect *suspects, size_t count, const char *name)
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

static bool walk(struct suspect *suspects, size_t count)
{
	DIR *folder = ll_process_has_own_proc() ? opendir("/proc") : NULL;
	const struct dirent *entry;
	bool is_complete = folder;
	while (is_complete && (entry = readdir(folder)))
		is_complete = !isdigit((unsigned char)entry->d_name[0]) || compare(suspects, count, entry->d_name);
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
	if (!count || !walk(suspects, count))
		return swept;
	LL_SCOPE_LOCK(&ledger->mutex);
	for (size_t i = 0; i < count && ll_ledger_has_scan(ledger); i++) {
		const struct suspect *suspect = &suspects[i];
		swept += suspect->is_visible && !suspect->is_there &&
			 ll_total_withdraw(ledger, suspect->index, suspect->token);
	}
	return swept;
}
