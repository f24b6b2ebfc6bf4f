#include "hold/pacer.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "hold/payload.h"

/* ---- parking ---- */

enum { AWAKE, PARKED, KEPT };

uint32_t ll_parking_listen(const struct ll_parking *parking)
{
	return atomic_load(&parking->calls);
}

void ll_parking_park(struct ll_parking *parking, uint32_t heard)
{
	atomic_store(&parking->heard, heard);
	atomic_store(&parking->state, PARKED);
}

/* A kept thread waits. The other side soon stops the process or lets the thread go. */
void ll_parking_leave(struct ll_parking *parking)
{
	uint32_t state = PARKED;
	while (!atomic_compare_exchange_strong(&parking->state, &state, AWAKE) && state == KEPT) {
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);
		state = PARKED;
	}
}

void ll_parking_call(struct ll_parking *parking)
{
	atomic_fetch_add(&parking->calls, 1);
}

bool ll_parking_keep(struct ll_parking *parking)
{
	uint32_t state = PARKED;
	if (!atomic_compare_exchange_strong(&parking->state, &state, KEPT))
		return false;
	if (atomic_load(&parking->heard) == atomic_load(&parking->calls))
		return true;
	atomic_store(&parking->state, PARKED);
	return false;
}

void ll_parking_let_go(struct ll_parking *parking)
{
	uint32_t state = KEPT;
	atomic_compare_exchange_strong(&parking->state, &state, PARKED);
}

void ll_parking_forget(struct ll_parking *parking)
{
	atomic_store(&parking->state, AWAKE);
}

/* ---- the start of the process ---- */

/*
 * The process finds its descriptors by number: 0 to 2 as usual, then three for each lane, one lane after the other. It
 * takes as many lanes as it finds. No other descriptor is open in it.
 */
enum { FD_PAGE, FD_GOVERNOR, FD_CALL, FDS_PER_LANE };

/* Returns the number that this descriptor of this lane has in the process. */
static int fd_number(size_t lane, int which)
{
	return LL_CHILD_FIRST_FD + (int)lane * FDS_PER_LANE + which;
}

/* Copies of the data that one start needs, so that the lock is free during the start. */
struct launch {
	char *title;
	int *fds; /* of one lane after the other */
	size_t lanes;
};

static void launch_fini(struct launch *launch)
{
	for (size_t i = 0; i < launch->lanes * FDS_PER_LANE; i++) {
		if (launch->fds[i] >= 0)
			close(launch->fds[i]);
	}
	free(launch->fds);
	free(launch->title);
}

/* Duplicates a lane's descriptors, to numbers above those that the process expects. */
static int copy_fds(struct launch *launch, const struct ll_worker_lane *lane, size_t lanes, struct ll_err *err)
{
	const int from[FDS_PER_LANE] = {
	    [FD_PAGE] = lane->page_fd, [FD_GOVERNOR] = lane->governor_fd, [FD_CALL] = lane->call_fd};
	int *fds = launch->fds + launch->lanes++ * FDS_PER_LANE;
	for (int i = 0; i < FDS_PER_LANE; i++)
		fds[i] = -1;
	for (int i = 0; i < FDS_PER_LANE; i++) {
		if (from[i] < 0) /* nobody to wake: the worker writes to /dev/null */
			continue;
		fds[i] = fcntl(from[i], F_DUPFD_CLOEXEC, fd_number(lanes, 0));
		if (fds[i] < 0)
			return ll_err_set(err, -errno, "start the payload process: %s", strerror(errno));
	}
	return 0;
}

/* The kernel sends the process SIGKILL when the calling thread ends. */
static int start_process(const struct launch *launch, pid_t *ret_pid, struct ll_err *err)
{
	const char *words[] = {launch->title, LL_WORKER_WORD, NULL};
	sigset_t quiet;
	ll_child_group_signals(&quiet);
	struct ll_child child = {
	    .words = words,
	    .in = LL_CHILD_NULL,
	    .out = LL_CHILD_NULL,
	    .err = LL_CHILD_RELAYED,
	    .fds = launch->fds,
	    .fd_count = launch->lanes * FDS_PER_LANE,
	    .mask = &quiet,
	    .flags = LL_CHILD_OWN_GROUP,
	};
	return ll_child_start(&child, ret_pid, err) ? ll_err_wrap(err, "start the payload process") : 0;
}

/* ---- worker ---- */

#define REAP_WITHIN_NS (100 * LL_NS_PER_MS) /* from SIGKILL to the end of a process that a kernel lets end */

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

