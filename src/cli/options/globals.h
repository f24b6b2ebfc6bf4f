/*
 * globals.h - the options that stand before COMMAND.
 */
#ifndef LOADLINE_CLI_OPTIONS_GLOBALS_H
#define LOADLINE_CLI_OPTIONS_GLOBALS_H

#include <stdbool.h>

#include "cli/options/option.h"

struct ll_globals {
	const char *sim; /* NULL: the real driver; "": the simulator's default scenario; else a scenario */
	int log_level;   /* enum ll_log_level */
	bool wants_version;
};

extern const struct ll_option ll_global_options[];

#endif
