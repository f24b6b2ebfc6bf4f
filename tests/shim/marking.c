#include "marking.h"

#include <inttypes.h>

#include "shim/time/advance.h"

#define HARVEST_NS (100 * US)
#define AGENT_NS MS
#define FAR_NS (4 * MS)

struct ll_marks *marks;
uint64_t charged_ns, launches;
bool are_events_slow, is_cap_far;

static uint64_t harvested_ns, agent_ns;
static struct ll_advance advance; /* launches that are counted and not made yet */

static void charge(void *of, const struct ll_marks_stretch *stretch)
{
	(void)of;
	assert_true(stretch->fresh_ns <= stretch->end_ns - stretch->start_ns);
	charged_ns += stretch->fresh_ns;
}

void begin_program_by(struct ll_mark_lock *lock, int drift_ppm)
{
	model_reset(drift_ppm);
	if (are_events_slow)
		model_slow_events();
	marks = ll_marks_new(lock, charge, NULL);
	assert_non_null(marks);
	charged_ns = launches = harvested_ns = agent_ns = 0;
	is_cap_far = false;
	advance = (struct ll_advance){0};
}

void begin_program(int drift_ppm)
{
	begin_program_by(NULL, drift_ppm);
}

void begin_program_far_from_its_cap(void)
{
	begin_program(0);
	is_cap_far = true;
	ll_marks_set_every(marks, FAR_NS);
}

static void take_back(void)
{
	uint32_t left = ll_advance_take_back(&advance);
	if (left)
		ll_marks_uncount(marks, advance.what.stream, advance.what.kind, left);
}

static bool count(struct ll_mark_stream name, uint64_t kind)
{
	struct ll_advance_kind what = {.stream = name, .kind = kind};
	if (ll_advance_use(&advance, &what))
		return true;
	take_back();
	uint32_t most = ll_advance_is_like_last(&advance, &what) ? 1 + LL_ADVANCE_MOST : 1;
	uint64_t counted = ll_marks_count(marks, name, kind, ll_now_ns(), most).launches;
	if (counted > 1)
		ll_advance_give(&advance, &what, (uint32_t)counted - 1);
	return counted;
}

void tend(void)
{
	uint64_t now_ns = ll_now_ns();
	if (now_ns - agent_ns >= (is_cap_far ? FAR_NS : AGENT_NS)) {
		agent_ns = now_ns;
		take_back();
		ll_marks_close_tails(marks, false);
		ll_marks_leave_tails(marks);
	}
	if (now_ns - harvested_ns >= (is_cap_far ? FAR_NS : HARVEST_NS)) {
		harvested_ns = now_ns;
		take_back();
		ll_marks_harvest(marks);
	}
}

void do_in(struct ll_mark_stream name, uint64_t kind, uint64_t ns,
	   void (*work)(struct ll_cu_stream *stream, uint64_t ns, uint64_t call_ns))
{
	tend();
	bool is_counted = count(name, kind);
	if (!is_counted)
		ll_marks_begin(marks, name, kind);
	work(name.handle, ns, LAUNCH_NS);
	if (!is_counted)
		ll_marks_end(marks, name, kind, ll_now_ns());
	launches++;
}

void launch_in(struct ll_mark_stream name, uint64_t kind, uint64_t kernel_ns)
{
	do_in(name, kind, kernel_ns, model_launch);
}

void launch(unsigned stream, uint64_t kind, uint64_t kernel_ns)
{
	launch_in((struct ll_mark_stream){.handle = STREAM(stream)}, kind, kernel_ns);
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
	assert_false(ll_marks_is_blind(marks));
	assert_true(ll_marks_is_idle(marks));
	double ratio = (double)charged_ns / (double)model_busy_ns();
	if (ratio < 1 - permille / 1e3 || ratio > 1 + permille / 1e3)
		fail_msg("account %.3f ms, card %.3f ms: %.4f", (double)charged_ns / 1e6, (double)model_busy_ns() / 1e6,
			 ratio);
	ll_marks_free(marks, true);
}

void assert_calls_within(unsigned percent)
{
	if (model_calls() > launches * percent / 100)
		fail_msg("%" PRIu64 " calls for %" PRIu64 " launches", model_calls(), launches);
}