static int launch_init(struct launch *launch, const struct ll_worker *worker, struct ll_err *err)
{
	struct ll_strbuf title = LL_STRBUF_INIT;
	ll_strbuf_adds(&title, "loadline-hold: synthetic load on ");
	*launch = (struct launch){.fds = calloc(worker->count, FDS_PER_LANE * sizeof *launch->fds)};
	int rc = 0;
	for (size_t i = 0; i < worker->count && launch->fds && rc == 0; i++) {
		const struct ll_worker_lane *lane = &worker->lanes[i].is;
		if (!lane->shared)
			continue;
		const char *uuid = lane->shared->work.card_uuid;
		ll_strbuf_addf(&title, "%s%s", launch->lanes ? ", " : "", *uuid ? uuid : "no card");
		rc = copy_fds(launch, lane, worker->count, err);
	}
	launch->title = ll_strbuf_detach(&title);
	if (rc == 0 && (!launch->fds || !launch->title))
		rc = ll_err_set(err, -ENOMEM, "start the payload process: out of memory");
	if (rc < 0)
		launch_fini(launch);
	return rc;
}

/* Leaves a zombie (WNOWAIT), so that no other process gets the number while ll_worker_kill may use it. */
static void wait_process(pid_t pid, struct end *end)
{
	siginfo_t info = {0};
	int rc;
	do
		rc = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	while (rc < 0 && errno == EINTR);
	end->is_clean = rc == 0 && info.si_code == CLD_EXITED && info.si_status == 0;
	if (rc < 0) /* our parent made us ignore SIGCHLD, so the kernel has reaped the process */
		snprintf(end->text, sizeof end->text, "unknown status");
	else if (info.si_code == CLD_EXITED)
		snprintf(end->text, sizeof end->text, "exit status %d", info.si_status);
	else
		snprintf(end->text, sizeof end->text, "signal %d (%.30s)", info.si_status, strsignal(info.si_status));
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
		rc = start_process(&launch, &pid, &err);
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
	if (!ll_join_until(worker->keeper, ll_now_ns() + REAP_WITHIN_NS)) {
		pthread_detach(worker->keeper);
		return false;
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

/* ---- in the process ---- */

/* All lanes of this process. */
struct crew {
	const struct ll_payload_ops *const *payloads;
	pthread_mutex_t lock; /* guards busy, and with it the end of the process */
	size_t busy;          /* lanes that are served */
};

struct served_lane {
	struct crew *crew;
	struct ll_pacer_shared *shared;
	int governor_fd;
	int call_fd;
};

static int find_card(const char *uuid, struct ll_driver **ret_driver, const struct ll_card **ret_card,
		     struct ll_err *err)
{
	if (!*uuid)
		return 0;
	int rc = ll_driver_open(ret_driver, err);
	if (rc < 0)
		return rc;
	*ret_card = ll_cards_find_uuid(*ret_driver, uuid);
	return *ret_card ? 0 : ll_err_set(err, -ENODEV, "card %s: not there", uuid);
}

/* Runs the loop with the card and payload that the page names. An error: the loop could not start. */
static int run_lane(const struct served_lane *lane, struct ll_err *err)
{
	const struct ll_pacer_work *work = &lane->shared->work;
	struct ll_driver *driver = NULL;
	const struct ll_card *card = NULL;
	const struct ll_payload_ops *const *found = lane->crew->payloads;
	while (*found && strcmp((*found)->name, work->payload_name) != 0)
		found++;
	const struct ll_payload_ops *payload = *found;
	int rc = payload ? find_card(work->card_uuid, &driver, &card, err)
			 : ll_err_set(err, -EINVAL, "payload %s: unknown", work->payload_name);
	if (rc == 0) {
		struct ll_pacer_loop_config loop = {
		    .shared = lane->shared,
		    .card = card,
		    .payload_ops = payload,
		    .governor_fd = lane->governor_fd,
		    .call_fd = lane->call_fd,
		};
		ll_pacer_loop(&loop);
	}
	ll_driver_close(driver);
	return rc;
}

static bool begin_serving(const struct served_lane *lane)
{
	LL_SCOPE_LOCK(&lane->crew->lock);
	bool is_mine = ll_pacer_shared_take_lane(lane->shared);
	lane->crew->busy += is_mine;
	return is_mine;
}

/* Returns false if the lane moves to another worker. This process may then not touch its page any more. */
static bool free_lane(const struct served_lane *lane)
{
	LL_SCOPE_SHARED_LOCK(lane->shared);
	ll_pacer_shared_free_lane(lane->shared);
	return !ll_pacer_shared_goes_alone(lane->shared);
}

/*
 * The last lane ends the process. The keeper frees that lane after the end, when the process's own memory on the card
 * is gone too. _exit skips the exit handlers of the driver's libraries: all is closed, and they could hang.
 */
static bool end_serving(const struct served_lane *lane)
{
	LL_SCOPE_LOCK(&lane->crew->lock);
	if (--lane->crew->busy == 0)
		_exit(LL_EXIT_OK);
	bool stays = free_lane(lane);
	ll_pacer_wake(lane->governor_fd);
	return stays;
}

static void serve_lane(const struct served_lane *lane)
{
	bool stays = true;
	while (stays) {
		uint32_t heard = ll_parking_listen(&lane->shared->parking);
		while (!begin_serving(lane)) {
			ll_parking_park(&lane->shared->parking, heard);
			ll_pacer_sleep(lane->call_fd, -1);
			ll_parking_leave(&lane->shared->parking);
			heard = ll_parking_listen(&lane->shared->parking);
		}
		struct ll_err why = {0};
		if (run_lane(lane, &why) < 0) {
			ll_pacer_shared_state(lane->shared, LL_PACER_FAILED, &why);
			ll_pacer_wake(lane->governor_fd);
		}
		stays = end_serving(lane);
	}
}

static void *lane_main(void *arg)
{
	serve_lane(arg);
	return NULL;
}

/* Takes as many lanes as there are: the descriptor behind the last one is not open. */
static struct served_lane *take_lanes(struct crew *crew, size_t *ret_count, struct ll_err *err)
{
	struct served_lane *lanes = NULL;
	struct ll_pacer_shared *shared;
	size_t count = 0;
	while (ll_pacer_shared_map(fd_number(count, FD_PAGE), &shared, NULL) == 0) {
		struct served_lane *grown = realloc(lanes, (count + 1) * sizeof *lanes);
		if (!grown) {
			ll_err_set(err, -ENOMEM, LL_WORKER_WORD ": out of memory");
			free(lanes);
			return NULL;
		}
		lanes = grown;
		close(fd_number(count, FD_PAGE));
		lanes[count] = (struct served_lane){.crew = crew,
						    .shared = shared,
						    .governor_fd = fd_number(count, FD_GOVERNOR),
						    .call_fd = fd_number(count, FD_CALL)};
		/* A helper process that a driver starts must not inherit them. */
		fcntl(lanes[count].governor_fd, F_SETFD, FD_CLOEXEC);
		fcntl(lanes[count].call_fd, F_SETFD, FD_CLOEXEC);
		count++;
	}
	if (!lanes) {
		ll_err_set(err, -EINVAL, LL_WORKER_WORD ": is for loadline itself, which starts it for each card");
		ll_err_hint(err, "use 'loadline hold'");
	}
	*ret_count = count;
	return lanes;
}

/* This thread serves the first lane and never ends, because PR_SET_PDEATHSIG belongs to it. */
static int serve_all(struct served_lane *lanes, size_t count, struct ll_err *err)
{
	/* A sanitizer's malloc_trim is not safe for threads at its first call. So that call is made here. */
	malloc_trim(0);
	for (size_t i = 1; i < count; i++) {
		pthread_t thread;
		int rc = pthread_create(&thread, NULL, lane_main, &lanes[i]);
		if (rc != 0)
			return ll_err_set(err, -rc, LL_WORKER_WORD ": start a thread: %s", strerror(rc));
		pthread_detach(thread);
	}
	serve_lane(&lanes[0]);
	for (;;)
		pause();
}

int ll_worker_main(const struct ll_payload_ops *const *payloads, struct ll_err *err)
{
	static struct crew crew = {.lock = PTHREAD_MUTEX_INITIALIZER};
	size_t count;
	crew.payloads = payloads;
	struct served_lane *lanes = take_lanes(&crew, &count, err);
	if (!lanes)
		return err ? err->code : -EINVAL;
	/* A parent that ended before the prctl sends no signal, so this process ends itself. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != lanes[0].shared->governor_pid)
		_exit(LL_EXIT_FAILED);
	prctl(PR_SET_NAME, "loadline-hold");
	/* Errors go to the hold, which may write them into JSON lines. */
	if (!lanes[0].shared->work.payload.is_translated) {
		setlocale(LC_MESSAGES, "C");
		ll_translate_by(NULL);
	}
	ll_payload_cuda_prepare(lanes[0].shared->work.payload.as_mps_client);
	return serve_all(lanes, count, err);
}
