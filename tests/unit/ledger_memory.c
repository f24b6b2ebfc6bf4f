#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "test.h"

#include "base/clock.h"
#include "base/scope.h"
#include "ledger/layout.h"
#include "ledger/memory.h"
#include "ledger_fixture.h"

static uint64_t used_bytes(struct ll_ledger *ledger)
{
	struct ll_tenant_info info;
	assert_int_equal(ll_tenant_list(ledger, &info, 1), 1);
	return info.memory_used_bytes;
}

static void reservation_fills_the_limit_and_not_a_byte_more(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	unsigned row = join_tenant(ledger, 1, 1000);
	struct ll_claim *one = take_claim_of(ledger, row);
	struct ll_claim *two = take_claim_of(ledger, row);
	struct ll_memory_view view;
	assert_int_equal(ll_memory_reserve(one, 600), 0);
	assert_int_equal(ll_memory_reserve(two, 401), -ENOMEM);
	assert_int_equal(ll_memory_reserve(two, 400), 0);
	assert_int_equal(ll_memory_reserve(one, 1), -ENOMEM);
	assert_int_equal(ll_memory_reserve(one, 0), 0);
	assert_int_equal(ll_memory_reserve(one, UINT64_MAX), -ENOMEM);
	ll_memory_look(two, &view);
	assert_int_equal(view.limit_bytes, 1000);
	assert_int_equal(view.used_bytes, 1000);
	assert_int_equal(view.own_bytes, 400);
	ll_memory_release(one, 600);
	assert_int_equal(used_bytes(ledger), 400);
	ll_claim_release(two);
	assert_int_equal(used_bytes(ledger), 0);
	ll_claim_release(one);
}

static void memory_is_counted_without_a_limit_and_without_a_tenant(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_claim *free_one = take_claim(ledger, LL_PRIORITY_NORMAL);
	struct ll_claim *of_tenant = take_claim_of(ledger, join_tenant(ledger, 1, 0));
	struct ll_claim *claims[] = {free_one, of_tenant};
	for (size_t i = 0; i < 2; i++) {
		struct ll_memory_view view;
		assert_int_equal(ll_memory_reserve(claims[i], 1 << 20), 0);
		ll_memory_charge(claims[i], 5);
		assert_int_equal(ll_memory_reserve(claims[i], UINT64_MAX), -ENOMEM);
		ll_memory_charge(claims[i], UINT64_MAX);
		ll_memory_release(claims[i], 1);
		ll_memory_look(claims[i], &view);
		assert_int_equal(view.limit_bytes, 0);
		assert_int_equal(view.used_bytes, (1 << 20) + 4);
		assert_int_equal(view.own_bytes, (1 << 20) + 4);
		ll_memory_release(claims[i], UINT64_MAX);
		ll_memory_look(claims[i], &view);
		assert_int_equal(view.used_bytes, 0);
	}
	ll_claim_release(of_tenant);
	ll_claim_release(free_one);
}

static void charge_passes_the_limit_and_keeps_others_out(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_claim *claim = take_claim_of(ledger, join_tenant(ledger, 1, 100));
	ll_memory_charge(claim, 150);
	assert_int_equal(used_bytes(ledger), 150);
	assert_int_equal(ll_memory_reserve(claim, 1), -ENOMEM);
	ll_memory_release(claim, 60);
	assert_int_equal(ll_memory_reserve(claim, 10), 0);
	assert_int_equal(ll_memory_reserve(claim, 1), -ENOMEM);
	ll_claim_release(claim);
}

static void release_of_more_than_there_is_takes_what_there_is(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	unsigned row = join_tenant(ledger, 1, 0);
	struct ll_claim *one = take_claim_of(ledger, row);
	struct ll_claim *two = take_claim_of(ledger, row);
	assert_int_equal(ll_memory_reserve(one, 100), 0);
	assert_int_equal(ll_memory_reserve(two, 10), 0);
	ll_memory_release(two, 50);
	assert_int_equal(used_bytes(ledger), 100);
	ll_claim_release(one);
	ll_claim_release(two);
}

static void errno_is_kept(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_claim *claim = take_claim_of(ledger, join_tenant(ledger, 1, 100));
	errno = 4711;
	assert_int_equal(ll_memory_reserve(claim, 101), -ENOMEM);
	assert_int_equal(ll_memory_reserve(claim, 100), 0);
	ll_memory_release(claim, 100);
	assert_int_equal(errno, 4711);
	ll_claim_release(claim);
}

