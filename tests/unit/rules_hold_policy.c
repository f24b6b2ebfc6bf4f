#include "rules_policy_world.h"

TEST_EACH(begin, NULL);

TEST(starts_at_once_on_a_quiet_card)
{
	tick();
	assert_int_equal(verdict.action, LL_HOLD_ACT_REOPEN);
	assert_int_equal(verdict.state, LL_HOLD_OPENING);
	tick();
	assert_int_equal(verdict.action, LL_HOLD_ACT_NONE);
	assert_between(wait_for(LL_HOLD_HOLDING, 1000), 0, 120);
	assert_int_equal(verdict.action, LL_HOLD_ACT_START);
	assert_int_equal(verdict.reason, LL_HOLD_REASON_QUIET);
	pass_ms(60000);
	assert_int_equal(verdict.state, LL_HOLD_HOLDING);
	assert_int_equal(counts[LL_HOLD_ACT_START], 1);
	assert_int_equal(counts[LL_HOLD_ACT_REOPEN], 1);
	assert_int_equal(counts[LL_HOLD_ACT_STOP], 0);
}

TEST(does_not_start_beside_foreign_work)
{
	is_foreign = true;
	pass_ms(3000);
	assert_int_equal(verdict.state, LL_HOLD_RELEASED);
	assert_int_equal(verdict.reason, LL_HOLD_REASON_FOREIGN);
	assert_int_equal(verdict.sensor, LL_SENSOR_GAP);
	is_foreign = false;
	assert_between(wait_for(LL_HOLD_HOLDING, 6000), 4900, 5200);
}

TEST(foreign_work_while_opening_keeps_it_yielded)
{
	tick();
	is_foreign = true;
	assert_between(wait_for(LL_HOLD_YIELDED, 1000), 0, 150);
	assert_int_equal(verdict.action, LL_HOLD_ACT_NONE);
	assert_int_equal(counts[LL_HOLD_ACT_START], 0);
	is_foreign = false;
	wait_for(LL_HOLD_HOLDING, 6000);
}

TEST(yields_in_the_tick_that_sees_foreign_work)
{
	wait_for(LL_HOLD_HOLDING, 1000);
	pass_ms(1000);
	is_foreign = true;
	tick();
	assert_int_equal(verdict.action, LL_HOLD_ACT_STOP);
	assert_int_equal(verdict.state, LL_HOLD_YIELDED);
	assert_int_equal(verdict.reason, LL_HOLD_REASON_FOREIGN);
	assert_int_equal(verdict.sensor, LL_SENSOR_GAP);
	tick();
	assert_int_equal(verdict.action, LL_HOLD_ACT_NONE);
}

TEST(yields_to_evidence_older_than_resume_after)
{
	config.resume_after_ns = 100 * MS;
	restart();
	wait_for(LL_HOLD_HOLDING, 1000);
	/* A reading tells late of a window that ended 300 ms ago. */
	input.foreign_seen_ns = input.now_ns - 300 * MS;
	input.foreign_sensor = LL_SENSOR_UTIL;
	tick();
	assert_int_equal(verdict.action, LL_HOLD_ACT_STOP);
	assert_int_equal(verdict.sensor, LL_SENSOR_UTIL);
	wait_for(LL_HOLD_HOLDING, 200);
}

TEST(resumes_after_quiet_counted_from_the_last_foreign_work)
{
	wait_for(LL_HOLD_HOLDING, 1000);
	is_foreign = true;
	pass_ms(20000);
	is_foreign = false;
	pass_ms(4900);
	assert_int_equal(verdict.state, LL_HOLD_YIELDED);
	is_foreign = true;
	tick();
	is_foreign = false;
	assert_between(wait_for(LL_HOLD_HOLDING, 6000), 4900, 5100);
	assert_int_equal(verdict.action, LL_HOLD_ACT_START);
	assert_int_equal(counts[LL_HOLD_ACT_STOP], 1);
	assert_int_equal(counts[LL_HOLD_ACT_REOPEN], 1);
}

