/*
 * config.h - what the user asked of `hold`. The command line fills it; one config serves all cards.
 */
#ifndef LOADLINE_HOLD_CONFIG_H
#define LOADLINE_HOLD_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "driver/gpm.h"
#include "hold/payload.h"
#include "rules/hold/curve.h"
#include "rules/hold/hold_policy.h"

enum ll_metric {
	LL_METRIC_UTIL,      /* NVML: share of time in which any kernel ran */
	LL_METRIC_SM,        /* GPM: share of SMs with a warp, over time */
	LL_METRIC_OCCUPANCY, /* GPM: share of warp slots in use, over SMs and time */
	LL_METRIC_TENSOR,    /* GPM: share of time in which the tensor pipes were active */
	LL_METRIC_DRAM,      /* GPM: share of the memory bandwidth in use */
	LL_METRIC_POWER,     /* NVML: watts */
};

struct ll_hold_config {
	enum ll_metric metric;
	enum ll_hold_mode mode;
	struct ll_curve curve; /* the target as a ratio; not for LL_METRIC_POWER. The caller owns its memory. */
	double target_watts;   /* for LL_METRIC_POWER */
	bool has_idle_target;
	double idle_target; /* ratio, or watts */
	uint64_t idle_after_ns;
	uint64_t resume_after_ns;
	uint64_t release_after_ns; /* 0: never */
	uint64_t max_memory_bytes; /* 0: no limit */
	uint64_t wait_ns;          /* how long to wait if the card has no memory for a context; 0: fail */
	double max_temperature_c;
	enum ll_payload_choice payload;
	bool as_mps_client;
	FILE *kernel_log; /* for measurements (sense.h); the caller owns it; NULL: none */
};

/* Returns "util", "sm", "occupancy", "tensor", "dram" or "power". */
const char *ll_metric_name(enum ll_metric metric);

/* Whether GPM measures this metric. If so and ret_gpm is not NULL, *ret_gpm is the GPM reading. */
bool ll_metric_is_gpm(enum ll_metric metric, enum ll_gpm_metric *ret_gpm);

/* Whether only the CUDA payload has a kernel for this metric. */
bool ll_metric_needs_cuda(enum ll_metric metric);

#endif
