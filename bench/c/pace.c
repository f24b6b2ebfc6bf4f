/*
 * pace.c - small programs that use the card at a pace of their own, for measuring how programs share a card.
 *
 *     pace sync  [--kernel-us 5] [--pause-us 10]    a kernel, a wait for it, a pause of the host; and so on
 *     pace eager [--kernel-us 4] [--pause-us 12]    a launch each pause-us without waiting, a wait each 200 launches
 *                [--depth 0]                        at most so many of them queued; 0: as many as it launches
 *     pace flood [--kernel-us 200] [--depth 10]     as many kernels queued as depth allows
 *                [--held-percent 0]                 launches nothing in that part of each 20 ms
 *     pace spans [--kernel-us 200] [--depth 1]      depth kernels between timing events, a wait, a pause; and so on
 *                [--pause-us 1000]
 *
 * A kernel is --blocks (1) warps that work for kernel-us; time that another program has the card does not count. The
 * protocol is that of bench/programs/beat.py: "ready" when the program is set up; each line on standard input is a
 * number of seconds to work for; "done" tells kernels a second, and the time of a round: a kernel and its wait (sync),
 * 200 launches and the wait (eager), nothing (flood), each kernel's time between its two events (spans). The end of
 * standard input ends the program.
 *
 *     {"event":"done","iterations":162400,"seconds":4.0,"rate_per_s":40600.0,"p10_us":14.0,"p50_us":14.1,"p90_us":17.3,
 *      "p99_us":20.3}
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cuda_prototypes.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "driver/library.h"

extern const unsigned char ll_stranger_ptx[];

enum { EAGER_LAUNCHES = 200, MAX_DEPTH = 1000, MAX_ROUNDS = 1 << 22, RECORD_BYTES = 32, WARM_UP_ROUNDS = 3 };

/* The low one's part of each such time is held, where loadlined holds it (doc/share.md). */
#define HOLD_PERIOD_NS UINT64_C(20000000)

struct pace {
	const struct kind *kind;
	uint64_t kernel_us, pause_us, depth, held_percent, blocks;
	struct ll_cuda cuda;
	struct ll_cu_context *context;
	struct ll_cu_function *kernel;
	struct ll_cu_stream *stream;
	struct ll_cu_event *ends[MAX_DEPTH];   /* of the last kernels */
	struct ll_cu_event *starts[MAX_DEPTH]; /* of the same, where they are timed */
	ll_cu_deviceptr record;                /* where kernels leave their stamps, which nobody reads */
	double *rounds_us;
	size_t round_count;
};

typedef ll_cu_result round_fn(struct pace *self, uint64_t number, unsigned *ret_kernels);

struct kind {
	const char *name;
	round_fn *round;
	uint64_t kernel_us, pause_us, depth;
	bool is_timed; /* by events */
};

static ll_cu_result create_events(struct pace *self)
{
	unsigned flags = self->kind->is_timed ? LL_CU_EVENT_DEFAULT : LL_CU_EVENT_DISABLE_TIMING;
	ll_cu_result status = LL_CUDA_SUCCESS;
	for (uint64_t i = 0; status == LL_CUDA_SUCCESS && i < self->depth; i++) {
		status = self->cuda.cuEventCreate(&self->ends[i], flags);
		if (status == LL_CUDA_SUCCESS && self->kind->is_timed)
			status = self->cuda.cuEventCreate(&self->starts[i], flags);
	}
	return status;
}

static int open_card(struct pace *self, struct ll_err *err)
{
	struct ll_cuda *cuda = &self->cuda;
	struct ll_cu_module *module;
	ll_cu_device device;
	void *host;
	int rc = ll_cuda_init(cuda, err);
	if (rc)
		return rc;
	ll_cu_result status = cuda->cuDeviceGet(&device, 0);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuCtxCreate(&self->context, 0, device);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuModuleLoadData(&module, ll_stranger_ptx);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuModuleGetFunction(&self->kernel, module, "spin_ns_stranger");
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuStreamCreate(&self->stream, LL_CU_STREAM_NON_BLOCKING);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuMemHostAlloc(&host, RECORD_BYTES, LL_CU_MEMHOSTALLOC_DEVICEMAP);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuMemHostGetDevicePointer(&self->record, host, 0);
	if (status == LL_CUDA_SUCCESS)
		status = create_events(self);
	return status == LL_CUDA_SUCCESS ? 0 : ll_cuda_fail(cuda, status, err, "set up");
}

static ll_cu_result launch(const struct pace *self)
{
	uint64_t length_ns = self->kernel_us * LL_NS_PER_US, record = self->record, none = 0;
	void *params[] = {&length_ns, &record, &none, &none, &none};
	return self->cuda.cuLaunchKernel(self->kernel, (unsigned)self->blocks, 1, 1, 32, 1, 1, 0, self->stream, params,
					 NULL);
}

