/*
 * foreign.c - a stranger on the card: its own process, its own CUDA context, its own kernels, for measurements.
 *
 *     foreign --mode dense --bursts 200 --burst-ms 100 --ready-file R --go-file G --out F.csv
 *
 *   dense    a burst is kernels of --kernel-us back to back, three in flight, for --burst-ms
 *   sparse   a burst is --per-burst kernels, one every --spacing-ms
 *   loop     a kernel, synchronise, sleep --sleep-ms on the host, again and again for --seconds; prints its rate
 *
 * It makes its context, runs its first kernels, makes --ready-file and waits for --go-file, so that what is measured
 * begins with a process that is already there. Between bursts it is silent for --silence-ms and up to --jitter-ms more;
 * with --triggered a burst begins at each line on standard input instead, until that ends. SIGTERM ends it early.
 * --out gets a row per kernel: burst, start and end on the card's clock, which all processes on a card share.
 * As an MPS client it runs where its environment says.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/scope.h"
#include "driver/cards.h"

extern const unsigned char ll_stranger_ptx[];

enum {
	SLOTS = 64, /* records; far more than kernels in flight */
	IN_FLIGHT = 3,
	LOG_MAX = 1 << 20,
	WARM_UP_KERNELS = 5,
};

#define HANG_NS (10 * LL_NS_PER_S) /* a kernel that has not come back by then never will */
#define LOOK_NS (50 * LL_NS_PER_US)

/* As the kernel writes it. */
struct record {
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t gap_ns;
	uint32_t flags;
	uint32_t sequence;
};

struct options {
	const char *mode, *card, *ready_file, *go_file, *out;
	uint64_t kernel_us, burst_ms, spacing_ms, sleep_ms, silence_ms, jitter_ms, seconds;
	uint64_t per_burst, bursts, blocks, threads; /* blocks 0: one on each SM */
	bool is_triggered;
};

struct row {
	uint64_t burst;
	uint64_t start_ns;
	uint64_t end_ns;
};

struct stranger {
	struct options options;
	struct ll_driver *driver;
	const struct ll_cuda *cuda;
	struct ll_cu_context *context;
	struct ll_cu_function *kernel;
	struct ll_cu_stream *stream;
	volatile struct record *records;
	ll_cu_deviceptr records_on_card;
	unsigned blocks;
	uint32_t next, oldest; /* sequence numbers */
	uint64_t bursts[SLOTS];
	struct row *log;
	size_t log_count;
};

static volatile sig_atomic_t is_told_to_end;

static void on_signal(int number)
{
	(void)number;
	is_told_to_end = 1;
}

/* ---- the card ---- */

static int load(struct stranger *self, struct ll_err *err)
{
	const struct ll_cuda *cuda = self->cuda;
	struct ll_cu_module *module;
	void *records;
	ll_cu_result status = cuda->cuModuleLoadData(&module, ll_stranger_ptx);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuModuleGetFunction(&self->kernel, module, "spin_ns_stranger");
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuStreamCreate(&self->stream, LL_CU_STREAM_NON_BLOCKING);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuMemHostAlloc(&records, SLOTS * sizeof(struct record), LL_CU_MEMHOSTALLOC_DEVICEMAP);
	if (status != LL_CUDA_SUCCESS)
		return ll_cuda_fail(cuda, status, err, "set up");
	memset(records, 0, SLOTS * sizeof(struct record));
	self->records = records;
	status = cuda->cuMemHostGetDevicePointer(&self->records_on_card, records, 0);
	return status == LL_CUDA_SUCCESS ? 0 : ll_cuda_fail(cuda, status, err, "map host memory");
}

