#include "cli/mps/words.h"
#include "cli/options/command.h"

static const struct ll_command *const subcommands[] = {
    &ll_mps_start, &ll_mps_stop, &ll_mps_status, &ll_mps_set, &ll_mps_clients,
    &ll_mps_kill,  &ll_mps_env,  &ll_mps_run,    NULL,
};

static const struct ll_option options[] = {LL_OPTION_END};

static const struct ll_example examples[] = {
    {"loadline mps start -i 0 --compute 50%", "Each client may use half of card 0's SMs."},
    {"loadline mps run -- python train.py", "Run a client."},
    {"loadline mps stop", "End the daemon, and restore the compute modes."},
    {NULL, NULL},
};

const struct ll_command ll_command_mps = {
    .name = "mps",
    .subcommands = subcommands,
    .summary = "share cards in space with NVIDIA MPS",
    .description =
	"Starts and ends NVIDIA's Multi-Process Service, sets what its clients may use, and shows them. "
	"Under MPS, kernels of several processes run on a card at the same time, each on its share of the "
	"SMs. Without MPS the card serves one process after the other.\n\n"
	"Its pipe directory identifies a daemon. This is CUDA_MPS_PIPE_DIRECTORY if that is set. Otherwise, "
	"for root it is NVIDIA's default, /tmp/nvidia-mps, which every program on the machine looks at. For "
	"other users it is $XDG_RUNTIME_DIR/loadline/mps/pipe, which only programs of `loadline mps run` and "
	"`loadline mps env` look at.",
    .examples = examples,
    .options = options,
};
