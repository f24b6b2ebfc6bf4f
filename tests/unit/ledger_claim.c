#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "test.h"

#include "base/clock.h"
#include "ledger/account.h"
#include "ledger/handle.h"
#include "ledger/layout.h"
#include "ledger/memory.h"
#include "ledger/turn.h"
#include "ledger_fixture.h"

static void claim_tells_who_and_what(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_claim_info info;
	struct ll_claim *claim = NULL;
	struct ll_claim_wish wish = {.priority = LL_PRIORITY_HOLD,
				     .tenant = "lab",
				     .payload = "cuda",
				     .memory_limit_bytes = 1 << 30,
				     .compute_cap_permille = 250};
	assert_int_equal(ll_claim_take(ledger, &wish, "0", &claim, NULL), 0);
	assert_int_equal(ll_ledger_list(ledger, &info, 1), 1);
	assert_int_equal(info.index, ll_claim_index(claim));
	assert_int_equal(info.pid, getpid());
	assert_true(info.is_pid_ours);
	assert_int_equal(info.priority, LL_PRIORITY_HOLD);
	assert_int_equal(info.state, LL_CLAIM_STARTING);
	assert_string_equal(info.tenant, "lab");
	assert_string_equal(info.payload, "cuda");
	assert_int_equal(info.memory_limit_bytes, 1 << 30);
	assert_int_equal(info.compute_cap_permille, 250);
	assert_int_equal(info.weight_permille, 1000);
	assert_true(info.taken_ns > 0 && info.taken_ns <= ll_now_ns());
	ll_claim_release(claim);
}

static void setters_reach_the_reader(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_claim *claim = take_claim(ledger, LL_PRIORITY_HOLD);
	struct ll_claim_info info;
	ll_claim_set_state(claim, LL_CLAIM_YIELDED);
	ll_claim_set_target(claim, "util", 500);
	ll_claim_set_memory(claim, 77);
	ll_claim_set_payload(claim, "vulkan");
	ll_claim_set_note(claim, "foreign kernel");
	ll_claim_add_gpu_time(claim, 5);
	ll_claim_add_gpu_time(claim, 6);
	ll_claim_add_synthetic(claim, 7, 8);
	ll_claim_add_yield(claim);
	assert_int_equal(ll_claim_beat(claim, 12345, NULL), 0);
	assert_int_equal(ll_ledger_list(ledger, &info, 1), 1);
	assert_int_equal(info.state, LL_CLAIM_YIELDED);
	assert_int_equal(info.target_permille, 500);
	assert_string_equal(info.metric, "util");
	assert_int_equal(info.memory_used_bytes, 77);
	assert_string_equal(info.payload, "vulkan");
	assert_string_equal(info.note, "foreign kernel");
	assert_int_equal(info.gpu_time_ns, 11);
	assert_int_equal(info.synthetic_busy_ns, 7);
	assert_int_equal(info.energy_mj, 8);
	assert_int_equal(info.yields, 1);
	assert_int_equal(info.heartbeat_ns, 12345);
	ll_claim_set_target_watts(claim, "power", 200);
	assert_int_equal(ll_ledger_list(ledger, &info, 1), 1);
	assert_int_equal(info.target_permille, 0);
	assert_int_equal(info.target_watts, 200);
	ll_claim_release(claim);
}

static void texts_are_cut_and_made_printable(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_claim *claim = take_claim(ledger, LL_PRIORITY_NORMAL);
	struct ll_claim_info info;
	char longer[200];
	memset(longer, 'x', sizeof longer);
	longer[sizeof longer - 1] = '\0';
	ll_claim_set_note(claim, longer);
	ll_claim_set_payload(claim, "a\x1b[2J\xff");
	assert_int_equal(ll_ledger_list(ledger, &info, 1), 1);
	assert_int_equal(strlen(info.note), 63);
	assert_string_equal(info.payload, "a?[2J?");
	ll_claim_set_note(claim, NULL);
	ll_ledger_list(ledger, &info, 1);
	assert_string_equal(info.note, "");
	ll_claim_release(claim);
}

static void released_slot_is_all_zero(void **state)
{
	struct fixture *f = *state;
	static const struct ll_ledger_slot zero;
	static struct ll_ledger_file file;
	struct ll_claim *claim = take_claim(open_ledger(f), LL_PRIORITY_LOW);
	ll_claim_set_note(claim, "note");
	ll_claim_set_active(claim);
	ll_claim_release(claim);
	FILE *stream = fopen(f->path, "r");
	assert_non_null(stream);
	assert_int_equal(fread(&file, sizeof file, 1, stream), 1);
	fclose(stream);
	for (size_t i = 0; i < LL_LEDGER_CLAIMS; i++)
		assert_memory_equal(&file.slots[i], &zero, sizeof zero);
	for (size_t i = 0; i < LL_LEDGER_CLAIMS / 64; i++)
		assert_int_equal(file.used[i], 0);
}