TEST(quiet_counts_only_as_far_as_somebody_has_looked)
{
	config.has_idle_target = true;
	config.idle_after_ns = 3000 * MS;
	restart();
	wait_for(LL_HOLD_HOLDING, 1000);
	is_foreign = true;
	tick();
	is_foreign = false;
	input.looked_until_ns = input.foreign_seen_ns + 1000 * MS;
	pass_ms(20000);
	assert_int_equal(verdict.state, LL_HOLD_YIELDED);
	assert_false(verdict.is_idle_target);
	/* The look comes late, but what it tells counts from where it is. */
	input.looked_until_ns = input.foreign_seen_ns + config.resume_after_ns;
	tick();
	assert_int_equal(verdict.action, LL_HOLD_ACT_START);
	assert_true(verdict.is_idle_target);
}

TEST(looks_that_come_seldom_delay_no_resume)
{
	wait_for(LL_HOLD_HOLDING, 1000);
	is_foreign = true;
	tick();
	is_foreign = false;
	uint64_t since_ns = input.foreign_seen_ns;
	input.looked_until_ns = since_ns;
	pass_ms(4900);
	input.looked_until_ns = since_ns + config.resume_after_ns;
	assert_between(wait_for(LL_HOLD_HOLDING, 200), 100, 200);
}

/* Ticks only when the verdict says, until the action comes; returns the time since `since`. */
static double ms_until(enum ll_hold_action action, uint64_t since)
{
	for (int i = 0; i < 100; i++) {
		input.now_ns = verdict.next_ns - TICK_MS * MS;
		tick();
		if (verdict.action == action)
			return (double)(input.now_ns - since) / (double)MS;
	}
	fail_msg("no action %d, state is %s", (int)action, ll_hold_state_name(verdict.state));
	return 0.0;
}

TEST(ticking_when_told_misses_no_timer)
{
	config.resume_after_ns = 3700 * MS;
	config.back_off_ns = 6300 * MS;
	restart();
	wait_for(LL_HOLD_HOLDING, 1000);
	is_foreign = true;
	tick();
	is_foreign = false;
	assert_near(ms_until(LL_HOLD_ACT_START, input.now_ns), 3700.0, 0.0);

	input.is_slowdown = true;
	tick();
	input.is_slowdown = false;
	assert_near(ms_until(LL_HOLD_ACT_START, input.now_ns), 6300.0, 0.0);

	input.is_open = false;
	tick();
	assert_near(ms_until(LL_HOLD_ACT_REOPEN, input.now_ns), 6300.0, 0.0);

	begin(NULL);
	config.release_after_ns = 4300 * MS;
	config.resume_after_ns = UINT64_MAX;
	restart();
	wait_for(LL_HOLD_HOLDING, 1000);
	is_foreign = true;
	tick();
	assert_near(ms_until(LL_HOLD_ACT_RELEASE, input.now_ns), 4300.0, 0.0);

	begin(NULL);
	config.has_kernel_sensor = false;
	config.blind_after_ns = 3900 * MS;
	restart();
	wait_for(LL_HOLD_HOLDING, 1000);
	has_nvml = false;
	assert_near(ms_until(LL_HOLD_ACT_STOP, input.now_ns), 3900.0, 0.001);

	begin(NULL);
	config.has_idle_target = true;
	config.idle_after_ns = 7700 * MS;
	restart();
	tick();
	uint64_t since = input.now_ns;
	while (!verdict.is_idle_target) {
		input.now_ns = verdict.next_ns - TICK_MS * MS;
		tick();
	}
	assert_true(input.now_ns == since + 7700 * MS);
}

TEST(releases_after_a_long_yield_and_reopens)
{
	config.release_after_ns = 10 * S;
	restart();
	wait_for(LL_HOLD_HOLDING, 1000);
	is_foreign = true;
	tick();
	assert_between(wait_for(LL_HOLD_RELEASED, 20000), 9900, 10100);
	assert_int_equal(verdict.action, LL_HOLD_ACT_RELEASE);
	assert_int_equal(verdict.reason, LL_HOLD_REASON_LONG_YIELD);
	pass_ms(10000);
	assert_int_equal(counts[LL_HOLD_ACT_RELEASE], 1);
	assert_int_equal(verdict.reason, LL_HOLD_REASON_LONG_YIELD);
	is_foreign = false;
	wait_for(LL_HOLD_OPENING, 6000);
	assert_int_equal(verdict.action, LL_HOLD_ACT_REOPEN);
	wait_for(LL_HOLD_HOLDING, 1000);
	assert_int_equal(counts[LL_HOLD_ACT_REOPEN], 2);
}

