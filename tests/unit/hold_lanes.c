/*
 * Two cards in one worker process: what one of them does, suffers or breaks, and what the other sees of it.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_payload.h"
#include "hold/pacer.h"
#include "process_state.h"
#include "wait_for.h"

enum { LANES = 2 };

static const struct ll_payload_ops *const payloads[] = {&fake_payload_ops, &fake_payload_alone_ops, NULL};
static struct ll_worker *worker;
static struct ll_pacer *pacers[LANES];
static uint32_t generation;

static int begin(void **state)
{
	(void)state;
	*fake_world = (struct fake_payload_world){0};
	struct ll_pacer_config config = {.payload_ops = &fake_payload_ops,
					 .alone_ops = &fake_payload_alone_ops,
					 .manners = LL_PACER_STAYS,
					 .wake_fd = -1};
	int rc = ll_worker_new(LANES, &worker, NULL);
	config.worker = worker;
	for (int i = 0; i < LANES && rc == 0; i++)
		rc = ll_pacer_new(&config, &pacers[i], NULL);
	return rc;
}

static int end(void **state)
{
	(void)state;
	bool has_ended = true;
	for (int i = 0; i < LANES; i++)
		has_ended = ll_pacer_free(pacers[i], DEADLINE_NS) && has_ended;
	has_ended = ll_worker_free(worker) && has_ended;
	return has_ended && fake_world->contexts == 0 ? 0 : -1;
}

TEST_EACH(begin, end);

static struct ll_pacer_report report(int lane)
{
	struct ll_pacer_report now;
	ll_pacer_read_report(pacers[lane], &now);
	return now;
}

static bool is_in(int lane, enum ll_pacer_state state)
{
	return report(lane).state == state;
}

static bool is_gone(pid_t pid)
{
	return kill(pid, 0) < 0 && errno == ESRCH;
}

static void order(int lane)
{
	generation++;
	struct ll_pacer_order now = {.is_running = true,
				     .generation = generation,
				     .ratio = 0.5,
				     .blocks = 1,
				     .threads = 32,
				     .valid_until_ns = ll_now_ns() + 60 * LL_NS_PER_S};
	ll_pacer_send_order(pacers[lane], &now);
}

static void wait_launches(int lane, uint64_t count)
{
	uint64_t before = report(lane).launches;
	wait_for(report(lane).launches >= before + count);
}

static void open_lane(int lane)
{
	ll_pacer_open(pacers[lane]);
	wait_for(is_in(lane, LL_PACER_OPEN));
	order(lane);
	wait_launches(lane, 5);
}

static void open_both(void)
{
	ll_pacer_open(pacers[0]);
	ll_pacer_open(pacers[1]);
	for (int i = 0; i < LANES; i++)
		wait_for(is_in(i, LL_PACER_OPEN));
	for (int i = 0; i < LANES; i++) {
		order(i);
		wait_launches(i, 5);
	}
}

static void close_lane(int lane)
{
	ll_pacer_close(pacers[lane]);
	wait_for(is_in(lane, LL_PACER_CLOSED));
}

/* Runs in a child: a hold with both cards at work, which is then killed. */
static void be_a_hold(int pid_fd)
{
	begin(NULL);
	open_both();
	pid_t pid = report(0).pid;
	if (write(pid_fd, &pid, sizeof pid) != (ssize_t)sizeof pid)
		_exit(1);
	for (;;)
		pause();
}

/* First: it forks, and has no threads yet. */
TEST_WITH(NULL, NULL, the_process_ends_with_the_killed_hold)
{
	int fds[2], status = 0;
	pid_t pid;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); /* the orphan becomes ours */
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid_t hold = fork();
	assert_true(hold >= 0);
	if (hold == 0)
		be_a_hold(fds[1]);
	assert_int_equal(read(fds[0], &pid, sizeof pid), sizeof pid);
	assert_false(is_gone(pid));
	assert_int_equal(kill(hold, SIGKILL), 0);
	assert_int_equal(waitpid(hold, NULL, 0), hold);
	wait_for(waitpid(pid, &status, WNOHANG) == pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	close(fds[0]);
	close(fds[1]);
}

