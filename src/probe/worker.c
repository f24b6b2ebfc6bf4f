#include "probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/scope.h"

_Static_assert(sizeof((struct ll_err *)0)->text == LL_PROBE_TEXT_SIZE, "an error fits its slot");

extern const unsigned char ll_timeline_ptx[];

/* Time between the barrier and the start, in which the slowest thread wakes up. */
#define GO_AFTER_NS (300 * LL_NS_PER_US)
/* For the last part of that time threads spin, because a sleeping thread would wake up late by as much. */
#define AWAKE_NS (80 * LL_NS_PER_US)
#define WARM_UP_NS (1 * LL_NS_PER_US)

enum { TINY_THREADS = 32, WARM_UP_BYTES = 8192 };

_Static_assert(sizeof(struct ll_probe_trace) + sizeof(struct ll_probe_block) <= WARM_UP_BYTES, "a tiny kernel's fit");

/*
 * The worker's side of the card. The context is like that of most programs: nothing in it is made smaller, so it takes
 * as much memory as theirs. Records are in the card's own memory, and are copied when all kernels have ended, so that
 * writing them disturbs nothing.
 */
struct device {
	const struct ll_cuda *cuda;
	struct ll_cu_context *context;
	struct ll_cu_function *kernel;
	uint32_t sm_count;
	uint32_t full_blocks;   /* of LL_PROBE_FULL_THREADS that fit on the card at once */
	ll_cu_deviceptr memory; /* of the last order, and before it room for one tiny kernel's records */
	uint64_t memory_bytes;
	int least_priority, greatest_priority;
};

/* One party of this worker in an order. */
struct party_run {
	struct order_run *run;
	uint32_t party;
	struct ll_cu_stream *stream;
	pthread_t thread;
	bool has_thread;
	ll_cu_result status;
	const char *what;
};

struct order_run {
	struct device *device;
	struct ll_probe_page *page;
	uint32_t worker;
	uint64_t offsets[LL_PROBE_LAUNCHES]; /* of own launches' records in the device's memory */
	uint64_t bytes;
	struct party_run parties[LL_PROBE_PARTIES];
};

/* ---- the context ---- */

static void read_size(struct device *device, ll_cu_device card)
{
	const struct ll_cuda *cuda = device->cuda;
	int sms = 1, threads = 2048, blocks = 0;
	cuda->cuDeviceGetAttribute(&sms, LL_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, card);
	cuda->cuDeviceGetAttribute(&threads, LL_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, card);
	if (!cuda->cuOccupancyMaxActiveBlocksPerMultiprocessor ||
	    cuda->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, device->kernel, LL_PROBE_FULL_THREADS, 0) !=
		LL_CUDA_SUCCESS ||
	    blocks < 1)
		blocks = threads / LL_PROBE_FULL_THREADS;
	device->sm_count = (uint32_t)sms;
	device->full_blocks = (uint32_t)(sms * blocks);
}

static uint32_t rounds_of(const struct device *device, uint32_t blocks)
{
	return (blocks + device->full_blocks - 1) / device->full_blocks;
}

static uint64_t records_bytes(const struct device *device, uint32_t blocks)
{
	return rounds_of(device, blocks) * sizeof(struct ll_probe_trace) + blocks * sizeof(struct ll_probe_block);
}

static ll_cu_result launch_kernel(const struct device *device, uint32_t blocks, uint32_t threads, uint64_t length_ns,
				  uint64_t offset, struct ll_cu_stream *stream)
{
	ll_cu_deviceptr traces = device->memory + offset;
	ll_cu_deviceptr block_list = traces + rounds_of(device, blocks) * sizeof(struct ll_probe_trace);
	uint64_t away_ns = LL_PROBE_AWAY_US * LL_NS_PER_US, round = device->full_blocks;
	void *params[] = {&length_ns, &traces, &block_list, &away_ns, &round};
	return device->cuda->cuLaunchKernel(device->kernel, blocks, 1, 1, threads, 1, 1, 0, stream, params, NULL);
}

/* The first launch of a kernel, and the first into a stream, take milliseconds. */
static ll_cu_result warm_up(const struct device *device, struct ll_cu_stream *stream)
{
	ll_cu_result status = launch_kernel(device, 1, TINY_THREADS, WARM_UP_NS, 0, stream);
	return status == LL_CUDA_SUCCESS ? device->cuda->cuStreamSynchronize(stream) : status;
}

