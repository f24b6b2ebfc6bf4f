/*
 * evict_worker.c - a program that uses its memory on the card all the time and knows what must be in it, to be evicted
 * while it does so.
 *
 *     evict_worker --bytes 16M --seconds 20
 *
 * Allocates blocks of very different sizes that make up --bytes, and gives each word of a block the block's value.
 * Then, until the time is over or it gets SIGTERM: gives a random block a new value, copies one part of a block within
 * it, replaces a block now and then, and compares words at random. At the end it compares every word. Between two
 * rounds it pauses 0.1 ms, or as long as --idle says. With --keep it replaces no block. With --threads so many threads
 * do this, each with its part of the bytes. With --mixed blocks get their values also by streams, by graphs, and from
 * memory of pools, and some blocks are a pool's.
 * --seed chooses what is random.
 * JSON lines:
 *
 *     {"event":"ready","bytes":17179869184,"blocks":412,"first_address":"7f12a0000000"}
 *     {"event":"end","rounds":51234,"wrong":0,"longest_round_seconds":0.71}
 */
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "abi/cuda_copy.h"
#include "abi/cuda_graph.h"
#include "abi/cuda_launch.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "driver/library.h"

enum { BLOCKS = 4096, LOOKS = 4, REPLACE_EACH = 16, COMPARE_BYTES = 1 << 24, THREADS = 16 };

/* Without a pause this program and the simulator's thread wake each other all the time. Linux 6.18 has then run nothing
 * else on their processor for a second. */
#define DEFAULT_IDLE_NS (100 * LL_NS_PER_US)

struct block {
	ll_cu_deviceptr address;
	uint64_t bytes; /* a multiple of 4 */
	uint32_t value;
	bool is_ordered; /* allocated in the order of the worker's stream */
};

/* What --mixed uses beyond the table of driver/library.h. */
static struct {
#define LL_CUDA_OPENED(...)
#define LL_CUDA(name, symbol, need, since, suffix, traced, hook, params, args) ll_cu_result(*name) params;
#include "abi/cuda.def"
} more;

static struct ll_cuda cuda;
static struct ll_cu_context *context;
static bool is_mixed, keeps_blocks;
static uint64_t run_ns, idle_ns = DEFAULT_IDLE_NS;
static volatile sig_atomic_t is_ended;

/* A thread, and its part of the memory. */
struct worker {
	pthread_t thread;
	unsigned short random[3];
	struct ll_cu_stream *stream;
	struct block *blocks;
	size_t count;
	uint64_t rounds, wrong, longest_ns;
};

static void check(ll_cu_result status, const char *what)
{
	struct ll_err err = {0};
	if (status == LL_CUDA_SUCCESS)
		return;
	ll_cuda_fail(&cuda, status, &err, "%s", what);
	fprintf(stderr, "evict_worker: %s\n", err.text);
	exit(LL_EXIT_FAILED);
}

static uint64_t random_below(struct worker *self, uint64_t limit)
{
	return (uint64_t)(erand48(self->random) * (double)limit);
}

/* From 4 bytes to a third of all, each order of magnitude alike. */
static uint64_t random_bytes(struct worker *self, uint64_t left)
{
	unsigned octaves = 1;
	while (left >> octaves > 12)
		octaves++;
	uint64_t bytes = UINT64_C(4) << random_below(self, octaves);
	bytes += random_below(self, bytes);
	bytes -= bytes % 4;
	return bytes < left ? bytes : left;
}

/* ---- ways to give a block its value ---- */

static void set_by_graph(struct worker *self, const struct block *block)
{
	struct ll_cu_graph *graph;
	struct ll_cu_graph_exec *exec;
	check(more.cuStreamBeginCapture(self->stream, LL_CU_STREAM_CAPTURE_MODE_RELAXED), "begin a capture");
	check(cuda.cuMemsetD32Async(block->address, block->value, block->bytes / 4, self->stream), "capture a memset");
	check(more.cuStreamEndCapture(self->stream, &graph), "end a capture");
	check(more.cuGraphInstantiate(&exec, graph, 0), "make a graph");
	check(more.cuGraphLaunch(exec, self->stream), "launch a graph");
	check(cuda.cuStreamSynchronize(self->stream), "wait for a graph");
	check(more.cuGraphExecDestroy(exec), "drop a graph");
	check(more.cuGraphDestroy(graph), "drop a graph");
}

static void set_from_pool(struct worker *self, const struct block *block)
{
	ll_cu_deviceptr source;
	check(more.cuMemAllocAsync(&source, block->bytes, self->stream), "allocate in a pool");
	check(cuda.cuMemsetD32Async(source, block->value, block->bytes / 4, self->stream), "set memory of a pool");
	check(cuda.cuMemcpyDtoDAsync(block->address, source, block->bytes, self->stream), "copy from a pool");
	check(more.cuMemFreeAsync(source, self->stream), "free in a pool");
	check(cuda.cuStreamSynchronize(self->stream), "wait for a stream");
}

