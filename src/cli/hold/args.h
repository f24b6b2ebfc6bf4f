/*
 * args.h - the options of `loadline hold`, and their translation into a struct ll_hold_config.
 */
#ifndef LOADLINE_CLI_HOLD_ARGS_H
#define LOADLINE_CLI_HOLD_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/options/option.h"
#include "hold/config.h"

struct ll_hold_args {
	char *cards;
	bool skip_unusable;
	int metric; /* enum ll_metric */
	const char *target;
	const char *idle_target;
	uint64_t idle_after_ns;
	const char *curve;
	int mode; /* enum ll_hold_mode */
	uint64_t resume_after_ns;
	uint64_t release_after_ns;
	uint64_t max_memory_bytes;
	double max_temperature_c;
	int payload; /* enum ll_payload_choice */
	bool mps;
	uint64_t wait_ns;
	uint64_t for_ns;
	bool json;
	bool dry_run;
	const char *record;
	const char *metrics_listen;
	uint64_t log_every_ns;
	const char *kernel_log;
};

extern const struct ll_option ll_hold_options[];

/*
 * Reads the target, the curve with its file, and the idle target. -EINVAL: a value is out of range, or two options
 * exclude each other. On success the caller frees config->curve by ll_curve_fini.
 */
int ll_hold_args_config(const struct ll_hold_args *args, struct ll_hold_config *ret_config, struct ll_err *err);

#endif