/* Makes the context and runs the kernel once. An error carries the driver's own name for it. */
static int make_context(struct device *device, const struct ll_card *card, struct ll_err *err)
{
	ll_cu_device ordinal;
	struct ll_cu_module *module;
	int rc = ll_card_cuda_device(card, &device->cuda, &ordinal, err);
	if (rc < 0)
		return rc;
	const struct ll_cuda *cuda = device->cuda;
	ll_cu_result status = cuda->cuCtxCreate(&device->context, LL_CU_CTX_SCHED_BLOCKING_SYNC, ordinal);
	if (status != LL_CUDA_SUCCESS)
		return ll_cuda_fail(cuda, status, err, "make a context");
	status = cuda->cuModuleLoadData(&module, ll_timeline_ptx);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuModuleGetFunction(&device->kernel, module, "probe_timeline");
	if (status != LL_CUDA_SUCCESS)
		return ll_cuda_fail(cuda, status, err, "load the kernel");
	read_size(device, ordinal);
	device->memory_bytes = WARM_UP_BYTES;
	status = cuda->cuMemAlloc(&device->memory, device->memory_bytes);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuCtxGetStreamPriorityRange(&device->least_priority, &device->greatest_priority);
	if (status == LL_CUDA_SUCCESS)
		status = warm_up(device, NULL);
	return status == LL_CUDA_SUCCESS ? 0 : ll_cuda_fail(cuda, status, err, "run a first kernel");
}

/* ---- an order ---- */

static uint32_t blocks_of(const struct device *device, const struct ll_probe_launch *launch)
{
	return launch->size == LL_PROBE_SIZE_FULL ? device->full_blocks * launch->rounds : 1;
}

static bool is_mine(const struct order_run *run, uint32_t launch)
{
	const struct ll_probe_order *order = &run->page->order;
	return order->parties[order->launches[launch].party].worker == run->worker;
}

/* A place in the card's memory for each launch's records, all zero. */
static int make_room(struct order_run *run, struct ll_err *err)
{
	struct device *device = run->device;
	const struct ll_cuda *cuda = device->cuda;
	const struct ll_probe_order *order = &run->page->order;
	ll_cu_result status = LL_CUDA_SUCCESS;
	run->bytes = WARM_UP_BYTES;
	for (uint32_t i = 0; i < order->launch_count; i++) {
		if (!is_mine(run, i))
			continue;
		run->offsets[i] = run->bytes;
		run->bytes += records_bytes(device, blocks_of(device, &order->launches[i]));
	}
	if (run->bytes > device->memory_bytes) {
		cuda->cuMemFree(device->memory);
		device->memory_bytes = 0;
		status = cuda->cuMemAlloc(&device->memory, run->bytes);
		if (status == LL_CUDA_SUCCESS)
			device->memory_bytes = run->bytes;
	}
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuMemsetD8(device->memory, 0, run->bytes);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuCtxSynchronize();
	return status == LL_CUDA_SUCCESS ? 0 : ll_cuda_fail(cuda, status, err, "make room for records");
}

/* The first failure counts. */
static void note_failure(struct party_run *party, ll_cu_result status, const char *what)
{
	if (status != LL_CUDA_SUCCESS && party->status == LL_CUDA_SUCCESS) {
		party->status = status;
		party->what = what;
	}
}

/* In the thread that will launch: a thread's default stream is its own. */
static void open_stream(struct party_run *party)
{
	const struct device *device = party->run->device;
	const struct ll_probe_party *wish = &party->run->page->order.parties[party->party];
	const int priorities[] = {
	    [LL_PROBE_PRIORITY_DEFAULT] = 0,
	    [LL_PROBE_PRIORITY_HIGH] = device->greatest_priority,
	    [LL_PROBE_PRIORITY_LOW] = device->least_priority,
	};
	if (wish->stream != LL_PROBE_OWN_STREAM)
		party->stream = wish->stream == LL_PROBE_LEGACY_STREAM ? LL_CU_STREAM_LEGACY : LL_CU_STREAM_PER_THREAD;
	else
		note_failure(party,
			     device->cuda->cuStreamCreateWithPriority(&party->stream, LL_CU_STREAM_NON_BLOCKING,
								      priorities[wish->priority]),
			     "make a stream");
	if (party->status == LL_CUDA_SUCCESS)
		note_failure(party, warm_up(device, party->stream), "run a first kernel in a stream");
}

/* All of the order's threads, here and in other processes, leave at the same moment. */
static void wait_for_start(struct ll_probe_page *page)
{
	uint64_t none = 0;
	pthread_barrier_wait(&page->start);
	/* The first thread to wake up sets the time. */
	atomic_compare_exchange_strong(&page->go_ns, &none, ll_now_ns() + GO_AFTER_NS);
	uint64_t go_ns = atomic_load(&page->go_ns);
	ll_sleep_until_ns(go_ns - AWAKE_NS);
	while (ll_now_ns() < go_ns)
		;
}

