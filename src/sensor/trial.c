#include "sensor/sensor.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "driver/cards.h"
#include "slices/own.h"

extern const unsigned char ll_trial_ptx[];

/* AHEAD: kernels that are queued. A host that is late for some ms leaves the card no gap. */
enum { THREADS = 256, BLOCKS_PER_SM = 4, AHEAD = 64, RESULTS = 16384, FIRST_TURNS = 2000 };
enum { LONG_US = 8000, SHORT_US = 2000, READINGS = 3 };

#define KERNEL_NS LL_NS_PER_MS
#define START_NS (20 * LL_NS_PER_S)
#define ANSWER_NS (5 * LL_NS_PER_S)
#define SETTLE_NS (30 * LL_NS_PER_MS)
#define RATIO_NS (400 * LL_NS_PER_MS)
#define OFF_NS (300 * LL_NS_PER_MS)
#define PAUSE_NS (50 * LL_NS_PER_US)
/* What is accepted as 4 : 1. A change of context takes 0.2 ms of each slice (doc/facts.md). */
static const double least_ratio = 3.2, most_ratio = 4.8;
/* Fewer kernels in that time, and the host was late: slices decide nothing where a process has nothing queued. */
static const double fills_card = 0.8;

enum order { ORDER_NONE, ORDER_SLICE, ORDER_OFF, ORDER_ON, ORDER_COMMIT };

/* Of one of the two processes; shared with it. */
struct worker {
	pid_t pid;
	_Atomic bool is_ready, is_resting, is_ending, has_ended;
	_Atomic uint64_t done; /* kernels that the card has completed */
	_Atomic uint32_t asked, answered;
	enum order order;
	uint32_t us;
	int rc;
	uint64_t took_ns;
	uint64_t wrong;
	struct ll_err err; /* is_ready: none; else why it has ended */
};

/* ---- in a process of its own ---- */

struct load {
	const struct ll_cuda *cuda;
	struct ll_cu_function *kernel;
	struct ll_cu_stream *stream;
	struct ll_cu_event *events[AHEAD];
	ll_cu_deviceptr results;
	unsigned blocks;
	uint32_t turns;
};

/* All groups of the process are of its one context. */
static int obey_order(const struct worker *worker)
{
	struct ll_group groups[LL_GROUPS];
	size_t count = ll_groups_read(groups);
	int rc = count ? 0 : -ENOENT;
	for (size_t i = 0; i < count && i < LL_GROUPS && !rc; i++) {
		if (worker->order == ORDER_SLICE)
			rc = ll_group_set_slice(ll_own_ioctl_next(), &groups[i], worker->us);
		else if (worker->order == ORDER_COMMIT)
			rc = ll_group_preempt(ll_own_ioctl_next(), &groups[i]);
		else
			rc = ll_group_switch(ll_own_ioctl_next(), &groups[i], worker->order == ORDER_OFF);
	}
	return rc;
}

/* The thread that launches may wait inside CUDA while the context is off the card. */
static void *order_main(void *arg)
{
	struct worker *worker = arg;
	for (;;) {
		uint32_t asked = atomic_load(&worker->asked);
		if (asked != atomic_load(&worker->answered)) {
			uint64_t began_ns = ll_now_ns();
			worker->rc = obey_order(worker);
			worker->took_ns = ll_now_ns() - began_ns;
			atomic_store(&worker->answered, asked);
		}
		ll_sleep_until_ns(ll_now_ns() + PAUSE_NS);
	}
	return NULL;
}

static ll_cu_result launch(struct load *load, uint64_t number)
{
	ll_cu_deviceptr result = load->results + number % RESULTS * sizeof(uint32_t);
	void *params[] = {&result, &load->turns};
	ll_cu_result status =
	    load->cuda->cuLaunchKernel(load->kernel, load->blocks, 1, 1, THREADS, 1, 1, 0, load->stream, params, NULL);
	return status == LL_CUDA_SUCCESS ? load->cuda->cuEventRecord(load->events[number % AHEAD], load->stream)
					 : status;
}