static void set_by_stream(struct worker *self, const struct block *block)
{
	check(cuda.cuMemsetD32Async(block->address, block->value, block->bytes / 4, self->stream), "set a block");
	check(cuda.cuStreamSynchronize(self->stream), "wait for a stream");
}

static void set_block(struct worker *self, struct block *block)
{
	block->value = (uint32_t)random_below(self, UINT32_MAX);
	switch (is_mixed ? random_below(self, 4) : 0) {
	case 1:
		set_by_stream(self, block);
		break;
	case 2:
		set_by_graph(self, block);
		break;
	case 3:
		set_from_pool(self, block);
		break;
	default:
		check(cuda.cuMemsetD32(block->address, block->value, block->bytes / 4), "set a block");
	}
}

static void make_block(struct worker *self, struct block *block, uint64_t bytes)
{
	block->bytes = bytes;
	block->is_ordered = is_mixed && random_below(self, 2);
	if (block->is_ordered) {
		check(more.cuMemAllocAsync(&block->address, bytes, self->stream), "allocate a block in order");
		check(cuda.cuStreamSynchronize(self->stream), "wait for a block");
	} else {
		check(cuda.cuMemAlloc(&block->address, bytes), "allocate a block");
	}
	set_block(self, block);
}

/* The default stream may still use it. */
static void drop_block(struct worker *self, const struct block *block)
{
	if (!block->is_ordered) {
		check(cuda.cuMemFree(block->address), "free a block");
		return;
	}
	check(cuda.cuStreamSynchronize(NULL), "wait for the default stream");
	check(more.cuMemFreeAsync(block->address, self->stream), "free a block in order");
}

static void compare_word(struct worker *self, const struct block *block)
{
	uint32_t word = ~block->value;
	uint64_t at = random_below(self, block->bytes / 4) * 4;
	check(cuda.cuMemcpyDtoH(&word, block->address + at, sizeof word), "read a word");
	self->wrong += word != block->value;
}

static void compare_block(struct worker *self, const struct block *block, uint32_t *words)
{
	for (uint64_t at = 0; at < block->bytes; at += COMPARE_BYTES) {
		uint64_t part = block->bytes - at < COMPARE_BYTES ? block->bytes - at : COMPARE_BYTES;
		check(cuda.cuMemcpyDtoH(words, block->address + at, part), "read a block");
		for (uint64_t i = 0; i < part / 4; i++)
			self->wrong += words[i] != block->value;
	}
}

static void do_round(struct worker *self)
{
	struct block *block = &self->blocks[random_below(self, self->count)];
	set_block(self, block);
	if (block->bytes >= 8)
		check(cuda.cuMemcpyDtoDAsync(block->address, block->address + block->bytes / 8 * 4,
					     block->bytes / 8 * 4, NULL),
		      "copy a part");
	if (self->rounds % REPLACE_EACH == 0 && !keeps_blocks) {
		block = &self->blocks[random_below(self, self->count)];
		drop_block(self, block);
		make_block(self, block, block->bytes);
	}
	for (int i = 0; i < LOOKS; i++)
		compare_word(self, &self->blocks[random_below(self, self->count)]);
}

static void run_rounds(struct worker *self)
{
	uint64_t now_ns = ll_now_ns(), end_ns = now_ns + run_ns;
	for (; now_ns < end_ns && !is_ended; self->rounds++) {
		do_round(self);
		uint64_t then_ns = ll_now_ns();
		self->longest_ns = then_ns - now_ns > self->longest_ns ? then_ns - now_ns : self->longest_ns;
		if (idle_ns)
			ll_sleep_until_ns(then_ns + idle_ns);
		now_ns = ll_now_ns();
	}
}

static void *worker_main(void *arg)
{
	struct worker *self = arg;
	uint32_t *words = malloc(COMPARE_BYTES);
	check(cuda.cuCtxSetCurrent(context), "use the context");
	run_rounds(self);
	for (size_t i = 0; words && i < self->count; i++)
		compare_block(self, &self->blocks[i], words);
	self->wrong += !words;
	free(words);
	return NULL;
}

static void make_blocks(struct worker *self, uint64_t bytes)
{
	self->blocks = calloc(BLOCKS, sizeof *self->blocks);
	check(self->blocks ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_OUT_OF_MEMORY, "the blocks");
	check(cuda.cuStreamCreate(&self->stream, LL_CU_STREAM_NON_BLOCKING), "make a stream");
	for (uint64_t left = bytes; left >= 4 && self->count < BLOCKS;) {
		uint64_t part = self->count == BLOCKS - 1 ? left : random_bytes(self, left);
		make_block(self, &self->blocks[self->count++], part);
		left -= part;
	}
}

/* ---- the start ---- */

