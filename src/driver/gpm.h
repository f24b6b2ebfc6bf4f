/*
 * gpm.h - GPU performance monitoring: how busy the SMs are, not only whether anything runs.
 *
 * Works without root or DCGM from Hopper on, driver >= 520. A read takes a sample (0.1-0.7 ms) and gives the means
 * since the sample before. Windows under 100 ms read 0 or NaN (doc/facts.md), so such reads are refused. MIG slices
 * have it too.
 *
 * One thread at a time.
 */
#ifndef LOADLINE_DRIVER_GPM_H
#define LOADLINE_DRIVER_GPM_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/cards.h"

enum ll_gpm_metric {
	LL_GPM_GRAPHICS,  /* share of time in which anything ran */
	LL_GPM_SM,        /* share of SMs that had a warp, over time */
	LL_GPM_OCCUPANCY, /* share of warp slots in use, over SMs and time */
	LL_GPM_TENSOR,    /* share of time the tensor pipes were active */
	LL_GPM_DRAM,      /* share of the memory bandwidth in use */
	LL_GPM_COUNT,
};

#define LL_GPM_MIN_WINDOW_NS UINT64_C(100000000)

struct ll_gpm;

struct ll_gpm_reading {
	double percent[LL_GPM_COUNT]; /* NaN where the card does not give this one */
	uint64_t end_ns;              /* ll_now_ns when the window's last sample was taken */
	uint64_t window_ns;           /* its length */
};

/* Starts GPM and takes the first sample. -ENOSYS: the card or the driver lacks GPM; err says which metrics remain.
 * -EPERM. */
int ll_gpm_open(const struct ll_card *card, struct ll_gpm **ret_gpm, struct ll_err *err);
void ll_gpm_close(struct ll_gpm *gpm); /* NULL is fine */

/* Gives the means since the last successful read, or since open. -EAGAIN: that is less than LL_GPM_MIN_WINDOW_NS ago;
 * nothing is lost, and a later read works. Other errors as in readings.h; the window then starts anew. */
int ll_gpm_read(struct ll_gpm *gpm, struct ll_gpm_reading *ret_reading, struct ll_err *err);

/* "graphics", "sm", "occupancy", "tensor", "dram". */
const char *ll_gpm_metric_name(enum ll_gpm_metric metric);

/* Checks whether the card has GPM, without opening it. Returns 0, or an error as ll_gpm_open. */
int ll_gpm_check(const struct ll_card *card, struct ll_err *err);

/* The same, and checks whether GPM gives this metric there: -ENOSYS with the metrics that remain. Takes two samples. */
int ll_gpm_check_metric(const struct ll_card *card, enum ll_gpm_metric metric, struct ll_err *err);

#endif
