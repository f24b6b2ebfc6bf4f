#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/process_id.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "config/config.h"

enum { FOLDER_MODE = 0755, FILE_MODE = 0644, EVENTS_SIZE = 8192 };

/* Services of NVIDIA's and loadline's that open the cards for all, or only look at them. */
static const char *const always_open[] = {
    "/loadline.slice",
    "/loadline-jobs", /* of a keeper without systemd */
    "/init.scope",
    "/system.slice/dcgm.service",
    "/system.slice/dcgm-exporter.service",
    "/system.slice/loadline-hold.service",
    "/system.slice/loadline-mps.service",
    "/system.slice/loadline-sensor.service",
    "/system.slice/nvidia-dcgm.service",
    "/system.slice/nvidia-fabricmanager.service",
    "/system.slice/nvidia-imex.service",
    "/system.slice/nvidia-persistenced.service",
    "/system.slice/systemd-udevd.service",
};
enum { ALWAYS_OPEN = sizeof always_open / sizeof *always_open };

/* ---- the walk ---- */

enum verdict {
	CLOSED, /* fenced, with all below */
	OPEN,   /* stays open, with all below */
	PARTLY, /* has open ones below, or is the root; its own processes stay open too */
};

struct walk {
	struct ll_fence *fence;
	/* Called with the open folder of each group that a verdict is about. NULL: each group is opened. -errno. */
	int (*visit)(struct walk *walk, const char *group, int group_fd, enum verdict verdict);
	bool is_incomplete;
	int failed;                    /* -errno of the first group that could not be visited */
	char failed_at[LL_GROUP_SIZE]; /* this group */
	unsigned groups, in_root;      /* groups that can be fenced; processes of the root */
	struct ll_strbuf open, partly; /* lists of groups */
};

/* Slurm gives its jobs their cards by programs of its own, which let no other be beside them. */
static enum verdict judge_group(const struct ll_fence *fence, const char *group)
{
	enum verdict verdict = CLOSED;
	if (ll_cgroup_is_in_slurm_scope(group))
		return OPEN;
	for (size_t i = 0; i < ALWAYS_OPEN + fence->open_count; i++) {
		const char *open = i < ALWAYS_OPEN ? always_open[i] : fence->open[i - ALWAYS_OPEN];
		if (ll_group_contains(open, group))
			return OPEN;
		if (ll_group_contains(group, open))
			verdict = PARTLY;
	}
	return verdict;
}

/* A group that has gone is no error. */
static int skip_gone(int rc)
{
	return rc == -ENOENT || rc == -ENODEV ? 0 : rc;
}

/* A group that cannot be visited keeps no other one open. */
static void visit_group(struct walk *walk, FTS *fts, FTSENT *entry)
{
	const char *group = entry->fts_path + strlen(walk->fence->hierarchy->mount);
	enum verdict verdict = judge_group(walk->fence, group);
	LL_SCOPE_CLOSE int fd = open(entry->fts_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : walk->visit ? walk->visit(walk, group, fd, verdict) : ll_filter_detach(fd);
	if (rc || (verdict != PARTLY && walk->visit))
		fts_set(fts, entry, FTS_SKIP);
	walk->groups += verdict != OPEN && *group;
	if (!walk->failed && (walk->failed = skip_gone(rc)))
		snprintf(walk->failed_at, sizeof walk->failed_at, "%s", group);
}

/* group: empty: it was none. */
static int fail_group(int rc, const char *group, struct ll_err *err)
{
	if (rc == -EPERM && *group && geteuid() == 0)
		return ll_err_set(err, rc,
				  "control groups: %.200s has a program for devices that lets no other be beside it, "
				  "such as Slurm's: "
				  "keep that group open (--keep-open)",
				  group);
	if (rc == -EPERM || rc == -EACCES)
		return ll_err_set(err, -EPERM, "control groups: only root may change the fence");
	return rc ? ll_err_set(err, rc, "control groups: %s", strerror(-rc)) : 0;
}

/* The upper groups come first. Where systemd uses version 1 alone, version 2 may be mounted, with all processes in its
 * root. */
static int walk_groups(struct walk *walk, struct ll_err *err)
{
	char root[LL_GROUP_SIZE], *const roots[] = {root, NULL};
	memcpy(root, walk->fence->hierarchy->mount, sizeof root);
	if (!*root)
		return ll_hierarchy_miss(err);
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	FTSENT *entry = NULL;
	int rc = fts ? 0 : -errno;
	while (!rc && (entry = fts_read(fts))) {
		if (entry->fts_info == FTS_D)
			visit_group(walk, fts, entry);
		else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_NS || entry->fts_info == FTS_ERR)
			rc = skip_gone(-entry->fts_errno);
	}
	if (!rc && !entry)
		rc = -errno;
	if (fts)
		fts_close(fts);
	rc = rc ? rc : walk->failed;
	if (rc || walk->groups)
		return fail_group(rc, walk->failed_at, err);
	return ll_err_set(err, -ENOSYS, "%s: all processes are in the root group, which cannot be fenced", root);
}

