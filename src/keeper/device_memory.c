/* The kernel's limit of device memory by control groups: the controller dmem of Linux 6.14. Drivers
 * tell it of their devices, which are lines "REGION BYTES" of dmem.capacity in the root. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "keeper/hierarchy.h"

enum { TEXT_SIZE = 4096 };

/* The groups above it pass the controller on to their children. One that has it already, and one that has processes of
 * its own and so cannot, are told by the file of the group itself. */
static void enable_above(const struct ll_hierarchy *hierarchy, const char *group)
{
	char above[LL_GROUP_SIZE];
	for (const char *slash = group; (slash = strchr(slash, '/')); slash++) {
		snprintf(above, sizeof above, "%.*s", (int)(slash - group), group);
		ll_hierarchy_write(hierarchy, above, "cgroup.subtree_control", "+dmem");
	}
}

/* "REGION BYTES" for each region of the capacity. Returns false if they do not fit. */
static bool write_limits(char *capacity, uint64_t bytes, char ret_text[TEXT_SIZE])
{
	size_t length = 0;
	char *rest = capacity;
	for (const char *line; (line = strsep(&rest, "\n"));) {
		size_t name = strcspn(line, " ");
		if (!name)
			continue;
		int n = bytes ? snprintf(ret_text + length, TEXT_SIZE - length, "%.*s %" PRIu64 "\n", (int)name, line,
					 bytes)
			      : snprintf(ret_text + length, TEXT_SIZE - length, "%.*s max\n", (int)name, line);
		if (n < 0 || (size_t)n >= TEXT_SIZE - length)
			return false;
		length += (size_t)n;
	}
	return true;
}

int ll_hierarchy_limit_devices(const struct ll_hierarchy *hierarchy, const char *group, uint64_t bytes)
{
	char capacity[TEXT_SIZE], text[TEXT_SIZE] = "";
	ssize_t length = ll_hierarchy_read(hierarchy, "", "dmem.capacity", capacity, sizeof capacity);
	if (length <= 0 && length != -E2BIG)
		return -ENOTSUP;
	if (length < 0 || !write_limits(capacity, bytes, text))
		return -E2BIG;
	if (!*text)
		return -ENOTSUP;
	enable_above(hierarchy, group);
	return ll_hierarchy_write(hierarchy, group, "dmem.max", text);
}