static void second_hold_on_a_card_is_refused_with_the_first_ones_pid(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_claim *first = take_claim(ledger, LL_PRIORITY_HOLD);
	struct ll_claim *second = NULL;
	struct ll_claim_wish wish = {.priority = LL_PRIORITY_HOLD};
	struct ll_err err;
	char expected[80];
	snprintf(expected, sizeof expected, "card 3: pid %d already holds it", getpid());
	assert_fails(ll_claim_take(ledger, &wish, "3", &second, &err), -EBUSY, expected);
	assert_int_equal(count_claims(ledger), 1);
	ll_claim_release(first);
	ll_claim_release(take_claim(ledger, LL_PRIORITY_HOLD));
}

static void hold_does_not_keep_programs_out(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_claim *hold = take_claim(ledger, LL_PRIORITY_HOLD);
	struct ll_claim *one = take_claim(ledger, LL_PRIORITY_NORMAL);
	struct ll_claim *two = take_claim(ledger, LL_PRIORITY_HIGH);
	assert_int_equal(count_claims(ledger), 3);
	ll_claim_release(one);
	ll_claim_release(two);
	ll_claim_release(hold);
}

static void full_ledger_refuses_and_recovers(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_claim *claims[LL_LEDGER_CLAIMS];
	struct ll_claim *extra = NULL;
	struct ll_claim_wish wish = {.priority = LL_PRIORITY_NORMAL};
	struct ll_err err;
	struct rlimit limit = {2048, 2048};
	if (setrlimit(RLIMIT_NOFILE, &limit))
		SKIP_TEST("no 2048 open files are allowed");
	for (size_t i = 0; i < LL_LEDGER_CLAIMS; i++)
		claims[i] = take_claim(ledger, LL_PRIORITY_NORMAL);
	assert_fails(ll_claim_take(ledger, &wish, "0", &extra, &err), -ENOSPC, "full");
	ll_claim_release(claims[200]);
	claims[200] = take_claim(ledger, LL_PRIORITY_LOW);
	assert_int_equal(ll_claim_index(claims[200]), 200);
	for (size_t i = 0; i < LL_LEDGER_CLAIMS; i++)
		ll_claim_release(claims[i]);
	assert_int_equal(count_claims(ledger), 0);
}

static void activity_is_of_programs_and_not_of_holds(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_claim *hold = take_claim(ledger, LL_PRIORITY_HOLD);
	struct ll_claim *one = take_claim(ledger, LL_PRIORITY_NORMAL);
	struct ll_claim *two = take_claim(ledger, LL_PRIORITY_LOW);
	assert_int_equal(ll_ledger_activity_ns(ledger), 0);
	ll_claim_set_active(hold);
	assert_int_equal(ll_ledger_activity_ns(ledger), 0);
	ll_claim_set_idle(one, 1000);
	ll_claim_set_idle(two, 900);
	assert_int_equal(ll_ledger_activity_ns(ledger), 1000);
	ll_claim_set_active(two);
	assert_true(ll_ledger_activity_ns(ledger) == LL_ACTIVITY_NOW);
	ll_claim_release(two);
	assert_int_equal(ll_ledger_activity_ns(ledger), 1000);
	ll_claim_release(one);
	ll_claim_release(hold);
}