TEST(release_timer_starts_anew_with_each_yield)
{
	config.release_after_ns = 10 * S;
	restart();
	wait_for(LL_HOLD_HOLDING, 1000);
	for (int i = 0; i < 3; i++) {
		is_foreign = true;
		pass_ms(4000);
		is_foreign = false;
		wait_for(LL_HOLD_HOLDING, 6000);
	}
	assert_int_equal(counts[LL_HOLD_ACT_RELEASE], 0);
	assert_int_equal(counts[LL_HOLD_ACT_STOP], 3);
}

TEST(release_after_0_is_never)
{
	wait_for(LL_HOLD_HOLDING, 1000);
	is_foreign = true;
	pass_ms(3600 * 1000);
	assert_int_equal(verdict.state, LL_HOLD_YIELDED);
	assert_int_equal(counts[LL_HOLD_ACT_RELEASE], 0);
}

TEST(fill_and_ignore_hold_beside_foreign_work)
{
	static const enum ll_hold_mode modes[] = {LL_HOLD_MODE_FILL, LL_HOLD_MODE_IGNORE};
	for (int i = 0; i < 2; i++) {
		begin(NULL);
		config.mode = modes[i];
		restart();
		is_foreign = true;
		wait_for(LL_HOLD_HOLDING, 1000);
		pass_ms(10000);
		assert_int_equal(verdict.state, LL_HOLD_HOLDING);
		assert_int_equal(counts[LL_HOLD_ACT_STOP], 0);
	}
}

TEST(idle_target_comes_after_idle_after_and_goes_with_foreign_work)
{
	config.has_idle_target = true;
	config.idle_target = 0.6;
	config.idle_after_ns = 600 * S;
	restart();
	wait_for(LL_HOLD_HOLDING, 1000);
	pass_ms(599 * 1000);
	assert_false(verdict.is_idle_target);
	assert_near(verdict.target, 0.5, 0.0);
	pass_ms(1000);
	assert_true(verdict.is_idle_target);
	assert_near(verdict.target, 0.6, 0.0);
	is_foreign = true;
	tick();
	is_foreign = false;
	assert_false(verdict.is_idle_target);
	assert_near(verdict.target, 0.5, 0.0);
	wait_for(LL_HOLD_HOLDING, 6000);
	pass_ms(594 * 1000);
	assert_false(verdict.is_idle_target);
	pass_ms(2000);
	assert_true(verdict.is_idle_target);
}

TEST(without_an_idle_target_there_is_none)
{
	config.idle_target = 0.6;
	config.idle_after_ns = S;
	restart();
	pass_ms(10000);
	assert_false(verdict.is_idle_target);
	assert_near(verdict.target, 0.5, 0.0);
}

TEST(sleep_restarts_every_timer)
{
	config.has_idle_target = true;
	config.idle_target = 0.6;
	config.idle_after_ns = 600 * S;
	config.release_after_ns = 20 * S;
	restart();
	wait_for(LL_HOLD_HOLDING, 1000);
	is_foreign = true;
	tick();
	is_foreign = false;
	pass_ms(1000);
	/* An hour goes by between two ticks: it is not an hour of quiet, nor of yielding, nor of idling. */
	input.now_ns += 3600 * S;
	tick();
	assert_int_equal(verdict.action, LL_HOLD_ACT_NONE);
	assert_int_equal(verdict.state, LL_HOLD_YIELDED);
	assert_false(verdict.is_idle_target);
	assert_between(wait_for(LL_HOLD_HOLDING, 6000), 4900, 5100);
	pass_ms(590 * 1000);
	assert_false(verdict.is_idle_target);
	/* The clock stood still while the machine slept: the caller says so. */
	input.has_slept = true;
	tick();
	input.has_slept = false;
	assert_int_equal(verdict.state, LL_HOLD_HOLDING);
	pass_ms(590 * 1000);
	assert_false(verdict.is_idle_target);
	pass_ms(11 * 1000);
	assert_true(verdict.is_idle_target);
}