static int open_card(struct stranger *self, struct ll_err *err)
{
	LL_SCOPE_FREE const struct ll_card **cards = NULL;
	size_t count;
	ll_cu_device device = 0;
	int rc = ll_driver_open(&self->driver, err);
	if (rc == 0)
		rc = ll_cards_select(self->driver, self->options.card, &cards, &count, err);
	if (rc == 0)
		rc = ll_card_cuda_device(cards[0], &self->cuda, &device, err);
	if (rc < 0)
		return rc;
	int sm_count = 1;
	ll_cu_result status = self->cuda->cuCtxCreate(&self->context, 0, device);
	if (status == LL_CUDA_SUCCESS)
		status =
		    self->cuda->cuDeviceGetAttribute(&sm_count, LL_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
	if (status != LL_CUDA_SUCCESS)
		return ll_cuda_fail(self->cuda, status, err, "make a context");
	self->blocks = self->options.blocks ? (unsigned)self->options.blocks : (unsigned)sm_count;
	return load(self, err);
}

static uint32_t in_flight(const struct stranger *self)
{
	return self->next - self->oldest;
}

static int launch(struct stranger *self, uint64_t burst, uint64_t length_ns, struct ll_err *err)
{
	uint32_t slot = self->next % SLOTS;
	uint64_t record = self->records_on_card + slot * sizeof(struct record);
	uint64_t none = 0, sequence = self->next;
	void *params[] = {&length_ns, &record, &none, &none, &sequence};
	ll_cu_result status = self->cuda->cuLaunchKernel(
	    self->kernel, self->blocks, 1, 1, (unsigned)self->options.threads, 1, 1, 0, self->stream, params, NULL);
	if (status != LL_CUDA_SUCCESS)
		return ll_cuda_fail(self->cuda, status, err, "launch a kernel");
	self->bursts[slot] = burst;
	self->next++;
	return 0;
}

static void collect(struct stranger *self)
{
	while (in_flight(self) > 0) {
		uint32_t slot = self->oldest % SLOTS;
		if (self->records[slot].sequence != self->oldest)
			return;
		atomic_thread_fence(memory_order_acquire);
		if (self->log_count < LOG_MAX)
			self->log[self->log_count++] = (struct row){
			    .burst = self->bursts[slot],
			    .start_ns = self->records[slot].start_ns,
			    .end_ns = self->records[slot].end_ns,
			};
		self->oldest++;
	}
}

/* Until at most `most` kernels are on their way. Asks the stream now and then, for a lost context stamps nothing. */
static int wait_for(struct stranger *self, uint32_t most, struct ll_err *err)
{
	uint64_t deadline_ns = ll_now_ns() + HANG_NS;
	for (collect(self); in_flight(self) > most; collect(self)) {
		ll_cu_result status = self->cuda->cuStreamQuery(self->stream);
		if (status != LL_CUDA_SUCCESS && status != LL_CUDA_ERROR_NOT_READY)
			return ll_cuda_fail(self->cuda, status, err, "wait for a kernel");
		if (ll_now_ns() > deadline_ns)
			return ll_err_set(err, -EIO, "a kernel has not come back for 10 s");
		ll_sleep_until_ns(ll_now_ns() + LOOK_NS);
	}
	return 0;
}

/* ---- the loads ---- */

static int run_dense(struct stranger *self, uint64_t burst, struct ll_err *err)
{
	uint64_t end_ns = ll_now_ns() + self->options.burst_ms * LL_NS_PER_MS;
	int rc = 0;
	while (rc == 0 && !is_told_to_end && ll_now_ns() < end_ns) {
		rc = launch(self, burst, self->options.kernel_us * LL_NS_PER_US, err);
		if (rc == 0)
			rc = wait_for(self, IN_FLIGHT - 1, err);
	}
	return rc < 0 ? rc : wait_for(self, 0, err);
}

static int run_sparse(struct stranger *self, uint64_t burst, struct ll_err *err)
{
	uint64_t due_ns = ll_now_ns();
	int rc = 0;
	for (uint64_t i = 0; rc == 0 && !is_told_to_end && i < self->options.per_burst; i++) {
		ll_sleep_until_ns(due_ns);
		rc = launch(self, burst, self->options.kernel_us * LL_NS_PER_US, err);
		if (rc == 0)
			rc = wait_for(self, 0, err);
		due_ns += self->options.spacing_ms * LL_NS_PER_MS;
	}
	return rc;
}

static int run_loop(struct stranger *self, struct ll_err *err)
{
	uint64_t start_ns = ll_now_ns(), now_ns = start_ns, rounds = 0;
	int rc = 0;
	while (rc == 0 && !is_told_to_end && now_ns - start_ns < self->options.seconds * LL_NS_PER_S) {
		rc = launch(self, rounds, self->options.kernel_us * LL_NS_PER_US, err);
		ll_cu_result status = rc == 0 ? self->cuda->cuStreamSynchronize(self->stream) : LL_CUDA_SUCCESS;
		if (status != LL_CUDA_SUCCESS)
			rc = ll_cuda_fail(self->cuda, status, err, "synchronise");
		collect(self);
		ll_sleep_until_ns(ll_now_ns() + self->options.sleep_ms * LL_NS_PER_MS);
		now_ns = ll_now_ns();
		rounds++;
	}
	double seconds = (double)(now_ns - start_ns) / 1e9;
	printf("rate_per_s=%.4f rounds=%" PRIu64 " seconds=%.4f\n", (double)rounds / seconds, rounds, seconds);
	return rc;
}

static void be_silent(const struct options *options)
{
	double silence_ms = (double)options->silence_ms + drand48() * (double)options->jitter_ms;
	uint64_t end_ns = ll_now_ns() + (uint64_t)(silence_ms * 1e6);
	while (!is_told_to_end && ll_now_ns() < end_ns)
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS < end_ns ? ll_now_ns() + LL_NS_PER_MS : end_ns);
}

