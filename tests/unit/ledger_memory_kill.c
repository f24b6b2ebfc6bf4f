/*
 * Many processes reserve and release at random, and are killed at random, while a process that does nothing else reads
 * the total.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "test.h"

#include "base/clock.h"
#include "base/scope.h"
#include "ledger/layout.h"
#include "ledger/memory.h"
#include "ledger_fixture.h"

enum { WORKERS = 64, KILLED = WORKERS / 3, BLOCKS = 8, LIMIT = 1 << 20, BLOCK_MAX = LIMIT / 60 };
enum {
	KILLS_MAX = 300,
	LONG_KILLS_MAX = 1500,
	TIME_MAX_S = 2,
	LONG_TIME_MAX_S = 6,
	DELAY_MAX_US = 4000,
	DEADLINE_S = 60
};

/* What the processes of the test tell each other, beside the ledger. */
struct board {
	_Atomic bool is_over, is_leaving;
	_Atomic uint64_t highest_bytes, looks;
	_Atomic uint64_t refused;
	struct {
		_Atomic bool is_parked;
		_Atomic uint64_t held_bytes;
	} workers[WORKERS];
};

static struct board *board;

static void park(unsigned number, struct ll_claim *claim, uint64_t held_bytes)
{
	board->workers[number].held_bytes = held_bytes;
	board->workers[number].is_parked = true;
	while (!board->is_leaving)
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);
	/* In all three ways that there are. */
	if (number % 3 == 0)
		ll_memory_release(claim, held_bytes);
	if (number % 3 < 2)
		ll_claim_release(claim);
	_exit(0);
}

static void work(const char *folder, unsigned number, unsigned seed)
{
	struct ll_ledger *ledger = NULL;
	uint64_t blocks[BLOCKS] = {0};
	uint64_t held_bytes = 0;
	if (ll_ledger_open(folder, UUID, true, &ledger, NULL))
		_exit(1);
	struct ll_claim *claim = take_claim_of(ledger, join_tenant(ledger, 1, LIMIT));
	while (!board->is_over) {
		uint64_t *block = &blocks[rand_r(&seed) % BLOCKS];
		uint64_t bytes = 1 + (uint64_t)rand_r(&seed) % BLOCK_MAX;
		if (*block) {
			ll_memory_release(claim, *block);
			held_bytes -= *block;
			*block = 0;
		} else if (ll_memory_reserve(claim, bytes) == 0) {
			*block = bytes;
			held_bytes += bytes;
		} else {
			board->refused++;
		}
	}
	park(number, claim, held_bytes);
}

static pid_t start_worker(const char *folder, unsigned number, unsigned seed)
{
	pid_t pid = fork();
	if (!pid)
		work(folder, number, seed);
	return pid;
}

/* Reads the bytes of the file and calls nothing of ours. */
static pid_t start_reader(const struct fixture *f, unsigned row)
{
	pid_t pid = fork();
	if (pid)
		return pid;
	LL_SCOPE_CLOSE int fd = open(f->path, O_RDONLY);
	const struct ll_ledger_file *file = mmap(NULL, sizeof *file, PROT_READ, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED)
		_exit(1);
	while (!board->is_leaving) {
		uint64_t bytes = file->tenants[row].memory_used_bytes;
		if (bytes > board->highest_bytes)
			board->highest_bytes = bytes;
		board->looks++;
	}
	_exit(0);
}

static void kill_worker(pid_t pid)
{
	int status;
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

/* All of them together want twice the limit. */
static void wait_until_refused(void)
{
	uint64_t deadline_ns = ll_now_ns() + DEADLINE_S * LL_NS_PER_S;
	while (!board->refused) {
		assert_true(ll_now_ns() < deadline_ns);
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);
	}
}

static unsigned kill_at_random(const char *folder, pid_t pids[WORKERS])
{
	unsigned kills = 0;
	unsigned seed = 1;
	unsigned kills_max = is_long_test() ? LONG_KILLS_MAX : KILLS_MAX;
	uint64_t deadline_ns = ll_now_ns() + (is_long_test() ? LONG_TIME_MAX_S : TIME_MAX_S) * LL_NS_PER_S;
	while (kills < kills_max && ll_now_ns() < deadline_ns) {
		unsigned which = (unsigned)rand_r(&seed) % WORKERS;
		ll_sleep_until_ns(ll_now_ns() + (uint64_t)(rand_r(&seed) % DELAY_MAX_US) * LL_NS_PER_US);
		kill_worker(pids[which]);
		pids[which] = start_worker(folder, which, 1000 + kills++);
	}
	for (unsigned i = 0; i < KILLED; i++, kills++) {
		kill_worker(pids[i]);
		pids[i] = 0;
	}
	return kills;
}

static uint64_t held_by_survivors(const pid_t pids[WORKERS])
{
	uint64_t sum = 0;
	uint64_t deadline_ns = ll_now_ns() + DEADLINE_S * LL_NS_PER_S;
	for (unsigned i = 0; i < WORKERS; i++) {
		while (pids[i] && !board->workers[i].is_parked) {
			assert_true(ll_now_ns() < deadline_ns);
			ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);
		}
		sum += pids[i] ? board->workers[i].held_bytes : 0;
	}
	return sum;
}

static uint64_t used_bytes(struct ll_ledger *ledger)
{
	struct ll_tenant_info info;
	assert_int_equal(ll_tenant_list(ledger, &info, 1), 1);
	return info.memory_used_bytes;
}

static void killed_processes_leave_the_total_true_and_within_its_limit(void **state)
{
	struct fixture *f = *state;
	pid_t pids[WORKERS];
	struct ll_ledger *ledger = open_ledger(f);
	unsigned row = join_tenant(ledger, 1, LIMIT);
	board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(board != MAP_FAILED);
	pid_t reader = start_reader(f, row);
	for (unsigned i = 0; i < WORKERS; i++)
		pids[i] = start_worker(f->folder, i, i);
	wait_until_refused();
	unsigned kills = kill_at_random(f->folder, pids);
	board->is_over = true;
	uint64_t held_bytes = held_by_survivors(pids);
	assert_int_equal(used_bytes(ledger), held_bytes);
	assert_int_equal(count_claims(ledger), WORKERS - KILLED);
	board->is_leaving = true;
	for (unsigned i = KILLED; i < WORKERS; i++) {
		int status;
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(waitpid(reader, NULL, 0), reader);
	assert_int_equal(used_bytes(ledger), 0);
	assert_int_equal(count_claims(ledger), 0);
	assert_true(board->highest_bytes <= LIMIT);
	assert_true(board->highest_bytes > LIMIT / 2);
	printf("%u were killed, %lu reservations refused, %lu looks, highest %lu of %d bytes\n", kills,
	       (unsigned long)board->refused, (unsigned long)board->looks, (unsigned long)board->highest_bytes, LIMIT);
	munmap(board, sizeof *board);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(killed_processes_leave_the_total_true_and_within_its_limit, fixture_setup,
					    fixture_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
