#include "hold/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "hold/pacer_shared.h"
#include "hold/worker_spawn.h"

#define REAP_WITHIN_NS (100 * LL_NS_PER_MS) /* from SIGKILL to the end of a process that a kernel lets end */
#define LOOK_EVERY_NS LL_NS_PER_MS

struct lane {
	struct ll_worker_lane is; /* shared NULL: removed */
	bool has_killed;          /* about the process that runs, or ran last */
};

struct ll_worker {
	pthread_t keeper;
	pthread_mutex_t lock; /* guards all below; taken before a page's */
	pthread_cond_t changed;
	bool is_ending;  /* the keeper must end */
	bool is_wanted;  /* a process must be started */
	bool is_running; /* a process was started, and its end is not noted yet */
	bool is_stopped; /* this worker has stopped the process: its lanes are kept parked */
	pid_t pid;
	size_t count;
	struct lane lanes[];
};

/* How a process ended. */
struct end {
	bool is_clean; /* its last lane had ended */
	char text[64]; /* "exit status 1", "signal 9 (Killed)" */
};

/* ---- a process's end, written to the lanes' pages; all with the lock held ---- */

static size_t count_served(const struct ll_worker *worker)
{
	size_t served = 0;
	for (size_t i = 0; i < worker->count; i++) {
		struct ll_pacer_shared *shared = worker->lanes[i].is.shared;
		if (!shared)
			continue;
		LL_SCOPE_SHARED_LOCK(shared);
		served += shared->lane == LL_LANE_SERVED;
	}
	return served;
}

static bool was_killed(const struct ll_worker *worker)
{
	for (size_t i = 0; i < worker->count; i++) {
		if (worker->lanes[i].has_killed)
			return true;
	}
	return false;
}

/* If no governor killed the process, a lane that was making its context is the likely cause, and a lane that was alone
 * is the cause. */
static bool is_bystander(const struct ll_pacer_shared *shared, bool has_others)
{
	return has_others && (shared->lane == LL_LANE_ASKED || shared->report.state == LL_PACER_OPEN);
}

/* The lane's process is gone, and with it everything that it had on the card. True: the lane still needs a process. */
static bool end_lane(const struct lane *lane, const struct end *end, size_t served, bool killed)
{
	struct ll_pacer_shared *shared = lane->is.shared;
	LL_SCOPE_SHARED_LOCK(shared);
	struct ll_pacer_report *report = &shared->report;
	if (shared->lane == LL_LANE_FREE)
		return false;
	if (shared->lane == LL_LANE_ASKED && end->is_clean && !shared->is_ending)
		return true;
	size_t others = served - (shared->lane == LL_LANE_SERVED);
	bool is_innocent = killed ? !lane->has_killed : is_bystander(shared, others > 0);
	ll_pacer_shared_free_lane(shared);
	report->kills += lane->has_killed;
	if (report->state == LL_PACER_OPENING || report->state == LL_PACER_OPEN) {
		report->state = report->state == LL_PACER_OPEN ? LL_PACER_LOST : LL_PACER_FAILED;
		report->err = (struct ll_err){0};
		report->is_bystander = is_innocent;
		ll_err_set(&report->err, -EIO, "the payload process ended: %s", end->text);
	}
	return false;
}

static void note_end(struct ll_worker *worker, const struct end *end)
{
	size_t served = count_served(worker);
	bool killed = was_killed(worker);
	for (size_t i = 0; i < worker->count; i++) {
		struct lane *lane = &worker->lanes[i];
		if (!lane->is.shared)
			continue;
		worker->is_wanted |= end_lane(lane, end, served, killed);
		lane->has_killed = false;
		ll_pacer_wake(lane->is.governor_fd);
	}
}

static void fail_asked(struct ll_worker *worker, const struct ll_err *why)
{
	for (size_t i = 0; i < worker->count; i++) {
		struct ll_pacer_shared *shared = worker->lanes[i].is.shared;
		if (!shared)
			continue;
		LL_SCOPE_SHARED_LOCK(shared);
		if (shared->lane != LL_LANE_ASKED)
			continue;
		shared->report.state = LL_PACER_FAILED;
		shared->report.err = *why;
		ll_pacer_shared_free_lane(shared);
		ll_pacer_wake(worker->lanes[i].is.governor_fd);
	}
}

/* ---- stopping the process; all with the lock held ---- */

static void let_go_all(const struct ll_worker *worker)
{
	for (size_t i = 0; i < worker->count; i++) {
		if (worker->lanes[i].is.shared)
			ll_parking_let_go(&worker->lanes[i].is.shared->parking);
	}
}

