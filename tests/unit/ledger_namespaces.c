/* Claims of processes in other PID namespaces, such as those in a container. Needs root. */
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "test.h"

#include "ledger_fixture.h"

static bool can_make_namespaces(void)
{
	int status = 1;
	pid_t pid = fork();
	if (!pid)
		_exit(unshare(CLONE_NEWPID) ? 1 : 0);
	waitpid(pid, &status, 0);
	return status == 0;
}

/* Runs body as the first process of a PID namespace, with a /proc of its own or with the one of the test. Returns what
 * body does. */
static int run_in_namespace(struct fixture *f, bool has_own_proc, int (*body)(struct fixture *f))
{
	int status = 0;
	if (!can_make_namespaces())
		SKIP_TEST_OF("run_in_namespace", "no PID namespace can be made here");
	pid_t pid = fork();
	if (!pid) {
		if (unshare(CLONE_NEWPID | CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
			_exit(100);
		pid = fork();
		if (!pid && has_own_proc && mount("proc", "/proc", "proc", 0, NULL))
			_exit(101);
		if (!pid)
			_exit(body(f));
		waitpid(pid, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 102);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int take_and_count(struct fixture *f)
{
	struct ll_ledger *ledger = open_ledger(f);
	take_claim(ledger, LL_PRIORITY_NORMAL);
	return (int)count_claims(ledger);
}

/* The owner's number means another process there. */
static void claims_stay_where_proc_is_of_another_namespace(void **state)
{
	assert_int_equal(run_in_namespace(*state, true, take_and_count), 1);
	assert_int_equal(run_in_namespace(*state, false, take_and_count), 1);
}

static int count_by_parents_handle(struct fixture *f)
{
	return (int)count_claims(f->ledger);
}

static void child_in_a_namespace_does_not_look_for_its_parents_number_there(void **state)
{
	struct fixture *f = *state;
	struct ll_claim *claim = take_claim(open_ledger(f), LL_PRIORITY_NORMAL);
	assert_int_equal(run_in_namespace(f, true, count_by_parents_handle), 1);
	assert_int_equal(run_in_namespace(f, false, count_by_parents_handle), 1);
	ll_claim_release(claim);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(claims_stay_where_proc_is_of_another_namespace),
	    TEST(child_in_a_namespace_does_not_look_for_its_parents_number_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
