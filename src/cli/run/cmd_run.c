#include "cli/options/command.h"
#include "cli/options/help_text.h"
#include "cli/run/args.h"
#include "cli/run/program.h"
#include "cli/run/start.h"

static int run_run(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	return ll_run_start(data, operands, err);
}

const struct ll_help_status ll_run_statuses[] = {
    {LL_RUN_OWN_FAILURE, "loadline itself failed: bad usage, no card, no driver, limits that cannot be put in force."},
    {LL_RUN_NOT_EXECUTABLE, "COMMAND, or the interpreter that it names, was found but could not be run."},
    {LL_RUN_NOT_FOUND, "COMMAND, or the interpreter that it names, was not found."},
    {0, NULL},
};

static const struct ll_example run_examples[] = {
    {"loadline run --mem 20G --compute 25% -- python train.py", "A quarter of the card's time, 20 GiB of its memory."},
    {"loadline run -i 1 --priority low --tenant night -- ./render", "Card 1, whenever nobody else wants it."},
    {"loadline run --by space --compute 25% --mem 20G -- python train.py",
     "A quarter of the card's SMs, all the time, beside other clients of MPS."},
    {"loadline run --weight 2 -- sh -c './a & ./b; wait'", "Twice the time of others, shared by the two programs."},
    {NULL, NULL},
};

const struct ll_command ll_command_run = {
    .name = "run",
    .summary = "run a CUDA program under limits",
    .operands = "[--] COMMAND [ARG]...",
    .description =
	"Becomes COMMAND, so its exit status and signals are the command's, and puts a library in front of the CUDA "
	"driver in it and in all that it starts. These together are a tenant: they share the limits, on each card "
	"anew. Limits may be changed while it runs (`loadline set`); `loadline status` shows them beside what is "
	"used.\n\n"
	"An allocation that would pass the memory limit fails with CUDA's own error for that, and the program "
	"goes on. Launches wait for their turn, on the card where they can and else in the program's own threads, and "
	"for their share of time.\n\n"
	"The command sees the chosen cards only (CUDA_VISIBLE_DEVICES), in PCI order; without -i all that it would "
	"have seen otherwise, in the same order. What that variable hides already stays hidden. Inside a governed "
	"program run may choose cards but no limits: what it starts belongs to the "
	"same tenant.\n\n"
	"With --by space the program is a client of the MPS daemon that runs: its kernels run at the same time as "
	"those of other clients, on its share of the SMs (--compute). Clients of equal weight and class wait for "
	"nobody; weights, classes and memory limits hold as ever. Without a daemon the command is not run. With --by "
	"auto it shares the time then.\n\n"
	"A program that nothing can be preloaded into is refused. One that drops the library later on is not "
	"held back; status shows it as ungoverned.",
    .examples = run_examples,
    .options = ll_run_options,
    .args_size = sizeof(struct ll_run_args),
    .takes_command = true,
    .failure_status = LL_RUN_OWN_FAILURE,
    .statuses = ll_run_statuses,
    .run = run_run,
};
