#include "timing_setup.h"

#include <inttypes.h>

#include "shim/time/gate.h"

#define HARVEST_NS (100 * US)
#define AGENT_NS MS
#define FAR_NS (4 * MS)

struct ll_timing *timing;
uint64_t charged_ns, launches;
bool are_events_slow, is_cap_far;

static uint64_t harvested_ns, agent_ns;
static struct ll_prepaid prepaid; /* launches that are counted and not made yet */

static void charge(void *of, const struct ll_timing_stretch *stretch)
{
	(void)of;
	assert_true(stretch->fresh_ns <= stretch->end_ns - stretch->start_ns);
	charged_ns += stretch->fresh_ns;
}

void begin_program_by(struct ll_timing_lock *lock, int drift_ppm)
{
	model_reset(drift_ppm);
	if (are_events_slow)
		model_slow_events();
	timing = ll_timing_new(lock, charge, NULL);
	assert_non_null(timing);
	charged_ns = launches = harvested_ns = agent_ns = 0;
	is_cap_far = false;
	prepaid = (struct ll_prepaid){0};
}

void begin_program(int drift_ppm)
{
	begin_program_by(NULL, drift_ppm);
}

void begin_program_far_from_its_cap(void)
{
	begin_program(0);
	is_cap_far = true;
	ll_timing_set_every(timing, FAR_NS);
}

static void take_back(void)
{
	uint32_t left = ll_prepaid_return(&prepaid);
	if (left)
		ll_timing_uncount(timing, prepaid.what.stream, prepaid.what.kernel_key, left);
}

static bool count(struct ll_timing_stream name, uint64_t kind)
{
	struct ll_prepaid_kernel what = {.stream = name, .kernel_key = kind};
	if (ll_prepaid_use(&prepaid, &what))
		return true;
	take_back();
	uint32_t most = ll_prepaid_is_like_last(&prepaid, &what) ? 1 + LL_PREPAID_MOST : 1;
	uint64_t counted = ll_timing_count(timing, name, kind, ll_now_ns(), most).launches;
	if (counted > 1)
		ll_prepaid_give(&prepaid, &what, (uint32_t)counted - 1);
	return counted;
}

void tend(void)
{
	uint64_t now_ns = ll_now_ns();
	if (now_ns - agent_ns >= (is_cap_far ? FAR_NS : AGENT_NS)) {
		agent_ns = now_ns;
		take_back();
		ll_timing_close_tails(timing, false);
		ll_timing_leave_tails(timing);
	}
	if (now_ns - harvested_ns >= (is_cap_far ? FAR_NS : HARVEST_NS)) {
		harvested_ns = now_ns;
		take_back();
		ll_timing_harvest(timing);
	}
}

void do_in(struct ll_timing_stream name, uint64_t kind, uint64_t ns,
	   void (*work)(struct ll_cu_stream *stream, uint64_t ns, uint64_t call_ns))
{
	tend();
	bool is_counted = count(name, kind);
	if (!is_counted)
		ll_timing_begin(timing, name, kind);
	work(name.handle, ns, LAUNCH_NS);
	if (!is_counted)
		ll_timing_end(timing, name, kind, ll_now_ns());
	launches++;
}

void launch_in(struct ll_timing_stream name, uint64_t kind, uint64_t kernel_ns)
{
	do_in(name, kind, kernel_ns, model_launch);
}

void launch(unsigned stream, uint64_t kind, uint64_t kernel_ns)
{
	launch_in((struct ll_timing_stream){.handle = STREAM(stream)}, kind, kernel_ns);
}

void pause_ns(uint64_t ns)
{
	for (uint64_t done_ns = 0; done_ns < ns; done_ns += AGENT_NS) {
		model_spend(ns - done_ns < AGENT_NS ? ns - done_ns : AGENT_NS);
		tend();
	}
}

void assert_account_within(unsigned permille)
{
	for (unsigned i = 0; i < 8; i++) {
		model_wait(STREAM(1));
		model_wait(STREAM(2));
		pause_ns(2 * MS);
	}
	assert_false(ll_timing_is_blind(timing));
	assert_true(ll_timing_is_idle(timing));
	double ratio = (double)charged_ns / (double)model_busy_ns();
	if (ratio < 1 - permille / 1e3 || ratio > 1 + permille / 1e3)
		fail_msg("account %.3f ms, card %.3f ms: %.4f", (double)charged_ns / 1e6, (double)model_busy_ns() / 1e6,
			 ratio);
	ll_timing_free(timing, true);
}

void assert_calls_within(unsigned percent)
{
	if (model_calls() > launches * percent / 100)
		fail_msg("%" PRIu64 " calls for %" PRIu64 " launches", model_calls(), launches);
}

int run_with_both_events(int argc, char **argv)
{
	if (tests_are_listed(argc, argv))
		return 0;
	int failed = tests_run_group("events of 2.1 us", NULL, NULL, NULL);
	are_events_slow = true;
	return failed + tests_run_group("events of 2.9 us", NULL, NULL, NULL);
}
