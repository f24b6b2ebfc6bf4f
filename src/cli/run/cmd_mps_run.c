#include "base/translate.h"
#include "cli/mps/words.h"
#include "cli/options/help_text.h"
#include "cli/options/limit_words.h"
#include "cli/run/start.h"

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
