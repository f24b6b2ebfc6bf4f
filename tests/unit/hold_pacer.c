#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "fake_payload.h"
#include "hold/pacer.h"
#include "process_state.h"
#include "skipped.h"
#include "wait_for.h"

/* Every test runs in both ways: in a thread, where sanitizers see all, and in a process, as in earnest. */
static bool in_thread;
static const struct ll_payload_ops *const payloads[] = {&fake_payload_ops, NULL};
static struct ll_pacer *pacer;
static uint32_t generation;

static struct ll_pacer_config config_of(enum ll_pacer_manners manners)
{
	return (struct ll_pacer_config){
	    .payload_ops = &fake_payload_ops,
	    /* Lateness far above what a loaded machine adds between two lines of the fake. */
	    .limits = {.gap_ns = 200000, .late_ns = 500000, .first_late_ns = 800000},
	    .manners = manners,
	    .step_back_ns = 2 * LL_NS_PER_MS,
	    .wake_fd = -1,
	    .runs_in_thread = in_thread,
	};
}

static void start(const struct ll_pacer_config *config)
{
	*fake_world = (struct fake_payload_world){0};
	generation = 0;
	assert_int_equal(ll_pacer_new(config, &pacer, NULL), 0);
}

static void start_open(enum ll_pacer_manners manners)
{
	struct ll_pacer_config config = config_of(manners);
	start(&config);
	ll_pacer_open(pacer);
}

static int stop(void **state)
{
	(void)state;
	bool is_joined = ll_pacer_free(pacer, DEADLINE_NS);
	pacer = NULL;
	return is_joined && fake_world->contexts == 0 ? 0 : -1;
}

static struct ll_pacer_report report(void)
{
	struct ll_pacer_report now;
	ll_pacer_read_report(pacer, &now);
	return now;
}

static void order(double ratio, uint64_t valid_ns)
{
	struct ll_pacer_order now = {.is_running = ratio > 0,
				     .generation = generation,
				     .ratio = ratio,
				     .blocks = 7,
				     .threads = 32,
				     .valid_until_ns = ll_now_ns() + valid_ns};
	ll_pacer_send_order(pacer, &now);
}

static void hold_until_running(void)
{
	generation++;
	order(0.5, 60 * LL_NS_PER_S);
	uint64_t before = report().launches;
	wait_for(report().launches > before + 5);
}

/* No launch in the time of many periods. The pacer has nothing left to decide by then: its halt is already reported. */
static void assert_stopped(void)
{
	uint64_t before = fake_world->launches;
	ll_sleep_until_ns(ll_now_ns() + 30 * LL_NS_PER_MS);
	assert_int_equal(fake_world->launches, before);
}

static struct ll_pacer_report first_of_second;

/* The share of a second, one second after the other: what a machine that stalls keeps from the pacer for longer than
 * its account lasts (25 ms) is lost to that second. */
static bool held_half_of_a_second(void)
{
	struct ll_pacer_report last = report();
	if (last.last_end_ns <= first_of_second.last_end_ns + LL_NS_PER_S)
		return false;
	double share =
	    (double)(last.busy_ns - first_of_second.busy_ns) / (double)(last.last_end_ns - first_of_second.last_end_ns);
	first_of_second = last;
	return fabs(share - 0.5) < 0.03;
}

TEST_WITH(NULL, stop, test_holds_the_ordered_share)
{
	start_open(LL_PACER_STAYS);
	hold_until_running();
	first_of_second = report();
	wait_for(held_half_of_a_second());
	assert_int_equal(fake_world->last_blocks, 7);
	assert_string_equal(report().payload_name, "fake");
	assert_int_equal(report().sm_count, 132);
}

TEST_WITH(NULL, stop, test_yields_to_a_late_start_and_comes_back_on_order_only)
{
	start_open(LL_PACER_YIELDS);
	hold_until_running();
	fake_world->has_stranger = true;
	wait_for(report().is_halted);
	assert_int_equal(report().foreign_sensor, LL_SENSOR_LATE);
	assert_true(report().foreign.late_ns > 500000);
	assert_stopped();
	order(0.5, 60 * LL_NS_PER_S); /* the same generation: the governor has not seen it yet */
	assert_stopped();
	hold_until_running();
	assert_false(report().is_halted);
}

TEST_WITH(NULL, stop, test_yields_to_a_hole)
{
	start_open(LL_PACER_YIELDS);
	hold_until_running();
	fake_world->has_gap = true;
	wait_for(report().is_halted);
	assert_int_equal(report().foreign_sensor, LL_SENSOR_GAP);
	assert_stopped();
}