TEST(sleep_gives_blind_readings_and_heat_their_full_time)
{
	config.has_kernel_sensor = false;
	restart();
	wait_for(LL_HOLD_HOLDING, 1000);
	has_nvml = false;
	pass_ms(1000);
	input.now_ns += 3600 * S;
	pass_ms(4000);
	assert_int_equal(verdict.state, LL_HOLD_HOLDING);
	pass_ms(2000);
	assert_int_equal(verdict.state, LL_HOLD_YIELDED);

	begin(NULL);
	wait_for(LL_HOLD_HOLDING, 1000);
	input.temperature_c = 90.0;
	tick();
	input.temperature_c = 50.0;
	pass_ms(1000);
	input.now_ns += 3600 * S;
	assert_between(wait_for(LL_HOLD_HOLDING, 40000), 29900, 30100);
}

TEST(clock_that_steps_back_changes_nothing)
{
	wait_for(LL_HOLD_HOLDING, 1000);
	is_foreign = true;
	tick();
	is_foreign = false;
	uint64_t now = input.now_ns;
	input.now_ns -= 3600 * S;
	tick();
	assert_int_equal(verdict.state, LL_HOLD_YIELDED);
	input.now_ns = now;
	assert_between(wait_for(LL_HOLD_HOLDING, 6000), 4900, 5100);
}

TEST(evidence_from_the_future_counts_as_now)
{
	wait_for(LL_HOLD_HOLDING, 1000);
	input.foreign_seen_ns = input.now_ns + 3600 * S;
	tick();
	assert_int_equal(verdict.state, LL_HOLD_YIELDED);
	input.foreign_seen_ns = input.now_ns;
	assert_between(wait_for(LL_HOLD_HOLDING, 6000), 4900, 5100);
}

/* Whatever happens in whatever order, actions fit the states. */
TEST(actions_never_contradict_the_state)
{
	for (uint64_t round = 1; round <= 300; round++) {
		uint64_t seed = round * 7919;
		begin(NULL);
		config.mode = (enum ll_hold_mode)(round % 3);
		config.has_kernel_sensor = round % 2;
		config.release_after_ns = round % 5 ? 3 * S : 0;
		config.resume_after_ns = 300 * MS;
		config.back_off_ns = S;
		restart();
		bool is_running = false;
		for (int i = 0; i < 3000; i++) {
			double dice = plant_uniform(&seed);
			if (dice < 0.01)
				is_foreign = !is_foreign;
			else if (dice < 0.015)
				has_nvml = !has_nvml;
			else if (dice < 0.02)
				input.temperature_c = input.temperature_c > 60.0 ? 40.0 : 90.0;
			else if (dice < 0.022)
				can_open = !can_open;
			else if (dice < 0.023)
				input.is_open = false;
			else if (dice < 0.0235)
				input.now_ns += 10 * S;
			input.is_end_requested = i >= 2900;
			bool was_open = input.is_open;
			tick();
			if (verdict.action == LL_HOLD_ACT_START) {
				assert_true(!is_running && input.is_open && !input.is_end_requested);
				is_running = true;
			} else if (verdict.action == LL_HOLD_ACT_STOP) {
				assert_true(is_running);
				is_running = false;
			} else if (verdict.action == LL_HOLD_ACT_RELEASE) {
				is_running = false;
			} else if (verdict.action == LL_HOLD_ACT_REOPEN) {
				assert_true(!was_open && !is_running);
			}
			assert_int_equal(is_running, verdict.state == LL_HOLD_HOLDING);
			if (is_running && config.mode == LL_HOLD_MODE_YIELD)
				assert_false(is_foreign);
			if (is_running)
				assert_true(input.temperature_c < 85.0);
		}
		assert_int_equal(verdict.state, LL_HOLD_ENDED);
		assert_false(input.is_open);
	}
}

TEST(everything_has_a_name)
{
	for (int i = 0; i <= LL_HOLD_REASON_REQUEST; i++)
		assert_non_null(ll_hold_reason_text((enum ll_hold_reason)i));
	for (int i = 0; i <= LL_SENSOR_UTIL; i++)
		assert_non_null(ll_hold_sensor_name((enum ll_hold_sensor)i));
	for (int i = 0; i <= LL_HOLD_ENDED; i++)
		assert_non_null(ll_hold_state_name((enum ll_hold_state)i));
	assert_string_equal(ll_hold_state_name(LL_HOLD_YIELDED), "yielded");
	assert_string_equal(ll_hold_sensor_name(LL_SENSOR_UTIL), "util");
}
