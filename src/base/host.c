#include "base/host.h"

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

/* The file names of each version of control groups. */
static const struct ll_host_group_names {
	const char *root, *limit, *usage, *inactive;
} versions[] = {
    [LL_HOST_GROUP_V1] = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
			  "total_inactive_file "},
    [LL_HOST_GROUP_V2] = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "},
};

/* Returns the pages of files that the kernel can take back when memory is needed, as free(1) and container runtimes
 * count them. */
static uint64_t read_inactive(const char *folder, const char *key)
{
	char path[PATH_MAX], line[128];
	uint64_t bytes;
	size_t length = strlen(key);
	snprintf(path, sizeof path, "%s/memory.stat", folder);
	LL_SCOPE_FCLOSE FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file)) {
		if (strncmp(line, key, length) == 0 && sscanf(line + length, "%" SCNu64, &bytes) == 1)
			return bytes;
	}
	return 0;
}

void ll_host_add_group(const char *folder, enum ll_host_group_version version, struct ll_host_group_memory *memory)
{
	const struct ll_host_group_names *names = &versions[version];
	uint64_t limit = read_number(folder, names->limit), used = read_number(folder, names->usage);
	if (limit == UNLIMITED)
		return;
	uint64_t inactive = used == UNLIMITED ? 0 : read_inactive(folder, names->inactive);
	used -= inactive < used ? inactive : used;
	uint64_t left = used > limit ? 0 : limit - used;
	memory->limit_bytes = limit < memory->limit_bytes ? limit : memory->limit_bytes;
	memory->left_bytes = left < memory->left_bytes ? left : memory->left_bytes;
}

/* Adds the group and all groups above it. */
static void add_groups(char *path, enum ll_host_group_version version, struct ll_host_group_memory *memory)
{
	char folder[PATH_MAX];
	for (;;) {
		snprintf(folder, sizeof folder, "%s%s", versions[version].root, path);
		ll_host_add_group(folder, version, memory);
		char *slash = strrchr(path, '/');
		if (!slash)
			return;
		*slash = '\0';
	}
}

static struct ll_host_group_memory read_groups(void)
{
	char line[PATH_MAX];
	struct ll_host_group_memory memory = {UNLIMITED, UNLIMITED};
	LL_SCOPE_FCLOSE FILE *file = fopen("/proc/self/cgroup", "re");
	while (file && fgets(line, sizeof line, file)) {
		line[strcspn(line, "\n")] = '\0';
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = '\0';
		if (controllers[1] == '\0')
			add_groups(path, LL_HOST_GROUP_V2, &memory);
		else if (strcmp(controllers + 1, "memory") == 0)
			add_groups(path, LL_HOST_GROUP_V1, &memory);
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

void ll_boot_id_read(char ret_id[LL_BOOT_ID_SIZE])
{
	LL_SCOPE_FCLOSE FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (!file || !fgets(ret_id, LL_BOOT_ID_SIZE, file))
		ret_id[0] = '\0';
	ret_id[strcspn(ret_id, "\n")] = '\0';
}
