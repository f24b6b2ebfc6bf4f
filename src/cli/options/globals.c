#include "cli/options/globals.h"

/* In the order of enum ll_log_level. */
static const char *const levels[] = {"error", "warn", "info", "debug", NULL};

const struct ll_option ll_global_options[] = {
    {.name = "sim",
     .placeholder = "SCENARIO",
     LL_OPTION_OPTIONAL(struct ll_globals, sim),
     .complete = LL_COMPLETE_FILE,
     .help = "Run on the simulated driver instead of the real one, child processes included. SCENARIO "
	     "is a file that describes its cards, or the name of a scenario that loadline brings."},
    {.name = "log-level",
     .placeholder = "LEVEL",
     LL_OPTION_CHOICE(struct ll_globals, log_level),
     .choices = levels,
     .fallback = "info",
     .help = "Least important lines to log."},
    {.name = "version", LL_OPTION_FLAG(struct ll_globals, wants_version), .help = "Print the version and exit."},
    LL_OPTION_END,
};
