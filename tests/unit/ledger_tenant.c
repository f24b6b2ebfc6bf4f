#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "test.h"

#include "base/clock.h"
#include "ledger/layout.h"
#include "ledger/memory.h"
#include "ledger_fixture.h"

static const char *self_path;

/* As another process would: so that nothing of this one keeps the tenants alive. */
static struct ll_ledger *open_again(const struct fixture *f)
{
	struct ll_ledger *ledger = NULL;
	assert_int_equal(ll_ledger_open(f->folder, UUID, true, &ledger, NULL), 0);
	return ledger;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void row_tells_what_was_wished(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_tenant_info info;
	struct ll_claim_info claim_info;
	unsigned row = 99;
	struct ll_tenant_wish wish = {.id = 42,
				      .name = "lab",
				      .priority = LL_PRIORITY_LOW,
				      .memory_limit_bytes = 1 << 30,
				      .compute_cap_permille = 250};
	assert_int_equal(ll_tenant_join(ledger, &wish, &row, NULL), 0);
	struct ll_claim *claim = take_claim_of(ledger, row);
	assert_int_equal(ll_tenant_list(ledger, &info, 1), 1);
	assert_int_equal(info.row, row);
	assert_int_equal(info.id, 42);
	assert_string_equal(info.name, "lab");
	assert_int_equal(info.priority, LL_PRIORITY_LOW);
	assert_int_equal(info.memory_limit_bytes, 1 << 30);
	assert_int_equal(info.compute_cap_permille, 250);
	assert_int_equal(info.weight_permille, 1000);
	assert_int_equal(info.memory_used_bytes, 0);
	assert_int_equal(info.claims, 1);
	assert_true(info.is_lock_held);
	assert_int_equal(ll_ledger_list(ledger, &claim_info, 1), 1);
	assert_int_equal(claim_info.tenant_row, row + 1);
	assert_int_equal(claim_info.memory_limit_bytes, 0);
	ll_claim_release(claim);
}

static void same_id_is_the_same_row_with_its_first_limits(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_tenant_info info;
	unsigned row = join_tenant(ledger, 7, 1000);
	assert_int_equal(join_tenant(ledger, 7, 5000), row);
	assert_int_not_equal(join_tenant(ledger, 8, 0), row);
	assert_int_equal(ll_tenant_list(ledger, &info, 1), 2);
	assert_int_equal(info.memory_limit_bytes, 1000);
}

static void requests_beyond_the_card_are_refused(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f), *again = open_again(f);
	struct ll_tenant_info info;
	struct ll_err err;
	unsigned row, other;
	struct ll_tenant_wish wish = {
	    .id = 1, .name = "one", .memory_request_bytes = UINT64_C(6) << 30, .promisable_bytes = UINT64_C(10) << 30};
	assert_int_equal(ll_tenant_join(ledger, &wish, &row, NULL), 0);
	assert_true(ll_tenant_read(ledger, row, &info));
	assert_int_equal(info.memory_request_bytes, wish.memory_request_bytes);
	wish.id = 2;
	assert_fails(ll_tenant_join(again, &wish, &other, &err), -EDQUOT, "4096 are left");
	wish.promisable_bytes = 0; /* any sum is allowed */
	assert_int_equal(ll_tenant_join(again, &wish, &other, NULL), 0);
	ll_ledger_close(again);
	again = open_again(f);
	wish.promisable_bytes = UINT64_C(12) << 30; /* that one has gone meanwhile, and no longer counts */
	wish.id = 3;
	assert_int_equal(ll_tenant_join(again, &wish, &other, NULL), 0);
	ll_ledger_close(again);
}

