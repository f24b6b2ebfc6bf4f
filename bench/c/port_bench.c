/*
 * What a governed process pays for what it shares with loadlined: loadline run --mem 1G -- port_bench. The median of
 * one reservation and its release within the grant, of one thread and of many; of a reservation that loadlined refuses,
 * which goes there and back; of a look whose turn it is; and of beginning to want the card until loadlined knows it. No
 * card is needed. The mean of more threads than there are processors is mostly waiting for one of those.
 */
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
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
	MESSAGES = 2000,
	GRANTS = 300,
	IDLE_US = 20000,
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

/* The process and a sibling want all of the job's memory in turn, so each has to ask for what the other was granted. */
struct sibling {
	pid_t pid;
	int to, from;
};

static int start_sibling(struct sibling *ret_sibling)
{
	char self[] = "/proc/self/exe", mode[] = "sibling", *words[] = {self, mode, NULL};
	int to[2], from[2];
	posix_spawn_file_actions_t actions;
	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC) || posix_spawn_file_actions_init(&actions))
		return -1;
	posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
	int rc = posix_spawn(&ret_sibling->pid, self, &actions, NULL, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(to[0]);
	close(from[1]);
	ret_sibling->to = to[1];
	ret_sibling->from = from[0];
	return rc;
}

/* Takes and gives back all memory each time that it is told to. */
static int be_sibling(struct ll_claim *claim, uint64_t bytes)
{
	for (char turn; read(STDIN_FILENO, &turn, 1) == 1;) {
		turn = ll_port_reserve(claim, bytes) ? 'x' : 'y';
		ll_port_release(claim, bytes);
		if (write(STDOUT_FILENO, &turn, 1) != 1)
			return 1;
	}
	return 0;
}

static void measure_grants(struct ll_claim *claim, const struct sibling *sibling, uint64_t bytes, unsigned rest_us)
{
	static uint32_t times_ns[GRANTS];
	uint64_t first_ns = ll_now_ns();
	for (unsigned i = 0; i < GRANTS; i++) {
		char turn = 'y';
		if (write(sibling->to, &turn, 1) != 1 || read(sibling->from, &turn, 1) != 1 || turn != 'y') {
			puts("memory by a message: refused");
			return;
		}
		usleep(rest_us);
		uint64_t start_ns = ll_now_ns();
		int rc = ll_port_reserve(claim, bytes);
		times_ns[i] = (uint32_t)(ll_now_ns() - start_ns);
		if (rc) {
			printf("memory by a message: refused: %s\n", strerror(-rc));
			return;
		}
		ll_port_release(claim, bytes);
	}
	print(rest_us ? "memory by a message, after idleness:" : "memory by a message:", times_ns, GRANTS,
	      ll_now_ns() - first_ns);
}

static int measure_memory(struct ll_claim *claim, uint64_t bytes)
{
	struct sibling sibling;
	if (start_sibling(&sibling))
		return -1;
	measure_grants(claim, &sibling, bytes, 0);
	measure_grants(claim, &sibling, bytes, IDLE_US);
	close(sibling.to);
	waitpid(sibling.pid, NULL, 0);
	return 0;
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

int main(int argc, char **argv)
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
	uint64_t limit_bytes = 0;
	bool has_limit = ll_port_read_limit(port, &limit_bytes) && limit_bytes > 4096;
	if (argc > 1 && strcmp(argv[1], "sibling") == 0)
		return be_sibling(claim, limit_bytes - 4096);
	rc = measure_all(port, claim);
	if (!rc && has_limit)
		rc = measure_memory(claim, limit_bytes - 4096);
	ll_port_leave(claim);
	return rc ? 1 : 0;
}
