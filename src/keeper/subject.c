#include "keeper/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process.h"
#include "base/process_id.h"
#include "base/strbuf.h"

/* ---- subject ---- */

/* The status names all groups of the user. */
enum { PATH_SIZE = 128, UIDS = 4, MOST_BYTES = 4 << 20 };

static int read_file(const char *proc, pid_t pid, const char *file, struct ll_strbuf *text)
{
	char path[PATH_SIZE];
	snprintf(path, sizeof path, "%.80s/%d/%s", proc, (int)pid, file);
	int rc = ll_strbuf_add_file(text, AT_FDCWD, path, MOST_BYTES);
	return rc == -ENOENT ? -ESRCH : rc;
}

static int read_status(const char *proc, struct ll_subject *subject)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	int rc = read_file(proc, subject->pid, "status", &text);
	subject->is_nested = !rc && ll_process_parse_nested(text.buf);
	return rc ? rc : ll_process_parse_uids(text.buf, subject->uids) ? 0 : -EIO;
}

int ll_subject_read_group(const char *proc, struct ll_subject *subject)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	int rc = read_file(proc, subject->pid, "cgroup", &text);
	if (!rc)
		rc = ll_group_in_text(text.buf, subject->group);
	if (!rc && ll_process_has_ended(subject->pidfd))
		rc = -ESRCH;
	return rc;
}

int ll_subject_read(const char *proc, int pidfd, pid_t pid, struct ll_subject *ret_subject)
{
	struct ll_subject subject = {.pidfd = pidfd, .pid = pid};
	if (!ll_process_is_pidfd(pidfd))
		return -EBADF;
	pid_t own = ll_process_id_of_fd(pidfd);
	if (!own)
		return -ESRCH;
	if (own != pid)
		return -ESTALE;
	int rc = read_status(proc, &subject);
	if (!rc)
		rc = ll_subject_read_group(proc, &subject);
	if (!rc)
		*ret_subject = subject;
	return rc;
}

bool ll_subject_is_of(const struct ll_subject *subject, uint32_t uid)
{
	for (int i = 0; i < UIDS; i++) {
		if (subject->uids[i] != uid)
			return false;
	}
	return true;
}

/* ---- device ---- */

/* Takes what the kernel knows already, so that a file system of a user's (FUSE) is not asked. */
static bool is_card(int folder_fd, const char *name)
{
	struct statx file;
	return statx(folder_fd, name, AT_STATX_DONT_SYNC, STATX_TYPE, &file) == 0 && S_ISCHR(file.stx_mode) &&
	       file.stx_rdev_major == LL_NVIDIA_MAJOR;
}

int ll_device_is_open(const char *proc, pid_t pid)
{
	char path[PATH_SIZE];
	struct dirent *entry;
	bool is_open = false;
	snprintf(path, sizeof path, "%.80s/%d/fd", proc, (int)pid);
	DIR *folder = opendir(path);
	if (!folder)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!is_open && (entry = readdir(folder)))
		is_open = entry->d_name[0] != '.' && is_card(dirfd(folder), entry->d_name);
	closedir(folder);
	return is_open;
}

/* ---- source ---- */

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
