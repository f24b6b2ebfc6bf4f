#include "base/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/process_id.h"

enum { TEXT_SIZE = 4096 };

static unsigned path_depth(const char *path)
{
	unsigned count = 0;
	for (const char *c = path; *c; c++)
		count += c[0] == '/' && c[1];
	return count;
}

/* A line is "0::/path" for version 2, "4:memory:/path" for version 1. */
void ll_cgroup_choose(char *text, char *ret_path, size_t size)
{
	unsigned deepest = 0;
	char *rest;
	snprintf(ret_path, size, "/");
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		path++;
		bool is_unified = controllers[1] == ':';
		if ((is_unified && path_depth(path)) || path_depth(path) > deepest) {
			snprintf(ret_path, size, "%s", path);
			deepest = is_unified ? ~0U : path_depth(path);
		}
	}
}

int ll_cgroup_read(pid_t pid, char *ret_path, size_t size)
{
	char text[TEXT_SIZE];
	ssize_t length = ll_process_read_file(pid, "cgroup", text, sizeof text);
	if (length < 0)
		return (int)length;
	ll_cgroup_choose(text, ret_path, size);
	return 0;
}
