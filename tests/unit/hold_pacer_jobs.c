/*
 * A load beside governed programs: it stops as soon as one says that it has work, while loadlined comes and goes.
 */
#include "test.h"

#include <errno.h>

#include "fake_daemon.h"
#include "fake_payload.h"
#include "hold/pacer.h"
#include "wait_for.h"

static const struct ll_payload_ops *const payloads[] = {&fake_payload_ops, NULL};
static bool in_thread;
static struct fake_daemon loadlined;
static struct fake_job job;
static struct ll_page_slot *slot;
static struct ll_pacer *pacer;
static uint32_t generation;

static int begin(void **state)
{
	(void)state;
	*fake_world = (struct fake_payload_world){0};
	fake_daemon_init(&loadlined);
	fake_job_init(&job, 7, "GPU-test");
	slot = fake_job_give(&job, 0, 1, 70);
	struct ll_pacer_config config = {
	    .payload_ops = &fake_payload_ops,
	    /* No kernel is that late, so that nothing else stops the load. */
	    .limits = {.gap_ns = LL_NS_PER_S, .late_ns = LL_NS_PER_S, .first_late_ns = LL_NS_PER_S},
	    .manners = LL_PACER_YIELDS,
	    .jobs_places = &loadlined.places,
	    .jobs_uuid = "GPU-test",
	    .wake_fd = -1,
	    .runs_in_thread = in_thread,
	};
	int rc = ll_pacer_new(&config, &pacer, NULL);
	if (rc == 0)
		ll_pacer_open(pacer);
	return rc;
}

static int end(void **state)
{
	(void)state;
	bool has_ended = ll_pacer_free(pacer, DEADLINE_NS);
	fake_job_fini(&job);
	fake_daemon_fini(&loadlined);
	return has_ended ? 0 : -1;
}

TEST_EACH(begin, end);

static struct ll_pacer_report report(void)
{
	struct ll_pacer_report now;
	ll_pacer_read_report(pacer, &now);
	return now;
}

static void wait_launches(void)
{
	uint64_t before = report().launches;
	wait_for(report().launches > before + 10);
}

static void hold(void)
{
	generation++;
	struct ll_pacer_order order = {.is_running = true,
				       .generation = generation,
				       .ratio = 0.5,
				       .blocks = 7,
				       .threads = 32,
				       .valid_until_ns = ll_now_ns() + 60 * LL_NS_PER_S};
	ll_pacer_send_order(pacer, &order);
	wait_launches();
}

static void expect_halt(void)
{
	wait_for(report().is_halted);
	assert_int_equal(report().foreign_sensor, LL_SENSOR_GOVERNED);
}

/* A worker that may be stopped keeps no connection: what it would be sent would wait for ever. */
static void expect_end_of_connection(void)
{
	union ll_message message;
	int fds[LL_MESSAGE_FDS];
	size_t count = 0;
	wait_for(ll_message_receive(loadlined.fd, &message, fds, &count) == -EPIPE);
	fake_daemon_kill(&loadlined);
}

TEST(test_stops_for_a_governed_program_each_time)
{
	hold(); /* no loadlined serves */
	for (uint64_t i = 1; i <= 3; i++) {
		fake_daemon_listen(&loadlined);
		fake_daemon_accept_watch(&loadlined);
		fake_daemon_send_page(&loadlined, 1, &job);
		wait_launches();
		assert_int_equal(report().foreign_count, i - 1);
		slot->activity_ns = LL_ACTIVITY_NOW;
		expect_halt();
		expect_end_of_connection();
		slot->activity_ns = i;
		hold();
	}
}

TEST(test_goes_on_when_loadlined_is_killed_and_still_sees_work)
{
	fake_daemon_listen(&loadlined);
	hold();
	fake_daemon_accept_watch(&loadlined);
	fake_daemon_send_page(&loadlined, 1, &job);
	wait_launches();
	fake_daemon_kill(&loadlined);
	wait_launches();
	assert_int_equal(report().foreign_count, 0);
	uint64_t before_ns = ll_now_ns();
	fake_daemon_listen(&loadlined);
	fake_daemon_accept_watch(&loadlined); /* within a second; a machine that is busy takes longer */
	assert_true(is_in_time(before_ns, 10 * LL_NS_PER_S));
	fake_daemon_kill(&loadlined);
	slot->activity_ns = 1;
	expect_halt();
}

static int use_thread(void **state)
{
	(void)state;
	in_thread = true;
	return 0;
}

int main(int argc, char **argv)
{
	fake_world_open();
	if (ll_worker_is_asked(argc, argv))
		return -ll_worker_main(payloads, NULL);
	if (tests_are_listed(argc, argv))
		return 0;
	int failed = tests_run_group("in a process", NULL, NULL, NULL);
	return failed + tests_run_group("in a thread", NULL, use_thread, NULL);
}
