#include "cli/mps/words.h"
#include "cli/options/command.h"

static const struct ll_command *const subcommands[] = {
    &ll_mps_start, &ll_mps_stop, &ll_mps_status, &ll_mps_set, &ll_mps_clients,
    &ll_mps_kill,  &ll_mps_env,  &ll_mps_run,    NULL,
};

static const struct ll_option options[] = {LL_OPTION_END};

static const struct ll_example examples[] = {
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
    .examples = examples,
    .options = options,
};
