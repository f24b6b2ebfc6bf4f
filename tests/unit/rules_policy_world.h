/*
 * rules_policy_world.h - what the tests of hold_policy.h share: a card and a caller that ticks.
 */
#ifndef LOADLINE_TESTS_UNIT_RULES_POLICY_WORLD_H
#define LOADLINE_TESTS_UNIT_RULES_POLICY_WORLD_H

#include <stdbool.h>

#include "rules/hold/hold_policy.h"
#include "rules_plant.h"

/*
 * A card and a caller that ticks every 10 ms and does at once what the verdict says. Foreign work, heat and the rest
 * are switched by the tests.
 */
static struct ll_hold_policy policy;
static struct ll_hold_policy_config config;
static struct ll_hold_input input;
static struct ll_hold_verdict verdict;
static bool is_foreign;
static bool has_nvml;
static bool can_open;
static unsigned opening_ms;
static uint64_t open_at_ns;
static unsigned counts[LL_HOLD_ACT_REOPEN + 1];

enum { TICK_MS = 10 };

static __attribute__((unused)) int begin(void **state)
{
	(void)state;
	config = (struct ll_hold_policy_config){
	    .mode = LL_HOLD_MODE_YIELD,
	    .resume_after_ns = 5 * S,
	    .has_kernel_sensor = true,
	    .max_temperature_c = 85.0,
	    .target = 0.5,
	};
	input = (struct ll_hold_input){.now_ns = 100000 * S, .temperature_c = 40.0};
	is_foreign = false;
	has_nvml = true;
	can_open = true;
	opening_ms = 100;
	open_at_ns = 0;
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		counts[i] = 0;
	ll_hold_policy_init(&policy, &config);
	return 0;
}

static __attribute__((unused)) void restart(void)
{
	ll_hold_policy_init(&policy, &config);
}

static __attribute__((unused)) void act(void)
{
	counts[verdict.action]++;
	if (verdict.action == LL_HOLD_ACT_REOPEN)
		open_at_ns = input.now_ns + opening_ms * MS;
	if (verdict.action == LL_HOLD_ACT_RELEASE)
		input.is_open = false;
}

static __attribute__((unused)) void tick(void)
{
	input.now_ns += TICK_MS * MS;
	input.has_open_failed = false;
	if (open_at_ns != 0 && input.now_ns >= open_at_ns) {
		input.is_open = can_open;
		input.has_open_failed = !can_open;
		open_at_ns = 0;
	}
	if (has_nvml)
		input.readings_seen_ns = input.now_ns;
	if (is_foreign) {
		input.foreign_seen_ns = input.now_ns;
		input.foreign_sensor = LL_SENSOR_GAP;
	}
	ll_hold_policy_tick(&policy, &input, &verdict);
	assert_true(verdict.next_ns > input.now_ns);
	act();
}

static __attribute__((unused)) void pass_ms(unsigned ms)
{
	for (unsigned t = 0; t < ms; t += TICK_MS)
		tick();
}

/* Ticks until the state is there; returns the milliseconds it took. */
static __attribute__((unused)) unsigned wait_for(enum ll_hold_state state, unsigned limit_ms)
{
	unsigned ms = 0;
	while (verdict.state != state || ms == 0) {
		if (ms > limit_ms)
			fail_msg("state is %s (%s), not %s after %u ms", ll_hold_state_name(verdict.state),
				 ll_hold_reason_text(verdict.reason), ll_hold_state_name(state), limit_ms);
		tick();
		ms += TICK_MS;
	}
	return ms;
}

#endif