static int open_load(struct load *load, const char *uuid, struct ll_err *err)
{
	struct ll_driver *driver;
	struct ll_cu_module *module;
	struct ll_cu_context *context;
	ll_cu_device device;
	int rc = ll_driver_open(&driver, err);
	const struct ll_card *card = rc ? NULL : ll_cards_find_uuid(driver, uuid);
	if (!rc && !card)
		rc = ll_err_set(err, -ENODEV, "card %s: not there", uuid);
	if (!rc)
		rc = ll_card_cuda_device(card, &load->cuda, &device, err);
	if (rc)
		return rc;
	const struct ll_cuda *cuda = load->cuda;
	int sms = 1;
	cuda->cuDeviceGetAttribute(&sms, LL_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
	load->blocks = (unsigned)sms * BLOCKS_PER_SM;
	load->turns = FIRST_TURNS;
	ll_cu_result status = cuda->cuCtxCreate(&context, LL_CU_CTX_SCHED_BLOCKING_SYNC, device);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuModuleLoadData(&module, ll_trial_ptx);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuModuleGetFunction(&load->kernel, module, "trial_mix");
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuStreamCreate(&load->stream, LL_CU_STREAM_NON_BLOCKING);
	for (int i = 0; i < AHEAD && status == LL_CUDA_SUCCESS; i++)
		status = cuda->cuEventCreate(&load->events[i], LL_CU_EVENT_DISABLE_TIMING);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuMemAlloc(&load->results, RESULTS * sizeof(uint32_t));
	return status == LL_CUDA_SUCCESS ? 0 : ll_cuda_fail(cuda, status, err, "make a context for the trial");
}

/* Finds how many turns a kernel of KERNEL_NS has; the first launch only loads it. A host that is late makes kernels
 * seem longer, never shorter: the shortest turn counts. */
static ll_cu_result calibrate(struct load *load)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	double turn_ns = 0;
	for (int i = 0; i < 4 && status == LL_CUDA_SUCCESS; i++) {
		uint64_t began_ns = ll_now_ns();
		for (int k = 0; k < AHEAD && status == LL_CUDA_SUCCESS; k++)
			status = launch(load, 0);
		if (status == LL_CUDA_SUCCESS)
			status = load->cuda->cuStreamSynchronize(load->stream);
		double now_ns = (double)(ll_now_ns() - began_ns) / AHEAD / load->turns;
		if (i > 0 && (turn_ns <= 0 || now_ns < turn_ns))
			turn_ns = now_ns;
		if (turn_ns > 0)
			load->turns = (uint32_t)((double)KERNEL_NS / turn_ns) + 1;
	}
	if (status == LL_CUDA_SUCCESS)
		status = load->cuda->cuMemsetD32(load->results, 0, RESULTS);
	return status;
}

/* Keeps AHEAD kernels queued until it is told to end. More kernels than there is room for results are not launched. */
static ll_cu_result run_load(struct load *load, struct worker *worker)
{
	uint64_t launched = 0, done = 0;
	ll_cu_result status = LL_CUDA_SUCCESS;
	while (!atomic_load(&worker->is_ending) || done < launched) {
		bool may_launch =
		    !atomic_load(&worker->is_ending) && !atomic_load(&worker->is_resting) && launched < RESULTS;
		while (may_launch && launched < done + AHEAD && status == LL_CUDA_SUCCESS)
			status = launch(load, launched++);
		if (status != LL_CUDA_SUCCESS)
			return status;
		status =
		    done < launched ? load->cuda->cuEventQuery(load->events[done % AHEAD]) : LL_CUDA_ERROR_NOT_READY;
		if (status == LL_CUDA_SUCCESS)
			atomic_store(&worker->done, ++done);
		else if (status == LL_CUDA_ERROR_NOT_READY)
			ll_sleep_until_ns(ll_now_ns() + PAUSE_NS);
		else
			return status;
		status = LL_CUDA_SUCCESS;
	}
	return status;
}

static ll_cu_result check_results(const struct load *load, struct worker *worker)
{
	static uint32_t results[RESULTS];
	ll_cu_result status = load->cuda->cuMemcpyDtoH(results, load->results, sizeof results);
	for (uint64_t i = 1; status == LL_CUDA_SUCCESS && i < worker->done && i < RESULTS; i++)
		worker->wrong += results[i] != results[0];
	return status;
}

