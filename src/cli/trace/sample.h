/*
 * sample.h - samples in /proc what the host does while the command runs.
 *
 * A look reads the state of the threads of the command and all its descendants. If a thread is running or ready to run,
 * the host computes. If none is, and one is in state D, the host waits for I/O. Otherwise all threads are asleep. A
 * look costs some 5 us for each thread, and ends at the first running thread. Looks come every LL_SAMPLE_EVERY_NS, or
 * less often if they would take more than a fiftieth of one core.
 */
#ifndef LOADLINE_CLI_TRACE_SAMPLE_H
#define LOADLINE_CLI_TRACE_SAMPLE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/clock.h"
#include "rules/share/spans.h"

#define LL_SAMPLE_EVERY_NS (10 * LL_NS_PER_MS)

struct ll_sampler {
	pid_t root;
	pid_t *tree; /* the root and its descendants, as of listed_ns */
	size_t count, room;
	uint64_t listed_ns;
	uint64_t looked_ns; /* time of the last look; 0: none yet */
	uint64_t next_ns;   /* when the next look is due */
	struct ll_spans host, io;
};

void ll_sampler_init(struct ll_sampler *sampler, pid_t root);
void ll_sampler_fini(struct ll_sampler *sampler);

/* Looks once. The result counts for the time since the last look. */
void ll_sampler_look(struct ll_sampler *sampler);

/* Whether the process lives and is not a zombie. */
bool ll_sampler_is_alive(pid_t pid);

#endif
