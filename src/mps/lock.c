#include "mps/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"

enum { POLL_MS = 5 };

int ll_mps_lock(const char *folder, uint64_t deadline_ns, int *ret_fd, struct ll_err *err)
{
	LL_SCOPE_CLOSE int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return ll_err_set(err, -errno, "MPS: %.200s: %s", folder, strerror(errno));
	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return ll_err_set(err, -errno, "MPS: lock %.200s: %s", folder, strerror(errno));
		if (ll_now_ns() >= deadline_ns) {
			ll_err_set(err, -EAGAIN, "MPS: another loadline is at work at %.200s", folder);
			return ll_err_hint(err, "try again when it is done");
		}
		ll_sleep_until_ns(ll_now_ns() + POLL_MS * LL_NS_PER_MS);
	}
	*ret_fd = fd;
	fd = -1;
	return 0;
}
