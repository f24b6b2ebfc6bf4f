#include <stdio.h>

#include "base/clock.h"
#include "base/translate.h"
#include "cli/options/command.h"
#include "mps/command/words.h"
#include "mps/mps.h"

/* ---- env ---- */

static const struct ll_option env_options[] = {LL_OPTION_END};

/* Prints one export line, quoted for the Bourne shell and shells like it. */
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

static int run_env(void *data, const struct ll_operands *operands, struct ll_err *err)
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

static const struct ll_example env_examples[] = {
    {"eval \"$(loadline mps env)\"", N_("Programs started from this shell are clients from now on.")},
    {NULL, NULL},
};

const struct ll_command ll_mps_env = {
    .name = "env",
    .group = &ll_command_mps,
    .summary = N_("print the exports that make a shell's programs clients"),
    .description = N_("Prints export lines of the running daemon, for eval. If no daemon answers, it prints "
		      "nothing and fails. With variables that point at no daemon, programs run without MPS and "
		      "without limits, and the driver does not say so."),
    .examples = env_examples,
    .options = env_options,
    .run = run_env,
};

/* ---- the group ---- */

static const struct ll_command *const subcommands[] = {
    &ll_mps_start, &ll_mps_stop, &ll_mps_status, &ll_mps_set, &ll_mps_clients,
    &ll_mps_kill,  &ll_mps_env,  &ll_mps_run,    NULL,
};

static const struct ll_option group_options[] = {LL_OPTION_END};

static const struct ll_example group_examples[] = {
    {"loadline mps start -i 0 --compute 50%", N_("Each client may use half of card 0's SMs.")},
    {"loadline mps run -- python train.py", N_("Run a client.")},
    {"loadline mps stop", N_("End the daemon, and restore the compute modes.")},
    {NULL, NULL},
};

const struct ll_command ll_command_mps = {
    .name = "mps",
    .subcommands = subcommands,
    .summary = N_("share cards in space with NVIDIA MPS"),
    .description =
	N_("Starts and ends NVIDIA's Multi-Process Service, sets what its clients may use, and shows them. "
	   "Under MPS, kernels of several processes run on a card at the same time, each on its share of the "
	   "SMs. Without MPS the card serves one process after the other.\n\n"
	   "Its pipe directory identifies a daemon. This is CUDA_MPS_PIPE_DIRECTORY if that is set. Otherwise, "
	   "for root it is NVIDIA's default, /tmp/nvidia-mps, which every program on the machine looks at. For "
	   "other users it is $XDG_RUNTIME_DIR/loadline/mps/pipe, which only programs of `loadline mps run` and "
	   "`loadline mps env` look at."),
    .examples = group_examples,
    .options = group_options,
};
