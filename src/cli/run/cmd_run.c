#include "cli/run/run.h"

#include "base/translate.h"
#include "cli/options/command.h"
#include "cli/options/help_text.h"
#include "cli/options/limit_words.h"
#include "mps/command/words.h"

static int run_run(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	return ll_run_start(data, operands, err);
}

#define OWN_FAILURE_HELP                                                                                               \
	N_("loadline itself failed: bad usage, no card, no driver, limits that cannot be put in force or that the "    \
	   "configuration of the machine refuses.")
#define NOT_EXECUTABLE_HELP N_("COMMAND, or the interpreter that it names, was found but could not be run.")
#define NOT_FOUND_HELP N_("COMMAND, or the interpreter that it names, was not found.")

const struct ll_help_status ll_run_statuses[] = {
    {LL_RUN_OWN_FAILURE, OWN_FAILURE_HELP},
    {LL_RUN_NOT_EXECUTABLE, NOT_EXECUTABLE_HELP},
    {LL_RUN_NOT_FOUND, NOT_FOUND_HELP},
    {0, NULL},
};

static const struct ll_help_status run_statuses[] = {
    {LL_EXIT_REFUSED,
     N_("The card's memory requests would be more than it has (--mem-request). COMMAND was not started.")},
    {LL_RUN_OWN_FAILURE, OWN_FAILURE_HELP},
    {LL_RUN_NOT_EXECUTABLE, NOT_EXECUTABLE_HELP},
    {LL_RUN_NOT_FOUND, NOT_FOUND_HELP},
    {0, NULL},
};

static const struct ll_example run_examples[] = {
    {"loadline run --mem 20G --compute 25% -- python train.py",
     N_("A quarter of the card's time, 20 GiB of its memory.")},
    {"loadline run -i 1 --class low --tenant night -- ./render", N_("Card 1, while no other program wants it.")},
    {"loadline run --by space --compute 25% --mem 20G -- python train.py",
     N_("A quarter of the card's SMs, all the time, beside other clients of MPS.")},
    {"loadline run --mem-request 10G --mem 100G -- python train.py",
     N_("10 GiB are always its own, and up to 100 GiB in turn with other evictable programs.")},
    {"loadline run --compute 50% -- sh -c './a & ./b; wait'",
     N_("Half of the card's time, shared by the two programs.")},
    {NULL, NULL},
};

const struct ll_command ll_command_run = {
    .name = "run",
    .summary = N_("run a CUDA program under limits"),
    .operands = "[--] COMMAND [ARG]...",
    .description =
	N_("Becomes COMMAND, so the exit status and signals are the command's. It puts a library in front of "
	   "the CUDA driver in COMMAND and in all processes that COMMAND starts. These processes together are a "
	   "tenant: they share the limits. The limits hold on each card separately. `loadline set` changes them "
	   "while the tenant runs; `loadline status` shows them beside the use.\n\n"
	   "An allocation that would pass the memory limit fails with CUDA's out-of-memory error, and the "
	   "program goes on. Programs share the card by its own time slices. While a program that waits for each of "
	   "its launches shares the card, the card is given to one tenant at a time, and the launches of the others "
	   "wait: on the card if they can, otherwise in the program's own threads.\n\n"
	   "The command sees the chosen cards only (CUDA_VISIBLE_DEVICES), in PCI order. Without -i it sees the "
	   "same cards as without loadline, in the same order. Cards that the variable already hides stay "
	   "hidden. Inside a governed program, run may choose cards but no limits: the new program belongs to "
	   "the same tenant.\n\n"
	   "With --by space the program is a client of your MPS daemon: its kernels run at the same time "
	   "as those of other clients, on its share of the SMs (--compute). Clients "
	   "do not wait for each other; beside a higher class they queue little, as without MPS. Memory limits hold "
	   "as they do without MPS. Without a daemon, --by space starts one, which stays until `loadline mps stop`, "
	   "unless CUDA_MPS_PIPE_DIRECTORY is set; then the command does not run. Without a daemon --by auto shares "
	   "by slices.\n\n"
	   "With --mem-request or --evictable, tenants whose memory together is more than the card has take turns of "
	   "seconds: the memory of one goes to the host and comes back later. A "
	   "tenant that has no more than its request stays on the card. With --mem, the program is told that all up to "
	   "the limit is free for it, whatever others have.\n\n"
	   "A program is refused if no library can be preloaded into it. A program that drops the library later "
	   "on is not held to its limits; status shows it as ungoverned."),
    .examples = run_examples,
    .options = ll_run_options,
    .args_size = sizeof(struct ll_run_args),
    .takes_command = true,
    .failure_status = LL_RUN_OWN_FAILURE,
    .statuses = run_statuses,
    .run = run_run,
};

#define ARGS struct ll_run_args

/* The options of `run` that apply by space. Some have another meaning there. */
static const struct ll_option mps_run_options[] = {
    LL_OPTION_CARDS(ARGS, cards),
    {.name = "mem", .letter = 'm', .placeholder = "SIZE", LL_OPTION_TEXT(ARGS, mem), .help = LL_LIMIT_MEMORY_HELP},
    {.name = "compute",
     .letter = 'c',
     .placeholder = "SHARE",
     LL_OPTION_TEXT(ARGS, compute),
     .help = N_("Share of each card's SMs that the program may use, such as 25%. The default is the "
		"share that the daemon gives every client.")},
    LL_RUN_OPTION_WEIGHT,
    LL_RUN_OPTION_CLASS,
    LL_RUN_OPTION_SLOWDOWN,
    {.name = "tenant",
     .placeholder = "NAME",
     LL_OPTION_TEXT(ARGS, tenant),
     .help = N_("Name of the tenant, for status and set: letters and digits in UTF-8, and ._-+@: only.")},
    {.name = "allow-ungoverned",
     LL_OPTION_FLAG(ARGS, allow_ungoverned),
     .help = N_("Run the command even if nothing can be preloaded into it. It is a client then, with the "
		"daemon's limits alone.")},
    LL_OPTION_END,
};

static int run_mps_run(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	struct ll_run_args *args = data;
	args->by = LL_RUN_BY_SPACE;
	return ll_run_start(args, operands, err);
}

static const struct ll_example mps_run_examples[] = {
    {"loadline mps run -- python train.py", N_("Run a client of the running daemon.")},
    {"loadline mps run --compute 25% --mem 8G -- ./solve",
     N_("The same as loadline run --by space with these limits.")},
    {NULL, NULL},
};

const struct ll_command ll_mps_run = {
    .name = "run",
    .group = &ll_command_mps,
    .summary = N_("run a program as a client"),
    .operands = "[--] COMMAND [ARG]...",
    .description =
	N_("Becomes COMMAND as a client of the running daemon, as `loadline run --by space` does. Before that "
	   "it checks that a daemon answers at the pipe directory, that the daemon shows the cards, that its "
	   "server takes clients of this user, and that the MPS variables in the environment have the effect "
	   "that they name. The driver itself checks none of this, and would run the program without MPS.\n\n"
	   "`loadline status` shows the program like any other, with its share of the SMs."),
    .examples = mps_run_examples,
    .options = mps_run_options,
    .args_size = sizeof(ARGS),
    .takes_command = true,
    .failure_status = LL_RUN_OWN_FAILURE,
    .statuses = ll_run_statuses,
    .run = run_mps_run,
};