static void assert_no_stranger(atomic_bool *event)
{
	start_open(LL_PACER_YIELDS);
	hold_until_running();
	uint64_t before = report().launches;
	*event = true;
	wait_for((!*event && report().launches > before + 20) || report().is_halted);
	assert_int_equal(report().foreign_count, 0);
}

TEST_WITH(NULL, stop, test_a_slow_launch_call_is_no_stranger)
{
	assert_no_stranger(&fake_world->has_slow_call);
}

/* A simulated card after the process was stopped: what writes the records may go on later than what reads them. */
TEST_WITH(NULL, stop, test_a_record_that_comes_late_is_no_stranger)
{
	assert_no_stranger(&fake_world->has_unseen_record);
}

TEST_WITH(NULL, stop, test_steps_back_and_goes_on_in_fill)
{
	start_open(LL_PACER_STEPS_BACK);
	hold_until_running();
	fake_world->has_stranger = true;
	wait_for(report().foreign_count == 1);
	uint64_t before = report().launches;
	wait_for(report().launches > before + 5);
	assert_false(report().is_halted);
}

TEST_WITH(NULL, stop, test_ignore_does_not_look)
{
	start_open(LL_PACER_STAYS);
	hold_until_running();
	fake_world->has_stranger = true;
	uint64_t before = report().launches;
	wait_for(report().launches > before + 20);
	assert_int_equal(report().foreign_count, 0);
}

TEST_WITH(NULL, stop, test_an_order_that_is_not_renewed_expires)
{
	start_open(LL_PACER_YIELDS);
	wait_for(report().state == LL_PACER_OPEN);
	generation++;
	order(0.5, 50 * LL_NS_PER_MS);
	wait_for(fake_world->launches > 0);
	ll_sleep_until_ns(ll_now_ns() + 50 * LL_NS_PER_MS);
	wait_for(report().outstanding == 0);
	assert_stopped();
}

TEST_WITH(NULL, stop, test_a_lost_context_is_reported_and_can_be_made_again)
{
	start_open(LL_PACER_YIELDS);
	hold_until_running();
	fake_world->is_lost = true;
	wait_for(report().state == LL_PACER_LOST);
	assert_non_null(strstr(report().err.text, "lost"));
	ll_pacer_close(pacer);
	wait_for(report().state == LL_PACER_CLOSED);
	fake_world->is_lost = false;
	ll_pacer_open(pacer);
	hold_until_running();
}

TEST_WITH(NULL, stop, test_a_kernel_that_never_ends_means_a_lost_context)
{
	start_open(LL_PACER_STAYS);
	hold_until_running();
	fake_world->is_stuck = true;
	wait_for(report().state == LL_PACER_LOST);
	assert_non_null(strstr(report().err.text, "not come back"));
}

TEST_WITH(NULL, stop, test_a_refused_context_is_reported)
{
	struct ll_pacer_config config = config_of(LL_PACER_YIELDS);
	start(&config);
	fake_world->open_rc = -ENOMEM;
	ll_pacer_open(pacer);
	wait_for(report().state == LL_PACER_FAILED);
	assert_int_equal(report().err.code, -ENOMEM);
}

TEST_WITH(NULL, stop, test_the_governor_is_woken)
{
	struct ll_pacer_config config = config_of(LL_PACER_YIELDS);
	config.wake_fd = eventfd(0, EFD_CLOEXEC);
	start(&config);
	ll_pacer_open(pacer);
	struct pollfd pfd = {.fd = config.wake_fd, .events = POLLIN};
	assert_int_equal(poll(&pfd, 1, (int)(DEADLINE_NS / LL_NS_PER_MS)), 1);
	assert_true(ll_pacer_free(pacer, DEADLINE_NS));
	close(config.wake_fd);
	start_open(LL_PACER_YIELDS); /* for the teardown */
}

/* The last one of its group: the thread that hangs has what would be leaked. */
TEST(test_a_hanging_driver_does_not_hang_the_end)
{
	start_open(LL_PACER_YIELDS);
	wait_for(report().state == LL_PACER_OPEN);
	fake_world->hangs_in_close = true;
	assert_false(ll_pacer_free(pacer, 50 * LL_NS_PER_MS));
	fake_world->hangs_in_close = false; /* let the thread end */
	pacer = NULL;
}

/* ---- what only a process can do ---- */

static bool is_gone(pid_t pid)
{
	return kill(pid, 0) < 0 && errno == ESRCH;
}

/* Kills the worker as if it had crashed; what it had open is gone with it. */
static void kill_worker(void)
{
	assert_int_equal(kill(report().pid, SIGKILL), 0);
	wait_for(report().state == LL_PACER_LOST || report().state == LL_PACER_FAILED);
	fake_world->contexts = 0;
}

