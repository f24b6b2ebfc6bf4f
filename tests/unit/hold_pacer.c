#include "test.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "fake_payload.h"
#include "hold/pacer.h"
#include "ledger/claim.h"

#define DEADLINE_NS (10 * LL_NS_PER_S) /* generous: a loaded machine must not fail a test */

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
	};
}

static void start(const struct ll_pacer_config *config)
{
	fake_world = (struct fake_payload_world){0};
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
	return is_joined && fake_world.contexts == 0 ? 0 : -1;
}

static struct ll_pacer_report report(void)
{
	struct ll_pacer_report now;
	ll_pacer_report(pacer, &now);
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
	ll_pacer_order(pacer, &now);
}

#define wait_for(condition)                                                                                            \
	do {                                                                                                           \
		uint64_t deadline_ns = ll_now_ns() + DEADLINE_NS;                                                      \
		while (!(condition)) {                                                                                 \
			if (ll_now_ns() > deadline_ns)                                                                 \
				fail_msg("never: %s", #condition);                                                     \
			ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);                                                 \
		}                                                                                                      \
	} while (0)

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
	uint64_t before = fake_world.launches;
	ll_sleep_until_ns(ll_now_ns() + 30 * LL_NS_PER_MS);
	assert_int_equal(fake_world.launches, before);
}

static void test_holds_the_ordered_share(void **state)
{
	(void)state;
	start_open(LL_PACER_STAYS);
	hold_until_running();
	struct ll_pacer_report first = report();
	wait_for(report().last_end_ns > first.last_end_ns + LL_NS_PER_S);
	struct ll_pacer_report last = report();
	double share = (double)(last.busy_ns - first.busy_ns) / (double)(last.last_end_ns - first.last_end_ns);
	/* Within what the account may owe (25 ms) on a machine that stalls. */
	assert_true(fabs(share - 0.5) < 0.03);
	assert_int_equal(fake_world.last_blocks, 7);
	assert_string_equal(last.payload_name, "fake");
	assert_int_equal(last.sm_count, 132);
}

static void test_yields_to_a_late_start_and_comes_back_on_order_only(void **state)
{
	(void)state;
	start_open(LL_PACER_YIELDS);
	hold_until_running();
	fake_world.has_stranger = true;
	wait_for(report().is_halted);
	assert_int_equal(report().foreign_sensor, LL_SENSOR_LATE);
	assert_true(report().foreign.late_ns > 500000);
	assert_stopped();
	order(0.5, 60 * LL_NS_PER_S); /* the same generation: the governor has not seen it yet */
	assert_stopped();
	hold_until_running();
	assert_false(report().is_halted);
}

static void test_yields_to_a_hole(void **state)
{
	(void)state;
	start_open(LL_PACER_YIELDS);
	hold_until_running();
	fake_world.has_gap = true;
	wait_for(report().is_halted);
	assert_int_equal(report().foreign_sensor, LL_SENSOR_GAP);
	assert_stopped();
}

static void test_a_slow_launch_call_is_no_stranger(void **state)
{
	(void)state;
	start_open(LL_PACER_YIELDS);
	hold_until_running();
	uint64_t before = report().launches;
	fake_world.has_slow_call = true;
	wait_for(!fake_world.has_slow_call && report().launches > before + 20);
	assert_int_equal(report().foreign_count, 0);
}

static void test_steps_back_and_goes_on_in_fill(void **state)
{
	(void)state;
	start_open(LL_PACER_STEPS_BACK);
	hold_until_running();
	fake_world.has_stranger = true;
	wait_for(report().foreign_count == 1);
	uint64_t before = report().launches;
	wait_for(report().launches > before + 5);
	assert_false(report().is_halted);
}

static void test_ignore_does_not_look(void **state)
{
	(void)state;
	start_open(LL_PACER_STAYS);
	hold_until_running();
	fake_world.has_stranger = true;
	uint64_t before = report().launches;
	wait_for(report().launches > before + 20);
	assert_int_equal(report().foreign_count, 0);
}

static void test_an_order_that_is_not_renewed_expires(void **state)
{
	(void)state;
	start_open(LL_PACER_YIELDS);
	wait_for(report().state == LL_PACER_OPEN);
	generation++;
	order(0.5, 50 * LL_NS_PER_MS);
	wait_for(fake_world.launches > 0);
	ll_sleep_until_ns(ll_now_ns() + 50 * LL_NS_PER_MS);
	wait_for(report().outstanding == 0);
	assert_stopped();
}