static bool keep_all(const struct ll_worker *worker)
{
	for (size_t i = 0; i < worker->count; i++) {
		if (worker->lanes[i].is.shared && !ll_parking_keep(&worker->lanes[i].is.shared->parking))
			return false;
	}
	return true;
}

static void stop_if_parked(struct ll_worker *worker)
{
	if (worker->pid && !worker->is_stopped)
		worker->is_stopped = keep_all(worker) && kill(worker->pid, SIGSTOP) == 0;
	if (!worker->is_stopped)
		let_go_all(worker);
}

static void continue_process(struct ll_worker *worker)
{
	if (worker->is_stopped)
		kill(worker->pid, SIGCONT);
	worker->is_stopped = false;
	let_go_all(worker);
}

static void forget_parked(struct ll_worker *worker)
{
	worker->is_stopped = false;
	for (size_t i = 0; i < worker->count; i++) {
		if (worker->lanes[i].is.shared)
			ll_parking_forget(&worker->lanes[i].is.shared->parking);
	}
}

/* ---- one process ---- */

/* Copies of the data that one start needs, so that the lock is free during the start. */
struct launch {
	char *title;
	struct ll_worker_fds *fds;
	size_t lanes;
};

static void launch_fini(struct launch *launch)
{
	for (size_t i = 0; i < launch->lanes; i++)
		ll_worker_fds_close(&launch->fds[i]);
	free(launch->fds);
	free(launch->title);
}

static int launch_init(struct launch *launch, const struct ll_worker *worker, struct ll_err *err)
{
	struct ll_strbuf title = LL_STRBUF_INIT;
	ll_strbuf_adds(&title, "loadline-hold: synthetic load on ");
	*launch = (struct launch){.fds = calloc(worker->count, sizeof *launch->fds)};
	int rc = 0;
	for (size_t i = 0; i < worker->count && launch->fds && rc == 0; i++) {
		const struct ll_worker_lane *lane = &worker->lanes[i].is;
		if (!lane->shared)
			continue;
		const char *uuid = lane->shared->work.card_uuid;
		ll_strbuf_addf(&title, "%s%s", launch->lanes ? ", " : "", *uuid ? uuid : "no card");
		struct ll_worker_fds fds = {lane->page_fd, lane->governor_fd, lane->call_fd};
		rc = ll_worker_fds_dup(worker->count, &fds, &launch->fds[launch->lanes], err);
		launch->lanes += rc == 0;
	}
	launch->title = ll_strbuf_detach(&title);
	if (rc == 0 && (!launch->fds || !launch->title))
		rc = ll_err_set(err, -ENOMEM, "start the payload process: out of memory");
	if (rc < 0)
		launch_fini(launch);
	return rc;
}

static void describe_end(const siginfo_t *info, struct end *end)
{
	end->is_clean = info->si_code == CLD_EXITED && info->si_status == 0;
	if (info->si_code == CLD_EXITED)
		snprintf(end->text, sizeof end->text, "exit status %d", info->si_status);
	else
		snprintf(end->text, sizeof end->text, "signal %d (%.30s)", info->si_status, strsignal(info->si_status));
}

/* Leaves a zombie (WNOWAIT), so that no other process gets the number while ll_worker_kill may use it. */
static void wait_process(pid_t pid, struct end *end)
{
	siginfo_t info = {0};
	int rc;
	do
		rc = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	while (rc < 0 && errno == EINTR);
	if (rc == 0)
		describe_end(&info, end);
	else /* our parent made us ignore SIGCHLD, so the kernel has reaped the process */
		snprintf(end->text, sizeof end->text, "unknown status");
}

/* Called and returns with the lock held. */
static void run_process(struct ll_worker *worker)
{
	struct launch launch;
	struct ll_err err = {0};
	pid_t pid = 0;
	int rc = launch_init(&launch, worker, &err);
	if (rc == 0) {
		pthread_mutex_unlock(&worker->lock);
		rc = ll_worker_spawn(launch.title, launch.fds, launch.lanes, &pid, &err);
		launch_fini(&launch);
		pthread_mutex_lock(&worker->lock);
	}
	worker->is_wanted = false;
	worker->is_running = rc == 0;
	worker->pid = pid;
	if (rc < 0)
		fail_asked(worker, &err);
	pthread_cond_broadcast(&worker->changed);
	if (rc < 0)
		return;
	struct end end = {0};
	pthread_mutex_unlock(&worker->lock);
	wait_process(pid, &end);
	pthread_mutex_lock(&worker->lock);
	waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOHANG);
	worker->pid = 0;
	worker->is_running = false;
	forget_parked(worker);
	note_end(worker, &end);
}