TEST(two_cards_hold_in_one_process_that_names_both)
{
	char path[64], text[256] = "";
	open_both();
	assert_int_equal(fake_world->contexts, 2);
	assert_true(report(0).pid > 0);
	assert_int_equal(report(0).pid, report(1).pid);
	snprintf(path, sizeof path, "/proc/%d/cmdline", (int)report(0).pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof text - 1) > 0);
	close(fd);
	assert_string_equal(text, "loadline-hold: synthetic load on no card, no card");
}

TEST(any_card_may_be_the_first)
{
	open_lane(1);
	assert_true(is_in(0, LL_PACER_CLOSED));
	open_lane(0);
	assert_int_equal(report(0).pid, report(1).pid);
}

TEST(a_slow_opening_does_not_stop_the_other_card)
{
	open_lane(0);
	fake_world->hangs_in_open = true;
	ll_pacer_open(pacers[1]);
	wait_launches(0, 50);
	assert_true(is_in(1, LL_PACER_OPENING));
	fake_world->hangs_in_open = false;
	wait_for(is_in(1, LL_PACER_OPEN));
	assert_int_equal(report(0).pid, report(1).pid);
}

TEST(a_released_card_leaves_the_other_running_and_comes_back)
{
	open_both();
	pid_t pid = report(0).pid;
	fake_world->hangs_in_close = true;
	ll_pacer_close(pacers[0]);
	wait_launches(1, 20); /* while the other one closes */
	assert_true(is_in(0, LL_PACER_CLOSING));
	fake_world->hangs_in_close = false;
	wait_for(is_in(0, LL_PACER_CLOSED));
	assert_int_equal(fake_world->contexts, 1);
	wait_launches(1, 20);
	assert_true(is_in(1, LL_PACER_OPEN));
	open_lane(0);
	assert_int_equal(report(0).pid, pid);
	assert_int_equal(report(1).pid, pid);
}

TEST(the_process_ends_with_its_last_card)
{
	open_both();
	pid_t pid = report(0).pid;
	close_lane(0);
	assert_false(is_gone(pid));
	close_lane(1);
	assert_true(is_gone(pid)); /* closed means that it is gone */
	assert_int_equal(report(0).pid, 0);
	assert_int_equal(fake_world->contexts, 0);
	open_both();
	assert_int_not_equal(report(0).pid, pid);
}

/* One closes as the other opens, so that now and then the process is just about to end. */
TEST(a_card_that_opens_while_the_process_ends_is_served)
{
	open_lane(0);
	for (int i = 0; i < 200; i++) {
		int to_close = i % LANES, to_open = 1 - to_close;
		ll_pacer_close(pacers[to_close]);
		if (i % 3)
			ll_sleep_until_ns(ll_now_ns() + (uint64_t)(i % 20) * 100 * LL_NS_PER_US);
		ll_pacer_open(pacers[to_open]);
		struct ll_pacer_report now;
		do
			now = report(to_open);
		while (now.state == LL_PACER_OPENING || now.state == LL_PACER_CLOSED);
		if (now.state != LL_PACER_OPEN)
			fail_msg("round %d: state %d: %s", i, now.state, now.err.text);
		wait_for(is_in(to_close, LL_PACER_CLOSED));
	}
}

TEST(an_opening_that_fails_on_one_card_is_not_the_others)
{
	open_both();
	pid_t pid = report(1).pid;
	close_lane(0);
	fake_world->open_rc = -EIO;
	ll_pacer_open(pacers[0]);
	wait_for(is_in(0, LL_PACER_FAILED));
	assert_false(report(0).is_bystander);
	wait_launches(1, 20);
	fake_world->open_rc = 0;
	open_lane(0);
	assert_int_equal(report(1).pid, pid);
}

TEST(a_killed_process_is_lost_to_both_and_both_come_back)
{
	for (int i = 0; i < 10; i++) { /* often enough to be hit with a lock held */
		open_both();
		pid_t pid = report(0).pid;
		assert_int_equal(kill(pid, SIGKILL), 0);
		for (int lane = 0; lane < LANES; lane++) {
			wait_for(is_in(lane, LL_PACER_LOST));
			assert_true(report(lane).is_bystander);
			assert_int_equal(report(lane).kills, 0);
			assert_non_null(strstr(report(lane).err.text, "signal 9"));
		}
		fake_world->contexts = 0;
	}
	open_both();
	assert_false(report(0).is_bystander);
	assert_int_equal(report(0).pid, report(1).pid);
}

