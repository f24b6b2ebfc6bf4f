#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process_id.h"
#include "base/scope.h"
#include "base/utf8.h"
#include "cli/common/older.h"
#include "cli/common/stalling.h"
#include "cli/common/user.h"
#include "cli/status/status.h"
#include "protocol/inherited.h"
#include "protocol/run_settings.h"

enum { STATUS_SIZE = 2048, NAME_SIZE = 32 };

ssize_t ll_status_read_proc(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	while (fd >= 0 && used < size - 1) {
		ssize_t n = read(fd, text + used, size - 1 - used);
		if (n <= 0)
			break;
		used += (size_t)n;
	}
	text[used] = '\0';
	return fd < 0 ? -1 : (ssize_t)used;
}

/* ---- what waits for no lock of the process ---- */

/* The owner of the folder is root if the process cannot be dumped. */
static void read_user(pid_t pid, char *user, size_t size)
{
	char text[STATUS_SIZE];
	ll_status_read_proc(pid, "status", text, sizeof text);
	const char *line = strstr(text, "\nUid:");
	if (!line)
		return;
	ll_user_name((uid_t)strtoul(line + strlen("\nUid:"), NULL, 10), user, size);
}

static void read_stat(pid_t pid, struct ll_status_process *process)
{
	struct ll_process_stat stat;
	uint64_t now_ns = ll_boot_ns(), ticks = (uint64_t)sysconf(_SC_CLK_TCK);
	process->age_ns = LL_AGE_UNKNOWN;
	if (ll_process_stat_of(pid, &stat))
		return;
	uint64_t start_ns = stat.start_ticks / ticks * LL_NS_PER_S + stat.start_ticks % ticks * LL_NS_PER_S / ticks;
	process->age_ns = now_ns > start_ns ? now_ns - start_ns : 0;
	process->is_stopped = stat.is_stopped;
}

static void read_name(pid_t pid, char name[NAME_SIZE])
{
	ll_status_read_proc(pid, "comm", name, NAME_SIZE);
	name[strcspn(name, "\n")] = '\0';
}

/* ---- what does ---- */

struct slow {
	char command[LL_STATUS_COMMAND_SIZE];
	char tenant[LL_TENANT_NAME_SIZE];
	bool is_older;
};

/* Goes without the folder of the program, which would fill the column. */
static void read_command(pid_t pid, char *command, size_t size)
{
	char text[LL_STATUS_COMMAND_SIZE + 256];
	ssize_t length = ll_status_read_proc(pid, "cmdline", text, sizeof text);
	const char *slash = strrchr(text, '/'); /* in the first word, which a NUL ends */
	for (ssize_t i = 0; i < length; i++)
		text[i] = !text[i] || text[i] == '\n' || text[i] == '\t' ? ' ' : text[i];
	while (length > 0 && text[length - 1] == ' ')
		text[--length] = '\0';
	snprintf(command, size, "%.*s", LL_STATUS_COMMAND_SIZE - 1, slash ? slash + 1 : text);
}

static void read_slow(pid_t pid, void *ret_result)
{
	struct slow *slow = ret_result;
	struct ll_run_settings settings;
	read_command(pid, slow->command, sizeof slow->command);
	slow->is_older = ll_process_is_of_older(pid);
	if (ll_run_settings_of_process(pid, &settings) == 0)
		snprintf(slow->tenant, sizeof slow->tenant, "%s", settings.tenant);
}

/* ---- both ---- */

/* As ps writes the name of a program whose command line cannot be read. A program without a command line has one too.
 */
static void describe(pid_t pid, const struct slow *slow, bool is_read, struct ll_status_process *ret_process)
{
	char name[NAME_SIZE];
	*ret_process = (struct ll_status_process){.pid = pid, .is_stalled = !is_read};
	read_stat(pid, ret_process);
	read_user(pid, ret_process->user, sizeof ret_process->user);
	read_name(pid, name);
	if (slow->command[0])
		snprintf(ret_process->command, sizeof ret_process->command, "%s", slow->command);
	else if (name[0])
		snprintf(ret_process->command, sizeof ret_process->command, is_read ? "%s" : "[%s]", name);
	snprintf(ret_process->tenant, sizeof ret_process->tenant, "%s", slow->tenant);
	ret_process->is_older = slow->is_older;
	ll_utf8_clean(ret_process->user);
	ll_utf8_clean(ret_process->command);
}

struct ll_status_process *ll_status_processes_read(const pid_t *pids, size_t count)
{
	LL_SCOPE_FREE struct slow *slow = calloc(count + 1, sizeof *slow);
	LL_SCOPE_FREE bool *are_read = calloc(count + 1, sizeof *are_read);
	struct ll_status_process *processes = calloc(count + 1, sizeof *processes);
	if (slow && are_read && processes)
		ll_stalling_read(pids, count, read_slow, sizeof *slow, slow, are_read);
	for (size_t i = 0; slow && are_read && processes && i < count; i++)
		describe(pids[i], &slow[i], are_read[i], &processes[i]);
	return processes;
}

const struct ll_status_process *ll_status_process_of(const struct ll_status_card *status, pid_t pid)
{
	static const struct ll_status_process unknown = {.user = "", .age_ns = LL_AGE_UNKNOWN};
	for (size_t i = 0; i < status->known_count; i++) {
		if (status->known[i].pid == pid)
			return &status->known[i];
	}
	return &unknown;
}
