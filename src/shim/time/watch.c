#include "shim/time/flow_state.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

static struct ll_timing_running find_longest(struct ll_flow *flow, uint64_t now_ns)
{
	struct ll_timing_running longest = {0};
	for (struct ll_flow_context *context = flow->contexts; context; context = context->next) {
		struct ll_timing_running running;
		ll_timing_longest(context->timing, now_ns, &running);
		if (running.ns > longest.ns)
			longest = running;
	}
	return longest;
}

/* Returns ns without the time slices of other programs in it. */
static uint64_t own_ns(struct ll_flow *flow, uint64_t ns, uint64_t now_ns)
{
	uint64_t since_ns = now_ns - ns;
	if (since_ns != flow->watched_since_ns) {
		flow->watched_since_ns = since_ns;
		flow->watched_others_ns = flow->slices.others_ns;
	}
	uint64_t others_ns = flow->slices.others_ns - flow->watched_others_ns;
	return ns > others_ns ? ns - others_ns : 0;
}

/* Writes the claim's note if it has changed. A long kernel's note changes once a second. */
static void set_note(struct ll_flow *flow, const char *text)
{
	if (strcmp(flow->note, text) == 0)
		return;
	snprintf(flow->note, sizeof flow->note, "%s", text);
	ll_port_set_note(flow->claim, text);
}

static void note_long_kernel(struct ll_flow *flow, const struct ll_timing_running *running)
{
	char text[sizeof flow->note];
	unsigned long long seconds = running->ns / LL_NS_PER_S;
	if (running->launches > 1)
		snprintf(text, sizeof text, "%u launches run for %llu s", (unsigned)running->launches, seconds);
	else
		snprintf(text, sizeof text, "kernel runs for %llu s", seconds);
	set_note(flow, text);
}

/* The first process of a PID namespace cannot end itself by a signal, so this also calls _exit. */
static void end_program(void)
{
	kill(getpid(), SIGKILL);
	_exit(128 + SIGKILL);
}

void ll_watch_kernels(struct ll_flow *flow, uint64_t now_ns)
{
	if (flow->is_blind) {
		set_note(flow, "its work cannot be timed");
		return;
	}
	struct ll_timing_running running = {0};
	if (flow->max_kernel_ns)
		running = find_longest(flow, now_ns);
	if (running.ns)
		running.ns = own_ns(flow, running.ns, now_ns);
	if (running.ns <= flow->max_kernel_ns) {
		set_note(flow, "");
		return;
	}
	note_long_kernel(flow, &running);
	/* The longest of several launches lasts at least as long as their mean. So it exceeds the limit if the mean
	 * does. */
	if (flow->kills_at_max_kernel && running.ns / running.launches > flow->max_kernel_ns)
		end_program();
}