static void a_request_can_be_changed_within_what_is_left(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_tenant_info info;
	struct ll_claim_info claim_info;
	struct ll_err err;
	unsigned row, other;
	struct ll_tenant_wish wish = {.id = 1, .name = "one", .memory_request_bytes = 600};
	assert_int_equal(ll_tenant_join(ledger, &wish, &row, NULL), 0);
	wish.id = 2;
	wish.memory_request_bytes = 0;
	assert_int_equal(ll_tenant_join(ledger, &wish, &other, NULL), 0);
	assert_fails(ll_tenant_set_memory_request(ledger, other, 401, 1000, &err), -EDQUOT, "cannot be promised");
	assert_int_equal(ll_tenant_set_memory_request(ledger, other, 400, 1000, NULL), 0);
	assert_int_equal(ll_tenant_set_memory_request(ledger, row, 600, 1000, NULL), 0);
	assert_int_equal(ll_tenant_set_memory_request(ledger, row, UINT64_MAX, 0, NULL), 0);
	assert_true(ll_tenant_read(ledger, other, &info));
	assert_int_equal(info.memory_request_bytes, 400);
	struct ll_claim *claim = take_claim_of(ledger, other);
	assert_int_equal(ll_memory_reserve(claim, 123), 0);
	ll_tenant_set_priority(ledger, other, LL_PRIORITY_LOW, ll_now_ns());
	assert_int_equal(ll_ledger_list(ledger, &claim_info, 1), 1);
	assert_int_equal(claim_info.tenant_request_bytes, 400);
	assert_int_equal(claim_info.tenant_used_bytes, 123);
	assert_int_equal(claim_info.tenant_priority, LL_PRIORITY_LOW);
	ll_claim_release(claim);
}

static void tenant_without_id_is_refused(void **state)
{
	struct fixture *f = *state;
	struct ll_err err;
	unsigned row;
	assert_fails(ll_tenant_join(open_ledger(f), &(struct ll_tenant_wish){.name = "x"}, &row, &err), -EINVAL, "id");
	assert_fails(ll_tenant_keep(f->ledger, 5, &(int){0}, &err), -EINVAL, "no tenant 5");
	assert_fails(ll_tenant_keep(f->ledger, LL_LEDGER_TENANTS, &(int){0}, &err), -EINVAL, "no tenant 128");
}

static void claim_of_no_tenant_is_refused(void **state)
{
	struct fixture *f = *state;
	struct ll_err err;
	struct ll_claim *claim = NULL;
	struct ll_claim_wish wish = {.priority = LL_PRIORITY_NORMAL, .tenant_row = 3};
	assert_fails(ll_claim_take(open_ledger(f), &wish, "0", &claim, &err), -ESTALE, "ended");
	wish.tenant_row = LL_LEDGER_TENANTS + 1;
	assert_fails(ll_claim_take(f->ledger, &wish, "0", &claim, &err), -EINVAL, "row 128");
}

static void row_lives_while_who_joined_has_the_ledger_open(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_ledger *joiner = open_again(f);
	join_tenant(joiner, 1, 0);
	assert_int_equal(count_tenants(ledger), 1);
	assert_int_equal(count_tenants(joiner), 1);
	ll_ledger_close(joiner);
	assert_int_equal(count_tenants(ledger), 0);
}

static void row_lives_by_a_claim_alone(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_ledger *joiner = open_again(f);
	struct ll_tenant_info info;
	struct ll_claim *claim = take_claim_of(joiner, join_tenant(joiner, 1, 0));
	/* Its joining ends: the program has closed all descriptors that it does not know. */
	for (int fd = 512; fd < 600; fd++)
		close(fd);
	assert_int_equal(ll_claim_beat(claim, 1, NULL), 0);
	assert_int_equal(ll_tenant_list(ledger, &info, 1), 1);
	assert_false(info.is_lock_held);
	assert_int_equal(info.claims, 1);
	ll_claim_release(claim);
	assert_int_equal(count_tenants(ledger), 0);
	ll_ledger_close(joiner);
}

