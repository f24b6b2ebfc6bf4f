#include <stdio.h>

#include "base/clock.h"
#include "cli/mps/words.h"
#include "cli/options/command.h"
#include "mps/environment.h"

/* ---- env ---- */

static const struct ll_option env_options[] = {LL_OPTION_END};

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
    {"eval \"$(loadline mps env)\"", "Programs started from this shell are clients from now on."},
    {NULL, NULL},
};

const struct ll_command ll_mps_env = {
    .name = "env",
    .group = &ll_command_mps,
    .summary = "print the exports that make a shell's programs clients",
    .description =
	"Prints export lines for the daemon that runs, for eval. Prints nothing, and fails, where none "
	"answers: variables that point at no daemon mean no MPS and no limits, and the driver does not say so.",
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
    {"loadline mps start -i 0 --compute 50%", "Each client may use half of card 0's SMs."},
    {"loadline mps run -- python train.py", "A client of it."},
    {"loadline mps stop", "End it, and put everything back."},
    {NULL, NULL},
};

const struct ll_command ll_command_mps = {
    .name = "mps",
    .subcommands = subcommands,
    .summary = "share cards in space with NVIDIA MPS",
    .description =
	"Starts and ends NVIDIA's Multi-Process Service, sets what its clients may use, and shows them. Under MPS "
	"kernels of several processes run on a card at the same time, each on its share of the SMs; without it the "
	"card takes processes in turn.\n\n"
	"A daemon is known by its pipe directory: CUDA_MPS_PIPE_DIRECTORY where that is set; else for root NVIDIA's "
	"own, /tmp/nvidia-mps, which every program on the machine looks at; else one of the user's own "
	"($XDG_RUNTIME_DIR/loadline/mps/pipe), which only programs see that were told (`loadline mps run`, `loadline "
	"mps env`).",
    .examples = group_examples,
    .options = group_options,
};
