#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"
#include "base/strbuf.h"

enum { FOLDER_MODE = 0755, MOUNTS_BYTES = 64 << 20, TYPE_SIZE = 32, OPTIONS_SIZE = 512, EVENTS_SIZE = 256 };

static const char folder_name[] = "/loadline-jobs", slice[] = "/loadline.slice";

/* ---- which hierarchy ---- */

/* The first mount of version 2 counts. */
static void read_mount(const char *line, struct ll_hierarchy *hierarchy)
{
	char at[LL_GROUP_SIZE], type[TYPE_SIZE], options[OPTIONS_SIZE];
	if (sscanf(line, "%*s %255s %31s %511s", at, type, options) != 3)
		return;
	if (strcmp(type, "cgroup2") == 0 && !*hierarchy->mount)
		memcpy(hierarchy->mount, at, sizeof at);
	hierarchy->is_beside_limits |=
	    strcmp(type, "cgroup") == 0 && (strstr(options, "memory") || strstr(options, "cpu"));
}

int ll_hierarchy_choose(const char *mounts, const char *own, struct ll_hierarchy *ret_hierarchy)
{
	struct ll_hierarchy found = {.groups.kind = LL_GROUPS_FOLDER};
	char group[LL_GROUP_SIZE];
	for (const char *line = mounts; *line; line += strcspn(line, "\n"), line += *line == '\n')
		read_mount(line, &found);
	int rc = *found.mount ? ll_group_in_text(own, group) : -ENOENT;
	if (rc)
		return rc;
	if (strlen(group) + sizeof folder_name > sizeof found.groups.base)
		return -ENAMETOOLONG;
	/* Within the folder of a former keeper of the same service. */
	snprintf(found.groups.base, sizeof found.groups.base, "%.200s%s", strcmp(group, "/") == 0 ? "" : group,
		 folder_name);
	*ret_hierarchy = found;
	return 0;
}

void ll_hierarchy_use_scopes(struct ll_hierarchy *hierarchy)
{
	hierarchy->groups.kind = LL_GROUPS_SCOPE;
	snprintf(hierarchy->groups.base, sizeof hierarchy->groups.base, "%s", slice);
}

/* -E2BIG: it has more. */
static int read_whole(const char *path, char *ret_text, size_t size)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	int rc = ll_strbuf_add_file(&text, AT_FDCWD, path, size - 1);
	if (!rc)
		memcpy(ret_text, text.buf, text.length + 1);
	return rc;
}

int ll_hierarchy_miss(struct ll_err *err)
{
	return ll_err_set(err, -ENOTSUP, "no control groups of version 2 are mounted");
}

int ll_hierarchy_find(struct ll_hierarchy *ret_hierarchy, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf mounts = LL_STRBUF_INIT;
	char own[LL_GROUP_TEXT_SIZE];
	int rc = ll_strbuf_add_file(&mounts, AT_FDCWD, "/proc/self/mounts", MOUNTS_BYTES);
	if (!rc)
		rc = read_whole("/proc/self/cgroup", own, sizeof own);
	if (!rc)
		rc = ll_hierarchy_choose(mounts.buf, own, ret_hierarchy);
	return rc == -ENOENT ? ll_hierarchy_miss(err)
	       : rc          ? ll_err_set(err, rc, "control groups: %s", strerror(-rc))
			     : 0;
}

/* ---- groups ---- */

static int path_of(const struct ll_hierarchy *hierarchy, const char *group, const char *file, char ret_path[PATH_MAX])
{
	int length =
	    snprintf(ret_path, PATH_MAX, "%s%s%s%s", hierarchy->mount, group, *file ? "/" : "", *file ? file : "");
	return length > 0 && length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

bool ll_hierarchy_has(const struct ll_hierarchy *hierarchy, const char *group)
{
	char path[PATH_MAX];
	struct stat st;
	return path_of(hierarchy, group, "", path) == 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int make_folder(const struct ll_hierarchy *hierarchy, const char *group)
{
	char path[PATH_MAX];
	int rc = path_of(hierarchy, group, "", path);
	if (rc)
		return rc;
	return mkdir(path, FOLDER_MODE) == 0 || errno == EEXIST ? 0 : -errno;
}

int ll_hierarchy_make(const struct ll_hierarchy *hierarchy, const char *group)
{
	int rc = make_folder(hierarchy, hierarchy->groups.base);
	return rc ? rc : make_folder(hierarchy, group);
}

int ll_hierarchy_write(const struct ll_hierarchy *hierarchy, const char *group, const char *file, const char *text)
{
	char path[PATH_MAX];
	int rc = path_of(hierarchy, group, file, path);
	if (rc)
		return rc;
	LL_SCOPE_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

int ll_hierarchy_each(const struct ll_hierarchy *hierarchy, const char *group, void (*call)(void *data, pid_t pid),
		      void *data)
{
	char path[PATH_MAX];
	int pid, rc = path_of(hierarchy, group, "cgroup.procs", path);
	FILE *file = rc ? NULL : fopen(path, "re");
	if (!file)
		return rc ? rc : -errno;
	while (fscanf(file, "%d", &pid) == 1)
		call(data, pid);
	fclose(file);
	return 0;
}

ssize_t ll_hierarchy_read(const struct ll_hierarchy *hierarchy, const char *group, const char *file, char *ret_text,
			  size_t size)
{
	char path[PATH_MAX];
	int rc = path_of(hierarchy, group, file, path);
	if (!rc)
		rc = read_whole(path, ret_text, size);
	return rc ? rc : (ssize_t)strlen(ret_text);
}

/* systemd removes the folder of a scope when it learns that it is empty. */
static int look_at_scope(const struct ll_hierarchy *hierarchy, const char *group)
{
	char text[EVENTS_SIZE];
	ssize_t length = ll_hierarchy_read(hierarchy, group, "cgroup.events", text, sizeof text);
	if (length == -ENOENT || length == -ENODEV)
		return 0;
	if (length < 0)
		return (int)length;
	return strstr(text, "populated 1") ? -EBUSY : 0;
}

int ll_hierarchy_remove(const struct ll_hierarchy *hierarchy, const char *group)
{
	char path[PATH_MAX];
	if (hierarchy->groups.kind == LL_GROUPS_SCOPE)
		return look_at_scope(hierarchy, group);
	int rc = path_of(hierarchy, group, "", path);
	if (rc)
		return rc;
	return rmdir(path) == 0 || errno == ENOENT ? 0 : -errno;
}

/* ---- device memory ---- */

/* The kernel's limit of device memory by control groups: the controller dmem of Linux 6.14. Drivers
 * tell it of their devices, which are lines "REGION BYTES" of dmem.capacity in the root. */
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
