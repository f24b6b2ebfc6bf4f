#include "mover/host.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

#define UNLIMITED UINT64_MAX
/* Version 1 writes "no limit" as the largest number of whole pages. */
#define LARGEST_LIMIT (UINT64_C(1) << 60)

static uint64_t read_meminfo(const char *key)
{
	char line[128];
	uint64_t kib;
	size_t length = strlen(key);
	LL_SCOPE_FCLOSE FILE *file = fopen("/proc/meminfo", "re");
	while (file && fgets(line, sizeof line, file)) {
		if (strncmp(line, key, length) == 0 && sscanf(line + length, ": %" SCNu64, &kib) == 1)
			return kib * 1024;
	}
	return UNLIMITED;
}

static uint64_t read_number(const char *folder, const char *name)
{
	char path[PATH_MAX];
	uint64_t number;
	snprintf(path, sizeof path, "%s/%s", folder, name);
	LL_SCOPE_FCLOSE FILE *file = fopen(path, "re");
	bool is_number = file && fscanf(file, "%" SCNu64, &number) == 1;
	return is_number && number < LARGEST_LIMIT ? number : UNLIMITED;
}

struct group_memory {
	uint64_t limit_bytes, left_bytes;
};

static void add_group(const char *folder, const char *limit_name, const char *usage_name, struct group_memory *memory)
{
	uint64_t limit = read_number(folder, limit_name), used = read_number(folder, usage_name);
	if (limit == UNLIMITED)
		return;
	uint64_t left = used == UNLIMITED || used > limit ? 0 : limit - used;
	memory->limit_bytes = limit < memory->limit_bytes ? limit : memory->limit_bytes;
	memory->left_bytes = left < memory->left_bytes ? left : memory->left_bytes;
}

/* The group and all groups above it. */
static void add_groups(const char *root, char *path, const char *limit_name, const char *usage_name,
		       struct group_memory *memory)
{
	char folder[PATH_MAX];
	for (;;) {
		snprintf(folder, sizeof folder, "%s%s", root, path);
		add_group(folder, limit_name, usage_name, memory);
		char *slash = strrchr(path, '/');
		if (!slash)
			return;
		*slash = '\0';
	}
}

static struct group_memory read_groups(void)
{
	char line[PATH_MAX];
	struct group_memory memory = {UNLIMITED, UNLIMITED};
	LL_SCOPE_FCLOSE FILE *file = fopen("/proc/self/cgroup", "re");
	while (file && fgets(line, sizeof line, file)) {
		line[strcspn(line, "\n")] = '\0';
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = '\0';
		if (controllers[1] == '\0')
			add_groups("/sys/fs/cgroup", path, "memory.max", "memory.current", &memory);
		else if (strcmp(controllers + 1, "memory") == 0)
			add_groups("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes", "memory.usage_in_bytes",
				   &memory);
	}
	return memory;
}

uint64_t ll_host_memory_bytes(void)
{
	return read_meminfo("MemTotal");
}

uint64_t ll_host_group_limit_bytes(void)
{
	return read_groups().limit_bytes;
}

uint64_t ll_host_available_bytes(void)
{
	uint64_t available = read_meminfo("MemAvailable"), left = read_groups().left_bytes;
	return available < left ? available : left;
}

uint64_t ll_host_reserve_bytes(void)
{
	uint64_t all = ll_host_memory_bytes(), limit = read_groups().limit_bytes;
	return (all < limit ? all : limit) / 16;
}
