/*
 * idle.h - why a card was idle: a window of time, split by what was going on.
 *
 * The card is busy while a kernel runs, as NVML counts it (memsets and copies on the card are kernels of the driver);
 * the part of it in which nothing but communication kernels ran is told apart, for these wait for others while they
 * run. The rest of the window goes, moment by moment, to the first of these that was the case:
 *
 *     copies    a copy between host and card ran
 *     gate      a launch waited for its turn, its share or room in the queue (`loadline run`)
 *     host      a thread of the program was running on a CPU
 *     io        none was, and one waited for a disk or the like (state D)
 *     waiting   all were asleep: for the network, a timer, each other
 *
 * So the parts of a window add up to the window.
 */
#ifndef LOADLINE_CONTROL_IDLE_H
#define LOADLINE_CONTROL_IDLE_H

#include "control/spans.h"

struct ll_idle_view {
	uint64_t start_ns, end_ns;
	/* Settled. What lies outside the window does not count. */
	const struct ll_spans *kernels;       /* all of them */
	const struct ll_spans *communication; /* those that communicate */
	const struct ll_spans *computation;   /* those that do not */
	const struct ll_spans *copies, *gate, *host, *io;
};

struct ll_idle_split {
	uint64_t window_ns;
	uint64_t busy_ns;
	uint64_t communication_ns; /* of busy: nothing else ran */
	uint64_t copies_ns, gate_ns, host_ns, io_ns, waiting_ns;
};

/* False: memory ran out. */
bool ll_idle_make_split(const struct ll_idle_view *view, struct ll_idle_split *ret_split);

#endif
