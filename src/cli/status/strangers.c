#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/packet.h"
#include "base/scope.h"
#include "base/utf8.h"
#include "cli/common/older.h"
#include "cli/status/status.h"
#include "driver/cards.h"
#include "mps/process.h"
#include "protocol/inherited.h"
#include "protocol/run_settings.h"

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

static void find_tenant(pid_t pid, char tenant[64])
{
	struct ll_run_settings settings;
	if (ll_run_settings_of_process(pid, &settings) == 0)
		snprintf(tenant, 64, "%s", settings.tenant);
}

static void describe_stranger(const struct ll_process *process, struct ll_status_stranger *ret_stranger)
{
	char program[64];
	*ret_stranger = (struct ll_status_stranger){.pid = process->pid, .memory_bytes = process->memory_bytes};
	ll_status_read_proc(process->pid, "comm", ret_stranger->name, sizeof ret_stranger->name);
	ret_stranger->name[strcspn(ret_stranger->name, "\n")] = '\0';
	ll_utf8_clean(ret_stranger->name);
	/* The kernel cuts names at 15 characters, and MPS's daemon and server have the same first 15. */
	ll_mps_process_name(process->pid, program, sizeof program);
	ret_stranger->is_mps_server = strcmp(program, "nvidia-cuda-mps-server") == 0;
	if (ret_stranger->is_mps_server)
		return;
	find_tenant(process->pid, ret_stranger->tenant);
	ret_stranger->is_older = ll_process_is_of_older(process->pid);
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
