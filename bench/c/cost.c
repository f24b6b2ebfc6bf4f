/*
 * cost.c - what the driver's calls cost the host, for comparing the same process with and without `loadline run`.
 *
 *     cost --mode launch            a round is N blocks of 100 cuLaunchKernel of an empty kernel; the time of one call
 *     cost --mode past              the same, each block twice, past whatever stands before the driver and by the usual
 *                                   way, in turn; what a call takes more by the usual way
 *     cost --mode events --events E
 *                                   the same, with a timing event before each launch and one after it, and without; E
 *                                   such pairs are used in turn; what a launch takes more with them
 *     cost --mode alloc --bytes B --threads T
 *                                   a round is N times cuMemAlloc and cuMemFree in each thread; the time of one pair
 *     cost --mode start             makes a context, allocates 1 MiB, launches a kernel, waits for it, ends
 *
 * Each line on standard input is the N of a round, which is answered with a JSON object a line, so that two processes
 * can take turns on one processor:
 *
 *     {"event":"round","n":250,"median_ns":2012.3,"p5_ns":1990.1,"p95_ns":2100.8,"mean_ns":2030.0}
 *
 * In the modes launch, past and events --cpu keeps the launching thread, and no other, on one processor; --kinds K
 * launches K grids in turn instead of one, --spend S has the host work for S ns after each launch, so that the card
 * waits for it, and --default-stream launches into the default stream, as PyTorch does, instead of one of its own.
 * --cards C launches on the first C cards in turn, two blocks on each.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/cuda_prototypes.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "driver/library.h"
#include "shim/interpose/elf_lookup.h"

extern const unsigned char ll_nothing_ptx[];

enum {
	BLOCK = 100,
	MAX_ROUND = 1 << 20,
	MAX_THREADS = 256,
	MAX_EVENTS = 16384,
	MAX_KINDS = 1024,
	MAX_SPEND_NS = 1000000,
	MAX_CARDS = 16,
	WARM_UP_BLOCKS = 50,
	START_BYTES = 1 << 20
};

struct options {
	const char *mode;
	uint64_t bytes, threads, events, cpu; /* cpu: one more than its number; 0: any */
	uint64_t kinds, spend_ns, cards;
	bool is_default_stream;
};

/* What launches on one card need. */
struct place {
	struct ll_cu_context *context;
	struct ll_cu_function *kernel;
	struct ll_cu_stream *stream;
};

struct bench {
	struct options options;
	struct ll_cuda cuda;
	struct place places[MAX_CARDS], here;   /* here: that of the current context */
	__typeof__(&cuLaunchKernel) own_launch; /* the driver's own function */
	struct ll_cu_event *before[MAX_EVENTS], *after[MAX_EVENTS];
	uint64_t next_event, next_kind;
};

enum way { USUAL, PAST, WITH_EVENTS };

