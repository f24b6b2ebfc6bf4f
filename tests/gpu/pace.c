/*
 * pace.c - small programs that use the card at a pace of their own, for measuring how programs share a card.
 *
 *     pace sync  [--kernel-us 5] [--pause-us 10]    a kernel, a wait for it, a pause of the host; and so on
 *     pace eager [--kernel-us 4] [--pause-us 12]    a launch each pause-us without waiting, a wait each 200 launches
 *     pace flood [--kernel-us 200] [--depth 10]     as many kernels queued as depth allows
 *
 * A kernel is one warp that works for kernel-us; time that another program has the card does not count. The protocol is
 * that of tests/gpu/programs/beat.py: "ready" when the program is set up; each line on standard input is a number of
 * seconds to work for; "done" tells kernels a second, and the time of a round: a kernel and its wait (sync), 200
 * launches and the wait (eager), nothing (flood). The end of standard input ends the program.
 *
 *     {"event":"done","iterations":162400,"seconds":4.0,"rate_per_s":40600.0,"p50_us":14.1,"p99_us":20.3}
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

struct pace {
	const char *kind;
	uint64_t kernel_us, pause_us, depth;
	struct ll_cuda cuda;
	struct ll_cu_context *context;
	struct ll_cu_function *kernel;
	struct ll_cu_stream *stream;
	struct ll_cu_event *ends[MAX_DEPTH]; /* of the last kernels of a flood */
	ll_cu_deviceptr record;              /* where kernels leave their stamps, which nobody reads */
	double *rounds_us;
	size_t round_count;
};

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
	for (uint64_t i = 0; status == LL_CUDA_SUCCESS && i < self->depth; i++)
		status = cuda->cuEventCreate(&self->ends[i], LL_CU_EVENT_DISABLE_TIMING);
	return status == LL_CUDA_SUCCESS ? 0 : ll_cuda_fail(cuda, status, err, "set up");
}

static ll_cu_result launch(const struct pace *self)
{
	uint64_t length_ns = self->kernel_us * LL_NS_PER_US, record = self->record, none = 0;
	void *params[] = {&length_ns, &record, &none, &none, &none};
	return self->cuda.cuLaunchKernel(self->kernel, 1, 1, 1, 32, 1, 1, 0, self->stream, params, NULL);
}

/* The host is busy, as one that prepares its next launch is. */
static void spend_until(uint64_t end_ns)
{
	while (ll_now_ns() < end_ns)
		;
}

static void end_round(struct pace *self, uint64_t begin_ns)
{
	if (self->round_count < MAX_ROUNDS)
		self->rounds_us[self->round_count++] = (double)(ll_now_ns() - begin_ns) / 1000;
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
	(void)number;
	uint64_t begin_ns = ll_now_ns();
	ll_cu_result status = LL_CUDA_SUCCESS;
	for (int i = 0; status == LL_CUDA_SUCCESS && i < EAGER_LAUNCHES; i++) {
		uint64_t next_ns = ll_now_ns() + self->pause_us * LL_NS_PER_US;
		status = launch(self);
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
	struct ll_cu_event *end = self->ends[number % self->depth];
	ll_cu_result status = number < self->depth ? LL_CUDA_SUCCESS : self->cuda.cuEventSynchronize(end);
	if (status == LL_CUDA_SUCCESS)
		status = launch(self);
	if (status == LL_CUDA_SUCCESS)
		status = self->cuda.cuEventRecord(end, self->stream);
	*ret_kernels = 1;
	return status;
}

typedef ll_cu_result round_fn(struct pace *self, uint64_t number, unsigned *ret_kernels);

/* The defaults are those of the table in doc/sharing.md. */
static const struct kind {
	const char *name;
	round_fn *round;
	uint64_t kernel_us, pause_us, depth;
} kinds[] = {
    {"sync", round_of_sync, 5, 10, 0}, {"eager", round_of_eager, 4, 12, 0}, {"flood", round_of_flood, 200, 0, 10}};

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
	printf("{\"event\":\"done\",\"iterations\":%" PRIu64 ",\"seconds\":%.6f,\"rate_per_s\":%.4f", kernels, seconds,
	       (double)kernels / seconds);
	if (self->round_count) {
		qsort(self->rounds_us, self->round_count, sizeof *self->rounds_us, compare);
		printf(",\"p50_us\":%.2f,\"p99_us\":%.2f", self->rounds_us[self->round_count / 2],
		       self->rounds_us[self->round_count * 99 / 100]);
	}
	printf("}\n");
	fflush(stdout);
}