static void fail(const char *why, int status)
{
	fprintf(stderr, "evict_worker: %s\n", why);
	exit(status);
}

static void load_more(void)
{
	static const struct {
		void *to;
		const char *symbol;
	} rows[] = {
	    {&more.cuStreamBeginCapture, "cuStreamBeginCapture_v2"},
	    {&more.cuStreamEndCapture, "cuStreamEndCapture"},
	    {&more.cuGraphInstantiate, "cuGraphInstantiateWithFlags"},
	    {&more.cuGraphLaunch, "cuGraphLaunch"},
	    {&more.cuGraphExecDestroy, "cuGraphExecDestroy"},
	    {&more.cuGraphDestroy, "cuGraphDestroy"},
	    {&more.cuMemAllocAsync, "cuMemAllocAsync"},
	    {&more.cuMemFreeAsync, "cuMemFreeAsync"},
	};
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		void *function = library ? dlsym(library, rows[i].symbol) : NULL;
		if (!function)
			fail("the driver is too old for --mixed", LL_EXIT_NO_CARD);
		memcpy(rows[i].to, &function, sizeof function);
	}
}

static void open_card(void)
{
	struct ll_err err = {0};
	ll_cu_device device = 0;
	if (ll_cuda_init(&cuda, &err) < 0)
		fail(err.text, LL_EXIT_FAILED);
	check(cuda.cuDeviceGet(&device, 0), "find the card");
	check(cuda.cuDevicePrimaryCtxRetain(&context, device), "make a context");
	check(cuda.cuCtxSetCurrent(context), "use the context");
	if (is_mixed)
		load_more();
}

static void note_end(int signal)
{
	(void)signal;
	is_ended = 1;
}

struct options {
	uint64_t bytes, threads, seed;
};

static void read_options(struct options *options, int argc, char **argv)
{
	static const struct option names[] = {
	    {"bytes", required_argument, NULL, 'b'}, {"seconds", required_argument, NULL, 's'},
	    {"idle", required_argument, NULL, 'i'},  {"threads", required_argument, NULL, 't'},
	    {"seed", required_argument, NULL, 'r'},  {"mixed", no_argument, NULL, 'm'},
	    {"keep", no_argument, NULL, 'k'},        {NULL, 0, NULL, 0}};
	struct ll_err err = {0};
	int rc = 0, letter;
	run_ns = LL_NS_PER_S;
	while (!rc && (letter = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (letter == 'b')
			rc = ll_parse_bytes(optarg, &options->bytes, &err);
		else if (letter == 's' || letter == 'i')
			rc = ll_parse_duration(optarg, letter == 's' ? &run_ns : &idle_ns, &err);
		else if (letter == 't')
			rc = ll_parse_uint(optarg, 1, THREADS, &options->threads, &err);
		else if (letter == 'r')
			rc = ll_parse_uint(optarg, 0, UINT32_MAX, &options->seed, &err);
		else if (letter == 'm')
			is_mixed = true;
		else if (letter == 'k')
			keeps_blocks = true;
		else
			rc = -EINVAL;
	}
	if (rc)
		fail(err.text, LL_EXIT_USAGE);
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS];
	struct options options = {.bytes = 1 << 30, .threads = 1};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	read_options(&options, argc, argv);
	struct sigaction action = {.sa_handler = note_end};
	sigaction(SIGTERM, &action, NULL);
	open_card();
	size_t blocks = 0;
	for (uint64_t i = 0; i < options.threads; i++) {
		workers[i].random[0] = (unsigned short)(options.seed + i);
		workers[i].random[1] = (unsigned short)(options.seed >> 16);
		make_blocks(&workers[i], options.bytes / options.threads);
		blocks += workers[i].count;
	}
	printf("{\"event\":\"ready\",\"bytes\":%" PRIu64 ",\"blocks\":%zu,\"first_address\":\"%llx\"}\n", options.bytes,
	       blocks, workers[0].blocks[0].address);
	fflush(stdout);
	struct worker sum = {0};
	for (uint64_t i = 0; i < options.threads; i++) {
		if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]))
			fail("no thread", LL_EXIT_FAILED);
	}
	for (uint64_t i = 0; i < options.threads; i++) {
		pthread_join(workers[i].thread, NULL);
		sum.rounds += workers[i].rounds;
		sum.wrong += workers[i].wrong;
		sum.longest_ns = workers[i].longest_ns > sum.longest_ns ? workers[i].longest_ns : sum.longest_ns;
	}
	printf("{\"event\":\"end\",\"rounds\":%" PRIu64 ",\"wrong\":%" PRIu64 ",\"longest_round_seconds\":%.4f}\n",
	       sum.rounds, sum.wrong, (double)sum.longest_ns / (double)LL_NS_PER_S);
	return sum.wrong ? LL_EXIT_FAILED : LL_EXIT_OK;
}