static void worker_main(struct worker *worker, const char *uuid)
{
	static struct load load;
	pthread_t id;
	ll_cu_result status = LL_CUDA_SUCCESS;
	int rc = open_load(&load, uuid, &worker->err);
	if (!rc)
		status = calibrate(&load);
	if (!rc && status == LL_CUDA_SUCCESS && pthread_create(&id, NULL, order_main, worker) == 0) {
		atomic_store(&worker->is_ready, true);
		status = run_load(&load, worker);
		if (status == LL_CUDA_SUCCESS)
			status = check_results(&load, worker);
	}
	if (!rc && status != LL_CUDA_SUCCESS)
		ll_cuda_fail(load.cuda, status, &worker->err, "run kernels for the trial");
	atomic_store(&worker->has_ended, true);
}

/* ---- the trial ---- */

static bool is_gone(const struct worker *worker)
{
	siginfo_t info = {0};
	return waitid(P_PID, (id_t)worker->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == worker->pid;
}

/* Waits until the word is set. */
static int await_word(const struct worker *worker, const _Atomic bool *word, uint64_t within_ns, struct ll_err *err)
{
	uint64_t until_ns = ll_now_ns() + within_ns;
	while (!atomic_load(word)) {
		if (is_gone(worker) || atomic_load(&worker->has_ended))
			return worker->err.text[0] ? ll_err_set(err, -EIO, "%s", worker->err.text)
						   : ll_err_set(err, -EIO, "a process of the trial has ended");
		if (ll_now_ns() > until_ns)
			return ll_err_set(err, -ETIMEDOUT, "a process of the trial does not answer");
		ll_sleep_until_ns(ll_now_ns() + PAUSE_NS);
	}
	return 0;
}

static int start_worker(struct worker *worker, const char *uuid, struct ll_err *err)
{
	pid_t parent = getpid();
	pid_t pid = fork();
	if (pid < 0)
		return ll_err_set(err, -errno, "start a process for the trial: %s", strerror(errno));
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			worker_main(worker, uuid);
		_exit(0);
	}
	worker->pid = pid;
	return await_word(worker, &worker->is_ready, START_NS, err);
}

/* The rc of the driver's call; -ETIMEDOUT: it does not come back. */
static int give_order(struct worker *worker, enum order order, uint32_t us)
{
	uint32_t asked = atomic_load(&worker->asked) + 1;
	uint64_t until_ns = ll_now_ns() + ANSWER_NS;
	worker->order = order;
	worker->us = us;
	atomic_store(&worker->asked, asked);
	while (atomic_load(&worker->answered) != asked) {
		if (ll_now_ns() > until_ns || is_gone(worker))
			return -ETIMEDOUT;
		ll_sleep_until_ns(ll_now_ns() + PAUSE_NS);
	}
	return worker->rc;
}

/* Kernels that each of the two completes in that time. */
static void count_progress(struct worker workers[2], uint64_t ns, uint64_t ret_done[2])
{
	uint64_t before[2] = {atomic_load(&workers[0].done), atomic_load(&workers[1].done)};
	ll_sleep_until_ns(ll_now_ns() + ns);
	for (int i = 0; i < 2; i++)
		ret_done[i] = atomic_load(&workers[i].done) - before[i];
}

/* A busy host may bring one reading off, and does not make a card obey that ignores slices. */
static bool are_slices_obeyed(struct worker workers[2], struct ll_trial_result *result)
{
	bool is_obeyed = false;
	for (int i = 0; i < READINGS && !is_obeyed; i++) {
		uint64_t done[2];
		ll_sleep_until_ns(ll_now_ns() + SETTLE_NS);
		count_progress(workers, RATIO_NS, done);
		result->ratio = done[1] ? (double)done[0] / (double)done[1] : 0;
		result->was_full = (double)(done[0] + done[1]) * (double)KERNEL_NS >= fills_card * (double)RATIO_NS;
		is_obeyed = result->ratio > least_ratio && result->ratio < most_ratio;
	}
	return is_obeyed;
}