static int work(struct pace *self, round_fn *round, double seconds, struct ll_err *err)
{
	uint64_t begin_ns = ll_now_ns(), end_ns = begin_ns + (uint64_t)(seconds * 1e9), kernels = 0;
	ll_cu_result status = LL_CUDA_SUCCESS;
	self->round_count = 0;
	for (uint64_t number = 0; status == LL_CUDA_SUCCESS && ll_now_ns() < end_ns; number++) {
		unsigned done = 0;
		status = round(self, number, &done);
		kernels += done;
	}
	if (status == LL_CUDA_SUCCESS)
		status = self->cuda.cuStreamSynchronize(self->stream);
	if (status != LL_CUDA_SUCCESS)
		return ll_cuda_fail(&self->cuda, status, err, "work");
	tell(self, kernels, (double)(ll_now_ns() - begin_ns) / 1e9);
	return 0;
}

static int run(struct pace *self, round_fn *round, struct ll_err *err)
{
	char line[32];
	self->rounds_us = malloc(MAX_ROUNDS * sizeof *self->rounds_us);
	if (!self->rounds_us)
		return ll_err_set(err, -ENOMEM, "no memory for the times of %d rounds", MAX_ROUNDS);
	int rc = open_card(self, err);
	for (uint64_t i = 0; rc == 0 && i < WARM_UP_ROUNDS; i++) {
		unsigned done;
		ll_cu_result status = round(self, i, &done);
		if (status != LL_CUDA_SUCCESS)
			rc = ll_cuda_fail(&self->cuda, status, err, "warm up");
	}
	if (rc == 0) {
		puts("{\"event\":\"ready\"}");
		fflush(stdout);
	}
	while (rc == 0 && fgets(line, sizeof line, stdin))
		rc = work(self, round, strtod(line, NULL), err);
	free(self->rounds_us);
	return rc;
}

static int parse_options(int argc, char **argv, struct pace *self, struct ll_err *err)
{
	static const struct option table[] = {{"kernel-us", required_argument, NULL, 'k'},
					      {"pause-us", required_argument, NULL, 'p'},
					      {"depth", required_argument, NULL, 'd'},
					      {NULL, 0, NULL, 0}};
	int letter, rc = 0;
	while (rc == 0 && (letter = getopt_long(argc, argv, "", table, NULL)) != -1) {
		if (letter == 'k')
			rc = ll_parse_uint(optarg, 1, 100000, &self->kernel_us, err);
		else if (letter == 'p')
			rc = ll_parse_uint(optarg, 0, 1000000, &self->pause_us, err);
		else if (letter == 'd')
			rc = ll_parse_uint(optarg, 1, MAX_DEPTH, &self->depth, err);
		else
			rc = ll_err_set(err, -EINVAL, "options: see the beginning of tests/gpu/pace.c");
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
		fprintf(stderr, "pace: sync, eager or flood; see the beginning of tests/gpu/pace.c\n");
		return LL_EXIT_USAGE;
	}
	pace = (struct pace){
	    .kind = kind->name, .kernel_us = kind->kernel_us, .pause_us = kind->pause_us, .depth = kind->depth};
	rc = parse_options(argc - 1, argv + 1, &pace, &err);
	if (rc == 0)
		rc = run(&pace, kind->round, &err);
	if (rc == 0)
		return LL_EXIT_OK;
	fprintf(stderr, "pace: %s\n", err.text);
	return ll_err_exit_code(rc);
}
