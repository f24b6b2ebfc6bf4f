/*
 * hoard.c - many processes that allocate and free the card's memory at random, for a memory limit to be kept against.
 *
 *     hoard --processes 64 --seconds 60 --largest 256M --most 1G
 *
 * Forks that many children before the driver is touched. When each has its context they all begin together: allocations
 * of 4 KiB to --largest, as many small ones as large ones, up to --most for each child, freed in no order. A refusal
 * makes a child give something back and go on. Children may be killed at any time. A JSON object a line:
 *
 *     {"event":"child","pid":4712}
 *     {"event":"go"}
 *     {"event":"hoard","pid":4712,"allocations":81234,"refusals":310,"most_bytes":1070000000}    a child at its end
 *     {"event":"end","ended":43,"killed":21,"failed":0}
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "driver/library.h"

enum { MAX_PROCESSES = 200, HELD = 256, SMALLEST_SHIFT = 12, TOUCHED_BYTES = 4096, PAUSE_US = 500 };

struct options {
	uint64_t processes, seconds, largest_bytes, most_bytes;
};

struct allocation {
	ll_cu_deviceptr address;
	uint64_t bytes;
};

struct hoard {
	const struct options *options;
	struct ll_cuda cuda;
	struct ll_cu_context *context;
	struct allocation held[HELD];
	size_t held_count;
	uint64_t held_bytes, most_bytes, allocations, refusals;
};

/* What children tell and are told through pipes. */
struct gates {
	int ready[2]; /* a byte from each child that has its context, or the end of it */
	int go[2];    /* its end is the word to begin */
};

/* ---- a child ---- */

static int open_card(struct hoard *self, struct ll_err *err)
{
	ll_cu_device device = 0;
	int rc = ll_cuda_init(&self->cuda, err);
	if (rc)
		return rc;
	ll_cu_result status = self->cuda.cuDeviceGet(&device, 0);
	if (status == LL_CUDA_SUCCESS)
		status = self->cuda.cuCtxCreate(&self->context, 0, device);
	return status == LL_CUDA_SUCCESS ? 0 : ll_cuda_fail(&self->cuda, status, err, "make a context");
}

/* Every order of magnitude alike. */
static uint64_t random_bytes(const struct options *options)
{
	unsigned octaves = 1;
	while ((options->largest_bytes >> SMALLEST_SHIFT) >> octaves)
		octaves++;
	unsigned octave = (unsigned)(drand48() * octaves);
	uint64_t bytes = (uint64_t)((double)(UINT64_C(1) << SMALLEST_SHIFT << octave) * (1 + drand48()));
	return bytes < options->largest_bytes ? bytes : options->largest_bytes;
}

static ll_cu_result give_back(struct hoard *self)
{
	size_t at = (size_t)(drand48() * (double)self->held_count);
	struct allocation gone = self->held[at];
	self->held[at] = self->held[--self->held_count];
	self->held_bytes -= gone.bytes;
	return self->cuda.cuMemFree(gone.address);
}

static ll_cu_result take(struct hoard *self, uint64_t bytes)
{
	struct allocation new = {.bytes = bytes};
	ll_cu_result status = self->cuda.cuMemAlloc(&new.address, bytes);
	if (status == LL_CUDA_ERROR_OUT_OF_MEMORY) {
		self->refusals++;
		return self->held_count ? give_back(self) : LL_CUDA_SUCCESS;
	}
	if (status != LL_CUDA_SUCCESS)
		return status;
	self->held[self->held_count++] = new;
	self->held_bytes += bytes;
	self->allocations++;
	if (self->held_bytes > self->most_bytes)
		self->most_bytes = self->held_bytes;
	return self->cuda.cuMemsetD8(new.address, 1, bytes < TOUCHED_BYTES ? bytes : TOUCHED_BYTES);
}

static int work(struct hoard *self, struct ll_err *err)
{
	uint64_t end_ns = ll_now_ns() + self->options->seconds * LL_NS_PER_S;
	ll_cu_result status = LL_CUDA_SUCCESS;
	while (status == LL_CUDA_SUCCESS && ll_now_ns() < end_ns) {
		uint64_t bytes = random_bytes(self->options);
		bool is_full = self->held_count == HELD || self->held_bytes + bytes > self->options->most_bytes;
		if (self->held_count && (is_full || drand48() < 0.4))
			status = give_back(self);
		else
			status = take(self, bytes);
		usleep((useconds_t)(drand48() * PAUSE_US));
	}
	while (status == LL_CUDA_SUCCESS && self->held_count)
		status = give_back(self);
	return status == LL_CUDA_SUCCESS ? 0 : ll_cuda_fail(&self->cuda, status, err, "allocate and free");
}