static void try_slices(struct worker workers[2], struct ll_trial_result *result)
{
	if (give_order(&workers[0], ORDER_SLICE, LONG_US) || give_order(&workers[1], ORDER_SLICE, SHORT_US))
		return;
	result->set_ns = workers[0].took_ns;
	if (are_slices_obeyed(workers, result)) {
		result->levers |= LL_TRIAL_SLICES;
		return;
	}
	bool is_clear = result->was_full;
	bool is_committed = !give_order(&workers[0], ORDER_COMMIT, 0) && !give_order(&workers[1], ORDER_COMMIT, 0);
	if (is_committed && are_slices_obeyed(workers, result) && is_clear)
		result->levers |= LL_TRIAL_SLICES | LL_TRIAL_COMMITS;
	/* Otherwise nobody knows whether they were obeyed before the preemption. */
	result->was_full &= is_clear;
}

/* A kernel that has ended before its context was off may be seen a moment later. */
static bool stands_still(struct worker workers[2], unsigned count)
{
	uint64_t done[2];
	ll_sleep_until_ns(ll_now_ns() + SETTLE_NS);
	count_progress(workers, OFF_NS, done);
	return done[0] == 0 && (count == 1 ? done[1] > 0 : done[1] == 0);
}

static bool goes_on(struct worker workers[2])
{
	uint64_t before[2] = {atomic_load(&workers[0].done), atomic_load(&workers[1].done)};
	uint64_t until_ns = ll_now_ns() + LL_NS_PER_S;
	while (atomic_load(&workers[0].done) == before[0] || atomic_load(&workers[1].done) == before[1]) {
		if (ll_now_ns() > until_ns)
			return false;
		ll_sleep_until_ns(ll_now_ns() + PAUSE_NS);
	}
	return true;
}

/* Off beside another context, then off alone: a card that has nobody else to serve could go on with it. */
static void try_off(struct worker workers[2], struct ll_trial_result *result)
{
	bool is_off = !give_order(&workers[0], ORDER_OFF, 0);
	result->off_ns = workers[0].took_ns;
	bool works = is_off && stands_still(workers, 1);
	is_off &= !give_order(&workers[1], ORDER_OFF, 0);
	works = works && is_off && stands_still(workers, 2);
	works &= !give_order(&workers[0], ORDER_ON, 0);
	result->on_ns = workers[0].took_ns;
	works &= !give_order(&workers[1], ORDER_ON, 0);
	if (works && goes_on(workers))
		result->levers |= LL_TRIAL_OFF;
}

static void end_worker(struct worker *worker)
{
	if (worker->pid <= 0)
		return;
	atomic_store(&worker->is_ending, true);
	atomic_store(&worker->is_resting, false);
	await_word(worker, &worker->has_ended, ANSWER_NS, NULL);
	kill(worker->pid, SIGKILL);
	waitpid(worker->pid, NULL, 0);
}

static int try_both(struct worker workers[2], const char *uuid, struct ll_trial_result *result, struct ll_err *err)
{
	/* The second one calibrates its kernel while the first one rests. */
	atomic_store(&workers[0].is_resting, true);
	int rc = start_worker(&workers[0], uuid, err);
	if (!rc)
		rc = start_worker(&workers[1], uuid, err);
	atomic_store(&workers[0].is_resting, false);
	if (!rc) {
		try_slices(workers, result);
		try_off(workers, result);
	}
	return rc;
}

int ll_trial_run(const char *uuid, struct ll_trial_result *ret_result, struct ll_err *err)
{
	size_t bytes = 2 * sizeof(struct worker);
	struct ll_trial_result result = {0};
	struct worker *workers = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (workers == MAP_FAILED)
		return ll_err_set(err, -ENOMEM, "the trial: out of memory");
	int rc = try_both(workers, uuid, &result, err);
	for (int i = 0; i < 2; i++) {
		end_worker(&workers[i]);
		result.kernels += workers[i].done;
		result.wrong += workers[i].wrong;
		if (!rc && !workers[i].has_ended)
			rc = ll_err_set(err, -EIO, "a process of the trial did not end its kernels");
		if (!rc && workers[i].err.text[0])
			rc = ll_err_set(err, -EIO, "%s", workers[i].err.text);
	}
	munmap(workers, bytes);
	if (rc)
		return rc;
	/* A card that loses work is not asked again. */
	if (result.wrong)
		result.levers = 0;
	*ret_result = result;
	return 0;
}
