/*
 * herd.h - processes of one job that reserve and give back memory without end, and the job's pages, as a hold has them.
 */
#ifndef LOADLINE_TESTS_DAEMON_HERD_H
#define LOADLINE_TESTS_DAEMON_HERD_H

#include <stdatomic.h>

#include "user.h"

struct herd_counts {
	atomic_ulong reserved, refused;
};

struct herd {
	const struct world *world;
	struct job job;
	uint32_t limit; /* units; the world's limit when the job started */
	struct ll_page *page;
	struct ll_orders *orders;
	struct herd_counts *counts; /* shared by all its processes */
	uint64_t most;              /* units that were seen in use */
};

/* Starts the job, and maps its pages. */
void herd_start(struct herd *herd, const struct world *world, uint32_t limit);

/* Ends the job. Its processes have ended. */
void herd_stop(struct herd *herd);

/* Forks a process that reserves, at most so many units at once, so many times; then it gives all back and ends. */
pid_t herd_fork(const struct herd *herd, uint32_t units, unsigned times);

/* What the slots use, and what is leaving. */
uint64_t herd_used(const struct herd *herd);

/* Fails the test if more than the limit is used. The processes stand still, and the daemon need not. */
void herd_check(struct herd *herd);

/* Stops the process, and waits until it stands. False: it has ended, and has been waited for. */
bool herd_stop_process(pid_t pid);

#endif
