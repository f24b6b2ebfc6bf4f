#include "hold/pacer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

/* ---- pacer shared ---- */

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

bool ll_join_until(pthread_t thread, uint64_t deadline_ns)
{
	/* Not pthread_clockjoin_np: ThreadSanitizer does not know it. */
	while (pthread_tryjoin_np(thread, NULL) != 0) {
		if (ll_now_ns() >= deadline_ns)
			return false;
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);
	}
	return true;
}

/* ---- pacer ---- */

#define REAP_WITHIN_NS (100 * LL_NS_PER_MS) /* from SIGKILL to the end of a process that a kernel lets end */
#define LOOK_EVERY_NS LL_NS_PER_MS

struct ll_pacer {
	struct ll_pacer_shared *shared;
	int page_fd;
	int call_fd;
	int governor_fd;
	bool wants_context;
	struct ll_worker *worker; /* NULL: none yet; the pacer will make its own */
	size_t lane;              /* of the worker */
	bool owns_worker;
	const struct ll_payload_ops *alone_ops; /* used after the shared worker */
	uint64_t kill_at_ns;                    /* when a worker that was told to end is killed; 0: it was not told */
	bool has_killed;

	bool runs_in_thread;
	struct ll_pacer_loop_config loop;
};

static void set_state(struct ll_pacer *pacer, enum ll_pacer_state state, const struct ll_err *why)
{
	ll_pacer_shared_state(pacer->shared, state, why);
}

/* Wakes the lane: its page has something new. */
static void call_lane(struct ll_pacer *pacer)
{
	ll_parking_call(&pacer->shared->parking);
	if (pacer->worker)
		ll_worker_rouse(pacer->worker);
	ll_pacer_wake(pacer->call_fd);
}

static enum ll_pacer_state get_state(struct ll_pacer *pacer)
{
	LL_SCOPE_SHARED_LOCK(pacer->shared);
	return pacer->shared->report.state;
}

/* Whether something of the lane may be on the card. */
static bool is_busy(struct ll_pacer *pacer)
{
	LL_SCOPE_SHARED_LOCK(pacer->shared);
	return pacer->shared->lane != LL_LANE_FREE;
}

static bool must_go_alone(struct ll_pacer *pacer)
{
	LL_SCOPE_SHARED_LOCK(pacer->shared);
	return pacer->shared->lane == LL_LANE_FREE && ll_pacer_shared_goes_alone(pacer->shared);
}

/* ---- the worker ---- */

static void join_worker(struct ll_pacer *pacer, struct ll_worker *worker)
{
	struct ll_worker_lane lane = {
	    .shared = pacer->shared,
	    .page_fd = pacer->page_fd,
	    .governor_fd = pacer->governor_fd,
	    .call_fd = pacer->call_fd,
	    .loop = pacer->runs_in_thread ? &pacer->loop : NULL,
	};
	pacer->worker = worker;
	pacer->lane = ll_worker_add(worker, &lane);
}

static int make_worker(struct ll_pacer *pacer, struct ll_err *err)
{
	struct ll_worker *worker;
	int rc = ll_worker_new(1, &worker, err);
	if (rc < 0)
		return rc;
	pacer->owns_worker = true;
	join_worker(pacer, worker);
	return 0;
}

/* Another payload gets a worker of its own, so that its faults and its remaining memory do not affect the other
 * cards. */
static void go_alone(struct ll_pacer *pacer)
{
	struct ll_pacer_work *work = &pacer->shared->work;
	ll_worker_remove(pacer->worker, pacer->lane);
	pacer->worker = NULL;
	work->may_go_alone = false;
	snprintf(work->payload_name, sizeof work->payload_name, "%s", pacer->alone_ops->name);
	set_state(pacer, LL_PACER_CLOSED, NULL);
}

/* ---- one context ---- */

