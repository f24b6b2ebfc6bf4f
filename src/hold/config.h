/*
 * config.h - what a user asked of `hold`, in the program's own units. The command line fills it; one for all cards.
 */
#ifndef LOADLINE_HOLD_CONFIG_H
#define LOADLINE_HOLD_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "control/curve.h"
#include "control/hold_policy.h"
#include "driver/gpm.h"

enum ll_metric {
	LL_METRIC_UTIL,      /* NVML: share of time in which any kernel ran */
	LL_METRIC_SM,        /* GPM: share of SMs with a warp, over time */
	LL_METRIC_OCCUPANCY, /* GPM: share of warp slots in use, over SMs and time */
	LL_METRIC_TENSOR,    /* GPM: share of time in which the tensor pipes were active */
	LL_METRIC_DRAM,      /* GPM: share of the memory bandwidth in use */
	LL_METRIC_POWER,     /* NVML: watts */
};

enum ll_payload_choice {
	LL_PAYLOAD_AUTO, /* vulkan, else cuda */
	LL_PAYLOAD_VULKAN,
	LL_PAYLOAD_CUDA,
};

struct ll_hold_config {
	enum ll_metric metric;
	enum ll_hold_mode mode;
	struct ll_curve curve; /* the target as a ratio; not for LL_METRIC_POWER. Memory stays the caller's. */
	double target_watts;   /* LL_METRIC_POWER */
	bool has_idle_target;
	double idle_target; /* ratio, or watts */
	uint64_t idle_after_ns;
	uint64_t resume_after_ns;
	uint64_t release_after_ns; /* 0: never */
	uint64_t max_memory_bytes; /* 0: no limit */
	uint64_t wait_ns;          /* how long to wait for a card that has no memory for a context; 0: fail */
	double max_temperature_c;
	enum ll_payload_choice payload;
	bool as_mps_client;
	FILE *kernel_log; /* for measurements, see sense.h; the caller's; NULL: none */
};

/* "util", "sm", "occupancy", "tensor", "dram", "power". */
const char *ll_metric_name(enum ll_metric metric);

/* Whether GPM measures it; *ret_gpm (may be NULL) is then which of its readings. */
bool ll_metric_is_gpm(enum ll_metric metric, enum ll_gpm_metric *ret_gpm);

/* Whether only the CUDA payload has a kernel for it. */
bool ll_metric_needs_cuda(enum ll_metric metric);

#endif