static bool next_burst(const struct options *options, uint64_t burst)
{
	char line[16];
	if (is_told_to_end || (options->bursts && burst > options->bursts))
		return false;
	if (options->is_triggered)
		return fgets(line, sizeof line, stdin) != NULL;
	if (burst > 1)
		be_silent(options);
	return !is_told_to_end;
}

static int run_bursts(struct stranger *self, struct ll_err *err)
{
	bool is_dense = strcmp(self->options.mode, "dense") == 0;
	int rc = 0;
	for (uint64_t burst = 1; rc == 0 && next_burst(&self->options, burst); burst++)
		rc = is_dense ? run_dense(self, burst, err) : run_sparse(self, burst, err);
	printf("kernels=%zu\n", self->log_count);
	return rc;
}

/* ---- the whole ---- */

static int make_file(const char *path, struct ll_err *err)
{
	FILE *file LL_SCOPE_FCLOSE = path ? fopen(path, "we") : NULL;
	return path && !file ? ll_err_set(err, -errno, "%s: %s", path, strerror(errno)) : 0;
}

static int warm_up(struct stranger *self, struct ll_err *err)
{
	int rc = 0;
	for (int i = 0; rc == 0 && i < WARM_UP_KERNELS; i++) {
		rc = launch(self, 0, 10 * LL_NS_PER_US, err);
		if (rc == 0)
			rc = wait_for(self, 0, err);
	}
	self->log_count = 0;
	if (rc == 0)
		rc = make_file(self->options.ready_file, err);
	while (rc == 0 && self->options.go_file && !is_told_to_end && access(self->options.go_file, F_OK) != 0)
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);
	return rc;
}

static int write_log(const struct stranger *self, struct ll_err *err)
{
	const char *path = self->options.out;
	if (!path)
		return 0;
	FILE *file LL_SCOPE_FCLOSE = fopen(path, "we");
	if (!file)
		return ll_err_set(err, -errno, "%s: %s", path, strerror(errno));
	fputs("burst,start_ns,end_ns\n", file);
	for (size_t i = 0; i < self->log_count; i++)
		fprintf(file, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", self->log[i].burst, self->log[i].start_ns,
			self->log[i].end_ns);
	return fflush(file) == 0 ? 0 : ll_err_set(err, -errno, "%s: %s", path, strerror(errno));
}

static int run(struct stranger *self, struct ll_err *err)
{
	self->log = calloc(LOG_MAX, sizeof *self->log);
	if (!self->log)
		return ll_err_set(err, -ENOMEM, "log: out of memory");
	int rc = open_card(self, err);
	if (rc == 0)
		rc = warm_up(self, err);
	if (rc == 0)
		rc = strcmp(self->options.mode, "loop") == 0 ? run_loop(self, err) : run_bursts(self, err);
	if (rc == 0)
		rc = write_log(self, err);
	if (self->context)
		self->cuda->cuCtxDestroy(self->context);
	ll_driver_close(self->driver);
	free(self->log);
	return rc;
}