/* For tests: runs the loop in this thread. */
static void run_loop(struct ll_worker *worker)
{
	struct ll_worker_lane lane = worker->lanes[0].is;
	worker->is_wanted = false;
	worker->is_running = true;
	pthread_cond_broadcast(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
	if (ll_pacer_shared_take_lane(lane.shared))
		ll_pacer_loop(lane.loop);
	pthread_mutex_lock(&worker->lock);
	worker->is_running = false;
	note_end(worker, &(struct end){.is_clean = true, .text = "end of thread"});
}

static void *keeper_main(void *arg)
{
	struct ll_worker *worker = arg;
	pthread_setname_np(pthread_self(), "ll-keeper");
	LL_SCOPE_LOCK(&worker->lock);
	while (!worker->is_ending) {
		if (!worker->is_wanted)
			pthread_cond_wait(&worker->changed, &worker->lock);
		else if (worker->lanes[0].is.loop)
			run_loop(worker);
		else
			run_process(worker);
	}
	return NULL;
}

/* ---- for the pacers ---- */

int ll_worker_new(size_t max_lanes, struct ll_worker **ret_worker, struct ll_err *err)
{
	struct ll_worker *worker = calloc(1, sizeof *worker + max_lanes * sizeof worker->lanes[0]);
	if (!worker)
		return ll_err_set(err, -ENOMEM, "make ready a payload process: out of memory");
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->changed, NULL);
	int rc = pthread_create(&worker->keeper, NULL, keeper_main, worker);
	if (rc != 0) {
		free(worker);
		return ll_err_set(err, -rc, "make ready a payload process: %s", strerror(rc));
	}
	*ret_worker = worker;
	return 0;
}

size_t ll_worker_add(struct ll_worker *worker, const struct ll_worker_lane *lane)
{
	LL_SCOPE_LOCK(&worker->lock);
	lane->shared->governor_pid = getpid();
	worker->lanes[worker->count] = (struct lane){.is = *lane};
	return worker->count++;
}

void ll_worker_remove(struct ll_worker *worker, size_t lane)
{
	LL_SCOPE_LOCK(&worker->lock);
	worker->lanes[lane].is.shared = NULL;
}

void ll_worker_rest(struct ll_worker *worker)
{
	LL_SCOPE_LOCK(&worker->lock);
	stop_if_parked(worker);
}

void ll_worker_rouse(struct ll_worker *worker)
{
	LL_SCOPE_LOCK(&worker->lock);
	continue_process(worker);
}

void ll_worker_ask(struct ll_worker *worker, size_t lane)
{
	LL_SCOPE_LOCK(&worker->lock);
	ll_parking_call(&worker->lanes[lane].is.shared->parking);
	continue_process(worker);
	ll_pacer_wake(worker->lanes[lane].is.call_fd);
	if (!worker->is_running) {
		worker->is_wanted = true;
		pthread_cond_broadcast(&worker->changed);
	}
	while (worker->is_wanted)
		pthread_cond_wait(&worker->changed, &worker->lock);
}

bool ll_worker_kill(struct ll_worker *worker, size_t lane)
{
	LL_SCOPE_LOCK(&worker->lock);
	if (!worker->pid)
		return false;
	worker->lanes[lane].has_killed = true;
	kill(worker->pid, SIGKILL);
	return true;
}

pid_t ll_worker_pid(struct ll_worker *worker)
{
	LL_SCOPE_LOCK(&worker->lock);
	return worker->pid;
}

bool ll_worker_free(struct ll_worker *worker)
{
	if (!worker)
		return true;
	{
		LL_SCOPE_LOCK(&worker->lock);
		worker->is_ending = true;
		if (worker->pid)
			kill(worker->pid, SIGKILL);
		pthread_cond_broadcast(&worker->changed);
	}
	uint64_t until_ns = ll_now_ns() + REAP_WITHIN_NS;
	/* Not pthread_clockjoin_np: ThreadSanitizer does not know it. */
	while (pthread_tryjoin_np(worker->keeper, NULL) != 0) {
		if (ll_now_ns() >= until_ns) {
			pthread_detach(worker->keeper);
			return false;
		}
		ll_sleep_until_ns(ll_now_ns() + LOOK_EVERY_NS);
	}
	pthread_cond_destroy(&worker->changed);
	pthread_mutex_destroy(&worker->lock);
	free(worker);
	return true;
}

bool ll_worker_is_asked(int argc, char **argv)
{
	return argc > 1 && strcmp(argv[1], LL_WORKER_WORD) == 0;
}