static void count_process(void *data, pid_t pid)
{
	enum { KTHREADD = 2 };
	unsigned *count = data;
	struct ll_process_stat stat;
	*count += !ll_process_stat_of(pid, &stat) && stat.pid != KTHREADD && stat.parent != KTHREADD;
}

/* The number of processes of the group itself, without kernel threads. */
static unsigned count_processes(const struct walk *walk, const char *group)
{
	unsigned count = 0;
	ll_hierarchy_each(walk->fence->hierarchy, group, count_process, &count);
	return count;
}

/* ---- closing ---- */

static void add_group(struct ll_strbuf *list, const char *group)
{
	ll_strbuf_addf(list, "%s%s", list->length ? ", " : "", group);
}

/* A group with open ones below is watched before these are looked at, so that no new one is missed. A folder that is
 * watched already is not watched twice. */
static int close_group(struct walk *walk, const char *group, int group_fd, enum verdict verdict)
{
	char path[64];
	if (verdict == CLOSED)
		return ll_filter_attach(&walk->fence->filter, group_fd);
	if (verdict == OPEN) {
		add_group(&walk->open, group);
		return 0;
	}
	snprintf(path, sizeof path, "/proc/self/fd/%d", group_fd);
	if (walk->fence->events_fd > 0)
		inotify_add_watch(walk->fence->events_fd, path, IN_CREATE | IN_MOVED_TO);
	unsigned count = count_processes(walk, group);
	if (!*group)
		walk->in_root = count;
	else if (count)
		add_group(&walk->partly, group);
	return 0;
}

/* Replaces the file as a whole. Makes its folder. failure: empty: none. */
static int write_state(const struct walk *walk, const char *failure, struct ll_err *err)
{
	const struct ll_filter *filter = &walk->fence->filter;
	char path[LL_FENCE_STATE_SIZE], next[LL_FENCE_STATE_SIZE + sizeof ".next"];
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	ll_strbuf_adds(&text, "majors");
	for (size_t i = 0; i < filter->major_count; i++)
		ll_strbuf_addf(&text, " %u", filter->majors[i]);
	ll_strbuf_addf(&text, "\nopen %s\npartly %s\nroot %u\nfailed %s\n", walk->open.buf, walk->partly.buf,
		       walk->in_root, failure);
	ll_fence_state_path(path);
	snprintf(next, sizeof next, "%s.next", path);
	if (text.failed || walk->open.failed || walk->partly.failed)
		return ll_err_set(err, -ENOMEM, "%s: %s", path, strerror(ENOMEM));
	*strrchr(path, '/') = '\0';
	if (mkdir(path, FOLDER_MODE) && errno != EEXIST)
		return ll_err_set(err, -errno, "%s: %s", path, strerror(errno));
	ll_fence_state_path(path);
	LL_SCOPE_CLOSE int fd = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
	if (fd < 0 || fchmod(fd, FILE_MODE) || write(fd, text.buf, text.length) != (ssize_t)text.length ||
	    rename(next, path))
		return ll_err_set(err, -errno, "%s: %s", path, strerror(errno));
	return 0;
}

int ll_fence_close(struct ll_fence *fence, struct ll_err *err)
{
	struct walk walk = {.fence = fence, .visit = close_group, .open = LL_STRBUF_INIT, .partly = LL_STRBUF_INIT};
	int rc = ll_filter_load(&fence->filter, err);
	if (rc)
		return rc == -EPERM ? fail_group(rc, "", err) : rc;
	rc = walk_groups(&walk, err);
	/* Also after an error: what is closed must be known to open it. */
	int written = walk.groups ? write_state(&walk, rc ? err->text : "", rc ? NULL : err) : 0;
	ll_strbuf_fini(&walk.open);
	ll_strbuf_fini(&walk.partly);
	return rc ? rc : written;
}

