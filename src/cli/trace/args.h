/*
 * args.h - the options of `loadline trace`.
 */
#ifndef LOADLINE_CLI_TRACE_ARGS_H
#define LOADLINE_CLI_TRACE_ARGS_H

#include "cli/options/option.h"

struct ll_trace_args {
	char *cards, *outputs;
	int by; /* enum ll_trace_by */
	uint64_t for_ns, most_events, top;
	bool json;
};

#endif
