#include "keeper/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { VALUE_SIZE = 256 };

size_t ll_source_unit(const char *group, uint32_t uid, char ret_unit[LL_GROUP_SIZE])
{
	char slice[64];
	int slice_length = snprintf(slice, sizeof slice, "/user.slice/user-%" PRIu32 ".slice/", uid);
	if (strncmp(group, slice, (size_t)slice_length) != 0)
		return 0;
	size_t length = strcspn(group + slice_length, "/");
	if (length >= LL_GROUP_SIZE)
		return 0;
	memcpy(ret_unit, group + slice_length, length);
	ret_unit[length] = '\0';
	return length;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);
	return length >= end_length && strcmp(text + (length - end_length), end) == 0;
}

static bool is_place_to_leave(const struct ll_groups *groups, const char *group, uint32_t uid)
{
	char unit[LL_GROUP_SIZE];
	uint32_t job_uid;
	uint64_t job;
	if (strcmp(group, "/") == 0)
		return true;
	if (ll_group_find_job(groups, group, &job_uid, &job))
		return job_uid == uid;
	return ll_source_unit(group, uid, unit) && ends_with(group, ".scope");
}

/* The value of a file without a limit. A group has the files of its enabled controllers alone. */
static const struct {
	const char *file, *unlimited;
} limits[] = {
    {"memory.max", "max"},
    {"memory.high", "max"},
    {"cpu.max", "max "},
    {"cpuset.cpus", "\n"},
};

static bool has_limit(const struct ll_hierarchy *hierarchy, const char *group)
{
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		char value[VALUE_SIZE];
		ssize_t length = ll_hierarchy_read(hierarchy, group, limits[i].file, value, sizeof value);
		if (length > 0 && strncmp(value, limits[i].unlimited, strlen(limits[i].unlimited)) != 0)
			return true;
	}
	return false;
}

static bool is_limited(const struct ll_hierarchy *hierarchy, const char *group)
{
	char at[LL_GROUP_SIZE];
	snprintf(at, sizeof at, "%s", group);
	for (char *slash; (slash = strrchr(at, '/')); *slash = '\0') {
		if (slash[1] && has_limit(hierarchy, at))
			return true;
	}
	return false;
}

const char *ll_source_refuses(const struct ll_hierarchy *hierarchy, const char *group, uint32_t uid)
{
	if (!is_place_to_leave(&hierarchy->groups, group, uid))
		return "the process belongs to a service, a container or another user's group";
	if (is_limited(hierarchy, group))
		return "the group of the process has limits of memory or CPU, which would no longer hold";
	return NULL;
}
