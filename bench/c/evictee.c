/*
 * evictee.c - a program that uses its memory on the card all the time and knows what must be in it, to be evicted while
 * it does so.
 *
 *     evictee --bytes 16G --seconds 20
 *
 * Allocates blocks of very different sizes that make up --bytes, and gives each word of a block the block's value.
 * Then, until the time is over: gives a random block a new value, copies one part of a block within it, replaces a
 * block now and then, and compares words at random. At the end it compares every word. With --idle it pauses so long
 * between two rounds. With --keep it replaces no block. With --until-eof it works until its standard input ends. JSON
 * lines:
 *
 *     {"event":"ready","bytes":17179869184,"blocks":412,"first_address":"7f12a0000000"}
 *     {"event":"end","rounds":51234,"wrong":0,"longest_round_seconds":0.71}
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
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
#include "driver/library.h"

enum { BLOCKS = 4096, LOOKS = 4, REPLACE_EACH = 16, COMPARE_BYTES = 1 << 24, COMPARERS = 4 };

struct block {
	ll_cu_deviceptr address;
	uint64_t bytes; /* a multiple of 4 */
	uint32_t value;
};

struct evictee {
	uint64_t bytes, run_ns, idle_ns;
	bool until_eof, keeps_blocks;
	struct ll_cuda cuda;
	struct ll_cu_context *context;
	struct block blocks[BLOCKS];
	size_t count;
	uint64_t rounds, longest_ns;
	_Atomic uint64_t wrong;

	pthread_mutex_t lock; /* guards the next part to compare */
	size_t next_block;
	uint64_t next_at;
};

static int check(struct evictee *self, ll_cu_result status, const char *what)
{
	struct ll_err err = {0};
	if (status == LL_CUDA_SUCCESS)
		return 0;
	ll_cuda_fail(&self->cuda, status, &err, "%s", what);
	fprintf(stderr, "evictee: %s\n", err.text);
	exit(LL_EXIT_FAILED);
}

static uint64_t random_below(uint64_t limit)
{
	return (uint64_t)(drand48() * (double)limit);
}

/* From 4 bytes to a third of all, each order of magnitude alike. */
static uint64_t random_bytes(uint64_t left)
{
	unsigned octaves = 1;
	while (left >> octaves > 12)
		octaves++;
	uint64_t bytes = UINT64_C(4) << random_below(octaves);
	bytes += random_below(bytes);
	bytes -= bytes % 4;
	return bytes < left ? bytes : left;
}

static void set_block(struct evictee *self, struct block *block)
{
	block->value = (uint32_t)random_below(UINT32_MAX);
	check(self, self->cuda.cuMemsetD32(block->address, block->value, block->bytes / 4), "set a block");
}

static void make_block(struct evictee *self, struct block *block, uint64_t bytes)
{
	block->bytes = bytes;
	check(self, self->cuda.cuMemAlloc(&block->address, bytes), "allocate a block");
	set_block(self, block);
}

static void compare_word(struct evictee *self, const struct block *block)
{
	uint32_t word = ~block->value;
	uint64_t at = random_below(block->bytes / 4) * 4;
	check(self, self->cuda.cuMemcpyDtoH(&word, block->address + at, sizeof word), "read a word");
	self->wrong += word != block->value;
}

/* ---- every word, by several threads: one of them would take longer than the copies ---- */

struct part {
	ll_cu_deviceptr address;
	uint64_t bytes;
	uint32_t value;
};

static bool next_part(struct evictee *self, struct part *ret_part)
{
	pthread_mutex_lock(&self->lock);
	bool has_part = self->next_block < self->count;
	if (has_part) {
		const struct block *block = &self->blocks[self->next_block];
		uint64_t left = block->bytes - self->next_at;
		uint64_t bytes = left < COMPARE_BYTES ? left : COMPARE_BYTES;
		*ret_part = (struct part){block->address + self->next_at, bytes, block->value};
		self->next_at += bytes;
		if (self->next_at == block->bytes) {
			self->next_block++;
			self->next_at = 0;
		}
	}
	pthread_mutex_unlock(&self->lock);
	return has_part;
}

static void *compare_parts(void *arg)
{
	struct evictee *self = arg;
	struct part part;
	void *copy;
	check(self, self->cuda.cuCtxSetCurrent(self->context), "use the context");
	check(self, self->cuda.cuMemHostAlloc(&copy, COMPARE_BYTES, 0), "allocate memory for copies");
	const uint32_t *words = copy;
	while (next_part(self, &part)) {
		uint64_t wrong = 0;
		check(self, self->cuda.cuMemcpyDtoH(copy, part.address, part.bytes), "read a block");
		for (uint64_t i = 0; i < part.bytes / 4; i++)
			wrong += words[i] != part.value;
		self->wrong += wrong;
	}
	check(self, self->cuda.cuMemFreeHost(copy), "free the copies");
	return NULL;
}