/* The host is busy, as one that prepares its next launch is. */
static void spend_until(uint64_t end_ns)
{
	while (ll_now_ns() < end_ns)
		;
}

static void add_round(struct pace *self, double us)
{
	if (self->round_count < MAX_ROUNDS)
		self->rounds_us[self->round_count++] = us;
}

static void end_round(struct pace *self, uint64_t begin_ns)
{
	add_round(self, (double)(ll_now_ns() - begin_ns) / 1000);
}

/* A launch after which at most depth kernels are queued. number: of launches before. */
static ll_cu_result launch_behind(struct pace *self, uint64_t number)
{
	struct ll_cu_event *end = self->ends[number % self->depth];
	ll_cu_result status = number < self->depth ? LL_CUDA_SUCCESS : self->cuda.cuEventSynchronize(end);
	if (status == LL_CUDA_SUCCESS)
		status = launch(self);
	return status == LL_CUDA_SUCCESS ? self->cuda.cuEventRecord(end, self->stream) : status;
}

/* Each returns the kernels of one round in *ret_kernels. number: of rounds before. */
static ll_cu_result round_of_sync(struct pace *self, uint64_t number, unsigned *ret_kernels)
{
	(void)number;
	uint64_t begin_ns = ll_now_ns();
	ll_cu_result status = launch(self);
	if (status == LL_CUDA_SUCCESS)
		status = self->cuda.cuStreamSynchronize(self->stream);
	end_round(self, begin_ns);
	spend_until(ll_now_ns() + self->pause_us * LL_NS_PER_US);
	*ret_kernels = 1;
	return status;
}

static ll_cu_result round_of_eager(struct pace *self, uint64_t number, unsigned *ret_kernels)
{
	uint64_t begin_ns = ll_now_ns();
	ll_cu_result status = LL_CUDA_SUCCESS;
	for (uint64_t i = 0; status == LL_CUDA_SUCCESS && i < EAGER_LAUNCHES; i++) {
		uint64_t next_ns = ll_now_ns() + self->pause_us * LL_NS_PER_US;
		status = self->depth ? launch_behind(self, number * EAGER_LAUNCHES + i) : launch(self);
		spend_until(next_ns);
	}
	if (status == LL_CUDA_SUCCESS)
		status = self->cuda.cuStreamSynchronize(self->stream);
	end_round(self, begin_ns);
	*ret_kernels = EAGER_LAUNCHES;
	return status;
}

static ll_cu_result round_of_flood(struct pace *self, uint64_t number, unsigned *ret_kernels)
{
	uint64_t now_ns = ll_now_ns(), phase_ns = now_ns % HOLD_PERIOD_NS;
	spend_until(now_ns - phase_ns + HOLD_PERIOD_NS * self->held_percent / 100);
	*ret_kernels = 1;
	return launch_behind(self, number);
}

static ll_cu_result launch_timed(struct pace *self, uint64_t at)
{
	ll_cu_result status = self->cuda.cuEventRecord(self->starts[at], self->stream);
	if (status == LL_CUDA_SUCCESS)
		status = launch(self);
	return status == LL_CUDA_SUCCESS ? self->cuda.cuEventRecord(self->ends[at], self->stream) : status;
}

static ll_cu_result round_of_spans(struct pace *self, uint64_t number, unsigned *ret_kernels)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	float ms = 0;
	(void)number;
	for (uint64_t i = 0; status == LL_CUDA_SUCCESS && i < self->depth; i++)
		status = launch_timed(self, i);
	if (status == LL_CUDA_SUCCESS)
		status = self->cuda.cuStreamSynchronize(self->stream);
	for (uint64_t i = 0; status == LL_CUDA_SUCCESS && i < self->depth; i++) {
		status = self->cuda.cuEventElapsedTime(&ms, self->starts[i], self->ends[i]);
		add_round(self, 1000 * (double)ms);
	}
	spend_until(ll_now_ns() + self->pause_us * LL_NS_PER_US);
	*ret_kernels = (unsigned)self->depth;
	return status;
}

/* The defaults are those of the table in doc/share.md. */
static const struct kind kinds[] = {{"sync", round_of_sync, 5, 10, 0, false},
				    {"eager", round_of_eager, 4, 12, 0, false},
				    {"flood", round_of_flood, 200, 0, 10, false},
				    {"spans", round_of_spans, 200, 1000, 1, true}};

