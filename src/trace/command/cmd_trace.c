#include "cli/options/command.h"
#include "cli/options/help_text.h"
#include "cli/run/run.h"
#include "trace/command/internal.h"

enum { OWN_FAILURE = 125 };

static const char *const ways[] = {"auto", "cupti", "events", NULL};

static const struct ll_option options[] = {
    {.name = "output",
     .letter = 'o',
     .placeholder = "FILE",
     LL_OPTION_LIST(struct ll_trace_args, outputs),
     .complete = LL_COMPLETE_FILE,
     .help = "Write the trace to this file: a .csv has one process (%p in its name is the process "
	     "id), a .json has all processes, for Perfetto and chrome://tracing. May be repeated."},
    {.name = "by",
     .placeholder = "WAY",
     LL_OPTION_CHOICE(struct ll_trace_args, by),
     .choices = ways,
     .fallback = "auto",
     .help = "Source of device times: cupti, NVIDIA's own records; events, timing events around each "
	     "launch; auto, the first of them that works, for each process."},
    {.name = "cards",
     .letter = 'i',
     .placeholder = "CARDS",
     LL_OPTION_LIST(struct ll_trace_args, cards),
     .complete = LL_COMPLETE_CARD,
     .help = "Record these cards only, in PCI order: an index, a range (2-3), a UUID, a PCI address, "
	     "'all', or several of these with commas. May be repeated."},
    {.name = "for",
     .placeholder = "TIME",
     LL_OPTION_DURATION(struct ll_trace_args, for_ns),
     .min = 1,
     .help = "Without a command: how long to watch the cards."},
    {.name = "top",
     .placeholder = "NUMBER",
     LL_OPTION_UINT(struct ll_trace_args, top),
     .fallback = "10",
     .max = 1000000,
     .help = "Number of kernels that the summary names."},
    {.name = "max-events",
     .placeholder = "NUMBER",
     LL_OPTION_UINT(struct ll_trace_args, most_events),
     .fallback = "4000000",
     .min = 1,
     .max = 1e12,
     .help = "Most events to keep of each process, 96 bytes each in TMPDIR. Further events are only "
	     "counted."},
    LL_OPTION_JSON(struct ll_trace_args, json),
    LL_OPTION_END,
};

static const struct ll_help_status statuses[] = {
    {LL_EXIT_FAILED, "An output cannot be written; or COMMAND's own status."},
    {OWN_FAILURE, "loadline itself failed: bad usage, no CUPTI with --by cupti."},
    {LL_RUN_NOT_EXECUTABLE, "COMMAND was found but could not be run."},
    {LL_RUN_NOT_FOUND, "COMMAND was not found."},
    {0, NULL},
};

static const struct ll_example examples[] = {
    {"loadline trace -- python train.py", "Why is the card not busy? The summary says why."},
    {"loadline trace -o output_%p.csv -o all.json -- torchrun train.py",
     "A table for each process, and one timeline of all for Perfetto."},
    {"loadline trace -- loadline run --compute 25% -- ./render", "With the waits of a governed program."},
    {"loadline trace -i 0 --for 10s", "The processes on card 0, and NVML's readings of them."},
    {NULL, NULL},
};

const struct ll_command ll_command_trace = {
    .name = "trace",
    .summary = "show what a command does on the cards, and why the cards idle",
    .operands = "[--] [COMMAND [ARG]...]",
    .description =
	"Runs COMMAND. In it and in all processes that it starts, it records each kernel, copy, memset, "
	"allocation and free, and each wait of a governed program for its turn. All processes share one time "
	"axis. At the end a summary goes to standard error (with --json, lines to standard output). For each "
	"card the summary has the busy time and the causes of the idle time (host compute, I/O wait, copies, "
	"gate wait, waiting), with communication kernels apart. It also has the processes and how they "
	"overlapped, and the kernels that took most time.\n\n"
	"Device times are NVIDIA's own records if libcupti is found (LOADLINE_CUPTI, LD_LIBRARY_PATH, the "
	"toolkit, the packages of the command's Python). Otherwise they come from timing events around each "
	"launch.\n\n"
	"The exit status is COMMAND's, as a shell gives it. Ctrl-C goes to COMMAND; trace still prints the "
	"summary.\n\n"
	"Without a command, -i shows for a while the processes on these cards and their utilisation, as NVML "
	"reports them. Only programs that were started under trace have a timeline.",
    .examples = examples,
    .options = options,
    .args_size = sizeof(struct ll_trace_args),
    .takes_command = true,
    .failure_status = OWN_FAILURE,
    .statuses = statuses,
};