/* The launches of one party, or, with NULL, of all parties that have no thread of their own. */
static void launch_script(struct order_run *run, const struct party_run *only)
{
	const struct ll_probe_order *order = &run->page->order;
	for (uint32_t i = 0; i < order->launch_count; i++) {
		const struct ll_probe_launch *wish = &order->launches[i];
		struct party_run *party = &run->parties[wish->party];
		if (!is_mine(run, i) || (only ? party != only : party->has_thread) || party->status != LL_CUDA_SUCCESS)
			continue;
		uint32_t threads = wish->size == LL_PROBE_SIZE_TINY ? TINY_THREADS : LL_PROBE_FULL_THREADS;
		note_failure(party,
			     launch_kernel(run->device, blocks_of(run->device, wish), threads, wish->length_ns,
					   run->offsets[i], party->stream),
			     "launch a kernel");
	}
}

static void finish_stream(struct party_run *party)
{
	const struct ll_cuda *cuda = party->run->device->cuda;
	if (!party->stream)
		return;
	note_failure(party, cuda->cuStreamSynchronize(party->stream), "wait for a kernel");
	if (party->stream != LL_CU_STREAM_PER_THREAD && party->stream != LL_CU_STREAM_LEGACY)
		cuda->cuStreamDestroy(party->stream);
}

static void *party_main(void *arg)
{
	struct party_run *party = arg;
	const struct device *device = party->run->device;
	note_failure(party, device->cuda->cuCtxSetCurrent(device->context), "use the context in a thread");
	if (party->status == LL_CUDA_SUCCESS)
		open_stream(party);
	wait_for_start(party->run->page);
	if (party->status == LL_CUDA_SUCCESS)
		launch_script(party->run, party);
	finish_stream(party);
	return NULL;
}

static bool is_own_party(const struct order_run *run, uint32_t party, bool has_thread)
{
	const struct ll_probe_party *wish = &run->page->order.parties[party];
	return wish->worker == run->worker && (wish->has_thread != 0) == has_thread;
}

/* A thread that cannot be started is missing at the barrier: the whole order hangs and its deadline ends it. */
static int start_threads(struct order_run *run, struct ll_err *err)
{
	for (uint32_t i = 0; i < run->page->order.party_count; i++) {
		struct party_run *party = &run->parties[i];
		if (!is_own_party(run, i, true))
			continue;
		int rc = pthread_create(&party->thread, NULL, party_main, party);
		if (rc != 0)
			return ll_err_set(err, -rc, "start a thread: %s", strerror(rc));
		party->has_thread = true;
	}
	return 0;
}

static void run_without_threads(struct order_run *run)
{
	uint32_t count = run->page->order.party_count, own = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (is_own_party(run, i, false)) {
			open_stream(&run->parties[i]);
			own++;
		}
	}
	if (!own)
		return;
	wait_for_start(run->page);
	launch_script(run, NULL);
	for (uint32_t i = 0; i < count; i++) {
		if (is_own_party(run, i, false))
			finish_stream(&run->parties[i]);
	}
}

static int read_records(const struct order_run *run, struct ll_err *err)
{
	const struct device *device = run->device;
	const struct ll_probe_order *order = &run->page->order;
	LL_SCOPE_FREE char *records = malloc(run->bytes);
	if (!records)
		return ll_err_set(err, -ENOMEM, "records: %s", strerror(ENOMEM));
	ll_cu_result status = device->cuda->cuMemcpyDtoH(records, device->memory, run->bytes);
	if (status != LL_CUDA_SUCCESS)
		return ll_cuda_fail(device->cuda, status, err, "read the records");
	int rc = 0;
	for (uint32_t i = 0; rc == 0 && i < order->launch_count; i++) {
		uint32_t blocks = blocks_of(device, &order->launches[i]);
		struct ll_probe_records written = {
		    .traces = (void *)(records + run->offsets[i]),
		    .trace_count = rounds_of(device, blocks),
		    .block_count = blocks,
		};
		written.blocks = (const void *)(written.traces + written.trace_count);
		if (is_mine(run, i))
			rc = ll_probe_kernel_read(&written, order->launches[i].party, &run->page->kernels[i], err);
	}
	return rc;
}

/* Every thread that the order counts meets the others at the page's barrier, also when something is wrong before. */
static int run_order(struct device *device, struct ll_probe_page *page, uint32_t worker, struct ll_err *err)
{
	struct order_run run = {.device = device, .page = page, .worker = worker};
	for (uint32_t i = 0; i < LL_PROBE_PARTIES; i++)
		run.parties[i] = (struct party_run){.run = &run, .party = i};
	int rc = make_room(&run, err);
	if (rc == 0)
		rc = start_threads(&run, err);
	if (rc < 0)
		return rc;
	run_without_threads(&run);
	for (uint32_t i = 0; i < page->order.party_count; i++) {
		struct party_run *party = &run.parties[i];
		if (party->has_thread)
			pthread_join(party->thread, NULL);
		if (rc == 0 && party->status != LL_CUDA_SUCCESS)
			rc = ll_cuda_fail(device->cuda, party->status, err, "%s", party->what);
	}
	return rc < 0 ? rc : read_records(&run, err);
}

