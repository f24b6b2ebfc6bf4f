/*
 * payload_vulkan_calibrate.h - the first runs, and how long a loop takes where there is no clock.
 *
 * A device whose clock is missing or counts something unknown gets loops of a counted length. They are timed at
 * opening, with one block: an estimate, which is off when the card's own clock rate changes later or blocks crowd.
 */
#ifndef LOADLINE_HOLD_PAYLOAD_VULKAN_CALIBRATE_H
#define LOADLINE_HOLD_PAYLOAD_VULKAN_CALIBRATE_H

#include "hold/payload_vulkan_kernels.h"

struct ll_vk_rates {
	double loops_per_ns[LL_VK_VARIANTS]; /* 0 with the clock */
};

/* Runs every pipeline at least once, so that what the driver does at a first launch is done. Takes some ms, without
 * clock some 50 a pipeline. Leaves records and card buffer zeroed. -EIO when a kernel does not answer. */
int ll_vk_calibrate(struct ll_vk_kernels *kernels, struct ll_vk_rates *ret_rates, struct ll_err *err);

/* How many loops last that long. */
uint32_t ll_vk_loops(const struct ll_vk_rates *rates, enum ll_vk_variant variant, uint64_t length_ns);

#endif