static const struct kind *find_kind(const char *name)
{
	for (size_t i = 0; name && i < sizeof kinds / sizeof kinds[0]; i++) {
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void tell(struct pace *self, uint64_t kernels, double seconds)
{
	static const size_t percents[] = {10, 50, 90, 99};
	printf("{\"event\":\"done\",\"iterations\":%" PRIu64 ",\"seconds\":%.6f,\"rate_per_s\":%.4f", kernels, seconds,
	       (double)kernels / seconds);
	if (self->round_count) {
		qsort(self->rounds_us, self->round_count, sizeof *self->rounds_us, compare);
		for (size_t i = 0; i < sizeof percents / sizeof percents[0]; i++)
			printf(",\"p%zu_us\":%.2f", percents[i],
			       self->rounds_us[self->round_count * percents[i] / 100]);
	}
	printf("}\n");
	fflush(stdout);
}

static int work(struct pace *self, double seconds, struct ll_err *err)
{
	uint64_t begin_ns = ll_now_ns(), end_ns = begin_ns + (uint64_t)(seconds * 1e9), kernels = 0;
	ll_cu_result status = LL_CUDA_SUCCESS;
	self->round_count = 0;
	for (uint64_t number = 0; status == LL_CUDA_SUCCESS && ll_now_ns() < end_ns; number++) {
		unsigned done = 0;
		status = self->kind->round(self, number, &done);
		kernels += done;
	}
	if (status == LL_CUDA_SUCCESS)
		status = self->cuda.cuStreamSynchronize(self->stream);
	if (status != LL_CUDA_SUCCESS)
		return ll_cuda_fail(&self->cuda, status, err, "work");
	tell(self, kernels, (double)(ll_now_ns() - begin_ns) / 1e9);
	return 0;
}

static int run(struct pace *self, struct ll_err *err)
{
	char line[32];
	self->rounds_us = malloc(MAX_ROUNDS * sizeof *self->rounds_us);
	if (!self->rounds_us)
		return ll_err_set(err, -ENOMEM, "no memory for the times of %d rounds", MAX_ROUNDS);
	int rc = open_card(self, err);
	for (uint64_t i = 0; rc == 0 && i < WARM_UP_ROUNDS; i++) {
		unsigned done;
		ll_cu_result status = self->kind->round(self, i, &done);
		if (status != LL_CUDA_SUCCESS)
			rc = ll_cuda_fail(&self->cuda, status, err, "warm up");
	}
	if (rc == 0) {
		puts("{\"event\":\"ready\"}");
		fflush(stdout);
	}
	while (rc == 0 && fgets(line, sizeof line, stdin))
		rc = work(self, strtod(line, NULL), err);
	free(self->rounds_us);
	return rc;
}

static int parse_options(int argc, char **argv, struct pace *self, struct ll_err *err)
{
	static const struct option table[] = {
	    {"kernel-us", required_argument, NULL, 'k'}, {"pause-us", required_argument, NULL, 'p'},
	    {"depth", required_argument, NULL, 'd'},     {"held-percent", required_argument, NULL, 'h'},
	    {"blocks", required_argument, NULL, 'b'},    {NULL, 0, NULL, 0}};
	int letter, rc = 0;
	while (rc == 0 && (letter = getopt_long(argc, argv, "", table, NULL)) != -1) {
		if (letter == 'k')
			rc = ll_parse_uint(optarg, 1, 100000, &self->kernel_us, err);
		else if (letter == 'p')
			rc = ll_parse_uint(optarg, 0, 1000000, &self->pause_us, err);
		else if (letter == 'd')
			rc = ll_parse_uint(optarg, self->depth ? 1 : 0, MAX_DEPTH, &self->depth, err);
		else if (letter == 'h')
			rc = ll_parse_uint(optarg, 0, 99, &self->held_percent, err);
		else if (letter == 'b')
			rc = ll_parse_uint(optarg, 1, 1000000, &self->blocks, err);
		else
			rc = ll_err_set(err, -EINVAL, "options: see the beginning of bench/c/pace.c");
	}
	return rc;
}

int main(int argc, char **argv)
{
	static struct pace pace;
	struct ll_err err = {0};
	const struct kind *kind = find_kind(argc > 1 ? argv[1] : NULL);
	int rc = 0;
	if (!kind) {
		fprintf(stderr, "pace: sync, eager, flood or spans; see the beginning of bench/c/pace.c\n");
		return LL_EXIT_USAGE;
	}
	pace = (struct pace){
	    .kind = kind, .kernel_us = kind->kernel_us, .pause_us = kind->pause_us, .depth = kind->depth, .blocks = 1};
	rc = parse_options(argc - 1, argv + 1, &pace, &err);
	if (rc == 0)
		rc = run(&pace, &err);
	if (rc == 0)
		return LL_EXIT_OK;
	fprintf(stderr, "pace: %s\n", err.text);
	return ll_err_exit_code(rc);
}
