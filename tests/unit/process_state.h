/*
 * process_state.h - whether a process is stopped, as /proc tells.
 */
#ifndef LOADLINE_TESTS_UNIT_PROCESS_STATE_H
#define LOADLINE_TESTS_UNIT_PROCESS_STATE_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

static inline bool is_stopped(pid_t pid)
{
	char path[64], text[512] = "";
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	bool has_read = fgets(text, sizeof text, file);
	fclose(file);
	const char *state = has_read ? strrchr(text, ')') : NULL;
	return state && state[1] == ' ' && state[2] == 'T';
}

#endif
