/* The options and the help of `loadline top`. The program loadline-top has the rest. */
#include "cli/options/command.h"
#include "cli/top/top.h"

/* In the order of enum ll_top_order. */
const char *const ll_top_orders[] = {"share", "memory", "age", "user", "tenant", "job", NULL};

static const struct ll_option top_options[] = {
    LL_OPTION_CARDS(struct ll_top_args, cards),
    {.name = "every",
     .letter = 'd',
     .placeholder = "TIME",
     LL_OPTION_DURATION(struct ll_top_args, every_ns),
     .min = 1,
     .fallback = "2s",
     .help = N_("Time between two readings, at least 100ms.")},
    {.name = "sort",
     .placeholder = "ORDER",
     LL_OPTION_CHOICE(struct ll_top_args, order),
     .choices = ll_top_orders,
     .fallback = "share",
     .help = N_("Order of the jobs that have a card. Those that wait follow in the order of the queue.")},
    {.name = "filter",
     .placeholder = "TEXT",
     LL_OPTION_TEXT(struct ll_top_args, filter),
     .help = N_("Only jobs with this text in their number, user, tenant or command.")},
    {.name = "plain",
     LL_OPTION_FLAG(struct ll_top_args, is_plain),
     .help = N_("Print one frame as text, and end. It is as wide as the terminal; for a pipe or a file as COLUMNS "
		"says, or 120 columns.")},
    LL_OPTION_END,
};

static const struct ll_example top_examples[] = {
    {"loadline top", N_("Watch the cards, the tenants and the jobs.")},
    {"loadline top --sort memory -i 0-3", N_("Jobs on the first four cards, those with the most memory first.")},
    {"loadline top --plain", N_("One frame, for a file or a pipe.")},
    {NULL, NULL},
};

const struct ll_command ll_command_top = {
    .name = "top",
    .summary = N_("watch cards, tenants and jobs, and change them by keys"),
    .description = N_(
	"Shows the cards with their utilisation now and over time, the tenants with their share of all the cards now "
	"and over time, and the jobs as a tree: a job with several processes on cards has a line for each of them. "
	"Jobs that wait in the queue follow, with their position and when they start. A synthetic load of `loadline "
	"hold` is labelled, and is not counted for a tenant. Programs that loadline does not govern are shown too.\n\n"
	"A card's history begins with the 14 s that the driver keeps; a tenant's begins with top. Each block is the "
	"mean of the time between two readings.\n\n"
	"Keys: the arrows, Page Up, Page Down, Home and End choose a line, whose details are in the line above the "
	"keys. h shows all keys, / filters, o changes the order, t hides the processes of jobs, q ends top. Four keys "
	"change the chosen job, and each asks before it does so: s sets limits (type the options of `loadline set`, "
	"such as --compute 30%), e evicts its memory or resumes it, p suspends or resumes it, or keeps a waiting job "
	"from starting, k ends it. They do what the commands set, evict, suspend, resume, `queue pause` and `queue "
	"cancel` do, with the same rights. A job that is in no queue is ended by SIGTERM to "
	"its process on a card, or, if it has several, to its first process.\n\n"
	"NO_COLOR=1 shows no colours. What the configuration hides of other users is not shown. A terminal that "
	"cannot place text, such as TERM=dumb, is refused; --plain works there."),
    .examples = top_examples,
    .options = top_options,
    .args_size = sizeof(struct ll_top_args),
};