TEST_OF_GROUP("process", NULL, stop, test_a_killed_worker_is_a_lost_context_and_another_takes_over)
{
	start_open(LL_PACER_YIELDS);
	for (unsigned i = 0; i < 20; i++) { /* often enough to be hit with the lock held */
		hold_until_running();
		uint64_t busy_ns = report().busy_ns;
		kill_worker();
		assert_int_equal(report().state, LL_PACER_LOST);
		assert_non_null(strstr(report().err.text, "signal 9"));
		assert_int_equal(report().pid, 0);
		assert_true(report().busy_ns >= busy_ns); /* the account goes on */
		if (i % 2)
			ll_pacer_close(pacer);
		ll_pacer_open(pacer);
		wait_for(report().state == LL_PACER_OPEN);
	}
}

TEST_OF_GROUP("process", NULL, stop, test_a_worker_killed_while_opening_has_failed)
{
	struct ll_pacer_config config = config_of(LL_PACER_YIELDS);
	start(&config);
	fake_world->hangs_in_open = true;
	ll_pacer_open(pacer);
	assert_int_equal(report().state, LL_PACER_OPENING);
	kill_worker();
	assert_int_equal(report().state, LL_PACER_FAILED);
	fake_world->hangs_in_open = false;
	ll_pacer_close(pacer);
	assert_int_equal(report().state, LL_PACER_CLOSED);
	ll_pacer_open(pacer);
	hold_until_running();
}

TEST_OF_GROUP("process", NULL, stop, test_closed_means_that_the_process_is_gone)
{
	start_open(LL_PACER_YIELDS);
	hold_until_running();
	pid_t pid = report().pid;
	assert_true(pid > 0 && pid != getpid() && !is_gone(pid));
	ll_pacer_close(pacer);
	assert_int_equal(report().state, LL_PACER_CLOSING);
	wait_for(report().state == LL_PACER_CLOSED);
	assert_true(is_gone(pid));
	assert_int_equal(fake_world->contexts, 0);
	ll_pacer_open(pacer);
	hold_until_running();
	assert_int_not_equal(report().pid, pid);
}

TEST_OF_GROUP("process", NULL, stop, test_a_close_that_hangs_is_cut_and_another_context_can_be_made)
{
	start_open(LL_PACER_YIELDS);
	wait_for(report().state == LL_PACER_OPEN);
	pid_t pid = report().pid;
	fake_world->hangs_in_close = true;
	ll_pacer_close(pacer);
	ll_pacer_open(pacer); /* waits for the end of the first */
	assert_int_equal(report().state, LL_PACER_CLOSING);
	wait_for(report().state == LL_PACER_OPEN);
	assert_true(is_gone(pid));
	assert_int_not_equal(report().pid, pid);
	assert_int_equal(report().kills, 1);
	fake_world->hangs_in_close = false;
	fake_world->contexts = 1;
}

TEST_OF_GROUP("process", NULL, NULL, test_a_driver_that_hangs_is_killed_in_time)
{
	start_open(LL_PACER_YIELDS);
	wait_for(report().state == LL_PACER_OPEN);
	pid_t pid = report().pid;
	fake_world->hangs_in_close = true;
	uint64_t before_ns = ll_now_ns();
	assert_false(ll_pacer_free(pacer, 50 * LL_NS_PER_MS));
	assert_true(ll_now_ns() - before_ns >= 50 * LL_NS_PER_MS);
	assert_true(is_gone(pid));
	fake_world->contexts = 0;
	pacer = NULL;
}

/* Runs in a child: a governor that has a worker at work, and is then killed. */
static void be_a_governor(int pid_fd)
{
	start_open(LL_PACER_YIELDS);
	hold_until_running();
	pid_t pid = report().pid;
	if (write(pid_fd, &pid, sizeof pid) != (ssize_t)sizeof pid)
		_exit(1);
	for (;;)
		pause();
}

TEST_OF_GROUP("process", NULL, NULL, test_the_worker_ends_with_its_killed_governor)
{
	SKIP_UNDER_THREAD_SANITIZER("it does not let a fork of a program that has threads make one");
	int fds[2], status = 0;
	pid_t pid;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); /* the orphan becomes ours */
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid_t governor = fork();
	assert_true(governor >= 0);
	if (governor == 0)
		be_a_governor(fds[1]);
	assert_int_equal(read(fds[0], &pid, sizeof pid), sizeof pid);
	assert_false(is_gone(pid));
	assert_int_equal(kill(governor, SIGKILL), 0);
	assert_int_equal(waitpid(governor, NULL, 0), governor);
	wait_for(waitpid(pid, &status, WNOHANG) == pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	close(fds[0]), close(fds[1]);
	fake_world->contexts = 0;
}