/* ---- options ---- */

static const struct option table[] = {
    {"mode", required_argument, NULL, 'm'},       {"card", required_argument, NULL, 'i'},
    {"kernel-us", required_argument, NULL, 'u'},  {"burst-ms", required_argument, NULL, 'b'},
    {"spacing-ms", required_argument, NULL, 'p'}, {"sleep-ms", required_argument, NULL, 's'},
    {"silence-ms", required_argument, NULL, 'q'}, {"jitter-ms", required_argument, NULL, 'j'},
    {"seconds", required_argument, NULL, 'S'},    {"per-burst", required_argument, NULL, 'k'},
    {"bursts", required_argument, NULL, 'n'},     {"blocks", required_argument, NULL, 'B'},
    {"threads", required_argument, NULL, 't'},    {"ready-file", required_argument, NULL, 'r'},
    {"go-file", required_argument, NULL, 'g'},    {"out", required_argument, NULL, 'o'},
    {"triggered", no_argument, NULL, 'T'},        {NULL, 0, NULL, 0},
};

static const char **text_of(struct options *options, int letter)
{
	switch (letter) {
	case 'm':
		return &options->mode;
	case 'i':
		return &options->card;
	case 'r':
		return &options->ready_file;
	case 'g':
		return &options->go_file;
	case 'o':
		return &options->out;
	default:
		return NULL;
	}
}

static uint64_t *number_of(struct options *options, int letter)
{
	switch (letter) {
	case 'u':
		return &options->kernel_us;
	case 'b':
		return &options->burst_ms;
	case 'p':
		return &options->spacing_ms;
	case 's':
		return &options->sleep_ms;
	case 'q':
		return &options->silence_ms;
	case 'j':
		return &options->jitter_ms;
	case 'S':
		return &options->seconds;
	case 'k':
		return &options->per_burst;
	case 'n':
		return &options->bursts;
	case 'B':
		return &options->blocks;
	case 't':
		return &options->threads;
	default:
		return NULL;
	}
}

static int parse_options(int argc, char **argv, struct options *options, struct ll_err *err)
{
	int letter, rc = 0;
	while (rc == 0 && (letter = getopt_long(argc, argv, "", table, NULL)) != -1) {
		const char **text = text_of(options, letter);
		uint64_t *number = number_of(options, letter);
		if (text)
			*text = optarg;
		else if (number)
			rc = ll_parse_uint(optarg, 0, 1000000000, number, err);
		else if (letter == 'T')
			options->is_triggered = true;
		else
			rc = ll_err_set(err, -EINVAL, "options: see the beginning of bench/c/foreign.c");
	}
	bool is_known = strcmp(options->mode, "dense") == 0 || strcmp(options->mode, "sparse") == 0 ||
			strcmp(options->mode, "loop") == 0;
	if (rc == 0 && !is_known)
		rc = ll_err_set(err, -EINVAL, "--mode: '%s': dense, sparse or loop", options->mode);
	if (rc == 0 && (options->threads < 1 || options->threads > 1024))
		rc = ll_err_set(err, -EINVAL, "--threads: 1 to 1024");
	return rc;
}

int main(int argc, char **argv)
{
	struct ll_err err = {0};
	struct stranger stranger = {
	    .options = {.mode = "dense",
			.card = "0",
			.kernel_us = 1000,
			.burst_ms = 100,
			.spacing_ms = 100,
			.sleep_ms = 8,
			.silence_ms = 1000,
			.jitter_ms = 200,
			.seconds = 10,
			.per_burst = 2,
			.bursts = 0,
			.threads = 1024},
	    .next = 1,
	    .oldest = 1,
	};
	struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART: a read of standard input ends too */
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	prctl(PR_SET_TIMERSLACK, 1UL);
	srand48((long)ll_now_ns());
	int rc = parse_options(argc, argv, &stranger.options, &err);
	if (rc == 0)
		rc = run(&stranger, &err);
	if (rc == 0)
		return LL_EXIT_OK;
	fprintf(stderr, "foreign: %s%s%s\n", err.text, err.hint[0] ? "; " : "", err.hint);
	return ll_err_exit_code(rc);
}
