/*
 * What a reservation costs: the median of one reserve and its release, of one thread alone, and of many that contend
 * for one tenant's total; and the median of one that is refused. What a look costs whose turn it is, beside no other
 * tenant and beside many. No card is needed. The mean of more threads than there are processors is mostly waiting for
 * one of those.
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
#include "ledger/claim.h"
#include "ledger/memory.h"
#include "ledger/port.h"
#include "ledger/tenant.h"

enum { THREADS = 64, PAIRS_ALONE = 1000000, PAIRS_TOGETHER = 20000, REFUSALS = 2000, LIMIT_BYTES = 1 << 30 };
enum { MOST_TENANTS = 64, LOOKS = 400000 };

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
		if (ll_memory_reserve(run->claim, 4096) == 0)
			ll_memory_release(run->claim, 4096);
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

static void measure_refusals(struct ll_claim *claim)
{
	static uint32_t times_ns[REFUSALS];
	uint64_t first_ns = ll_now_ns();
	for (unsigned i = 0; i < REFUSALS; i++) {
		uint64_t start_ns = ll_now_ns();
		ll_memory_reserve(claim, (uint64_t)LIMIT_BYTES + 1);
		times_ns[i] = (uint32_t)(ll_now_ns() - start_ns);
	}
	print("a refusal:", times_ns, REFUSALS, ll_now_ns() - first_ns);
}

static int measure_reservations(struct ll_claim *claim)
{
	int rc = measure(claim, 1, PAIRS_ALONE);
	for (unsigned threads = 2; threads <= THREADS && !rc; threads *= 2)
		rc = measure(claim, threads, PAIRS_TOGETHER);
	measure_refusals(claim);
	return rc;
}

/* All of them want the card, take turns, and look one after the other. */
static void measure_looks(struct ll_claim **claims, size_t count, bool waits_on_card)
{
	static uint32_t times_ns[LOOKS];
	struct ll_turn turns[MOST_TENANTS] = {0};
	struct ll_turn_look look;
	char what[40];
	for (size_t i = 0; i < count; i++) {
		ll_port_set_waits_on_card(claims[i], waits_on_card);
		ll_port_want(claims[i], ll_now_ns());
	}
	uint64_t first_ns = ll_now_ns();
	size_t next = 0;
	for (unsigned i = 0; i < LOOKS; i++) {
		uint64_t start_ns = ll_now_ns();
		ll_port_look(claims[next], &turns[next], start_ns, 0, &look);
		next = next + 1 < count ? next + 1 : 0;
		times_ns[i] = (uint32_t)(ll_now_ns() - start_ns);
	}
	snprintf(what, sizeof what, "look, %zu tenant%s%s:", count, count > 1 ? "s" : "",
		 waits_on_card ? ", visits" : "");
	print(what, times_ns, LOOKS, ll_now_ns() - first_ns);
	for (size_t i = 0; i < count; i++)
		ll_port_rest(claims[i], ll_now_ns());
}

static int take_claim(struct ll_ledger *ledger, uint64_t id, struct ll_claim **ret_claim, struct ll_err *err)
{
	struct ll_tenant_wish wish = {.id = id, .name = "bench", .memory_limit_bytes = LIMIT_BYTES};
	unsigned row;
	int rc = ll_tenant_join(ledger, &wish, &row, err);
	if (rc)
		return rc;
	struct ll_claim_wish claim_wish = {.priority = LL_PRIORITY_NORMAL, .tenant_row = row + 1};
	return ll_claim_take(ledger, &claim_wish, "0", ret_claim, err);
}

static int measure_all(const char *folder, struct ll_err *err)
{
	static const size_t counts[] = {1, 2, 16, MOST_TENANTS};
	struct ll_ledger *ledger = NULL;
	struct ll_claim *claims[MOST_TENANTS] = {NULL};
	int rc = ll_ledger_open(folder, "bench", true, &ledger, err);
	for (size_t i = 0; i < MOST_TENANTS && !rc; i++)
		rc = take_claim(ledger, i + 1, &claims[i], err);
	for (size_t i = 0; i < 2 * sizeof counts / sizeof *counts && !rc; i++)
		measure_looks(claims, counts[i / 2], i % 2);
	for (size_t i = 1; i < MOST_TENANTS; i++)
		ll_claim_release(claims[i]);
	if (!rc)
		rc = measure_reservations(claims[0]);
	ll_claim_release(claims[0]);
	ll_ledger_close(ledger);
	return rc;
}

int main(void)
{
	struct ll_err err = {0};
	char folder[] = "/tmp/ll-bench-XXXXXX";
	char path[64];
	if (!mkdtemp(folder)) {
		perror(folder);
		return 1;
	}
	printf("%ld processors\n", sysconf(_SC_NPROCESSORS_ONLN));
	int rc = measure_all(folder, &err);
	if (rc)
		fprintf(stderr, "ledger_bench: %s\n", err.text);
	snprintf(path, sizeof path, "%s/bench.ledger", folder);
	unlink(path);
	rmdir(folder);
	return rc ? 1 : 0;
}
