#include "protocol/start.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/err.h"
#include "base/scope.h"

_Static_assert((int)LL_DAEMON_LISTEN_FD == (int)LL_CHILD_FIRST_FD, "the first descriptor that a child gets");

int ll_daemon_start_on(int listen_fd, const struct ll_place *place, const struct ll_programs *programs,
		       struct ll_err *err)
{
	const char *words[] = {"loadlined", "--serve", place->name, programs->daemon, programs->monitor, NULL};
	struct ll_detach detach = {.path = programs->daemon, .words = words, .fds = &listen_fd, .fd_count = 1};
	int rc = ll_detach_start(&detach, err);
	return rc ? ll_err_wrap(err, "start %.200s", programs->daemon) : 0;
}

int ll_daemon_start(const struct ll_place *place, const struct ll_programs *programs, struct ll_err *err)
{
	LL_SCOPE_CLOSE int fd = -1;
	if (ll_place_is_system(place))
		return ll_err_set(err, -ECONNREFUSED, "the system's loadlined does not run (%s)", place->name);
	int rc = ll_place_listen(place, &fd);
	if (rc)
		return ll_err_set(err, rc, "@%s: %s", place->name, strerror(-rc));
	return ll_daemon_start_on(fd, place, programs, err);
}

int ll_daemon_reach(const struct ll_place *place, const struct ll_programs *programs, uint64_t until_ns, int *ret_fd,
		    uid_t *ret_uid)
{
	int rc = ll_place_connect_by(place, until_ns, ret_fd, ret_uid);
	if (rc != -ECONNREFUSED)
		return rc;
	rc = ll_daemon_start(place, programs, NULL);
	return !rc || rc == -EADDRINUSE ? ll_place_connect_by(place, until_ns, ret_fd, ret_uid) : rc;
}

int ll_monitor_start(int run_fd, int lifeline_fd, int process_fd, const struct ll_place *place,
		     const struct ll_programs *programs, struct ll_err *err)
{
	const int fds[] = {run_fd, lifeline_fd, process_fd};
	const char *words[] = {"loadline-job", place->name, programs->daemon, programs->monitor, NULL};
	struct ll_detach detach = {
	    .path = programs->monitor, .words = words, .fds = fds, .fd_count = sizeof fds / sizeof *fds};
	int rc = ll_detach_start(&detach, err);
	return rc ? ll_err_wrap(err, "start %.200s", programs->monitor) : 0;
}