/* One thread's part of a round of mode alloc. */
struct worker {
	const struct bench *bench;
	pthread_barrier_t *start;
	double *times_ns;
	size_t count;
	ll_cu_result status;
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void tell(double *times_ns, size_t count, uint64_t n)
{
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += times_ns[i];
	qsort(times_ns, count, sizeof *times_ns, compare);
	printf("{\"event\":\"round\",\"n\":%" PRIu64
	       ",\"median_ns\":%.2f,\"p5_ns\":%.2f,\"p95_ns\":%.2f,\"mean_ns\":%.2f}\n",
	       n, times_ns[count / 2], times_ns[count / 20], times_ns[count * 19 / 20], sum / (double)count);
	fflush(stdout);
}

static ll_cu_result open_card(const struct bench *self, int index, struct place *ret_place)
{
	const struct ll_cuda *cuda = &self->cuda;
	struct ll_cu_module *module = NULL;
	ll_cu_device device = 0;
	ll_cu_result status = cuda->cuDeviceGet(&device, index);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuCtxCreate(&ret_place->context, 0, device);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuModuleLoadData(&module, ll_nothing_ptx);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuModuleGetFunction(&ret_place->kernel, module, "nothing");
	if (status == LL_CUDA_SUCCESS && !self->options.is_default_stream)
		status = cuda->cuStreamCreate(&ret_place->stream, LL_CU_STREAM_NON_BLOCKING);
	return status;
}

static ll_cu_result go_to_card(struct bench *self, uint64_t index)
{
	self->here = self->places[index];
	return self->cuda.cuCtxSetCurrent(self->here.context);
}

static int open_cards(struct bench *self, struct ll_err *err)
{
	int rc = ll_cuda_init(&self->cuda, err);
	ll_cu_result status = LL_CUDA_SUCCESS;
	for (uint64_t i = 0; rc == 0 && status == LL_CUDA_SUCCESS && i < self->options.cards; i++)
		status = open_card(self, (int)i, &self->places[i]);
	if (rc == 0 && status == LL_CUDA_SUCCESS)
		status = go_to_card(self, 0);
	return status == LL_CUDA_SUCCESS ? rc : ll_cuda_fail(&self->cuda, status, err, "set up");
}

static void spend(uint64_t ns)
{
	uint64_t until_ns = ns ? ll_now_ns() + ns : 0;
	while (until_ns && ll_now_ns() < until_ns)
		continue;
}

static ll_cu_result launch(struct bench *self, enum way way)
{
	__typeof__(&cuLaunchKernel) function = way == PAST ? self->own_launch : self->cuda.cuLaunchKernel;
	unsigned grid = 1 + (unsigned)(self->next_kind++ % self->options.kinds);
	ll_cu_result status = function(self->here.kernel, grid, 1, 1, 32, 1, 1, 0, self->here.stream, NULL, NULL);
	spend(self->options.spend_ns);
	return status;
}

static ll_cu_result launch_with_events(struct bench *self)
{
	uint64_t at = self->next_event++ % self->options.events;
	ll_cu_result status = self->cuda.cuEventRecord(self->before[at], self->here.stream);
	if (status == LL_CUDA_SUCCESS)
		status = launch(self, USUAL);
	return status == LL_CUDA_SUCCESS ? self->cuda.cuEventRecord(self->after[at], self->here.stream) : status;
}

/* ---- launch ---- */

/* The card is idle at the beginning and at the end, so a block never waits for room in the queue. */
static int launch_block(struct bench *self, uint64_t card, enum way way, double *ret_call_ns, struct ll_err *err)
{
	ll_cu_result status = self->options.cards > 1 ? go_to_card(self, card) : LL_CUDA_SUCCESS;
	uint64_t start_ns = ll_now_ns();
	for (int i = 0; i < BLOCK && status == LL_CUDA_SUCCESS; i++)
		status = way == WITH_EVENTS ? launch_with_events(self) : launch(self, way);
	uint64_t end_ns = ll_now_ns();
	if (status == LL_CUDA_SUCCESS)
		status = self->cuda.cuStreamSynchronize(self->here.stream);
	if (status != LL_CUDA_SUCCESS)
		return ll_cuda_fail(&self->cuda, status, err, "launch");
	*ret_call_ns = (double)(end_ns - start_ns) / BLOCK;
	return 0;
}

static int launch_round(struct bench *self, double *times_ns, uint64_t n, struct ll_err *err)
{
	for (uint64_t i = 0; i < n; i++) {
		int rc = launch_block(self, i / 2 % self->options.cards, USUAL, &times_ns[i], err);
		if (rc)
			return rc;
	}
	tell(times_ns, n, n);
	return 0;
}

/* Two ways in the order one, other, other, one; what a launch takes more by the other. */
static int compare_ways(struct bench *self, enum way one, enum way other, double *times_ns, uint64_t n,
			struct ll_err *err)
{
	for (uint64_t i = 0; i < n; i++) {
		double one_ns = 0, other_ns = 0;
		bool is_other_first = i % 2;
		uint64_t card = i / 2 % self->options.cards;
		int rc =
		    launch_block(self, card, is_other_first ? other : one, is_other_first ? &other_ns : &one_ns, err);
		if (rc == 0)
			rc = launch_block(self, card, is_other_first ? one : other,
					  is_other_first ? &one_ns : &other_ns, err);
		if (rc)
			return rc;
		times_ns[i] = other_ns - one_ns;
	}
	tell(times_ns, n, n);
	return 0;
}

static int make_events(struct bench *self, struct ll_err *err)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	for (uint64_t i = 0; i < self->options.events && status == LL_CUDA_SUCCESS; i++) {
		status = self->cuda.cuEventCreate(&self->before[i], LL_CU_EVENT_DEFAULT);
		if (status == LL_CUDA_SUCCESS)
			status = self->cuda.cuEventCreate(&self->after[i], LL_CU_EVENT_DEFAULT);
	}
	return status == LL_CUDA_SUCCESS ? 0 : ll_cuda_fail(&self->cuda, status, err, "events");
}

