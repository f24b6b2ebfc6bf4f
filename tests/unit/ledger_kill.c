/*
 * Owners are killed at random instants of taking, using and releasing claims, as often as the time allows; nothing may
 * be left.
 */
#include <errno.h>
#include <sys/wait.h>

#include "test.h"

#include "base/clock.h"
#include "ledger/layout.h"
#include "ledger_fixture.h"

enum { WORKERS = 4, KILLS_MAX = 1000, LONG_KILLS_MAX = 3000, TIME_MAX_S = 3, LONG_TIME_MAX_S = 8, DELAY_MAX_US = 1000 };

static void work_for_ever(const char *folder, unsigned seed)
{
	struct ll_ledger *ledger = NULL;
	if (ll_ledger_open(folder, UUID, true, &ledger, NULL))
		_exit(1);
	for (unsigned i = seed;; i++) {
		struct ll_claim *claim = NULL;
		struct ll_claim_wish wish = {.priority = i % 3 ? LL_PRIORITY_NORMAL : LL_PRIORITY_HOLD, .tenant = "w"};
		int rc = ll_claim_take(ledger, &wish, "0", &claim, NULL);
		if (rc == -EBUSY)
			continue;
		if (rc)
			_exit(1);
		ll_claim_set_active(claim);
		ll_claim_set_note(claim, "at work");
		ll_claim_add_gpu_time(claim, 1);
		if (i % 5 == 0)
			ll_claim_set_idle(claim, ll_now_ns());
		ll_claim_release(claim);
	}
}

static pid_t start_worker(const char *folder, unsigned seed)
{
	pid_t pid = fork();
	if (!pid)
		work_for_ever(folder, seed);
	return pid;
}

static void kill_worker(pid_t pid)
{
	int status;
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	/* Otherwise it ended by itself: taking failed. */
	assert_true(WIFSIGNALED(status));
}

static unsigned kill_at_random(const char *folder, pid_t pids[WORKERS])
{
	unsigned kills = 0;
	unsigned seed = 1;
	unsigned kills_max = is_long_test() ? LONG_KILLS_MAX : KILLS_MAX;
	uint64_t deadline_ns = ll_now_ns() + (is_long_test() ? LONG_TIME_MAX_S : TIME_MAX_S) * LL_NS_PER_S;
	while (kills < kills_max && ll_now_ns() < deadline_ns) {
		unsigned which = kills % WORKERS;
		ll_sleep_until_ns(ll_now_ns() + (uint64_t)(rand_r(&seed) % DELAY_MAX_US) * LL_NS_PER_US);
		kill_worker(pids[which]);
		pids[which] = start_worker(folder, kills++);
	}
	return kills;
}

static void assert_clean(const struct fixture *f)
{
	static struct ll_ledger_file file;
	static const struct ll_ledger_slot zero;
	FILE *stream = fopen(f->path, "r");
	assert_non_null(stream);
	assert_int_equal(fread(&file, sizeof file, 1, stream), 1);
	fclose(stream);
	for (size_t i = 0; i < LL_LEDGER_CLAIMS / 64; i++)
		assert_int_equal(file.used[i], 0);
	for (size_t i = 0; i < LL_LEDGER_CLAIMS; i++)
		assert_memory_equal(&file.slots[i], &zero, sizeof zero);
}

static void kills_at_random_instants_leave_nothing(void **state)
{
	struct fixture *f = *state;
	pid_t pids[WORKERS];
	struct ll_ledger *ledger = open_ledger(f);
	for (unsigned i = 0; i < WORKERS; i++)
		pids[i] = start_worker(f->folder, i);
	unsigned kills = kill_at_random(f->folder, pids);
	assert_true(count_claims(ledger) <= WORKERS);
	for (unsigned i = 0; i < WORKERS; i++)
		kill_worker(pids[i]);
	assert_int_equal(count_claims(ledger), 0);
	assert_int_equal(ll_ledger_activity_ns(ledger), 0);
	assert_clean(f);
	ll_claim_release(take_claim(ledger, LL_PRIORITY_HOLD));
	printf("%u owners were killed\n", kills);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(kills_at_random_instants_leave_nothing, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
