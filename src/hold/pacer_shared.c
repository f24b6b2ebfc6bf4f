#include "hold/pacer_shared.h"

#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x3072656361706c6c) /* "llpacer0" */

static void init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

/* NULL: it failed. */
static struct ll_pacer_shared *map_page(int fd, struct ll_err *err)
{
	void *page = mmap(NULL, sizeof(struct ll_pacer_shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page != MAP_FAILED)
		return page;
	ll_err_set(err, -ENOMEM, "map the pacer's page: %s", strerror(errno));
	return NULL;
}

int ll_pacer_shared_new(struct ll_pacer_shared **ret_shared, int *ret_fd, struct ll_err *err)
{
	LL_SCOPE_CLOSE int fd = memfd_create("loadline-hold", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, sizeof **ret_shared) < 0)
		return ll_err_set(err, -errno, "make the pacer's page: %s", strerror(errno));
	struct ll_pacer_shared *shared = map_page(fd, err);
	if (!shared)
		return -ENOMEM;
	shared->magic = MAGIC;
	init_lock(&shared->lock);
	*ret_shared = shared;
	*ret_fd = fd;
	fd = -1;
	return 0;
}

int ll_pacer_shared_map(int fd, struct ll_pacer_shared **ret_shared, struct ll_err *err)
{
	struct stat st;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != (off_t)sizeof **ret_shared)
		return ll_err_set(err, -EINVAL, "not a pacer's page");
	struct ll_pacer_shared *shared = map_page(fd, err);
	if (!shared)
		return -ENOMEM;
	if (shared->magic != MAGIC) {
		ll_pacer_shared_unmap(shared);
		return ll_err_set(err, -EINVAL, "not a pacer's page");
	}
	*ret_shared = shared;
	return 0;
}

void ll_pacer_shared_unmap(struct ll_pacer_shared *shared)
{
	if (shared)
		munmap(shared, sizeof *shared);
}

void ll_pacer_shared_state(struct ll_pacer_shared *shared, enum ll_pacer_state state, const struct ll_err *why)
{
	LL_SCOPE_SHARED_LOCK(shared);
	shared->report.state = state;
	if (why)
		shared->report.err = *why;
}

bool ll_pacer_shared_take_lane(struct ll_pacer_shared *shared)
{
	LL_SCOPE_SHARED_LOCK(shared);
	bool is_asked = shared->lane == LL_LANE_ASKED;
	if (is_asked)
		shared->lane = LL_LANE_SERVED;
	return is_asked;
}

void ll_pacer_shared_free_lane(struct ll_pacer_shared *shared)
{
	shared->lane = LL_LANE_FREE;
	shared->report.outstanding = 0;
	if (shared->is_ending)
		shared->report.state = LL_PACER_CLOSED;
}

bool ll_pacer_shared_goes_alone(const struct ll_pacer_shared *shared)
{
	const struct ll_pacer_report *report = &shared->report;
	bool cannot_work = report->err.code == -ENODEV || report->err.code == -ENOSYS;
	return shared->work.may_go_alone && report->state == LL_PACER_FAILED && cannot_work;
}

void ll_pacer_sleep(int fd, int timeout_ms)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	uint64_t count;
	if (poll(&pfd, 1, timeout_ms) > 0) {
		ssize_t n = read(fd, &count, sizeof count);
		(void)n;
	}
}

void ll_pacer_wake(int fd)
{
	if (fd < 0)
		return;
	uint64_t one = 1;
	/* Full only when nobody has looked for 2^64 events: nothing is lost. */
	ssize_t n = write(fd, &one, sizeof one);
	(void)n;
}
