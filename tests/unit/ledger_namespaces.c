/* Claims of processes in other PID namespaces, such as those in a container. Needs root. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "test.h"

#include "ledger/ledger.h"
#include "ledger/memory.h"
#include "ledger/proc.h"
#include "ledger_fixture.h"

enum { OWNER_BYTES = 900 };

/* The owner of a claim, and a copy of the owner by a bare clone(), which keeps the claim's lock. */
struct family {
	bool has_namespace;       /* the owner is in a PID namespace below the test's */
	bool has_stray_namespace; /* the stray is in a PID namespace below the owner's */
	int told;                 /* 'o': the owner has its claim; 'k': it was killed */
	int end;                  /* closed: the owner shall be killed */
	int life;                 /* closed, as by the test's own end: all others end */
	pid_t top;
};

static bool can_make_namespaces(void)
{
	int status = 1;
	pid_t pid = fork();
	if (!pid)
		_exit(unshare(CLONE_NEWPID) ? 1 : 0);
	waitpid(pid, &status, 0);
	return status == 0;
}

static void tell(int fd, char what)
{
	if (write(fd, &what, 1) != 1)
		_exit(1);
}

static char hear(int fd)
{
	char byte = 0;
	return (char)(read(fd, &byte, 1) == 1 ? byte : 0);
}

static _Noreturn void wait_for_the_end(const struct family *family)
{
	hear(family->life);
	_exit(0);
}

static void start_stray(const struct family *family)
{
	unsigned long flags = SIGCHLD | (family->has_stray_namespace ? CLONE_NEWPID : 0);
	long pid = syscall(SYS_clone, flags, NULL, NULL, NULL, NULL);
	if (pid < 0)
		_exit(1);
	if (!pid)
		wait_for_the_end(family);
}

/* Its last beat is long ago, as that of a process that is stopped. */
static _Noreturn void be_owner(const struct fixture *f, const struct family *family)
{
	struct ll_ledger *ledger = NULL;
	if (ll_ledger_open(f->folder, UUID, true, &ledger, NULL))
		_exit(1);
	struct ll_claim *claim = take_claim_of(ledger, join_tenant(ledger, 1, 0));
	if (ll_memory_reserve(claim, OWNER_BYTES) || ll_claim_beat(claim, 1, NULL))
		_exit(1);
	start_stray(family);
	tell(family->told, 'o');
	hear(family->end);
	raise(SIGKILL);
	_exit(1);
}

/* The first process of the owner's namespace, or another parent in the test's. */
static _Noreturn void be_parent(const struct fixture *f, const struct family *family)
{
	pid_t owner = fork();
	if (!owner)
		be_owner(f, family);
	if (waitpid(owner, NULL, 0) != owner)
		_exit(1);
	tell(family->told, 'k');
	wait_for_the_end(family);
}

static _Noreturn void be_top(const struct fixture *f, const struct family *family)
{
	if (family->has_namespace && unshare(CLONE_NEWPID))
		_exit(1);
	pid_t parent = fork();
	if (!parent)
		be_parent(f, family);
	wait_for_the_end(family);
}

/* Returns when the owner has its claim, and its copy runs. */
static void start_family(const struct fixture *f, struct family *family)
{
	int told[2], end[2], life[2];
	if (!can_make_namespaces())
		SKIP_TEST_OF("start_family", "no PID namespace can be made here");
	assert_int_equal(pipe(told), 0);
	assert_int_equal(pipe(end), 0);
	assert_int_equal(pipe(life), 0);
	family->top = fork();
	if (!family->top) {
		close(end[1]);
		close(life[1]);
		family->told = told[1];
		family->end = end[0];
		family->life = life[0];
		be_top(f, family);
	}
	close(told[1]);
	close(end[0]);
	close(life[0]);
	family->told = told[0];
	family->end = end[1];
	family->life = life[1];
	assert_int_equal(hear(family->told), 'o');
}

static void kill_owner(struct family *family)
{
	close(family->end);
	family->end = -1;
	assert_int_equal(hear(family->told), 'k');
}

static void end_family(const struct family *family)
{
	close(family->life);
	assert_int_equal(waitpid(family->top, NULL, 0), family->top);
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

static uint64_t used_bytes(struct ll_ledger *ledger)
{
	struct ll_tenant_info info;
	assert_int_equal(ll_tenant_list(ledger, &info, 1), 1);
	return info.memory_used_bytes;
}

/* Of the family, and one of its tenant here. */
static void check_family(struct fixture *f, struct family *family)
{
	struct ll_ledger *ledger = open_ledger(f);
	start_family(f, family);
	struct ll_claim *claim = take_claim_of(ledger, join_tenant(ledger, 1, 0));
	ll_tenant_set_memory_limit(ledger, 0, OWNER_BYTES);
	assert_int_equal(ll_memory_reserve(claim, 1), -ENOMEM);
	assert_int_equal(ll_ledger_sweep_below(ledger), 0);
	assert_int_equal(count_claims(ledger), 2);
	kill_owner(family);
	assert_int_equal(ll_ledger_sweep_below(ledger), 1);
	assert_int_equal(count_claims(ledger), 1);
	assert_int_equal(used_bytes(ledger), 0);
	assert_int_equal(ll_memory_reserve(claim, OWNER_BYTES), 0);
	end_family(family);
	assert_int_equal(count_claims(ledger), 1);
	assert_int_equal(used_bytes(ledger), OWNER_BYTES);
	ll_claim_release(claim);
}

static void claim_of_the_dead_in_a_namespace_below_is_found_behind_a_stray_copy(void **state)
{
	check_family(*state, &(struct family){.has_namespace = true});
}

static void so_it_is_where_the_stray_copy_is_in_a_namespace_further_below(void **state)
{
	check_family(*state, &(struct family){.has_namespace = true, .has_stray_namespace = true});
}

static void so_it_is_where_the_stray_copy_alone_is_in_a_namespace(void **state)
{
	check_family(*state, &(struct family){.has_stray_namespace = true});
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(claims_stay_where_proc_is_of_another_namespace),
	    TEST(child_in_a_namespace_does_not_look_for_its_parents_number_there),
	    TEST(claim_of_the_dead_in_a_namespace_below_is_found_behind_a_stray_copy),
	    TEST(so_it_is_where_the_stray_copy_is_in_a_namespace_further_below),
	    TEST(so_it_is_where_the_stray_copy_alone_is_in_a_namespace),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