static int find_own_launch(struct bench *self, struct ll_err *err)
{
	struct ll_elf_object driver;
	void *address = NULL;
	if (ll_elf_find((const char *const[]){"libcuda.so", NULL}, &driver))
		address = ll_elf_function(&driver, "cuLaunchKernel");
	if (!address)
		return ll_err_set(err, -ENOENT, "the driver's own cuLaunchKernel is not found");
	memcpy(&self->own_launch, &address, sizeof address);
	return 0;
}

/* After everything has been set up, so that threads which others started are not kept there too. */
static int stay_on_cpu(const struct bench *self, struct ll_err *err)
{
	cpu_set_t set;
	if (!self->options.cpu)
		return 0;
	CPU_ZERO(&set);
	CPU_SET(self->options.cpu - 1, &set);
	return sched_setaffinity(0, sizeof set, &set) == 0 ? 0 : ll_err_set(err, -errno, "--cpu: %s", strerror(errno));
}

static int warm_up_launch(struct bench *self, struct ll_err *err)
{
	double call_ns;
	int rc = 0;
	for (int i = 0; rc == 0 && i < WARM_UP_BLOCKS; i++)
		rc = launch_block(self, (uint64_t)i % self->options.cards, USUAL, &call_ns, err);
	return rc ? rc : stay_on_cpu(self, err);
}

/* ---- alloc ---- */

static void *alloc_pairs(void *argument)
{
	struct worker *worker = argument;
	const struct bench *bench = worker->bench;
	const struct ll_cuda *cuda = &bench->cuda;
	worker->status = cuda->cuCtxSetCurrent(bench->here.context);
	pthread_barrier_wait(worker->start);
	for (size_t i = 0; i < worker->count && worker->status == LL_CUDA_SUCCESS; i++) {
		ll_cu_deviceptr address = 0;
		uint64_t start_ns = ll_now_ns();
		worker->status = cuda->cuMemAlloc(&address, bench->options.bytes);
		if (worker->status == LL_CUDA_SUCCESS)
			worker->status = cuda->cuMemFree(address);
		worker->times_ns[i] = (double)(ll_now_ns() - start_ns);
	}
	return NULL;
}

static int alloc_together(struct bench *self, struct worker *workers, size_t count, struct ll_err *err)
{
	pthread_t threads[MAX_THREADS];
	for (size_t i = 0; i < count; i++) {
		/* Those that have begun wait at the barrier for ever: nothing is left but to end. */
		if (pthread_create(&threads[i], NULL, alloc_pairs, &workers[i]))
			return ll_err_set(err, -EAGAIN, "no thread");
	}
	for (size_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < count; i++) {
		if (workers[i].status != LL_CUDA_SUCCESS)
			return ll_cuda_fail(&self->cuda, workers[i].status, err, "allocate");
	}
	return 0;
}

static int alloc_round(struct bench *self, double *times_ns, uint64_t n, struct ll_err *err)
{
	struct worker workers[MAX_THREADS];
	pthread_barrier_t start;
	size_t threads = self->options.threads, each = n / threads ? n / threads : 1;
	pthread_barrier_init(&start, NULL, (unsigned)threads);
	for (size_t i = 0; i < threads; i++)
		workers[i] =
		    (struct worker){.bench = self, .start = &start, .times_ns = times_ns + i * each, .count = each};
	int rc = alloc_together(self, workers, threads, err);
	if (rc == 0) {
		pthread_barrier_destroy(&start);
		tell(times_ns, threads * each, n);
	}
	return rc;
}

/* ---- start ---- */

static int start_once(struct bench *self, struct ll_err *err)
{
	ll_cu_deviceptr address = 0;
	ll_cu_result status = self->cuda.cuMemAlloc(&address, START_BYTES);
	if (status == LL_CUDA_SUCCESS)
		status = launch(self, USUAL);
	if (status == LL_CUDA_SUCCESS)
		status = self->cuda.cuCtxSynchronize();
	return status == LL_CUDA_SUCCESS ? 0 : ll_cuda_fail(&self->cuda, status, err, "work");
}

/* ---- the whole ---- */

static bool is_mode(const struct bench *self, const char *mode)
{
	return strcmp(self->options.mode, mode) == 0;
}

static int prepare(struct bench *self, struct ll_err *err)
{
	int rc = 0;
	if (is_mode(self, "past"))
		rc = find_own_launch(self, err);
	else if (is_mode(self, "events"))
		rc = make_events(self, err);
	return rc || is_mode(self, "alloc") ? rc : warm_up_launch(self, err);
}

