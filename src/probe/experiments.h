/*
 * experiments.h - what is measured besides the matrix: the time slice and the switch between contexts, how long a
 * kernel waits while another one fills the card, and what an idle context costs.
 *
 * Each experiment has processes of its own, without MPS, and takes every value from the card's clock. Each run gives
 * one value, and a spread is over the runs.
 */
#ifndef LOADLINE_PROBE_EXPERIMENTS_H
#define LOADLINE_PROBE_EXPERIMENTS_H

#include "probe/measure.h"

/* Two processes run a kernel each that is several slices long. A run's slice is the median of its complete slices. */
struct ll_probe_slicing {
	bool is_known;
	char why[LL_PROBE_WHY_SIZE]; /* why it is not known */
	size_t runs;                 /* slice_ns.count of them were cut into slices */
	struct ll_spread slice_ns;   /* time on the card between two switches */
	struct ll_spread switch_ns;  /* from the end of one context's time to the start of the other's */
	struct ll_spread lost;       /* the part of the time in which neither ran, 0 to 1 */
};

/* A kernel arrives while another one fills the card (orders.h). */
struct ll_probe_arrival {
	bool is_known;
	char why[LL_PROBE_WHY_SIZE];
	size_t runs;
	struct ll_spread high_wait_ns;  /* the arriving kernel has the highest priority, the other one the lowest */
	struct ll_spread equal_wait_ns; /* both have the same priority */
	struct ll_spread round_ns;      /* until the running blocks end by themselves */
};

struct ll_probe_idling {
	bool is_known;
	char why[LL_PROBE_WHY_SIZE];
	size_t runs;
	struct ll_spread alone_ns;  /* a row of kernels of a process alone */
	struct ll_spread beside_ns; /* the same while another process has an idle context */
	uint64_t memory_bytes;      /* that the idle context takes; 0: unknown */
};

/* Measure. An experiment that is not possible here is not known, and no error. -EINTR, -EIO, -ENOMEM. */
int ll_probe_slicing_measure(const struct ll_card *card, const struct ll_probe_host *host, size_t runs,
			     struct ll_probe_slicing *ret_slicing, struct ll_err *err);
int ll_probe_arrival_measure(const struct ll_card *card, const struct ll_probe_host *host, size_t runs,
			     struct ll_probe_arrival *ret_arrival, struct ll_err *err);
int ll_probe_idling_measure(const struct ll_card *card, const struct ll_probe_host *host, size_t runs,
			    struct ll_probe_idling *ret_idling, struct ll_err *err);

#endif
