/*
 * What a governed process pays for what it shares with loadlined: loadline run --mem 1G -- port_bench. The median of
 * one reservation and its release within the grant, of one thread and of many; of a reservation that loadlined refuses,
 * which goes there and back; of a look whose turn it is; and of beginning to want the card until loadlined knows it. No
 * card is needed. The mean of more threads than there are processors is mostly waiting for one of those.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "shim/link/port.h"

enum {
	THREADS = 64,
	PAIRS_ALONE = 1000000,
	PAIRS_TOGETHER = 20000,
	REFUSALS = 2000,
	LOOKS = 400000,
	WANTS = 2000,
	MESSAGES = 2000
};

struct run {
	struct ll_claim *claim;
	pthread_barrier_t *start;
	unsigned pairs;
	uint32_t *times_ns;
};

static void *measure_pairs(void *argument)
{
	struct run *run = argument;
	pthread_barrier_wait(run->start);
	for (unsigned i = 0; i < run->pairs; i++) {
		uint64_t start_ns = ll_now_ns();
		if (ll_port_reserve(run->claim, 4096) == 0)
			ll_port_release(run->claim, 4096);
		run->times_ns[i] = (uint32_t)(ll_now_ns() - start_ns);
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a;
	uint32_t y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static void print(const char *what, uint32_t *times_ns, size_t count, uint64_t wall_ns)
{
	double sum_ns = 0;
	for (size_t i = 0; i < count; i++)
		sum_ns += times_ns[i];
	qsort(times_ns, count, sizeof *times_ns, compare);
	printf("%-24s median %6u ns, mean %8.0f ns, 99 %% %8u ns, longest %10u ns, %9.0f a second\n", what,
	       times_ns[count / 2], sum_ns / (double)count, times_ns[count * 99 / 100], times_ns[count - 1],
	       (double)count * 1e9 / (double)wall_ns);
}

static int measure(struct ll_claim *claim, unsigned thread_count, unsigned pairs)
{
	pthread_t threads[THREADS];
	struct run runs[THREADS];
	pthread_barrier_t start;
	char what[40];
	uint32_t *times_ns = calloc((size_t)thread_count * pairs, sizeof *times_ns);
	if (!times_ns)
		return 1;
	pthread_barrier_init(&start, NULL, thread_count);
	uint64_t start_ns = ll_now_ns();
	for (unsigned i = 0; i < thread_count; i++) {
		runs[i] = (struct run){claim, &start, pairs, times_ns + (size_t)i * pairs};
		if (pthread_create(&threads[i], NULL, measure_pairs, &runs[i]))
			return 1;
	}
	for (unsigned i = 0; i < thread_count; i++)
		pthread_join(threads[i], NULL);
	snprintf(what, sizeof what, "%u thread%s, a pair:", thread_count, thread_count > 1 ? "s" : "");
	print(what, times_ns, (size_t)thread_count * pairs, ll_now_ns() - start_ns);
	pthread_barrier_destroy(&start);
	free(times_ns);
	return 0;
}

static void measure_refusals(struct ll_port *port, struct ll_claim *claim)
{
	static uint32_t times_ns[REFUSALS];
	uint64_t limit_bytes = 0;
	if (!ll_port_read_limit(port, &limit_bytes) || limit_bytes < 4096 || ll_port_reserve(claim, limit_bytes - 4096))
		return;
	uint64_t first_ns = ll_now_ns();
	for (unsigned i = 0; i < REFUSALS; i++) {
		uint64_t start_ns = ll_now_ns();
		ll_port_reserve(claim, 8192);
		times_ns[i] = (uint32_t)(ll_now_ns() - start_ns);
	}
	print("a refusal:", times_ns, REFUSALS, ll_now_ns() - first_ns);
	ll_port_release(claim, limit_bytes - 4096);
}

static void measure_looks(struct ll_claim *claim)
{
	static uint32_t times_ns[LOOKS];
	struct ll_turn turn = {0};
	struct ll_turn_look look;
	ll_port_want(claim, ll_now_ns());
	uint64_t first_ns = ll_now_ns();
	for (unsigned i = 0; i < LOOKS; i++) {
		uint64_t start_ns = ll_now_ns();
		ll_port_look(claim, &turn, start_ns, 0, &look, NULL);
		times_ns[i] = (uint32_t)(ll_now_ns() - start_ns);
	}
	print("a look:", times_ns, LOOKS, ll_now_ns() - first_ns);
	ll_port_rest(claim, ll_now_ns());
}

static void measure_messages(struct ll_port *port)
{
	static uint32_t times_ns[MESSAGES];
	uint64_t first_ns = ll_now_ns();
	for (unsigned i = 0; i < MESSAGES; i++) {
		uint64_t start_ns = ll_now_ns();
		ll_port_sweep(port);
		times_ns[i] = (uint32_t)(ll_now_ns() - start_ns);
	}
	print("a message and its answer:", times_ns, MESSAGES, ll_now_ns() - first_ns);
}

/* Of a process that wants nothing any more, until it may launch again: at once, if its orders say so. */
static void measure_wants(struct ll_claim *claim)
{
	static uint32_t times_ns[WANTS];
	struct ll_turn turn = {0};
	struct ll_turn_look look;
	uint64_t first_ns = ll_now_ns();
	for (unsigned i = 0; i < WANTS; i++) {
		uint64_t start_ns = ll_now_ns();
		ll_port_want(claim, start_ns);
		do {
			uint32_t wake_count = ll_port_wake_count(claim);
			ll_port_look(claim, &turn, ll_now_ns(), 0, &look, NULL);
			if (!look.may_launch)
				ll_port_sleep(claim, wake_count, ll_now_ns() + LL_NS_PER_MS);
		} while (!look.may_launch);
		times_ns[i] = (uint32_t)(ll_now_ns() - start_ns);
		ll_port_rest(claim, ll_now_ns());
	}
	print("a want:", times_ns, WANTS, ll_now_ns() - first_ns);
}

static int measure_all(struct ll_port *port, struct ll_claim *claim)
{
	printf("%ld processors\n", sysconf(_SC_NPROCESSORS_ONLN));
	measure_looks(claim);
	measure_wants(claim);
	int rc = measure(claim, 1, PAIRS_ALONE);
	for (unsigned threads = 2; threads <= THREADS && !rc; threads *= 2)
		rc = measure(claim, threads, PAIRS_TOGETHER);
	measure_refusals(port, claim);
	measure_messages(port);
	return rc;
}

int main(void)
{
	static struct ll_run_settings settings;
	struct ll_err err = {0};
	struct ll_port *port = NULL;
	struct ll_claim *claim = NULL;
	if (ll_run_settings_find(&settings)) {
		fputs("port_bench: start it by `loadline run --mem 1G -- port_bench`\n", stderr);
		return 2;
	}
	int rc = ll_port_open(&settings, "bench", true, &port, &err);
	if (!rc)
		rc = ll_port_claim(port, LL_PORT_PATIENCE_NS, &claim, &err);
	if (rc) {
		fprintf(stderr, "port_bench: %s\n", err.text);
		return 1;
	}
	rc = measure_all(port, claim);
	ll_port_leave(claim);
	return rc ? 1 : 0;
}