static void compare_all(struct evictee *self)
{
	pthread_t threads[COMPARERS];
	size_t started = 0;
	while (started < COMPARERS && !pthread_create(&threads[started], NULL, compare_parts, self))
		started++;
	if (!started)
		compare_parts(self);
	while (started)
		pthread_join(threads[--started], NULL);
}

/* ---- work ---- */

static void do_round(struct evictee *self)
{
	struct block *block = &self->blocks[random_below(self->count)];
	set_block(self, block);
	if (block->bytes >= 8)
		check(self,
		      self->cuda.cuMemcpyDtoDAsync(block->address, block->address + block->bytes / 8 * 4,
						   block->bytes / 8 * 4, NULL),
		      "copy a part");
	if (self->rounds % REPLACE_EACH == 0 && !self->keeps_blocks) {
		block = &self->blocks[random_below(self->count)];
		check(self, self->cuda.cuMemFree(block->address), "free a block");
		make_block(self, block, block->bytes);
	}
	for (int i = 0; i < LOOKS; i++)
		compare_word(self, &self->blocks[random_below(self->count)]);
}

static bool is_over(const struct evictee *self, uint64_t now_ns, uint64_t end_ns)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	return self->until_eof ? poll(&input, 1, 0) > 0 : now_ns >= end_ns;
}

static void run(struct evictee *self)
{
	uint64_t end_ns = ll_now_ns() + self->run_ns;
	for (uint64_t now_ns = ll_now_ns(); !is_over(self, now_ns, end_ns); self->rounds++) {
		do_round(self);
		uint64_t then_ns = ll_now_ns();
		self->longest_ns = then_ns - now_ns > self->longest_ns ? then_ns - now_ns : self->longest_ns;
		if (self->idle_ns)
			ll_sleep_until_ns(then_ns + self->idle_ns);
		now_ns = ll_now_ns();
	}
}

static void open_card(struct evictee *self)
{
	struct ll_err err = {0};
	ll_cu_device device = 0;
	if (ll_cuda_init(&self->cuda, &err) < 0) {
		fprintf(stderr, "evictee: %s\n", err.text);
		exit(LL_EXIT_FAILED);
	}
	check(self, self->cuda.cuDeviceGet(&device, 0), "find the card");
	check(self, self->cuda.cuDevicePrimaryCtxRetain(&self->context, device), "make a context");
	check(self, self->cuda.cuCtxSetCurrent(self->context), "use the context");
}

static void read_options(struct evictee *self, int argc, char **argv)
{
	static const struct option names[] = {
	    {"bytes", required_argument, NULL, 'b'}, {"seconds", required_argument, NULL, 's'},
	    {"idle", required_argument, NULL, 'i'},  {"until-eof", no_argument, NULL, 'u'},
	    {"keep", no_argument, NULL, 'k'},        {NULL, 0, NULL, 0}};
	struct ll_err err = {0};
	int rc = 0, letter;
	self->bytes = 1 << 30;
	self->run_ns = LL_NS_PER_S;
	while (!rc && (letter = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (letter == 'b')
			rc = ll_parse_bytes(optarg, &self->bytes, &err);
		else if (letter == 's' || letter == 'i')
			rc = ll_parse_duration(optarg, letter == 's' ? &self->run_ns : &self->idle_ns, &err);
		else if (letter == 'u')
			self->until_eof = true;
		else if (letter == 'k')
			self->keeps_blocks = true;
		else
			rc = -EINVAL;
	}
	if (rc) {
		fprintf(stderr, "evictee: %s\n", err.text);
		exit(LL_EXIT_USAGE);
	}
}

int main(int argc, char **argv)
{
	static struct evictee self = {.lock = PTHREAD_MUTEX_INITIALIZER};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	read_options(&self, argc, argv);
	open_card(&self);
	for (uint64_t left = self.bytes; left >= 4 && self.count < BLOCKS;) {
		uint64_t bytes = self.count == BLOCKS - 1 ? left : random_bytes(left);
		make_block(&self, &self.blocks[self.count++], bytes);
		left -= bytes;
	}
	printf("{\"event\":\"ready\",\"bytes\":%" PRIu64 ",\"blocks\":%zu,\"first_address\":\"%llx\"}\n", self.bytes,
	       self.count, self.blocks[0].address);
	fflush(stdout);
	run(&self);
	compare_all(&self);
	printf("{\"event\":\"end\",\"rounds\":%" PRIu64 ",\"wrong\":%" PRIu64 ",\"longest_round_seconds\":%.4f}\n",
	       self.rounds, self.wrong, (double)self.longest_ns / (double)LL_NS_PER_S);
	return self.wrong ? LL_EXIT_FAILED : LL_EXIT_OK;
}