static void test_a_lost_context_is_reported_and_can_be_made_again(void **state)
{
	(void)state;
	start_open(LL_PACER_YIELDS);
	hold_until_running();
	fake_world.is_lost = true;
	wait_for(report().state == LL_PACER_LOST);
	assert_non_null(strstr(report().err.text, "lost"));
	ll_pacer_close(pacer);
	wait_for(report().state == LL_PACER_CLOSED);
	fake_world.is_lost = false;
	ll_pacer_open(pacer);
	hold_until_running();
}

static void test_a_kernel_that_never_ends_means_a_lost_context(void **state)
{
	(void)state;
	start_open(LL_PACER_STAYS);
	hold_until_running();
	fake_world.is_stuck = true;
	wait_for(report().state == LL_PACER_LOST);
	assert_non_null(strstr(report().err.text, "not come back"));
}

static void test_a_refused_context_is_reported(void **state)
{
	(void)state;
	struct ll_pacer_config config = config_of(LL_PACER_YIELDS);
	start(&config);
	fake_world.open_rc = -ENOMEM;
	ll_pacer_open(pacer);
	wait_for(report().state == LL_PACER_FAILED);
	assert_int_equal(report().err.code, -ENOMEM);
}

static void test_a_hanging_driver_does_not_hang_the_end(void **state)
{
	(void)state;
	start_open(LL_PACER_YIELDS);
	wait_for(report().state == LL_PACER_OPEN);
	fake_world.hangs_in_close = true;
	assert_false(ll_pacer_free(pacer, 50 * LL_NS_PER_MS));
	fake_world.hangs_in_close = false; /* let the thread end, so that stop() can join it */
}

static void test_the_governor_is_woken(void **state)
{
	(void)state;
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

static void test_a_governed_program_stops_it_through_the_ledger(void **state)
{
	(void)state;
	char folder[] = "/tmp/ll-pacer-XXXXXX";
	assert_non_null(mkdtemp(folder));
	struct ll_ledger *ledger;
	struct ll_claim *claim;
	assert_int_equal(ll_ledger_open(folder, "GPU-test", true, &ledger, NULL), 0);
	struct ll_claim_wish wish = {.priority = LL_PRIORITY_NORMAL, .tenant = "program"};
	assert_int_equal(ll_claim_take(ledger, &wish, "0", &claim, NULL), 0);
	struct ll_pacer_config config = config_of(LL_PACER_YIELDS);
	config.ledger = ledger;
	start(&config);
	ll_pacer_open(pacer);
	hold_until_running();
	assert_int_equal(report().foreign_count, 0);
	ll_claim_set_active(claim);
	wait_for(report().is_halted);
	assert_int_equal(report().foreign_sensor, LL_SENSOR_LEDGER);
	assert_stopped();
	assert_true(ll_pacer_free(pacer, DEADLINE_NS));
	ll_claim_release(claim);
	assert_int_equal(unlink(ll_ledger_path(ledger)), 0);
	ll_ledger_close(ledger);
	assert_int_equal(rmdir(folder), 0);
	start_open(LL_PACER_YIELDS); /* for the teardown */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(test_holds_the_ordered_share, stop),
	    cmocka_unit_test_teardown(test_yields_to_a_late_start_and_comes_back_on_order_only, stop),
	    cmocka_unit_test_teardown(test_yields_to_a_hole, stop),
	    cmocka_unit_test_teardown(test_a_slow_launch_call_is_no_stranger, stop),
	    cmocka_unit_test_teardown(test_steps_back_and_goes_on_in_fill, stop),
	    cmocka_unit_test_teardown(test_ignore_does_not_look, stop),
	    cmocka_unit_test_teardown(test_an_order_that_is_not_renewed_expires, stop),
	    cmocka_unit_test_teardown(test_a_lost_context_is_reported_and_can_be_made_again, stop),
	    cmocka_unit_test_teardown(test_a_kernel_that_never_ends_means_a_lost_context, stop),
	    cmocka_unit_test_teardown(test_a_refused_context_is_reported, stop),
	    cmocka_unit_test_teardown(test_the_governor_is_woken, stop),
	    cmocka_unit_test_teardown(test_a_governed_program_stops_it_through_the_ledger, stop),
	    cmocka_unit_test(test_a_hanging_driver_does_not_hang_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
