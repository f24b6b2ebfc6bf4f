#include "rules_policy_world.h"

TEST_EACH(begin, NULL);

TEST(heat_stops_every_mode_and_hysteresis_and_back_off_bring_it_back)
{
	static const enum ll_hold_mode modes[] = {LL_HOLD_MODE_YIELD, LL_HOLD_MODE_FILL, LL_HOLD_MODE_IGNORE};
	for (int i = 0; i < 3; i++) {
		begin(NULL);
		config.mode = modes[i];
		restart();
		wait_for(LL_HOLD_HOLDING, 1000);
		input.temperature_c = 84.9;
		pass_ms(1000);
		assert_int_equal(verdict.state, LL_HOLD_HOLDING);
		input.temperature_c = 85.0;
		tick();
		assert_int_equal(verdict.action, LL_HOLD_ACT_STOP);
		assert_int_equal(verdict.reason, LL_HOLD_REASON_TOO_HOT);
		input.temperature_c = 81.0;
		pass_ms(100000);
		assert_int_equal(verdict.state, LL_HOLD_YIELDED);
		input.temperature_c = (double)NAN;
		pass_ms(100000);
		assert_int_equal(verdict.state, LL_HOLD_YIELDED);
		input.temperature_c = 80.0;
		assert_between(wait_for(LL_HOLD_HOLDING, 40000), 29900, 30100);
	}
}

TEST(heat_keeps_it_from_starting)
{
	input.temperature_c = 90.0;
	pass_ms(10000);
	assert_int_equal(verdict.state, LL_HOLD_RELEASED);
	assert_int_equal(verdict.reason, LL_HOLD_REASON_TOO_HOT);
	assert_int_equal(counts[LL_HOLD_ACT_REOPEN], 0);
}

TEST(temperature_is_not_watched_without_a_limit)
{
	config.max_temperature_c = 0.0;
	restart();
	input.temperature_c = 120.0;
	wait_for(LL_HOLD_HOLDING, 1000);
}

TEST(slowdown_backs_off)
{
	wait_for(LL_HOLD_HOLDING, 1000);
	input.is_slowdown = true;
	tick();
	assert_int_equal(verdict.action, LL_HOLD_ACT_STOP);
	assert_int_equal(verdict.reason, LL_HOLD_REASON_SLOWDOWN);
	pass_ms(5000);
	input.is_slowdown = false;
	assert_between(wait_for(LL_HOLD_HOLDING, 40000), 29900, 30100);
}

TEST(blind_load_stops_after_5_s_and_goes_on_when_it_sees)
{
	config.has_kernel_sensor = false;
	restart();
	wait_for(LL_HOLD_HOLDING, 1000);
	has_nvml = false;
	assert_between(wait_for(LL_HOLD_YIELDED, 10000), 4900, 5100);
	assert_int_equal(verdict.action, LL_HOLD_ACT_STOP);
	assert_int_equal(verdict.reason, LL_HOLD_REASON_BLIND);
	pass_ms(60000);
	assert_int_equal(verdict.state, LL_HOLD_YIELDED);
	has_nvml = true;
	wait_for(LL_HOLD_HOLDING, 100);
}

TEST(blind_load_does_not_start)
{
	config.has_kernel_sensor = false;
	restart();
	has_nvml = false;
	pass_ms(2000);
	assert_int_equal(verdict.state, LL_HOLD_RELEASED);
	assert_int_equal(verdict.reason, LL_HOLD_REASON_BLIND);
	pass_ms(60000);
	assert_int_equal(counts[LL_HOLD_ACT_REOPEN], 0);
	has_nvml = true;
	wait_for(LL_HOLD_HOLDING, 1000);
}

TEST(readings_got_before_the_first_tick_count)
{
	config.has_kernel_sensor = false;
	restart();
	has_nvml = false;
	input.readings_seen_ns = input.now_ns - 100 * MS;
	tick();
	assert_int_equal(verdict.action, LL_HOLD_ACT_REOPEN);
}

TEST(own_kernels_are_sight_enough_to_yield_but_not_to_fill)
{
	has_nvml = false;
	wait_for(LL_HOLD_HOLDING, 1000);
	pass_ms(60000);
	assert_int_equal(verdict.state, LL_HOLD_HOLDING);
	is_foreign = true;
	tick();
	is_foreign = false;
	assert_int_equal(verdict.state, LL_HOLD_YIELDED);
	wait_for(LL_HOLD_HOLDING, 6000);

	begin(NULL);
	config.mode = LL_HOLD_MODE_FILL;
	restart();
	wait_for(LL_HOLD_HOLDING, 1000);
	has_nvml = false;
	assert_between(wait_for(LL_HOLD_YIELDED, 10000), 4900, 5100);
	assert_int_equal(verdict.reason, LL_HOLD_REASON_BLIND);
}