TEST_OF_GROUP("process", NULL, stop, test_signals_to_the_whole_group_leave_the_worker_to_its_governor)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
	start_open(LL_PACER_YIELDS);
	hold_until_running();
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		assert_int_equal(kill(report().pid, signals[i]), 0);
	uint64_t before = report().launches;
	wait_for(report().launches > before + 20);
	assert_int_equal(report().state, LL_PACER_OPEN);
}

TEST_OF_GROUP("process", NULL, stop, test_a_stopped_worker_goes_on_with_its_context)
{
	start_open(LL_PACER_STAYS);
	hold_until_running();
	assert_int_equal(kill(report().pid, SIGSTOP), 0);
	ll_sleep_until_ns(ll_now_ns() + 2500 * LL_NS_PER_MS); /* longer than a kernel may be overdue */
	assert_int_equal(kill(report().pid, SIGCONT), 0);
	uint64_t before = report().launches;
	wait_for(report().launches > before + 20);
	assert_int_equal(report().state, LL_PACER_OPEN);
}

static bool rests(void)
{
	ll_pacer_rest(pacer);
	return is_stopped(report().pid);
}

/* Vulkan's threads would go on for ever, and its context must still be there when it is wanted. */
TEST_OF_GROUP("process", NULL, stop, test_a_worker_with_nothing_to_do_is_stopped_until_it_is_called)
{
	start_open(LL_PACER_YIELDS);
	hold_until_running();
	for (unsigned i = 0; i < 20; i++) {
		assert_false(rests());
		order(0, 0);
		wait_for(rests());
		assert_true(rests());
		uint64_t before = report().launches;
		generation++;
		order(0.5, LL_NS_PER_S);
		wait_for(report().launches > before);
		assert_false(is_stopped(report().pid));
		order(0.5, 60 * LL_NS_PER_S);
	}
	order(0, 0);
	wait_for(rests());
	fake_world->is_lost = true;
	wait_for((ll_pacer_look(pacer), report().state == LL_PACER_LOST)); /* it looks a few times a second at most */
}

TEST_OF_GROUP("process", NULL, stop, test_a_stopped_worker_can_be_closed_and_killed)
{
	start_open(LL_PACER_YIELDS);
	for (unsigned i = 0; i < 5; i++) {
		hold_until_running();
		order(0, 0);
		wait_for(rests());
		if (i % 2) {
			kill_worker();
		} else {
			ll_pacer_close(pacer);
			wait_for(report().state == LL_PACER_CLOSED);
		}
		ll_pacer_open(pacer);
	}
	wait_for(report().state == LL_PACER_OPEN);
	wait_for(rests()); /* for the teardown */
}

TEST_OF_GROUP("process", NULL, stop, test_the_worker_says_what_it_is_and_inherits_nothing)
{
	char path[64], text[256] = "";
	int stray = fcntl(STDERR_FILENO, F_DUPFD, 100); /* not close-on-exec */
	assert_true(stray >= 100);
	start_open(LL_PACER_YIELDS);
	wait_for(report().state == LL_PACER_OPEN);
	int pid = report().pid;
	snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof text - 1) > 0);
	close(fd);
	assert_string_equal(text, "loadline-hold: synthetic load on no card");
	snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, stray);
	assert_int_equal(readlink(path, text, sizeof text), -1);
	snprintf(path, sizeof path, "/proc/%d/fd/1", pid);
	ssize_t length = readlink(path, text, sizeof text - 1);
	assert_true(length > 0);
	text[length] = '\0';
	assert_string_equal(text, "/dev/null");
	close(stray);
}

TEST_OF_GROUP("process", NULL, NULL, test_a_worker_without_its_page_says_who_starts_it)
{
	struct ll_err err = {0};
	/* Descriptor 3 is whatever this program has there; it is no page. */
	assert_fails(ll_worker_main(payloads, &err), -EINVAL, "for loadline itself");
	assert_true(ll_worker_is_asked(2, (char *[]){"x", LL_WORKER_WORD, NULL}));
	assert_false(ll_worker_is_asked(1, (char *[]){"x", NULL}));
}

static int use_thread(void **state)
{
	(void)state;
	in_thread = true;
	return 0;
}

static int use_process(void **state)
{
	(void)state;
	in_thread = false;
	return 0;
}

int main(int argc, char **argv)
{
	fake_world_open();
	if (ll_worker_is_asked(argc, argv))
		return -ll_worker_main(payloads, NULL);
	if (tests_are_listed(argc, argv))
		return 0;
	int failed = tests_run_group("in a process", NULL, use_process, NULL);
	failed += tests_run_group("only in a process", "process", use_process, NULL);
	/* Last: a thread that hangs stays. */
	return failed + tests_run_group("in a thread", NULL, use_thread, NULL);
}