static void ask_for_context(struct ll_pacer *pacer)
{
	struct ll_err err = {0};
	if (!pacer->worker && make_worker(pacer, &err) < 0) {
		set_state(pacer, LL_PACER_FAILED, &err);
		return;
	}
	{
		LL_SCOPE_SHARED_LOCK(pacer->shared);
		pacer->shared->lane = LL_LANE_ASKED;
		pacer->shared->is_ending = false;
		pacer->shared->report.state = LL_PACER_OPENING;
		pacer->shared->report.is_bystander = false;
	}
	pacer->kill_at_ns = 0;
	pacer->has_killed = false;
	ll_worker_ask(pacer->worker, pacer->lane);
}

/* False: the lane has no context. */
static bool tell_to_end(struct ll_pacer *pacer)
{
	LL_SCOPE_SHARED_LOCK(pacer->shared);
	if (pacer->shared->lane == LL_LANE_FREE)
		return false;
	pacer->shared->is_ending = true;
	return true;
}

/* Ends the context, by kill_at_ns at the latest. A free lane has none. */
static void end_context(struct ll_pacer *pacer, uint64_t kill_at_ns)
{
	if (!tell_to_end(pacer)) {
		if (must_go_alone(pacer))
			go_alone(pacer);
		set_state(pacer, LL_PACER_CLOSED, NULL);
		return;
	}
	if (pacer->kill_at_ns == 0 || kill_at_ns < pacer->kill_at_ns)
		pacer->kill_at_ns = kill_at_ns;
	call_lane(pacer);
}

/* Does the next steps of an open or close that need no waiting. */
static void advance_context(struct ll_pacer *pacer)
{
	if (is_busy(pacer)) {
		if (pacer->kill_at_ns && !pacer->has_killed && ll_now_ns() >= pacer->kill_at_ns)
			pacer->has_killed = ll_worker_kill(pacer->worker, pacer->lane);
		return;
	}
	if (must_go_alone(pacer))
		go_alone(pacer);
	if (pacer->wants_context && get_state(pacer) == LL_PACER_CLOSED)
		ask_for_context(pacer);
}

/* ---- for the governor ---- */

static void copy_work(struct ll_pacer_work *work, const struct ll_pacer_config *config)
{
	*work = (struct ll_pacer_work){
	    .payload = config->payload,
	    .limits = config->limits,
	    .manners = config->manners,
	    .step_back_ns = config->step_back_ns,
	};
	snprintf(work->payload_name, sizeof work->payload_name, "%s", config->payload_ops->name);
	if (config->card)
		snprintf(work->card_uuid, sizeof work->card_uuid, "%s", config->card->uuid);
	if (!config->jobs_places)
		return;
	work->jobs_places = *config->jobs_places;
	snprintf(work->jobs_uuid, sizeof work->jobs_uuid, "%s", config->jobs_uuid);
}

static void init_thread(struct ll_pacer *pacer, const struct ll_pacer_config *config)
{
	pacer->runs_in_thread = true;
	pacer->loop = (struct ll_pacer_loop_config){
	    .shared = pacer->shared,
	    .card = config->card,
	    .payload_ops = config->payload_ops,
	    .governor_fd = config->wake_fd,
	    .call_fd = pacer->call_fd,
	};
}

static int init_pacer(struct ll_pacer *pacer, const struct ll_pacer_config *config, struct ll_err *err)
{
	pacer->call_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (pacer->call_fd < 0)
		return ll_err_set(err, -errno, "start the pacer: %s", strerror(errno));
	int rc = ll_pacer_shared_new(&pacer->shared, &pacer->page_fd, err);
	if (rc < 0 || !pacer->shared)
		return rc;
	copy_work(&pacer->shared->work, config);
	if (config->runs_in_thread)
		init_thread(pacer, config);
	if (!config->worker)
		return 0;
	pacer->alone_ops = config->alone_ops;
	pacer->shared->work.may_go_alone = config->alone_ops != NULL;
	join_worker(pacer, config->worker);
	return 0;
}

static void destroy_pacer(struct ll_pacer *pacer)
{
	ll_pacer_shared_unmap(pacer->shared);
	if (pacer->page_fd >= 0)
		close(pacer->page_fd);
	if (pacer->call_fd >= 0)
		close(pacer->call_fd);
	free(pacer);
}

