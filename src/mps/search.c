#include "mps/search.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mps/environment.h"
#include "mps/process.h"

static const char control_name[] = "nvidia-cuda-mps-control";
static const char server_name[] = "nvidia-cuda-mps-server";

static bool look_at(pid_t pid, struct ll_mps_found *found)
{
	char name[64];
	ll_mps_process_name(pid, name, sizeof name);
	bool is_server = strcmp(name, server_name) == 0;
	if (!is_server && strcmp(name, control_name) != 0)
		return false;
	/* Without -d or -f the control program is no daemon but somebody's command, gone at once. */
	*found = (struct ll_mps_found){.pid = pid,
				       .start_ticks = ll_mps_process_start(pid),
				       .owner = ll_mps_process_user(pid),
				       .is_server = is_server};
	if (!found->start_ticks || (!is_server && !ll_mps_process_has_flag(pid, "df")))
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
