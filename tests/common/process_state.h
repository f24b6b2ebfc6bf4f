/*
 * process_state.h - whether a process or a thread runs, sleeps or is stopped, as /proc tells.
 */
#ifndef LOADLINE_TESTS_COMMON_PROCESS_STATE_H
#define LOADLINE_TESTS_COMMON_PROCESS_STATE_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

/* The letter of a /proc/.../stat: 'R', 'S', 'T' and so on; 0: there is no such process or thread. */
static inline char state_in(const char *path)
{
	char text[512] = "";
	FILE *file = fopen(path, "re");
	if (!file)
		return 0;
	bool has_read = fgets(text, sizeof text, file);
	fclose(file);
	const char *state = has_read ? strrchr(text, ')') : NULL;
	return (char)(state && state[1] == ' ' ? state[2] : 0);
}

static inline bool is_stopped(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	return state_in(path) == 'T';
}

#endif