static void wait_go(const struct gates *gates)
{
	char byte = 0;
	close(gates->go[1]);
	if (write(gates->ready[1], &byte, 1) == 1)
		close(gates->ready[1]);
	while (read(gates->go[0], &byte, 1) < 0 && errno == EINTR)
		continue;
}

static int be_child(const struct options *options, const struct gates *gates)
{
	struct ll_err err = {0};
	struct hoard hoard = {.options = options};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	srand48((long)getpid());
	int rc = open_card(&hoard, &err);
	if (rc == 0) {
		wait_go(gates);
		rc = work(&hoard, &err);
	}
	if (rc < 0)
		fprintf(stderr, "hoard: %d: %s\n", (int)getpid(), err.text);
	printf("{\"event\":\"hoard\",\"pid\":%d,\"allocations\":%" PRIu64 ",\"refusals\":%" PRIu64
	       ",\"most_bytes\":%" PRIu64 "}\n",
	       (int)getpid(), hoard.allocations, hoard.refusals, hoard.most_bytes);
	fflush(stdout);
	if (hoard.context)
		hoard.cuda.cuCtxDestroy(hoard.context);
	ll_cuda_fini(&hoard.cuda);
	return ll_err_exit_code(rc);
}

/* ---- the parent ---- */

static int start(const struct options *options, struct gates *gates, struct ll_err *err)
{
	if (pipe(gates->ready) < 0 || pipe(gates->go) < 0)
		return ll_err_set(err, -errno, "pipe: %s", strerror(errno));
	for (uint64_t i = 0; i < options->processes; i++) {
		pid_t pid = fork();
		if (pid < 0)
			return ll_err_set(err, -errno, "fork: %s", strerror(errno));
		if (pid == 0)
			exit(be_child(options, gates));
		printf("{\"event\":\"child\",\"pid\":%d}\n", (int)pid);
		fflush(stdout);
	}
	close(gates->ready[1]);
	return 0;
}

/* One that cannot have a context ends, and its end of the pipe with it. */
static void let_go(const struct gates *gates)
{
	char byte;
	ssize_t count;
	do
		count = read(gates->ready[0], &byte, 1);
	while (count > 0 || (count < 0 && errno == EINTR));
	close(gates->go[1]);
	puts("{\"event\":\"go\"}");
	fflush(stdout);
}

static void wait_all(void)
{
	unsigned ended = 0, killed = 0, failed = 0;
	int status;
	while (wait(&status) > 0 || errno == EINTR) {
		if (WIFSIGNALED(status))
			killed++;
		else if (WEXITSTATUS(status) == 0)
			ended++;
		else
			failed++;
	}
	printf("{\"event\":\"end\",\"ended\":%u,\"killed\":%u,\"failed\":%u}\n", ended, killed, failed);
}

static const struct option table[] = {
    {"processes", required_argument, NULL, 'p'},
    {"seconds", required_argument, NULL, 's'},
    {"largest", required_argument, NULL, 'l'},
    {"most", required_argument, NULL, 'm'},
    {NULL, 0, NULL, 0},
};

static int parse_options(int argc, char **argv, struct options *options, struct ll_err *err)
{
	int letter, rc = 0;
	while (rc == 0 && (letter = getopt_long(argc, argv, "", table, NULL)) != -1) {
		if (letter == 'p')
			rc = ll_parse_uint(optarg, 1, MAX_PROCESSES, &options->processes, err);
		else if (letter == 's')
			rc = ll_parse_uint(optarg, 1, 3600, &options->seconds, err);
		else if (letter == 'l')
			rc = ll_parse_bytes(optarg, &options->largest_bytes, err);
		else if (letter == 'm')
			rc = ll_parse_bytes(optarg, &options->most_bytes, err);
		else
			rc = ll_err_set(err, -EINVAL, "options: see the beginning of bench/c/hoard.c");
	}
	return rc;
}

int main(int argc, char **argv)
{
	struct ll_err err = {0};
	struct options options = {.processes = 64, .seconds = 60, .largest_bytes = 256 << 20, .most_bytes = 1 << 30};
	struct gates gates = {0};
	int rc = parse_options(argc, argv, &options, &err);
	if (rc == 0)
		rc = start(&options, &gates, &err);
	if (rc < 0) {
		fprintf(stderr, "hoard: %s\n", err.text);
		return ll_err_exit_code(rc);
	}
	let_go(&gates);
	wait_all();
	return LL_EXIT_OK;
}