int ll_pacer_new(const struct ll_pacer_config *config, struct ll_pacer **ret_pacer, struct ll_err *err)
{
	struct ll_pacer *pacer = calloc(1, sizeof *pacer);
	if (!pacer)
		return ll_err_set(err, -ENOMEM, "start the pacer: out of memory");
	pacer->page_fd = -1;
	pacer->governor_fd = config->wake_fd;
	int rc = init_pacer(pacer, config, err);
	if (rc < 0) {
		destroy_pacer(pacer);
		return rc;
	}
	*ret_pacer = pacer;
	return 0;
}

void ll_pacer_open(struct ll_pacer *pacer)
{
	enum ll_pacer_state state = get_state(pacer);
	pacer->wants_context = true;
	if (state == LL_PACER_FAILED || state == LL_PACER_LOST)
		end_context(pacer, ll_now_ns() + LL_PACER_CLOSE_WITHIN_NS);
	advance_context(pacer);
}

void ll_pacer_close(struct ll_pacer *pacer)
{
	pacer->wants_context = false;
	end_context(pacer, ll_now_ns() + LL_PACER_CLOSE_WITHIN_NS);
	advance_context(pacer);
}

void ll_pacer_send_order(struct ll_pacer *pacer, const struct ll_pacer_order *order)
{
	bool is_start;
	{
		LL_SCOPE_SHARED_LOCK(pacer->shared);
		struct ll_pacer_shared *shared = pacer->shared;
		is_start =
		    order->is_running && (!shared->order.is_running || order->generation != shared->order.generation);
		shared->order = *order;
		if (is_start)
			shared->report.is_halted = order->generation == shared->halted_generation;
	}
	if (is_start)
		call_lane(pacer);
}

void ll_pacer_look(struct ll_pacer *pacer)
{
	call_lane(pacer);
}

void ll_pacer_rest(struct ll_pacer *pacer)
{
	if (pacer->worker)
		ll_worker_rest(pacer->worker);
}

void ll_pacer_read_report(struct ll_pacer *pacer, struct ll_pacer_report *ret_report)
{
	advance_context(pacer);
	{
		LL_SCOPE_SHARED_LOCK(pacer->shared);
		*ret_report = pacer->shared->report;
		if (pacer->shared->lane != LL_LANE_FREE && pacer->shared->is_ending)
			ret_report->state = LL_PACER_CLOSING;
		else if (ll_pacer_shared_goes_alone(pacer->shared)) /* one of the next reports will handle it */
			ret_report->state = LL_PACER_OPENING;
	}
	ret_report->taken_ns = ll_now_ns();
	/* Read after the state, so that a report never names the process of a context that was lost with it. */
	ret_report->pid = pacer->worker ? ll_worker_pid(pacer->worker) : 0;
}

size_t ll_pacer_take_intervals(struct ll_pacer *pacer, struct ll_interval *ret_intervals, size_t max)
{
	LL_SCOPE_SHARED_LOCK(pacer->shared);
	struct ll_pacer_shared *shared = pacer->shared;
	size_t n = 0;
	while (n < max && shared->intervals_tail < shared->intervals_head)
		ret_intervals[n++] = shared->intervals[shared->intervals_tail++ % LL_PACER_INTERVALS];
	return n;
}

bool ll_pacer_free(struct ll_pacer *pacer, uint64_t timeout_ns)
{
	if (!pacer)
		return true;
	uint64_t until_ns = ll_now_ns() + timeout_ns;
	pacer->wants_context = false;
	end_context(pacer, until_ns);
	for (advance_context(pacer); is_busy(pacer) && ll_now_ns() < until_ns + REAP_WITHIN_NS; advance_context(pacer))
		ll_sleep_until_ns(ll_now_ns() + LOOK_EVERY_NS);
	bool ended_by_itself = !is_busy(pacer) && !pacer->has_killed;
	if (pacer->worker)
		ll_worker_remove(pacer->worker, pacer->lane);
	bool is_joined = !pacer->owns_worker || ll_worker_free(pacer->worker);
	if (is_joined || !pacer->runs_in_thread)
		destroy_pacer(pacer);
	return ended_by_itself;
}