static int do_round(struct bench *self, double *times_ns, uint64_t n, struct ll_err *err)
{
	if (is_mode(self, "past"))
		return compare_ways(self, PAST, USUAL, times_ns, n, err);
	if (is_mode(self, "events"))
		return compare_ways(self, USUAL, WITH_EVENTS, times_ns, n, err);
	return is_mode(self, "launch") ? launch_round(self, times_ns, n, err) : alloc_round(self, times_ns, n, err);
}

static int answer_lines(struct bench *self, struct ll_err *err)
{
	int rc = prepare(self, err);
	double *times_ns = calloc(MAX_ROUND, sizeof *times_ns);
	char line[32];
	if (!times_ns)
		return ll_err_set(err, -ENOMEM, "times: out of memory");
	if (rc == 0) {
		puts("{\"event\":\"ready\"}");
		fflush(stdout);
	}
	while (rc == 0 && fgets(line, sizeof line, stdin)) {
		uint64_t n = 0;
		line[strcspn(line, "\n")] = '\0';
		rc = ll_parse_uint(line, 1, MAX_ROUND / 2, &n, err);
		if (rc == 0)
			rc = do_round(self, times_ns, n, err);
	}
	free(times_ns);
	return rc;
}

static int run(struct bench *self, struct ll_err *err)
{
	int rc = open_cards(self, err);
	if (rc == 0)
		rc = is_mode(self, "start") ? start_once(self, err) : answer_lines(self, err);
	for (uint64_t i = 0; i < self->options.cards && self->places[i].context; i++)
		self->cuda.cuCtxDestroy(self->places[i].context);
	ll_cuda_fini(&self->cuda);
	return rc;
}

static const struct option table[] = {
    {"mode", required_argument, NULL, 'm'},     {"bytes", required_argument, NULL, 'b'},
    {"threads", required_argument, NULL, 't'},  {"events", required_argument, NULL, 'e'},
    {"cpu", required_argument, NULL, 'c'},      {"kinds", required_argument, NULL, 'k'},
    {"spend", required_argument, NULL, 's'},    {"cards", required_argument, NULL, 'n'},
    {"default-stream", no_argument, NULL, 'd'}, {NULL, 0, NULL, 0},
};

static int parse_options(int argc, char **argv, struct options *options, struct ll_err *err)
{
	int letter, rc = 0;
	while (rc == 0 && (letter = getopt_long(argc, argv, "", table, NULL)) != -1) {
		if (letter == 'm')
			options->mode = optarg;
		else if (letter == 'b')
			rc = ll_parse_bytes(optarg, &options->bytes, err);
		else if (letter == 't')
			rc = ll_parse_uint(optarg, 1, MAX_THREADS, &options->threads, err);
		else if (letter == 'e')
			rc = ll_parse_uint(optarg, 1, MAX_EVENTS, &options->events, err);
		else if (letter == 'c')
			rc = ll_parse_uint(optarg, 0, CPU_SETSIZE - 1, &options->cpu, err);
		else if (letter == 'k')
			rc = ll_parse_uint(optarg, 1, MAX_KINDS, &options->kinds, err);
		else if (letter == 's')
			rc = ll_parse_uint(optarg, 0, MAX_SPEND_NS, &options->spend_ns, err);
		else if (letter == 'n')
			rc = ll_parse_uint(optarg, 1, MAX_CARDS, &options->cards, err);
		else if (letter == 'd')
			options->is_default_stream = true;
		else
			rc = ll_err_set(err, -EINVAL, "options: see the beginning of bench/c/cost.c");
		if (rc == 0 && letter == 'c')
			options->cpu++;
	}
	static const char *const modes[] = {"launch", "past", "events", "alloc", "start"};
	bool is_known = false;
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
		is_known |= strcmp(options->mode, modes[i]) == 0;
	return rc || is_known
		   ? rc
		   : ll_err_set(err, -EINVAL, "--mode: '%s': launch, past, events, alloc or start", options->mode);
}

int main(int argc, char **argv)
{
	struct ll_err err = {0};
	static struct bench bench; /* large */
	bench = (struct bench){
	    .options = {.mode = "launch", .bytes = 1 << 20, .threads = 1, .events = 256, .kinds = 1, .cards = 1}};
	int rc = parse_options(argc, argv, &bench.options, &err);
	if (rc == 0)
		rc = run(&bench, &err);
	if (rc == 0)
		return LL_EXIT_OK;
	fprintf(stderr, "cost: %s%s%s\n", err.text, err.hint[0] ? "; " : "", err.hint);
	return ll_err_exit_code(rc);
}