/* ---- opening ---- */

/* A group that was closed may stay open by another rule now, so all are looked at. */
int ll_fence_open(struct ll_fence *fence, struct ll_err *err)
{
	struct walk walk = {.fence = fence};
	char path[LL_FENCE_STATE_SIZE];
	int rc = walk_groups(&walk, err);
	if (rc)
		return rc;
	ll_fence_state_path(path);
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	return 0;
}

/* ---- showing ---- */

static int show_group(struct walk *walk, const char *group, int group_fd, enum verdict verdict)
{
	int is_closed = ll_filter_is_attached(group_fd);
	if (is_closed < 0)
		return is_closed;
	if (verdict == PARTLY) {
		unsigned count = *group ? count_processes(walk, group) : 0;
		if (count)
			printf("partly %s: %u processes of its own are not fenced\n", group, count);
		return 0;
	}
	is_closed = is_closed && verdict == CLOSED;
	walk->is_incomplete |= verdict == CLOSED && !is_closed;
	printf("%s %s\n", is_closed ? "closed" : "open", group);
	return 0;
}

int ll_fence_show(struct ll_fence *fence, struct ll_err *err)
{
	struct walk walk = {.fence = fence, .visit = show_group};
	int rc = walk_groups(&walk, err);
	return rc ? rc : walk.is_incomplete;
}

/* ---- as the configuration says ---- */

/* Whether the fence shall be closed. -errno: it stays as it is. A configuration with faults changes nothing. */
static int find_wish(const struct ll_fence *fence)
{
	struct ll_config config = {0};
	struct ll_config_findings findings = {0};
	struct ll_err err = {0};
	bool has_file = fence->config || access(LL_CONFIG_FILE, F_OK) == 0;
	int rc = has_file ? ll_config_load(&config, fence->config, &findings, &err) : 0;
	if (rc)
		ll_error("%s", err.text);
	else if (findings.fault_count)
		rc = -EINVAL;
	else
		rc = config.policy.enforce.devices;
	if (rc == -EINVAL)
		ll_error("the configuration has faults; the fence stays as it is: see `loadline config check`");
	ll_config_findings_fini(&findings);
	ll_config_fini(&config);
	return rc;
}

/* Logs what has changed alone. */
static void close_again(struct ll_fence *fence)
{
	struct ll_err err = {0};
	int rc = ll_fence_close(fence, &err);
	if (rc && !fence->has_failed)
		ll_error("the fence: %s; what is closed stays so", err.text);
	else if (!rc && !fence->is_closed)
		ll_warn("the fence is closed (enforce.devices)");
	fence->has_failed = rc != 0;
	fence->is_closed = rc == 0;
}

void ll_fence_read_wish(struct ll_fence *fence)
{
	struct ll_err err = {0};
	bool was_wanted = fence->is_wanted;
	int wanted = fence->is_by_config ? find_wish(fence) : 0;
	if (wanted >= 0)
		fence->is_wanted = wanted;
	if (fence->is_wanted) {
		close_again(fence);
	} else if (was_wanted) {
		fence->is_closed = fence->has_failed = false;
		if (ll_fence_open(fence, &err))
			ll_error("%s", err.text);
		else
			ll_warn("the fence is open");
	}
}

void ll_fence_look(struct ll_fence *fence)
{
	char events[EVENTS_SIZE];
	while (read(fence->events_fd, events, sizeof events) > 0)
		;
	if (fence->is_wanted)
		close_again(fence);
}

static bool has_state(void)
{
	char path[LL_FENCE_STATE_SIZE];
	ll_fence_state_path(path);
	return access(path, F_OK) == 0;
}

int ll_fence_begin(struct ll_fence *fence, struct ll_err *err)
{
	fence->events_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (fence->events_fd < 0)
		return ll_err_set(err, -errno, "fence: %s", strerror(errno));
	fence->is_wanted = fence->is_by_config && has_state();
	ll_fence_read_wish(fence);
	return 0;
}

int ll_fence_end(struct ll_fence *fence, struct ll_err *err)
{
	bool opens = fence->is_by_config && *fence->hierarchy->mount && (fence->is_wanted || has_state());
	close(fence->events_fd);
	return opens ? ll_fence_open(fence, err) : 0;
}
