#include <stdio.h>

#include "base/clock.h"
#include "cli/mps/words.h"
#include "mps/environment.h"

static const struct ll_option options[] = {LL_OPTION_END};

/* For any shell of the Bourne kind. */
static void print_export(const char *name, const char *value)
{
	printf("export %s='", name);
	for (const char *c = value; *c; c++) {
		if (*c == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*c);
	}
	puts("'");
}

static int run(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	struct ll_mps_desk desk;
	(void)data, (void)operands;
	int rc = ll_mps_desk_init(&desk, err);
	if (!rc)
		rc = ll_mps_desk_need_daemon(&desk, ll_now_ns() + LL_MPS_ASK_NS, err);
	if (!rc) {
		print_export(LL_MPS_PIPE_VARIABLE, desk.place.pipe);
		print_export(LL_MPS_LOG_VARIABLE, desk.place.log);
	}
	ll_mps_desk_fini(&desk);
	return rc;
}

static const struct ll_example examples[] = {
    {"eval \"$(loadline mps env)\"", "Programs started from this shell are clients from now on."},
    {NULL, NULL},
};

const struct ll_command ll_mps_env = {
    .name = "env",
    .group = &ll_command_mps,
    .summary = "print the exports that make a shell's programs clients",
    .description = "Prints export lines of the running daemon, for eval. If no daemon answers, it prints "
		   "nothing and fails. With variables that point at no daemon, programs run without MPS and "
		   "without limits, and the driver does not say so.",
    .examples = examples,
    .options = options,
    .run = run,
};
