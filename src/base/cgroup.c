#include "base/cgroup.h"

#include <errno.h>
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

static bool is_scope(const char *name, size_t length)
{
	static const char end[] = "slurmstepd.scope";
	size_t tail = sizeof end - 1;
	return length >= tail && memcmp(name + length - tail, end, tail) == 0;
}

/* Returns the rest of the path, at its slash or end; NULL: it is not in slurmstepd's scope. */
static const char *skip_scope(const char *path)
{
	static const char slice[] = "/system.slice";
	if (strncmp(path, slice, sizeof slice - 1) == 0 && path[sizeof slice - 1] == '/')
		path += sizeof slice - 1;
	size_t length = *path == '/' ? strcspn(path + 1, "/") + 1 : 0;
	return length && is_scope(path, length) ? path + length : NULL;
}

bool ll_cgroup_is_in_slurm_scope(const char *path)
{
	return skip_scope(path) != NULL;
}

/* Returns the rest of the path, at its slash or end; NULL: it does not begin as one of Slurm's. */
static const char *skip_slurm(const char *path)
{
	static const char begin[] = "/slurm";
	const char *rest = skip_scope(path);
	return rest || strncmp(path, begin, sizeof begin - 1) != 0 ? rest : strchr(path + 1, '/');
}

bool ll_cgroup_slurm_job(const char *path, char *ret_job, size_t size)
{
	static const char name[] = "/job_";
	const char *at = skip_slurm(path);
	for (; at && *at; at = strchr(at + 1, '/')) {
		size_t digits =
		    strncmp(at, name, sizeof name - 1) == 0 ? strspn(at + sizeof name - 1, "0123456789") : 0;
		const char *end = at + sizeof name - 1 + digits;
		if (!digits || (*end && *end != '/' && *end != '\n'))
			continue;
		size_t length = (size_t)(end - path);
		if (length >= size)
			return false;
		memcpy(ret_job, path, length);
		ret_job[length] = '\0';
		return true;
	}
	return false;
}

bool ll_cgroup_choose_slurm_job(const char *text, char *ret_job, size_t size)
{
	char line[TEXT_SIZE];
	for (size_t length = strcspn(text, "\n"); *text;
	     text += length + (text[length] == '\n'), length = strcspn(text, "\n")) {
		snprintf(line, sizeof line, "%.*s", (int)length, text);
		const char *path = strchr(line, ':');
		path = path ? strchr(path + 1, ':') : NULL;
		if (path && ll_cgroup_slurm_job(path + 1, ret_job, size))
			return true;
	}
	return false;
}

int ll_cgroup_read_slurm_job(pid_t pid, char *ret_job, size_t size)
{
	char text[TEXT_SIZE];
	ssize_t length = ll_process_read_file(pid, "cgroup", text, sizeof text);
	if (length < 0)
		return (int)length;
	return ll_cgroup_choose_slurm_job(text, ret_job, size) ? 0 : -ENOENT;
}