/* ---- the process ---- */

bool ll_probe_worker_is_asked(int argc, char **argv)
{
	return argc > 1 && strcmp(argv[1], LL_PROBE_WORKER_WORD) == 0;
}

static void send_answer(struct ll_probe_slot *slot, enum ll_probe_state state, const struct ll_err *why)
{
	uint64_t one = 1;
	if (why) {
		slot->code = why->code;
		memcpy(slot->text, why->text, sizeof slot->text);
	}
	atomic_store(&slot->state, state);
	ssize_t n = write(LL_PROBE_FD_ANSWER, &one, sizeof one);
	(void)n; /* nobody waits when the probe is gone, and then this process is, too */
}

static enum ll_probe_call wait_call(struct ll_probe_slot *slot)
{
	uint64_t count;
	for (;;) {
		ssize_t n = read(LL_PROBE_FD_CALL, &count, sizeof count);
		if (n == (ssize_t)sizeof count)
			return (enum ll_probe_call)atomic_exchange(&slot->call, LL_PROBE_CALL_NONE);
		if (errno != EINTR)
			return LL_PROBE_CALL_END;
	}
}

static void serve_calls(struct device *device, struct ll_probe_page *page, uint32_t own)
{
	struct ll_probe_slot *slot = &page->slots[own];
	for (enum ll_probe_call call; (call = wait_call(slot)) != LL_PROBE_CALL_END;) {
		struct ll_err why = {0};
		if (call != LL_PROBE_CALL_RUN)
			continue;
		if (run_order(device, page, own, &why) < 0)
			send_answer(slot, LL_PROBE_FAILED, &why);
		else
			send_answer(slot, LL_PROBE_READY, NULL);
	}
}

static int open_device(struct device *device, const char *uuid, struct ll_driver **ret_driver, struct ll_err *err)
{
	int rc = ll_driver_open(ret_driver, err);
	if (rc < 0)
		return rc;
	const struct ll_card *card = ll_cards_find_uuid(*ret_driver, uuid);
	return card ? make_context(device, card, err) : ll_err_set(err, -ENODEV, "card %s: not there", uuid);
}

/* No helper that a driver starts shall keep them open. NULL: they are not there. */
static struct ll_probe_page *take_page(struct ll_err *err)
{
	struct stat status;
	void *memory = MAP_FAILED;
	if (fstat(LL_PROBE_FD_PAGE, &status) == 0 && status.st_size == sizeof(struct ll_probe_page))
		memory =
		    mmap(NULL, sizeof(struct ll_probe_page), PROT_READ | PROT_WRITE, MAP_SHARED, LL_PROBE_FD_PAGE, 0);
	if (memory == MAP_FAILED) {
		ll_err_set(err, -EINVAL, LL_PROBE_WORKER_WORD ": is for loadline itself, which starts it");
		ll_err_hint(err, "use 'loadline probe'");
		return NULL;
	}
	for (int fd = LL_PROBE_FD_PAGE; fd < LL_PROBE_FDS_END; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	return memory;
}

int ll_probe_worker_main(int argc, char **argv, struct ll_err *err)
{
	struct ll_probe_page *page = take_page(err);
	struct device device = {0};
	struct ll_driver *driver = NULL;
	struct ll_err why = {0};
	uint64_t own = 0;
	if (!page)
		return -EINVAL;
	int rc = ll_parse_uint(argc > 2 ? argv[2] : "", 0, LL_PROBE_PARTIES - 1, &own, err);
	if (rc < 0)
		return rc;
	/* The signal comes only to who asked before the parent's end. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != page->parent)
		return ll_err_set(err, -ESRCH, LL_PROBE_WORKER_WORD ": the probe has ended");
	prctl(PR_SET_NAME, "loadline-probe");
	prctl(PR_SET_TIMERSLACK, 1UL);
	struct ll_probe_slot *slot = &page->slots[own];
	if (open_device(&device, page->card_uuid, &driver, &why) < 0) {
		send_answer(slot, LL_PROBE_NO_CONTEXT, &why);
	} else {
		slot->sm_count = device.sm_count;
		slot->full_blocks = device.full_blocks;
		send_answer(slot, LL_PROBE_READY, NULL);
		serve_calls(&device, page, (uint32_t)own);
	}
	if (device.context)
		device.cuda->cuCtxDestroy(device.context);
	ll_driver_close(driver);
	return 0;
}
