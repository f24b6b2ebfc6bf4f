#include "fence/devices.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/strbuf.h"

enum { NAME_SIZE = 64, MOST_BYTES = 1 << 20 };

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
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	int rc = ll_strbuf_add_file(&text, AT_FDCWD, "/proc/devices", MOST_BYTES);
	if (rc)
		ll_error("/proc/devices: %s; devices of other numbers than %d are not found", strerror(-rc),
			 LL_FENCE_NVIDIA);
	ll_fence_majors_take(text.buf, ret_majors);
}