/* Forks a child that takes a claim, tells so, and waits to be killed. */
static pid_t start_owner(const struct fixture *f, enum ll_priority priority)
{
	int told[2];
	char byte = 0;
	assert_int_equal(pipe(told), 0);
	pid_t pid = fork();
	if (!pid) {
		struct ll_ledger *ledger = NULL;
		struct ll_claim *claim = NULL;
		struct ll_claim_wish wish = {.priority = priority, .tenant = "child"};
		if (ll_ledger_open(f->folder, UUID, true, &ledger, NULL) ||
		    ll_claim_take(ledger, &wish, "0", &claim, NULL))
			_exit(1);
		ll_claim_set_active(claim);
		if (write(told[1], "x", 1) != 1)
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

static void killed_owner_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	pid_t pid = start_owner(f, LL_PRIORITY_NORMAL);
	assert_int_equal(count_claims(ledger), 1);
	assert_true(ll_ledger_activity_ns(ledger) == LL_ACTIVITY_NOW);
	end_child(pid);
	assert_int_equal(ll_ledger_sweep(ledger), 1);
	assert_int_equal(count_claims(ledger), 0);
	assert_int_equal(ll_ledger_activity_ns(ledger), 0);
}

static void killed_hold_frees_the_card(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	end_child(start_owner(f, LL_PRIORITY_HOLD));
	ll_claim_release(take_claim(ledger, LL_PRIORITY_HOLD));
}

static void unreaped_owner_is_dead_too(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	siginfo_t info;
	pid_t pid = start_owner(f, LL_PRIORITY_NORMAL);
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(count_claims(ledger), 0);
	end_child(pid);
}

/* A child of a killed owner that goes on: made by fork, it has let go of the lock; by a bare clone, it has not. */
static pid_t orphan_child(struct fixture *f, bool by_fork, pid_t *ret_owner)
{
	int told[2];
	pid_t grandchild = 0;
	assert_int_equal(pipe(told), 0);
	*ret_owner = fork();
	if (!*ret_owner) {
		struct ll_ledger *ledger = NULL;
		struct ll_claim *claim = NULL;
		struct ll_claim_wish wish = {.priority = LL_PRIORITY_NORMAL};
		if (ll_ledger_open(f->folder, UUID, true, &ledger, NULL) ||
		    ll_claim_take(ledger, &wish, "0", &claim, NULL))
			_exit(1);
		grandchild = by_fork ? fork() : _Fork();
		if (!grandchild) {
			for (;;)
				pause();
		}
		if (write(told[1], &grandchild, sizeof grandchild) != sizeof grandchild)
			_exit(1);
		for (;;)
			pause();
	}
	close(told[1]);
	assert_int_equal(read(told[0], &grandchild, sizeof grandchild), sizeof grandchild);
	close(told[0]);
	return grandchild;
}

static void child_of_a_killed_owner_does_not_keep_the_claim(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	for (int by_fork = 0; by_fork < 2; by_fork++) {
		pid_t owner;
		pid_t grandchild = orphan_child(f, by_fork, &owner);
		assert_int_equal(count_claims(ledger), 1);
		end_child(owner);
		assert_int_equal(count_claims(ledger), 0);
		struct ll_claim *claim = take_claim(ledger, LL_PRIORITY_NORMAL);
		assert_int_equal(count_claims(ledger), 1);
		ll_claim_release(claim);
		kill(grandchild, SIGKILL);
	}
}

static void forked_child_cannot_touch_its_parents_claim(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_claim *claim = take_claim(ledger, LL_PRIORITY_NORMAL);
	struct ll_claim_info info;
	int status;
	pid_t pid = fork();
	if (!pid) {
		ll_claim_set_state(claim, LL_CLAIM_ENDING);
		ll_claim_set_note(claim, "child");
		int rc = ll_claim_beat(claim, 1, NULL);
		bool is_seen = count_claims(ledger) == 1;
		ll_claim_release(claim);
		_exit(rc == -ECHILD && is_seen && count_claims(ledger) == 1 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(ll_ledger_list(ledger, &info, 1), 1);
	assert_int_equal(info.state, LL_CLAIM_STARTING);
	assert_string_equal(info.note, "");
	ll_claim_release(claim);
}

static void close_high_descriptors(int *ret_closed)
{
	for (int fd = 512; fd < 600; fd++)
		*ret_closed += close(fd) == 0;
}

static void owner_whose_descriptors_were_closed_takes_its_lock_again(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_ledger *other = NULL;
	struct ll_claim *claim = take_claim(ledger, LL_PRIORITY_HOLD);
	int closed = 0;
	assert_int_equal(ll_ledger_open(f->folder, UUID, true, &other, NULL), 0);
	close_high_descriptors(&closed);
	assert_true(closed >= 2);
	assert_int_equal(ll_claim_beat(claim, 99, NULL), 0);
	assert_int_equal(count_claims(other), 1);
	assert_int_equal(count_claims(ledger), 1);
	ll_claim_release(claim);
	ll_ledger_close(other);
}

static void descriptor_number_given_to_another_file_is_left_alone(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_claim *claim = take_claim(ledger, LL_PRIORITY_NORMAL);
	int closed = 0;
	close_high_descriptors(&closed);
	int stranger = open("/dev/null", O_RDWR);
	for (int fd = 512; fd < 512 + closed; fd++)
		assert_int_equal(dup2(stranger, fd), fd);
	assert_int_equal(ll_claim_beat(claim, 1, NULL), 0);
	assert_int_equal(count_claims(ledger), 1);
	ll_claim_release(claim);
	ll_ledger_close(f->ledger);
	f->ledger = NULL;
	for (int fd = 512; fd < 512 + closed; fd++)
		assert_int_equal(close(fd), 0);
	close(stranger);
}

static void claim_cleared_behind_its_owners_back_is_stale(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_ledger *other = NULL;
	struct ll_claim *claim = take_claim(ledger, LL_PRIORITY_NORMAL);
	struct ll_err err;
	int closed = 0;
	close_high_descriptors(&closed);
	assert_int_equal(ll_ledger_open(f->folder, UUID, true, &other, NULL), 0);
	assert_int_equal(count_claims(other), 0);
	assert_fails(ll_claim_beat(claim, 1, &err), -ESTALE, "cleared");
	ll_claim_release(claim);
	ll_ledger_close(other);
}

/* What its owner still does to it is not done to whoever has its slot now. */
static void lost_claim_touches_nothing_and_is_succeeded(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_ledger *other = NULL;
	struct ll_claim *lost = take_claim(ledger, LL_PRIORITY_NORMAL);
	struct ll_claim_info info;
	int closed = 0;
	assert_false(ll_claim_is_lost(lost));
	close_high_descriptors(&closed);
	assert_int_equal(ll_ledger_open(f->folder, UUID, true, &other, NULL), 0);
	struct ll_claim *theirs = take_claim(other, LL_PRIORITY_HIGH);
	assert_int_equal(ll_claim_index(theirs), ll_claim_index(lost));
	assert_true(ll_claim_is_lost(lost));
	ll_claim_set_note(lost, "mine");
	ll_claim_set_memory(lost, 5);
	ll_claim_add_gpu_time(lost, 7);
	ll_claim_set_active(lost);
	ll_turn_want(lost, ll_now_ns());
	ll_account_charge(lost, ll_now_ns() - 7, ll_now_ns(), 7);
	assert_int_equal(ll_memory_reserve(lost, 1000), -ESTALE);
	assert_int_equal(ll_ledger_list(other, &info, 1), 1);
	assert_string_equal(info.note, "");
	assert_int_equal(info.memory_used_bytes, 0);
	assert_int_equal(info.gpu_time_ns, 0);
	assert_int_equal(info.activity_ns, 0);
	assert_int_equal(info.want_since_ns, 0);
	struct ll_claim *claim = take_claim(ledger, LL_PRIORITY_NORMAL);
	ll_claim_succeed(claim, lost);
	assert_false(ll_claim_is_lost(claim));
	assert_int_equal(ll_ledger_list(other, NULL, 0), 2);
	ll_claim_release(claim);
	assert_int_equal(ll_ledger_list(other, &info, 1), 1);
	ll_claim_release(theirs);
	ll_ledger_close(other);
}

static void death_with_memory_is_remembered(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	uint64_t began_ns = ll_now_ns();
	ll_claim_release(take_claim(ledger, LL_PRIORITY_NORMAL));
	assert_int_equal(ll_ledger_death_ns(ledger), 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(ll_memory_reserve(take_claim(ledger, LL_PRIORITY_NORMAL), 100) ? 1 : 0);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(ll_ledger_sweep(ledger), 1);
	assert_true(ll_ledger_death_ns(ledger) >= began_ns);
}

static struct ll_claim *take_of_tenant(struct ll_ledger *ledger, uint64_t id, uint64_t bytes)
{
	struct ll_tenant_wish tenant = {.id = id, .name = "lab", .priority = LL_PRIORITY_NORMAL};
	struct ll_claim *claim = NULL;
	unsigned row;
	assert_int_equal(ll_tenant_join(ledger, &tenant, &row, NULL), 0);
	struct ll_claim_wish wish = {.priority = LL_PRIORITY_NORMAL, .tenant = "lab", .tenant_row = row + 1};
	assert_int_equal(ll_claim_take(ledger, &wish, "0", &claim, NULL), 0);
	assert_int_equal(ll_memory_reserve(claim, bytes), 0);
	return claim;
}

static void siblings_are_those_of_the_tenant_that_have_memory(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_claim *asker = take_of_tenant(ledger, 1, 10), *rich = take_of_tenant(ledger, 1, 10);
	struct ll_claim *poor = take_of_tenant(ledger, 1, 0), *stranger = take_of_tenant(ledger, 2, 10);
	struct ll_claim *alone = take_claim(ledger, LL_PRIORITY_NORMAL);
	uint32_t wake_count = ll_turn_wake_count(rich);
	assert_int_equal(ll_siblings_ask(alone, 1), 0);
	assert_int_equal(ll_siblings_ask(stranger, 1), 0);
	assert_int_equal(ll_siblings_ask(asker, 1), 1);
	assert_int_equal(ll_siblings_unanswered(asker), 1);
	assert_true(ll_siblings_do_ask(rich));
	assert_true(ll_turn_wake_count(rich) != wake_count);
	assert_false(ll_siblings_do_ask(asker));
	assert_false(ll_siblings_do_ask(poor));
	assert_false(ll_siblings_do_ask(stranger));
	ll_siblings_answer(rich);
	assert_int_equal(ll_siblings_unanswered(asker), 0);
	/* Whoever ends owes no answer. */
	assert_int_equal(ll_siblings_ask(asker, 1), 1);
	ll_claim_release(rich);
	assert_int_equal(ll_siblings_unanswered(asker), 0);
	ll_claim_release(asker);
	ll_claim_release(poor);
	ll_claim_release(stranger);
	ll_claim_release(alone);
}

static void *write_notes(void *argument)
{
	static const char *const notes[] = {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"};
	for (int i = 0; i < 20000; i++) {
		ll_claim_set_note(argument, notes[i % 2]);
		ll_claim_add_gpu_time(argument, 1);
	}
	return NULL;
}

static void reader_never_sees_half_a_note(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_claim *claim = take_claim(ledger, LL_PRIORITY_NORMAL);
	struct ll_claim_info info;
	pthread_t threads[2];
	for (size_t i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, write_notes, claim);
	for (int i = 0; i < 300; i++) {
		assert_int_equal(ll_ledger_list(ledger, &info, 1), 1);
		assert_null(strchr(info.note, 'a') && strchr(info.note, 'b') ? info.note : NULL);
	}
	for (size_t i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	ll_ledger_list(ledger, &info, 1);
	assert_int_equal(info.gpu_time_ns, 40000);
	ll_claim_release(claim);
}

static void names_are_for_people(void **state)
{
	(void)state;
	assert_string_equal(ll_priority_name(LL_PRIORITY_HOLD), "hold");
	assert_string_equal(ll_priority_name((enum ll_priority)99), "unknown");
	assert_string_equal(ll_claim_state_name(LL_PRIORITY_HOLD, LL_CLAIM_RUNNING), "holding");
	assert_string_equal(ll_claim_state_name(LL_PRIORITY_LOW, LL_CLAIM_RUNNING), "running");
	assert_string_equal(ll_claim_state_name(LL_PRIORITY_LOW, (enum ll_claim_state)99), "unknown");
}

/* A token of 0 is nobody's: a claim that had it would not be seen by anybody, and never get a turn. */
static void no_damaged_count_makes_a_claim_nobodys(void **state)
{
	struct fixture *f = *state;
	struct ll_claim *claims[3];
	open_ledger(f)->file->next_token = UINT64_MAX - 1;
	for (size_t i = 0; i < 3; i++) {
		claims[i] = take_claim(f->ledger, LL_PRIORITY_NORMAL);
		assert_int_equal(count_claims(f->ledger), i + 1);
	}
	for (size_t i = 0; i < 3; i++)
		ll_claim_release(claims[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(claim_tells_who_and_what),
	    TEST(no_damaged_count_makes_a_claim_nobodys),
	    TEST(setters_reach_the_reader),
	    TEST(texts_are_cut_and_made_printable),
	    TEST(released_slot_is_all_zero),
	    TEST(second_hold_on_a_card_is_refused_with_the_first_ones_pid),
	    TEST(hold_does_not_keep_programs_out),
	    TEST(full_ledger_refuses_and_recovers),
	    TEST(activity_is_of_programs_and_not_of_holds),
	    TEST(killed_owner_leaves_nothing),
	    TEST(killed_hold_frees_the_card),
	    TEST(unreaped_owner_is_dead_too),
	    TEST(child_of_a_killed_owner_does_not_keep_the_claim),
	    TEST(forked_child_cannot_touch_its_parents_claim),
	    TEST(owner_whose_descriptors_were_closed_takes_its_lock_again),
	    TEST(descriptor_number_given_to_another_file_is_left_alone),
	    TEST(claim_cleared_behind_its_owners_back_is_stale),
	    TEST(lost_claim_touches_nothing_and_is_succeeded),
	    TEST(death_with_memory_is_remembered),
	    TEST(siblings_are_those_of_the_tenant_that_have_memory),
	    TEST(reader_never_sees_half_a_note),
	    TEST(names_are_for_people),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
