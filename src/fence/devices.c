#include "fence/devices.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"

enum { NAME_SIZE = 64, TEXT_SIZE = 16384 };

static bool has_major(const struct ll_fence_majors *majors, uint32_t major)
{
	for (size_t i = 0; i < majors->count; i++) {
		if (majors->items[i] == major)
			return true;
	}
	return false;
}

void ll_fence_majors_take(const char *devices, struct ll_fence_majors *ret_majors)
{
	const char *end = strstr(devices, "Block devices:");
	*ret_majors = (struct ll_fence_majors){.items = {LL_FENCE_NVIDIA}, .count = 1};
	for (const char *line = devices; line && (!end || line < end); line = strchr(line, '\n')) {
		char name[NAME_SIZE];
		unsigned major;
		line += *line == '\n';
		if (sscanf(line, "%u %63s", &major, name) == 2 && strncmp(name, "nvidia", strlen("nvidia")) == 0 &&
		    !has_major(ret_majors, major) && ret_majors->count < LL_FENCE_MAJORS)
			ret_majors->items[ret_majors->count++] = major;
	}
}

void ll_fence_majors_read(struct ll_fence_majors *ret_majors)
{
	char text[TEXT_SIZE];
	size_t used = 0;
	LL_SCOPE_CLOSE int fd = open("/proc/devices", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && used < sizeof text - 1) {
		ssize_t n = read(fd, text + used, sizeof text - 1 - used);
		if (n <= 0)
			break;
		used += (size_t)n;
	}
	text[used] = '\0';
	ll_fence_majors_take(text, ret_majors);
}