static void forked_child_cannot_change_its_parents_memory(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_claim *claim = take_claim_of(ledger, join_tenant(ledger, 1, 100));
	int status;
	assert_int_equal(ll_memory_reserve(claim, 40), 0);
	pid_t pid = fork();
	if (!pid) {
		int rc = ll_memory_reserve(claim, 1);
		ll_memory_charge(claim, 1);
		ll_memory_release(claim, 40);
		_exit(rc == -ESTALE ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(used_bytes(ledger), 40);
	ll_claim_release(claim);
}

static void forked_child_reserves_with_a_claim_of_its_own(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_claim *claim = take_claim_of(ledger, join_tenant(ledger, 1, 100));
	int status;
	assert_int_equal(ll_memory_reserve(claim, 40), 0);
	pid_t pid = fork();
	if (!pid) {
		struct ll_claim *own = take_claim_of(ledger, join_tenant(ledger, 1, 0));
		_exit(ll_memory_reserve(own, 61) == -ENOMEM && !ll_memory_reserve(own, 60) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(used_bytes(ledger), 40);
	ll_claim_release(claim);
}

static void cleared_claim_is_stale(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_ledger *other = NULL;
	struct ll_claim *claim = take_claim_of(ledger, join_tenant(ledger, 1, 100));
	assert_int_equal(ll_memory_reserve(claim, 40), 0);
	assert_int_equal(ll_ledger_open(f->folder, UUID, true, &other, NULL), 0);
	join_tenant(other, 1, 0);
	for (int fd = 512; fd < 514; fd++)
		close(fd);
	for (int fd = 514; fd < 600; fd++) {
		if (lseek(fd, 0, SEEK_CUR) > 0 && ll_ledger_sweep(other) == 0)
			close(fd);
	}
	join_tenant(other, 1, 100);
	assert_int_equal(ll_ledger_sweep(other), 0);
	assert_int_equal(ll_memory_reserve(claim, 1), -ESTALE);
	ll_memory_release(claim, 40);
	ll_claim_release(claim);
	ll_ledger_close(other);
}

/* Forks a child that reserves bytes for tenant 1, tells so, and waits to be killed. */
static pid_t start_user(const struct fixture *f, uint64_t bytes, pid_t (*start_stray)(void))
{
	int told[2];
	char byte = 0;
	assert_int_equal(pipe(told), 0);
	pid_t pid = fork();
	if (!pid) {
		struct ll_ledger *ledger = NULL;
		if (ll_ledger_open(f->folder, UUID, true, &ledger, NULL))
			_exit(1);
		struct ll_claim *claim = take_claim_of(ledger, join_tenant(ledger, 1, 0));
		ll_claim_set_active(claim);
		if (ll_memory_reserve(claim, bytes) || (start_stray && !start_stray()) || write(told[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(told[1]);
	assert_int_equal(read(told[0], &byte, 1), 1);
	close(told[0]);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void refused_reservation_finds_what_the_dead_have_left(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_claim *claim = take_claim_of(ledger, join_tenant(ledger, 1, 1000));
	struct ll_memory_view view;
	pid_t pid = start_user(f, 900, NULL);
	assert_int_equal(ll_memory_reserve(claim, 101), -ENOMEM);
	end_child(pid);
	ll_memory_look(claim, &view);
	assert_int_equal(view.used_bytes, 900);
	assert_int_equal(ll_memory_reserve(claim, 1000), 0);
	assert_int_equal(used_bytes(ledger), 1000);
	assert_int_equal(ll_ledger_activity_ns(ledger), 0);
	ll_claim_release(claim);
}

/* A bare clone(), which no handler of ours sees, keeps the owner's lock. It ends when this program does. */
static pid_t start_stray(void)
{
	pid_t main_pid = getppid();
	pid_t pid = _Fork();
	if (pid)
		return pid;
	while (kill(main_pid, 0) == 0)
		ll_sleep_until_ns(ll_now_ns() + 10 * LL_NS_PER_MS);
	_exit(0);
}

static void memory_of_the_dead_is_found_behind_a_stray_copy_of_their_lock(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_claim *claim = take_claim_of(ledger, join_tenant(ledger, 1, 1000));
	end_child(start_user(f, 900, start_stray));
	assert_int_equal(ll_memory_reserve(claim, 1000), 0);
	assert_int_equal(used_bytes(ledger), 1000);
	ll_claim_release(claim);
	assert_int_equal(used_bytes(ledger), 0);
}

static void sweep_takes_the_memory_of_the_dead_out_of_the_total(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_claim *claim = take_claim_of(ledger, join_tenant(ledger, 1, 1000));
	assert_int_equal(ll_memory_reserve(claim, 1), 0);
	pid_t pid = start_user(f, 900, NULL);
	assert_true(ll_ledger_activity_ns(ledger) == LL_ACTIVITY_NOW);
	end_child(pid);
	assert_int_equal(ll_ledger_sweep(ledger), 1);
	assert_int_equal(used_bytes(ledger), 1);
	assert_int_equal(ll_ledger_activity_ns(ledger), 0);
	ll_claim_release(claim);
}

enum { THREADS = 64, PAIRS = 300, LIMIT = 20000 };

struct crowd {
	struct ll_ledger *ledger;
	struct ll_claim *claim;
	_Atomic bool is_over;
	_Atomic uint64_t highest_bytes, refused;
};

static void *reserve_and_release(void *argument)
{
	struct crowd *crowd = argument;
	unsigned seed = (unsigned)(uintptr_t)&crowd;
	for (int i = 0; i < PAIRS; i++) {
		uint64_t bytes = 1 + (uint64_t)rand_r(&seed) % 1000;
		struct ll_memory_view view;
		if (ll_memory_reserve(crowd->claim, bytes)) {
			crowd->refused++;
			continue;
		}
		ll_memory_look(crowd->claim, &view);
		if (view.used_bytes > crowd->highest_bytes)
			crowd->highest_bytes = view.used_bytes;
		if (i % 7 == 0)
			sched_yield();
		ll_memory_release(crowd->claim, bytes);
	}
	return NULL;
}

static void *watch(void *argument)
{
	struct crowd *crowd = argument;
	while (!crowd->is_over) {
		struct ll_memory_view view;
		ll_memory_look(crowd->claim, &view);
		if (view.used_bytes > crowd->highest_bytes)
			crowd->highest_bytes = view.used_bytes;
	}
	return NULL;
}

static void threads_that_contend_keep_the_limit_and_the_count(void **state)
{
	struct fixture *f = *state;
	pthread_t threads[THREADS];
	pthread_t watcher;
	struct crowd crowd = {.ledger = open_ledger(f)};
	crowd.claim = take_claim_of(crowd.ledger, join_tenant(crowd.ledger, 1, LIMIT));
	assert_int_equal(ll_memory_reserve(crowd.claim, LIMIT / 2), 0);
	assert_int_equal(pthread_create(&watcher, NULL, watch, &crowd), 0);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reserve_and_release, &crowd), 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	crowd.is_over = true;
	pthread_join(watcher, NULL);
	assert_true(crowd.highest_bytes <= LIMIT);
	assert_true(crowd.highest_bytes > LIMIT / 2);
	assert_int_equal(used_bytes(crowd.ledger), LIMIT / 2);
	ll_claim_release(crowd.claim);
	assert_int_equal(used_bytes(crowd.ledger), 0);
}

/* Cancelled wherever it waits: a refused reservation opens and reads files. Whatever it had is with the claim. */
static void *reserve_for_ever(void *argument)
{
	for (;;) {
		if (ll_memory_reserve(argument, 10) == 0)
			ll_memory_release(argument, 10);
		pthread_testcancel();
	}
	return NULL;
}

static void cancelled_threads_take_no_guard_and_no_lock_with_them(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_claim *claim = take_claim_of(ledger, join_tenant(ledger, 1, 10));
	for (int round = 0; round < 50; round++) {
		pthread_t threads[4];
		for (size_t i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, reserve_for_ever, claim), 0);
		ll_sleep_until_ns(ll_now_ns() + 300 * LL_NS_PER_US);
		for (size_t i = 0; i < 4; i++)
			pthread_cancel(threads[i]);
		for (size_t i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
		assert_int_equal(used_bytes(ledger), 0);
	}
	ll_claim_release(claim);
}

/* The file, to damage it. */
static struct ll_ledger_file *map_file(const struct fixture *f)
{
	LL_SCOPE_CLOSE int fd = open(f->path, O_RDWR);
	void *page = mmap(NULL, sizeof(struct ll_ledger_file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(page != MAP_FAILED);
	return page;
}

static void unmap_file(struct ll_ledger_file *file)
{
	munmap(file, sizeof *file);
}

static void damaged_numbers_are_lived_with_and_made_good(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_ledger_file *file = map_file(f);
	unsigned row = join_tenant(ledger, 1, 1000);
	struct ll_claim *claim = take_claim_of(ledger, row);
	struct ll_claim *other = take_claim_of(ledger, row);
	assert_int_equal(ll_memory_reserve(claim, 500), 0);
	file->tenants[row].memory_used_bytes = 3; /* less than a release */
	ll_memory_release(claim, 100);
	assert_int_equal(used_bytes(ledger), 400);
	file->tenants[row].memory_used_bytes = UINT64_MAX;
	assert_int_equal(ll_memory_reserve(claim, 100), 0);
	assert_int_equal(used_bytes(ledger), 500);
	file->slots[ll_claim_index(claim)].memory_used_bytes = UINT64_MAX;
	file->slots[ll_claim_index(other)].memory_used_bytes = 7;
	assert_int_equal(ll_memory_reserve(claim, 501), -ENOMEM);
	ll_memory_release(claim, UINT64_MAX);
	ll_memory_release(other, 7);
	assert_int_equal(used_bytes(ledger), 0);
	ll_claim_release(other);
	ll_claim_release(claim);
	unmap_file(file);
}

static void damaged_rows_and_guards_stop_nobody(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_ledger_file *file = map_file(f);
	struct ll_claim_info info;
	unsigned row = join_tenant(ledger, 1, 1000);
	struct ll_claim *claim = take_claim_of(ledger, row);
	static const uint64_t guards[] = {1,
					  UINT64_MAX,
					  UINT64_C(1) << 32 | 1,
					  UINT64_C(200) << 32 | 1,
					  UINT64_C(1) << 32 | UINT64_C(1) << 47 | 1,
					  UINT64_C(256) << 32 | UINT64_C(1) << 47 | 1};
	for (size_t i = 0; i < sizeof guards / sizeof *guards; i++) {
		file->tenants[row].guard = guards[i];
		assert_int_equal(ll_memory_reserve(claim, 10), 0);
		ll_memory_release(claim, 10);
		assert_int_equal(used_bytes(ledger), 0);
	}
	file->slots[ll_claim_index(claim)].tenant_row = 4000;
	assert_int_equal(ll_ledger_list(ledger, &info, 1), 1);
	assert_int_equal(info.tenant_row, 0);
	assert_int_equal(ll_memory_reserve(claim, 10), 0);
	ll_claim_release(claim);
	unmap_file(file);
}

static void where_memory_is_is_told_beside_what_is_charged_and_ends_with_the_claim(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_claim_info info;
	struct ll_memory_residency residency = {.state = LL_CLAIM_EVICTED, .evictable_bytes = 600, .away_bytes = 500};
	struct ll_claim *claim = take_claim_of(ledger, join_tenant(ledger, 1, 1000));
	assert_int_equal(ll_memory_reserve(claim, 700), 0);
	assert_int_equal(ll_ledger_list(ledger, &info, 1), 1);
	assert_int_equal(info.residency, LL_CLAIM_FIXED);
	ll_memory_set_residency(claim, &residency);
	assert_int_equal(ll_ledger_list(ledger, &info, 1), 1);
	assert_int_equal(info.residency, LL_CLAIM_EVICTED);
	assert_int_equal(info.evictable_bytes, 600);
	assert_int_equal(info.away_bytes, 500);
	assert_int_equal(info.memory_used_bytes, 700);
	/* What is away stays charged. */
	assert_int_equal(ll_memory_reserve(claim, 301), -ENOMEM);
	ll_memory_release(claim, 700);
	ll_claim_leave(claim);
	ll_memory_set_residency(claim, &residency); /* a lost claim says nothing */
	struct ll_claim *next = take_claim_of(ledger, join_tenant(ledger, 1, 1000));
	assert_int_equal(ll_claim_index(next), ll_claim_index(claim));
	assert_int_equal(ll_ledger_list(ledger, &info, 1), 1);
	assert_int_equal(info.residency, LL_CLAIM_FIXED);
	assert_int_equal(info.evictable_bytes, 0);
	assert_int_equal(info.away_bytes, 0);
	ll_claim_release(next);
	ll_claim_release(claim);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(reservation_fills_the_limit_and_not_a_byte_more),
	    TEST(memory_is_counted_without_a_limit_and_without_a_tenant),
	    TEST(charge_passes_the_limit_and_keeps_others_out),
	    TEST(release_of_more_than_there_is_takes_what_there_is),
	    TEST(errno_is_kept),
	    TEST(forked_child_cannot_change_its_parents_memory),
	    TEST(forked_child_reserves_with_a_claim_of_its_own),
	    TEST(cleared_claim_is_stale),
	    TEST(refused_reservation_finds_what_the_dead_have_left),
	    TEST(memory_of_the_dead_is_found_behind_a_stray_copy_of_their_lock),
	    TEST(sweep_takes_the_memory_of_the_dead_out_of_the_total),
	    TEST(threads_that_contend_keep_the_limit_and_the_count),
	    TEST(cancelled_threads_take_no_guard_and_no_lock_with_them),
	    TEST(damaged_numbers_are_lived_with_and_made_good),
	    TEST(damaged_rows_and_guards_stop_nobody),
	    TEST(where_memory_is_is_told_beside_what_is_charged_and_ends_with_the_claim),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