static void row_is_free_again_without_a_trace(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_ledger *joiner = open_again(f);
	static struct ll_ledger_file file;
	struct ll_ledger_tenant zero;
	struct ll_claim *claim = take_claim_of(joiner, join_tenant(joiner, 1, 4096));
	assert_int_equal(ll_memory_reserve(claim, 4096), 0);
	ll_claim_release(claim);
	ll_ledger_close(joiner);
	assert_int_equal(count_tenants(ledger), 0);
	FILE *stream = fopen(f->path, "r");
	assert_non_null(stream);
	assert_int_equal(fread(&file, sizeof file, 1, stream), 1);
	fclose(stream);
	memset(&zero, 0, sizeof zero);
	zero.text_sequence = file.tenants[0].text_sequence;
	assert_memory_equal(&file.tenants[0], &zero, sizeof zero);
}

/* Starts a child that joins, keeps the row and becomes `this program wait`, which knows nothing of the ledger. */
static pid_t start_kept(const struct fixture *f, int *ret_fd, unsigned *ret_row)
{
	int told[2];
	int numbers[2];
	assert_int_equal(pipe(told), 0);
	pid_t pid = fork();
	if (!pid) {
		struct ll_ledger *ledger = NULL;
		unsigned row = 0;
		int fd = -1;
		struct ll_tenant_wish wish = {.id = 77, .name = "kept", .memory_limit_bytes = 1000};
		if (ll_ledger_open(f->folder, UUID, true, &ledger, NULL) || ll_tenant_join(ledger, &wish, &row, NULL) ||
		    ll_tenant_keep(ledger, row, &fd, NULL))
			_exit(1);
		numbers[0] = fd;
		numbers[1] = (int)row;
		if (write(told[1], numbers, sizeof numbers) != sizeof numbers)
			_exit(1);
		char to[16];
		snprintf(to, sizeof to, "%d", told[1]);
		execl(self_path, self_path, "wait", to, (char *)NULL);
		_exit(1);
	}
	close(told[1]);
	assert_int_equal(read(told[0], numbers, sizeof numbers), sizeof numbers);
	char byte;
	assert_int_equal(read(told[0], &byte, 1), 1); /* it has become the other program */
	close(told[0]);
	*ret_fd = numbers[0];
	*ret_row = (unsigned)numbers[1];
	return pid;
}

/* What the child becomes: a program with a child of its own, which outlives it. */
static int wait_for_ever(const char *told)
{
	if (write(atoi(told), "x", 1) != 1)
		return 1;
	close(atoi(told));
	for (;;)
		pause();
}

static void row_lives_through_exec_by_the_descriptor_that_is_kept(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_tenant_info info;
	int fd;
	unsigned row;
	pid_t pid = start_kept(f, &fd, &row);
	assert_true(fd >= 100);
	assert_int_equal(ll_tenant_list(ledger, &info, 1), 1);
	assert_int_equal(info.row, row);
	assert_true(info.is_lock_held);
	assert_int_equal(info.claims, 0);
	end_child(pid);
	assert_int_equal(count_tenants(ledger), 0);
}

static void row_outlives_its_first_process_by_a_descendant(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	int fd = -1;
	int gate[2];
	assert_int_equal(pipe(gate), 0);
	pid_t pid = fork();
	if (!pid) {
		char byte;
		struct ll_ledger *own = NULL;
		close(gate[1]);
		if (ll_ledger_open(f->folder, UUID, true, &own, NULL) ||
		    ll_tenant_keep(own, join_tenant(own, 5, 0), &fd, NULL))
			_exit(1);
		if (fork() == 0)
			_exit(read(gate[0], &byte, 1) == 0 ? 0 : 1);
		_exit(0);
	}
	close(gate[0]);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(count_tenants(ledger), 1);
	close(gate[1]);
	uint64_t deadline_ns = ll_now_ns() + 20 * LL_NS_PER_S;
	while (count_tenants(ledger) && ll_now_ns() < deadline_ns)
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);
	assert_int_equal(count_tenants(ledger), 0);
}

static void late_comer_makes_the_row_anew_from_its_wish(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_tenant_info info;
	int fd;
	unsigned row;
	pid_t pid = start_kept(f, &fd, &row);
	ll_tenant_set_memory_limit(ledger, row, 123);
	end_child(pid);
	assert_int_equal(count_tenants(ledger), 0);
	join_tenant(ledger, 77, 555);
	assert_int_equal(ll_tenant_list(ledger, &info, 1), 1);
	assert_int_equal(info.memory_limit_bytes, 555);
}

