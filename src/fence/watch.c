#include "fence/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"

enum { AGAIN_MS = 5000, EVENTS_SIZE = 8192 };

struct watch {
	struct ll_fence *fence;
	int events_fd, signals_fd;
	bool is_wanted, has_failed;
};

static int open_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int watch_group(void *data, const char *group, int group_fd, enum ll_fence_verdict verdict)
{
	char path[64];
	const struct watch *watch = data;
	(void)group;
	/* A folder that is watched already is not watched twice. */
	snprintf(path, sizeof path, "/proc/self/fd/%d", group_fd);
	if (verdict == LL_FENCE_PARTLY)
		inotify_add_watch(watch->events_fd, path, IN_CREATE | IN_MOVED_TO);
	return 0;
}

/* The groups are watched before they are looked at, so that none is missed. */
static int close_all(struct watch *watch, struct ll_err *err)
{
	inotify_add_watch(watch->events_fd, watch->fence->tree.root, IN_CREATE | IN_MOVED_TO);
	ll_fence_walk(&watch->fence->tree, watch_group, watch);
	return ll_fence_close(watch->fence, err);
}

/* Logs an error once, until it works again. */
static void close_again(struct watch *watch)
{
	struct ll_err err = {0};
	int rc = close_all(watch, &err);
	if (rc && !watch->has_failed)
		ll_error("%s; what is closed stays so", err.text);
	else if (!rc && watch->has_failed)
		ll_warn("the fence is closed again");
	watch->has_failed = rc != 0;
}

/* Returns false if the watch shall end. */
static bool read_signals(struct watch *watch, ll_fence_wants_fn wants, void *data)
{
	struct signalfd_siginfo info;
	struct ll_err err = {0};
	while (read(watch->signals_fd, &info, sizeof info) == (ssize_t)sizeof info) {
		if (info.ssi_signo != SIGHUP)
			return false;
		int wanted = wants(data);
		if (wanted < 0 || wanted == watch->is_wanted)
			continue;
		watch->is_wanted = wanted;
		if (!wanted && ll_fence_open(watch->fence, &err))
			ll_error("%s", err.text);
		else
			ll_warn(wanted ? "the fence is closed" : "the fence is open");
	}
	return true;
}

static void run_watch(struct watch *watch, ll_fence_wants_fn wants, void *data)
{
	char events[EVENTS_SIZE];
	for (;;) {
		struct pollfd fds[] = {{.fd = watch->signals_fd, .events = POLLIN},
				       {.fd = watch->events_fd, .events = POLLIN}};
		poll(fds, 2, AGAIN_MS);
		if (fds[0].revents && !read_signals(watch, wants, data))
			return;
		while (read(watch->events_fd, events, sizeof events) > 0)
			;
		if (watch->is_wanted)
			close_again(watch);
	}
}

int ll_fence_watch(struct ll_fence *fence, ll_fence_wants_fn wants, void *data, struct ll_err *err)
{
	struct watch watch = {fence, inotify_init1(IN_CLOEXEC | IN_NONBLOCK), open_signals(), false, false};
	int wanted = wants(data), rc = 0;
	if (watch.events_fd < 0 || watch.signals_fd < 0)
		rc = ll_err_set(err, -errno, "fence: %s", strerror(errno));
	watch.is_wanted = wanted > 0;
	if (!rc && watch.is_wanted)
		rc = close_all(&watch, err);
	if (!rc) {
		ll_warn(watch.is_wanted ? "the fence is closed; `loadline-fence off` opens it"
					: "the configuration does not ask for the fence (enforce.devices)");
		run_watch(&watch, wants, data);
		rc = ll_fence_open(fence, err);
	}
	close(watch.events_fd);
	close(watch.signals_fd);
	return rc;
}
