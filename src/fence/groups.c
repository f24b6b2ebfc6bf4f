#include "fence/groups.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/err.h"
#include "base/process_id.h"
#include "base/scope.h"

enum { LINE_SIZE = 1024, TYPE_SIZE = 64, NAME_SIZE = 256 };

/* Services of NVIDIA's and loadline's that open the cards for all, or only look at them. */
static const char *const always_open[] = {
    "/loadline.slice",
    "/loadline-jobs", /* of a keeper without systemd */
    "/init.scope",
    "/system.slice/dcgm.service",
    "/system.slice/dcgm-exporter.service",
    "/system.slice/loadline-fence.service",
    "/system.slice/loadline-hold.service",
    "/system.slice/loadline-mps.service",
    "/system.slice/loadline-sensor.service",
    "/system.slice/nvidia-dcgm.service",
    "/system.slice/nvidia-fabricmanager.service",
    "/system.slice/nvidia-imex.service",
    "/system.slice/nvidia-persistenced.service",
    "/system.slice/systemd-udevd.service",
};

/* ---- the hierarchy ---- */

static bool find_mount(char ret_folder[LL_FENCE_PATH_SIZE])
{
	char line[LINE_SIZE], folder[LL_FENCE_PATH_SIZE], type[TYPE_SIZE];
	LL_SCOPE_FCLOSE FILE *file = fopen("/proc/self/mounts", "re");
	while (file && fgets(line, sizeof line, file)) {
		if (sscanf(line, "%*s %511s %63s", folder, type) != 2 || strcmp(type, "cgroup2") != 0)
			continue;
		snprintf(ret_folder, LL_FENCE_PATH_SIZE, "%s", folder);
		return true;
	}
	return false;
}

/* Where systemd uses version 1 alone, version 2 may be mounted, with all processes in its root. */
static bool has_groups(const struct ll_fence_tree *tree)
{
	char group[NAME_SIZE + 1];
	struct dirent *entry;
	bool has = false;
	DIR *dir = opendir(tree->root);
	while (dir && !has && (entry = readdir(dir))) {
		snprintf(group, sizeof group, "/%s", entry->d_name);
		has = entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
		      ll_fence_tree_judge(tree, group) != LL_FENCE_OPEN;
	}
	if (dir)
		closedir(dir);
	return has;
}

int ll_fence_tree_find(struct ll_fence_tree *tree, const char *root, struct ll_err *err)
{
	struct statfs fs;
	*tree = (struct ll_fence_tree){.open_count = sizeof always_open / sizeof *always_open};
	memcpy(tree->open, always_open, sizeof always_open);
	if (root)
		snprintf(tree->root, sizeof tree->root, "%s", root);
	else if (!find_mount(tree->root))
		return ll_err_set(err, -ENOSYS, "no control groups of version 2 are mounted");
	if (statfs(tree->root, &fs))
		return ll_err_set(err, -errno, "%s: %s", tree->root, strerror(errno));
	if (fs.f_type != CGROUP2_SUPER_MAGIC)
		return ll_err_set(err, -ENOENT, "%s: not a folder of control groups of version 2", tree->root);
	if (!has_groups(tree))
		return ll_err_set(err, -ENOSYS, "%s: all processes are in the root group, which cannot be fenced",
				  tree->root);
	return 0;
}

int ll_fence_tree_keep_open(struct ll_fence_tree *tree, const char *group)
{
	if (group[0] != '/' || !group[1] || tree->open_count == LL_FENCE_OPEN_MAX)
		return -EINVAL;
	tree->open[tree->open_count++] = group;
	return 0;
}

enum ll_fence_verdict ll_fence_tree_judge(const struct ll_fence_tree *tree, const char *group)
{
	size_t length = strlen(group);
	enum ll_fence_verdict verdict = LL_FENCE_CLOSED;
	for (size_t i = 0; i < tree->open_count; i++) {
		size_t open_length = strlen(tree->open[i]);
		if (strncmp(group, tree->open[i], open_length) == 0 &&
		    (!group[open_length] || group[open_length] == '/'))
			return LL_FENCE_OPEN;
		if (strncmp(tree->open[i], group, length) == 0 && tree->open[i][length] == '/')
			verdict = LL_FENCE_PARTLY;
	}
	return verdict;
}

/* ---- walks ---- */

struct walk {
	const struct ll_fence_tree *tree;
	ll_fence_visit_fn visit;
	void *data;
	bool is_whole; /* goes below every group */
};

static int open_group(const struct ll_fence_tree *tree, const char *group)
{
	char path[2 * LL_FENCE_PATH_SIZE];
	snprintf(path, sizeof path, "%s%s", tree->root, group);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int visit_group(const struct walk *walk, const char *group);

static int visit_children(const struct walk *walk, const char *group, int group_fd)
{
	char child[LL_FENCE_PATH_SIZE];
	struct dirent *entry;
	int fd = fcntl(group_fd, F_DUPFD_CLOEXEC, 0), rc = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	while (!rc && (entry = readdir(dir))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		int length = snprintf(child, sizeof child, "%s/%s", group, entry->d_name);
		/* A user may make groups of any depth in an own one. They are below a group that is fenced. */
		if (length < (int)sizeof child)
			rc = visit_group(walk, child);
	}
	closedir(dir);
	return rc;
}

/* A group that has gone is no error. */
static int visit_group(const struct walk *walk, const char *group)
{
	enum ll_fence_verdict verdict = ll_fence_tree_judge(walk->tree, group);
	LL_SCOPE_CLOSE int fd = open_group(walk->tree, group);
	if (fd < 0)
		return fd == -ENOENT || fd == -ENODEV ? 0 : fd;
	int rc = walk->visit(walk->data, group, fd, verdict);
	if (rc == -ENOENT || rc == -ENODEV)
		return 0;
	if (!rc && (verdict == LL_FENCE_PARTLY || walk->is_whole))
		rc = visit_children(walk, group, fd);
	return rc;
}

int ll_fence_walk(const struct ll_fence_tree *tree, ll_fence_visit_fn visit, void *data)
{
	struct walk walk = {tree, visit, data, false};
	LL_SCOPE_CLOSE int fd = open_group(tree, "");
	return fd < 0 ? fd : visit_children(&walk, "", fd);
}

int ll_fence_walk_below(const struct ll_fence_tree *tree, const char *group, ll_fence_visit_fn visit, void *data)
{
	struct walk walk = {tree, visit, data, true};
	return visit_group(&walk, group);
}

static bool is_kernel_thread(const char *pid)
{
	enum { KTHREADD = 2 };
	struct ll_process_stat stat;
	return ll_process_read_stat(pid, &stat) || stat.pid == KTHREADD || stat.parent == KTHREADD;
}

int ll_fence_count_processes(int group_fd)
{
	char line[NAME_SIZE];
	int count = 0, fd = openat(group_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	if (!file) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	while (fgets(line, sizeof line, file)) {
		line[strcspn(line, "\n")] = '\0';
		count += line[0] != '\0' && !is_kernel_thread(line);
	}
	fclose(file);
	return count;
}