static void forked_child_does_not_keep_what_its_parent_joined(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_ledger *joiner = open_again(f);
	join_tenant(joiner, 1, 0);
	pid_t pid = fork();
	if (!pid) {
		for (;;)
			pause();
	}
	ll_ledger_close(joiner);
	uint64_t deadline_ns = ll_now_ns() + 20 * LL_NS_PER_S;
	while (count_tenants(ledger) && ll_now_ns() < deadline_ns)
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);
	assert_int_equal(count_tenants(ledger), 0);
	end_child(pid);
}

static void limits_that_are_set_are_in_force_at_once(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_tenant_info info;
	unsigned row = join_tenant(ledger, 1, 1000);
	struct ll_claim *claim = take_claim_of(ledger, row);
	assert_int_equal(ll_memory_reserve(claim, 900), 0);
	assert_int_equal(ll_memory_reserve(claim, 200), -ENOMEM);
	ll_tenant_set_memory_limit(ledger, row, 1100);
	assert_int_equal(ll_memory_reserve(claim, 200), 0);
	ll_tenant_set_memory_limit(ledger, row, 500);
	assert_int_equal(ll_memory_reserve(claim, 1), -ENOMEM);
	ll_memory_release(claim, 700);
	assert_int_equal(ll_memory_reserve(claim, 100), 0);
	assert_int_equal(ll_memory_reserve(claim, 1), -ENOMEM);
	ll_tenant_set_memory_limit(ledger, row, 0);
	assert_int_equal(ll_memory_reserve(claim, UINT64_C(1) << 40), 0);
	ll_tenant_set_compute_cap(ledger, row, 300);
	ll_tenant_set_weight(ledger, row, 2000);
	ll_tenant_set_weight(ledger, LL_LEDGER_TENANTS, 1);
	ll_tenant_list(ledger, &info, 1);
	assert_int_equal(info.compute_cap_permille, 300);
	assert_int_equal(info.weight_permille, 2000);
	ll_claim_release(claim);
}

static void full_table_refuses_and_recovers(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_ledger *last = open_again(f);
	struct ll_err err;
	unsigned row;
	struct ll_tenant_wish wish = {.id = 1000};
	for (uint64_t id = 1; id < LL_LEDGER_TENANTS; id++)
		join_tenant(ledger, id, 0);
	join_tenant(last, 128, 0);
	assert_fails(ll_tenant_join(ledger, &wish, &row, &err), -ENOSPC, "full");
	assert_non_null(strstr(err.hint, "status"));
	assert_int_equal(join_tenant(ledger, 5, 0), 4);
	ll_ledger_close(last);
	assert_int_equal(ll_tenant_join(ledger, &wish, &row, NULL), 0);
	assert_int_equal(row, LL_LEDGER_TENANTS - 1);
	assert_int_equal(count_tenants(ledger), LL_LEDGER_TENANTS);
}

static void a_tenant_leaves_half_of_the_claims_to_others(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_claim *claims[LL_LEDGER_CLAIMS_OF_TENANT], *claim;
	struct ll_err err;
	unsigned row = join_tenant(ledger, 1, 0);
	struct ll_claim_wish wish = {.priority = LL_PRIORITY_NORMAL, .tenant_row = row + 1};
	for (size_t i = 0; i < LL_LEDGER_CLAIMS_OF_TENANT; i++)
		claims[i] = take_claim_of(ledger, row);
	assert_fails(ll_claim_take(ledger, &wish, "0", &claim, &err), -ENOSPC, "as many as one tenant may have");
	ll_claim_release(take_claim_of(ledger, join_tenant(ledger, 2, 0)));
	ll_claim_release(claims[7]);
	claims[7] = take_claim_of(ledger, row);
	for (size_t i = 0; i < LL_LEDGER_CLAIMS_OF_TENANT; i++)
		ll_claim_release(claims[i]);
}

