#include <stdio.h>

#include "base/translate.h"
#include "cli/options/command.h"

static const struct ll_option version_options[] = {LL_OPTION_END};

static int run_version(void *args, const struct ll_operands *operands, struct ll_err *err)
{
	(void)args, (void)operands, (void)err;
	puts("loadline " LOADLINE_VERSION);
	return 0;
}

const struct ll_command ll_command_version = {
    .name = "version",
    .summary = N_("print the version"),
    .description = N_("Prints the program's name and version."),
    .options = version_options,
    .run = run_version,
};