TEST(ignore_needs_no_sight)
{
	config.mode = LL_HOLD_MODE_IGNORE;
	config.has_kernel_sensor = false;
	restart();
	has_nvml = false;
	wait_for(LL_HOLD_HOLDING, 1000);
	pass_ms(60000);
	assert_int_equal(verdict.state, LL_HOLD_HOLDING);
}

TEST(lost_context_is_closed_and_tried_again_after_back_off)
{
	wait_for(LL_HOLD_HOLDING, 1000);
	input.is_open = false;
	tick();
	assert_int_equal(verdict.action, LL_HOLD_ACT_RELEASE);
	assert_int_equal(verdict.state, LL_HOLD_RELEASED);
	assert_int_equal(verdict.reason, LL_HOLD_REASON_LOST);
	can_open = false;
	assert_between(wait_for(LL_HOLD_OPENING, 40000), 29900, 30100);
	assert_between(wait_for(LL_HOLD_RELEASED, 1000), 0, 200);
	assert_int_equal(verdict.reason, LL_HOLD_REASON_OPEN_FAILED);
	assert_int_equal(verdict.action, LL_HOLD_ACT_NONE);
	can_open = true;
	assert_between(wait_for(LL_HOLD_HOLDING, 40000), 29900, 30300);
}

TEST(context_lost_for_another_cards_sake_is_made_again_at_once)
{
	wait_for(LL_HOLD_HOLDING, 1000);
	input.is_open = false;
	input.is_bystander = true;
	tick();
	assert_int_equal(verdict.action, LL_HOLD_ACT_RELEASE);
	assert_int_equal(verdict.reason, LL_HOLD_REASON_LOST);
	assert_between(wait_for(LL_HOLD_HOLDING, 1000), 0, 200);
}

TEST(context_not_made_for_another_cards_sake_is_tried_again_at_once)
{
	can_open = false;
	input.is_bystander = true;
	wait_for(LL_HOLD_OPENING, 1000);
	wait_for(LL_HOLD_RELEASED, 1000);
	assert_between(wait_for(LL_HOLD_OPENING, 1000), 0, 100);
}

TEST(bystander_backs_off_when_its_turn_comes_again_soon)
{
	input.is_bystander = true;
	wait_for(LL_HOLD_HOLDING, 1000);
	input.is_open = false;
	tick();
	wait_for(LL_HOLD_HOLDING, 1000);
	input.is_open = false;
	tick();
	assert_between(wait_for(LL_HOLD_OPENING, 40000), 29900, 30100);
	wait_for(LL_HOLD_HOLDING, 1000);
	input.is_open = false;
	tick();
	assert_between(wait_for(LL_HOLD_OPENING, 1000), 0, 100);
}

TEST(context_lost_while_yielded_is_closed_too)
{
	wait_for(LL_HOLD_HOLDING, 1000);
	is_foreign = true;
	tick();
	input.is_open = false;
	tick();
	assert_int_equal(verdict.action, LL_HOLD_ACT_RELEASE);
	assert_int_equal(verdict.reason, LL_HOLD_REASON_LOST);
}

TEST(request_ends_it_from_every_state)
{
	wait_for(LL_HOLD_HOLDING, 1000);
	input.is_end_requested = true;
	tick();
	assert_int_equal(verdict.action, LL_HOLD_ACT_STOP);
	assert_int_equal(verdict.state, LL_HOLD_ENDED);
	assert_int_equal(verdict.reason, LL_HOLD_REASON_REQUEST);
	tick();
	assert_int_equal(verdict.action, LL_HOLD_ACT_RELEASE);
	/* Closing takes a while: the context is still there, and is not closed twice. */
	input.is_open = true;
	pass_ms(60000);
	assert_int_equal(counts[LL_HOLD_ACT_RELEASE], 1);
	assert_int_equal(counts[LL_HOLD_ACT_REOPEN], 1);

	begin(NULL);
	wait_for(LL_HOLD_HOLDING, 1000);
	is_foreign = true;
	tick();
	input.is_end_requested = true;
	tick();
	assert_int_equal(verdict.action, LL_HOLD_ACT_RELEASE);
	assert_int_equal(verdict.state, LL_HOLD_ENDED);

	begin(NULL);
	tick();
	input.is_end_requested = true;
	tick();
	assert_int_equal(verdict.state, LL_HOLD_ENDED);
	assert_int_equal(verdict.action, LL_HOLD_ACT_NONE);
	pass_ms(1000);
	assert_int_equal(counts[LL_HOLD_ACT_RELEASE], 1);
	assert_int_equal(counts[LL_HOLD_ACT_START], 0);

	begin(NULL);
	input.is_end_requested = true;
	tick();
	assert_int_equal(verdict.state, LL_HOLD_ENDED);
	assert_int_equal(verdict.action, LL_HOLD_ACT_NONE);
}