static void a_claim_that_is_left_is_lost_to_its_owner_and_free_for_others(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	unsigned row = join_tenant(ledger, 1, 0);
	struct ll_claim *claim = take_claim_of(ledger, row);
	ll_claim_leave(claim);
	assert_true(ll_claim_is_lost(claim));
	assert_int_equal(ll_ledger_list(ledger, NULL, 0), 0);
	assert_int_equal(ll_claim_beat(claim, 1, NULL), -ESTALE);
	struct ll_claim *next = take_claim_of(ledger, row);
	assert_int_equal(ll_claim_index(next), 0);
	ll_claim_succeed(next, claim);
	assert_int_equal(ll_ledger_list(ledger, NULL, 0), 1);
	ll_claim_release(next);
	assert_int_equal(ll_ledger_list(ledger, NULL, 0), 0);
}

enum { JOINERS = 12, ROUNDS = 20 };

/* Children wait for the pipe's end, so that they all start at once. */
static pid_t start_joiner(const struct fixture *f, const int gate[2], uint64_t id)
{
	pid_t pid = fork();
	if (pid)
		return pid;
	char byte;
	struct ll_ledger *ledger = NULL;
	struct ll_claim *claim = NULL;
	unsigned row = 0;
	struct ll_tenant_wish wish = {.id = id, .name = "many"};
	struct ll_claim_wish claim_wish = {.priority = LL_PRIORITY_NORMAL};
	close(gate[1]);
	if (ll_ledger_open(f->folder, UUID, true, &ledger, NULL) || read(gate[0], &byte, 1) != 0)
		_exit(1);
	if (ll_tenant_join(ledger, &wish, &row, NULL))
		_exit(2);
	claim_wish.tenant_row = row + 1;
	if (ll_claim_take(ledger, &claim_wish, "0", &claim, NULL))
		_exit(3);
	if (ledger && count_tenants(ledger) != 1)
		_exit(4);
	_exit(0);
}

static void many_at_once_with_one_id_get_one_row(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	int killed = 0;
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		int gate[2];
		pid_t pids[JOINERS];
		assert_int_equal(pipe(gate), 0);
		for (int i = 0; i < JOINERS; i++)
			pids[i] = start_joiner(f, gate, round);
		close(gate[0]);
		close(gate[1]);
		for (int i = 0; i < JOINERS; i++) {
			int status;
			if (i % 3 == 0)
				kill(pids[i], SIGKILL);
			assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
			killed += WIFSIGNALED(status);
			assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
		}
		assert_int_equal(count_tenants(ledger), 0);
	}
	printf("%d of those who joined were killed\n", killed);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    TEST(row_tells_what_was_wished),
	    TEST(same_id_is_the_same_row_with_its_first_limits),
	    TEST(requests_beyond_the_card_are_refused),
	    TEST(a_request_can_be_changed_within_what_is_left),
	    TEST(tenant_without_id_is_refused),
	    TEST(claim_of_no_tenant_is_refused),
	    TEST(row_lives_while_who_joined_has_the_ledger_open),
	    TEST(row_lives_by_a_claim_alone),
	    TEST(row_is_free_again_without_a_trace),
	    TEST(row_lives_through_exec_by_the_descriptor_that_is_kept),
	    TEST(row_outlives_its_first_process_by_a_descendant),
	    TEST(late_comer_makes_the_row_anew_from_its_wish),
	    TEST(forked_child_does_not_keep_what_its_parent_joined),
	    TEST(limits_that_are_set_are_in_force_at_once),
	    TEST(full_table_refuses_and_recovers),
	    TEST(a_tenant_leaves_half_of_the_claims_to_others),
	    TEST(a_claim_that_is_left_is_lost_to_its_owner_and_free_for_others),
	    TEST(many_at_once_with_one_id_get_one_row),
	};
	if (argc == 3 && !strcmp(argv[1], "wait"))
		return wait_for_ever(argv[2]);
	self_path = argv[0];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
