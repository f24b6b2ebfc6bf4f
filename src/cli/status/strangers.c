#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/packet.h"
#include "base/scope.h"
#include "base/utf8.h"
#include "cli/status/status.h"
#include "driver/cards.h"
#include "mps/process.h"

enum { STAT_SIZE = 1024 };

/* Returns the parent's process id, -1 if it is not known. The file's format is "pid (name) state ppid", and the name
 * may have any character, even ')'. */
static pid_t parent_of(pid_t pid)
{
	char text[STAT_SIZE];
	ll_status_read_proc(pid, "stat", text, sizeof text);
	const char *end = strrchr(text, ')');
	return end && strlen(end) > 4 ? (pid_t)strtol(end + 4, NULL, 10) : -1;
}

/* Whether the process belongs to the claim. A hold's contexts are in a child of the claim's owner. */
static bool is_process_of(const struct ll_status_claim *claim, pid_t pid)
{
	return claim->pid == pid || (claim->priority == LL_PRIORITY_HOLD && parent_of(pid) == claim->pid);
}

static bool has_claim(const struct ll_status_card *status, pid_t pid)
{
	for (size_t i = 0; i < status->claim_count; i++) {
		if (is_process_of(&status->claims[i], pid))
			return true;
	}
	return false;
}

enum { PATH_SIZE = 32 };

/* The kernel cuts names at 15 characters, and MPS's daemon and server have the same first 15. */
enum { KERNEL_NAME = 15 };

static void describe_stranger(const struct ll_process *process, struct ll_status_stranger *ret_stranger)
{
	char program[64];
	*ret_stranger = (struct ll_status_stranger){.pid = process->pid, .memory_bytes = process->memory_bytes};
	ll_mps_process_name(process->pid, program, sizeof program);
	ret_stranger->is_mps_server = strcmp(program, "nvidia-cuda-mps-server") == 0;
	snprintf(ret_stranger->name, sizeof ret_stranger->name, "%.*s", KERNEL_NAME, program);
	ll_utf8_clean(ret_stranger->name);
}

uint64_t ll_status_card_bytes(const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	uint64_t bytes = LL_MEMORY_UNKNOWN;
	for (size_t i = 0; claim->is_pid_ours && i < status->processes.count; i++) {
		const struct ll_process *process = &status->processes.items[i];
		if (process->memory_bytes != LL_MEMORY_UNKNOWN && is_process_of(claim, process->pid))
			bytes = (bytes == LL_MEMORY_UNKNOWN ? 0 : bytes) + process->memory_bytes;
	}
	return bytes;
}

void ll_status_find_strangers(struct ll_status_card *status)
{
	const struct ll_process_list *processes = &status->processes;
	for (size_t i = 0; i < status->claim_count; i++) {
		/* NVML's process ids are those of the machine's first PID namespace. This claim has a process id of
		 * another namespace, so they cannot be compared. */
		if (!status->claims[i].is_pid_ours)
			return;
	}
	status->strangers = calloc(processes->count + 1, sizeof *status->strangers);
	if (!status->strangers)
		return;
	for (size_t i = 0; i < processes->count; i++) {
		if (!has_claim(status, processes->items[i].pid))
			describe_stranger(&processes->items[i], &status->strangers[status->stranger_count++]);
	}
}

static bool is_of_other(pid_t pid)
{
	char path[PATH_SIZE];
	struct stat st;
	snprintf(path, sizeof path, "/proc/%d", (int)pid);
	return stat(path, &st) == 0 && st.st_uid != geteuid();
}

void ll_status_hide_others(struct ll_status_card *status)
{
	size_t kept = 0;
	for (size_t i = 0; i < status->stranger_count; i++) {
		if (!is_of_other(status->strangers[i].pid))
			status->strangers[kept++] = status->strangers[i];
	}
	status->hidden_count = status->stranger_count - kept;
	status->stranger_count = kept;
}

/* ---- what /proc tells of them, and of the claims' processes ---- */

static size_t list_pids(const struct ll_status_card *status, pid_t *pids)
{
	size_t count = 0;
	for (size_t i = 0; i < status->claim_count; i++) {
		if (status->claims[i].is_pid_ours)
			pids[count++] = status->claims[i].pid;
	}
	for (size_t i = 0; i < status->stranger_count; i++)
		pids[count++] = status->strangers[i].pid;
	return count;
}

static void hide_command(struct ll_status_card *status, pid_t pid)
{
	for (size_t i = 0; i < status->known_count; i++) {
		if (status->known[i].pid == pid)
			status->known[i].command[0] = '\0';
	}
}

static void hide_commands(struct ll_status_card *status)
{
	for (size_t i = 0; i < status->claim_count; i++) {
		if (status->claims[i].is_pid_ours && status->claims[i].is_command_hidden)
			hide_command(status, status->claims[i].pid);
	}
	for (size_t i = 0; i < status->stranger_count; i++) {
		if (status->strangers[i].is_command_hidden)
			hide_command(status, status->strangers[i].pid);
	}
}

void ll_status_know_processes(struct ll_status_card *status)
{
	LL_SCOPE_FREE pid_t *pids = calloc(status->claim_count + status->stranger_count + 1, sizeof *pids);
	size_t count = pids ? list_pids(status, pids) : 0;
	status->known = count ? ll_status_processes_read(pids, count) : NULL;
	status->known_count = status->known ? count : 0;
	for (size_t i = 0; i < status->known_count && i < status->claim_count; i++) {
		struct ll_status_process *process = &status->known[i];
		for (size_t k = 0; process->is_stalled && k < status->claim_count; k++) {
			const struct ll_status_claim *claim = &status->claims[k];
			if (claim->is_pid_ours && claim->pid == process->pid && claim->told_command[0])
				snprintf(process->command, sizeof process->command, "%s", claim->told_command);
		}
	}
	for (size_t i = 0; i < status->claim_count; i++) {
		struct ll_status_claim *claim = &status->claims[i];
		claim->is_stopped = claim->is_pid_ours && ll_status_process_of(status, claim->pid)->is_stopped;
	}
	for (size_t i = 0; i < status->stranger_count; i++) {
		struct ll_status_stranger *stranger = &status->strangers[i];
		const struct ll_status_process *process = ll_status_process_of(status, stranger->pid);
		if (stranger->is_mps_server)
			continue;
		stranger->is_older = process->is_older;
		snprintf(stranger->tenant, sizeof stranger->tenant, "%s",
			 stranger->sensed_tenant[0] ? stranger->sensed_tenant : process->tenant);
	}
	hide_commands(status);
}