TEST(a_card_whose_driver_hangs_is_killed_and_the_other_is_told_that_it_was_not_its_fault)
{
	open_both();
	pid_t pid = report(1).pid;
	fake_world->hangs_in_close = true;
	ll_pacer_close(pacers[0]);
	wait_for(is_in(0, LL_PACER_CLOSED)); /* killed for it by then */
	assert_true(is_gone(pid));
	assert_int_equal(report(0).kills, 1);
	assert_true(is_in(1, LL_PACER_LOST));
	assert_true(report(1).is_bystander);
	assert_int_equal(report(1).kills, 0);
	fake_world->hangs_in_close = false;
	fake_world->contexts = 0;
	open_both();
}

TEST(a_process_that_falls_while_one_card_opens_is_that_cards_fault)
{
	open_lane(0);
	fake_world->hangs_in_open = true;
	ll_pacer_open(pacers[1]);
	wait_for(fake_world->has_hung_in_open);
	assert_int_equal(kill(report(1).pid, SIGKILL), 0);
	wait_for(is_in(0, LL_PACER_LOST) && is_in(1, LL_PACER_FAILED));
	assert_true(report(0).is_bystander);
	fake_world->hangs_in_open = false;
	fake_world->contexts = 0;
}

static void goes_alone(int lane)
{
	int other = 1 - lane;
	open_lane(other);
	fake_world->open_rc = -ENODEV;
	ll_pacer_open(pacers[lane]);
	do
		assert_int_not_equal(report(lane).state, LL_PACER_FAILED);
	while (!is_in(lane, LL_PACER_OPEN));
	assert_string_equal(report(lane).payload_name, "fake-alone");
	assert_int_not_equal(report(lane).pid, report(other).pid);
	wait_launches(other, 5);
	close_lane(lane);
	open_lane(lane);
	assert_string_equal(report(lane).payload_name, "fake-alone");
	assert_string_equal(report(other).payload_name, "fake");
}

TEST(a_card_without_this_payload_gets_the_other_one_in_a_process_of_its_own)
{
	goes_alone(1);
}

TEST(so_does_the_card_whose_lane_is_the_main_thread)
{
	goes_alone(0);
}

static void *open_first(void *arg)
{
	(void)arg;
	open_lane(0);
	return NULL;
}

TEST(the_end_of_the_thread_that_opened_first_leaves_the_process_running)
{
	pthread_t governor;
	assert_int_equal(pthread_create(&governor, NULL, open_first, NULL), 0);
	assert_int_equal(pthread_join(governor, NULL), 0);
	open_lane(1);
	wait_launches(0, 5);
	wait_launches(1, 5);
	assert_true(is_in(0, LL_PACER_OPEN));
}

static void order_stop(int lane)
{
	ll_pacer_send_order(pacers[lane], &(struct ll_pacer_order){.generation = generation});
}

static bool rests(int lane)
{
	ll_pacer_rest(pacers[lane]);
	return is_stopped(report(lane).pid);
}

TEST(a_process_is_stopped_when_both_cards_have_nothing_to_do)
{
	open_lane(0);
	order_stop(0);
	wait_for(rests(0)); /* the other has not been asked for yet */
	open_lane(1);
	for (unsigned i = 0; i < 50; i++)
		assert_false(rests(0));
	order_stop(1);
	wait_for(rests(1));
	for (unsigned i = 0; i < 20; i++) { /* one is called while the other would have it stopped again */
		uint64_t before = report(1).launches;
		order(1);
		wait_for(!rests(0) && report(1).launches > before);
		order_stop(1);
		wait_for(rests(0));
	}
}

int main(int argc, char **argv)
{
	fake_world_open();
	if (ll_worker_is_asked(argc, argv))
		return -ll_worker_main(payloads, NULL);
	return tests_run(argc, argv);
}
