#include "fence/fence.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "fence/state.h"

/* A walk with what it writes. */
struct work {
	const struct ll_fence *fence;
	struct ll_strbuf reports; /* lines of the state file, or for people */
	bool is_incomplete;
};

int ll_fence_init(struct ll_fence *fence, const char *root, struct ll_err *err)
{
	*fence = (struct ll_fence){.filter.fd = -1};
	ll_fence_majors_read(&fence->majors);
	return ll_fence_tree_find(&fence->tree, root, err);
}

void ll_fence_fini(struct ll_fence *fence)
{
	ll_fence_filter_close(&fence->filter);
}

static int fail_group(int rc, struct ll_err *err)
{
	if (rc == -EPERM || rc == -EACCES)
		return ll_err_set(err, -EPERM, "control groups: only root may change the fence");
	return rc ? ll_err_set(err, rc, "control groups: %s", strerror(-rc)) : 0;
}

/* ---- the state file ---- */

static int write_state(const struct work *work, struct ll_err *err)
{
	const struct ll_fence_majors *majors = &work->fence->majors;
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	ll_strbuf_adds(&text, "majors");
	for (size_t i = 0; i < majors->count; i++)
		ll_strbuf_addf(&text, " %u", majors->items[i]);
	ll_strbuf_addf(&text, "\n%s", work->reports.buf);
	text.failed |= work->reports.failed;
	return ll_fence_state_write(&text, err);
}

/* ---- closing ---- */

static bool is_same(const struct ll_fence_majors *left, const struct ll_fence_majors *right)
{
	return left->count == right->count && memcmp(left->items, right->items, left->count * sizeof *left->items) == 0;
}

static int prepare(struct ll_fence *fence, struct ll_err *err)
{
	struct ll_fence_majors majors;
	ll_fence_majors_read(&majors);
	bool has_filter = fence->filter.fd >= 0 && is_same(&majors, &fence->majors);
	fence->majors = majors;
	if (has_filter)
		return 0;
	ll_fence_filter_close(&fence->filter);
	return ll_fence_filter_load(&fence->filter, &majors, err);
}

static int close_group(void *data, const char *group, int group_fd, enum ll_fence_verdict verdict)
{
	struct work *work = data;
	if (verdict == LL_FENCE_OPEN)
		ll_strbuf_addf(&work->reports, "open %s\n", group);
	else if (verdict == LL_FENCE_PARTLY && ll_fence_count_processes(group_fd) > 0)
		ll_strbuf_addf(&work->reports, "partly %s %d\n", group, ll_fence_count_processes(group_fd));
	return verdict == LL_FENCE_CLOSED ? ll_fence_filter_attach(&work->fence->filter, group_fd) : 0;
}

static int report_root(void *data, const char *group, int group_fd, enum ll_fence_verdict verdict)
{
	struct work *work = data;
	(void)verdict;
	if (!*group)
		ll_strbuf_addf(&work->reports, "root %d\n", ll_fence_count_processes(group_fd));
	return *group ? -ECANCELED : 0;
}

int ll_fence_close(struct ll_fence *fence, struct ll_err *err)
{
	struct work work = {.fence = fence, .reports = LL_STRBUF_INIT};
	int rc = prepare(fence, err);
	if (rc)
		return rc == -EPERM ? fail_group(rc, err) : rc;
	rc = fail_group(ll_fence_walk(&fence->tree, close_group, &work), err);
	ll_fence_walk_below(&fence->tree, "", report_root, &work);
	/* Also after an error: what is closed must be known to open it. */
	int written = write_state(&work, rc ? NULL : err);
	ll_strbuf_fini(&work.reports);
	return rc ? rc : written;
}

/* ---- opening ---- */

static int detach_group(void *data, const char *group, int group_fd, enum ll_fence_verdict verdict)
{
	(void)data;
	(void)group;
	(void)verdict;
	int rc = ll_fence_filter_detach(group_fd);
	return rc < 0 ? rc : 0;
}

/* A group that was closed may stay open by another rule now, so all are looked at. */
int ll_fence_open(struct ll_fence *fence, struct ll_err *err)
{
	int rc = fail_group(ll_fence_walk_below(&fence->tree, "", detach_group, NULL), err);
	if (!rc)
		ll_fence_state_remove();
	return rc;
}

/* ---- showing ---- */

static int show_group(void *data, const char *group, int group_fd, enum ll_fence_verdict verdict)
{
	struct work *work = data;
	int is_closed = ll_fence_filter_is_attached(group_fd);
	if (is_closed < 0)
		return is_closed;
	if (verdict == LL_FENCE_PARTLY) {
		int count = ll_fence_count_processes(group_fd);
		if (count > 0)
			ll_strbuf_addf(&work->reports, "partly %s: %d processes of its own are not fenced\n", group,
				       count);
		return 0;
	}
	is_closed = is_closed && verdict == LL_FENCE_CLOSED;
	work->is_incomplete |= verdict == LL_FENCE_CLOSED && !is_closed;
	ll_strbuf_addf(&work->reports, "%s %s\n", is_closed ? "closed" : "open", group);
	return 0;
}

int ll_fence_show(struct ll_fence *fence, FILE *out, struct ll_err *err)
{
	struct work work = {.fence = fence, .reports = LL_STRBUF_INIT};
	int rc = fail_group(ll_fence_walk(&fence->tree, show_group, &work), err);
	if (!rc)
		fputs(work.reports.buf, out);
	ll_strbuf_fini(&work.reports);
	return rc ? rc : work.is_incomplete;
}
