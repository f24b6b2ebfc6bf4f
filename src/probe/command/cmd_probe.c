#include "cli/options/command.h"
#include "cli/options/help_text.h"
#include "probe/command/internal.h"

#define ARGS struct ll_probe_args

enum { MAX_RUNS = 10000, MAX_EACH = LL_PROBE_LAUNCHES / 2 };

const char *const ll_probe_experiment_words[] = {"matrix", "slice", "preemption", "idle", "first", NULL};
const char *const ll_probe_parallel_words[] = {"streams", "threads", "per-thread", "legacy", "processes", NULL};
static const char *const under_words[] = {"default", "mps", "mps:50%", "exclusive", NULL};
const char *const ll_probe_priority_words[] = {"equal", "different", NULL};
const char *const ll_probe_grid_words[] = {"tiny", "full", NULL};

static const struct ll_option options[] = {
    LL_OPTION_CARDS(ARGS, cards),
    {.name = "experiment",
     .letter = 'e',
     .placeholder = "LIST",
     LL_OPTION_LIST(ARGS, experiments),
     .choices = ll_probe_experiment_words,
     .help = "What to measure: matrix (which kernels run together), slice (time slice and switch "
	     "between processes), preemption (the effect of a stream's priority when a kernel "
	     "arrives), idle (the cost of an idle context), first (the classic first kernel: 512 "
	     "numbers, 2 blocks of 128 threads). The default is all except first, or the matrix alone "
	     "if cells are chosen."},
    {.name = "parallel",
     .placeholder = "LIST",
     LL_OPTION_LIST(ARGS, parallel),
     .choices = ll_probe_parallel_words,
     .help = "What launches kernels: streams of one thread, threads with a stream each, threads in "
	     "their own default streams (per-thread), threads that all use the one legacy default "
	     "stream, processes. The default is all except legacy."},
    {.name = "under",
     .placeholder = "LIST",
     LL_OPTION_LIST(ARGS, under),
     .choices = under_words,
     .help = "The environment: default (no MPS), mps (clients of a private MPS daemon), mps:N% (with "
	     "N percent of the card's threads each), exclusive (a card in exclusive-process mode, no "
	     "MPS). The default is default, mps, mps:50%, and exclusive if the card is in that mode."},
    {.name = "priority",
     .placeholder = "LIST",
     LL_OPTION_LIST(ARGS, priority),
     .choices = ll_probe_priority_words,
     .help = "Stream priorities: equal, or different (the first stream, thread or process has the "
	     "highest, the others the lowest). The default is both."},
    {.name = "grid",
     .placeholder = "LIST",
     LL_OPTION_LIST(ARGS, grid),
     .choices = ll_probe_grid_words,
     .help = "Size of the kernels: tiny (one warp on one SM) or full (blocks that fill the card, four "
	     "rounds of them). The default is both."},
    {.name = "connections",
     .placeholder = "LIST",
     LL_OPTION_LIST(ARGS, connections),
     .help = "Values of CUDA_DEVICE_MAX_CONNECTIONS, 1 to 32: the hardware queues of a process. The default is "
	     "1,8,32."},
    {.name = "count",
     .letter = 'n',
     .placeholder = "N",
     LL_OPTION_UINT(ARGS, count),
     .min = 2,
     .max = LL_PROBE_PARTIES,
     .fallback = "2",
     .help = "How many streams, threads or processes."},
    {.name = "kernel",
     .placeholder = "TIME",
     LL_OPTION_DURATION(ARGS, kernel_ns),
     .fallback = "1ms",
     .help = "How long each kernel needs on the card, 1us to 500ms."},
    {.name = "each",
     .placeholder = "N",
     LL_OPTION_UINT(ARGS, each),
     .min = 1,
     .max = MAX_EACH,
     .fallback = "8",
     .help = "Number of kernels that each stream, thread or process launches, without a pause."},
    {.name = "runs",
     .placeholder = "N",
     LL_OPTION_UINT(ARGS, runs),
     .min = 1,
     .max = MAX_RUNS,
     .fallback = "100",
     .help = "Number of runs for slice, switch and preemption. A cell of the matrix has 5 runs, or "
	     "this number if it is less."},
    {.name = "set-exclusive",
     LL_OPTION_FLAG(ARGS, set_exclusive),
     .help = "Put the card into exclusive-process mode for the cells that need it, and restore its "
	     "mode afterwards. Needs root. Without this option no setting of the card is changed."},
    {.name = "svg",
     .placeholder = "FILE",
     LL_OPTION_TEXT(ARGS, svg),
     .complete = LL_COMPLETE_FILE,
     .help = "Write a picture of the times on the card, a row for each stream, thread or process."},
    {.name = "list", LL_OPTION_FLAG(ARGS, list), .help = "Print the chosen cells and measure nothing."},
    LL_OPTION_JSON(ARGS, json),
    LL_OPTION_END,
};

static const struct ll_example examples[] = {
    {"loadline probe", "Measure everything that changes no setting of the card."},
    {"loadline probe --parallel processes --under default,mps --svg shared.svg",
     "How two processes share the card, without MPS and with it, as a table and a picture."},
    {"loadline probe --experiment slice,preemption --json",
     "Print the time slice and the effect of a priority, for a script."},
    {"loadline probe --experiment first", "Which of 512 numbers do 2 blocks of 128 threads write?"},
    {NULL, NULL},
};

static const struct ll_help_status statuses[] = {
    {0, "Everything possible was measured. A cell that the driver refuses is a result."},
    {1, "A driver call failed, or one of the probe's processes died or hung."},
    {2, "Bad usage."},
    {3, "No usable card or driver."},
    {130, "Interrupted (128 and the signal's number); the probe has cleaned up."},
    {0, NULL},
};

const struct ll_command ll_command_probe = {
    .name = "probe",
    .summary = "show how processes, threads and streams share a card",
    .description =
	"Lets streams, threads or processes launch kernels at the same moment. The kernels record their "
	"times on the card's clock. From these records the probe says in one word how they shared the card: "
	"serialised (one waited for the end of the other), time-sliced (the card switched between them, at a "
	"cost), concurrent (they ran together), or refused (the driver did not let one start).\n\n"
	"Without options it measures a whole matrix: the launching streams, threads or processes; their "
	"environment (a private MPS daemon included); stream priorities; small kernels and kernels that fill "
	"the card; hardware queues. Then it measures the time slice, preemption and the cost of an idle "
	"context. It prints statements about this card and driver, each with the command that shows it "
	"again. Only --set-exclusive changes a setting of the card.\n\n"
	"The columns of the table: overlap is the part of the possible overlap that took place; slice is the "
	"time on the card between two switches; switch is the time in which the card is empty at a switch; "
	"empty is the part of the time in which no kernel was on the card; SMs is the largest number of SMs "
	"that one kernel used; runs is the number of runs that agree on the word.\n\n"
	"With --json each line is an object with an \"event\": card; cell, with the kernels of its last run, "
	"times in ns from the first start; memory; slice, preemption and idle, with median, 5th and 95th "
	"percentile, least and most over the runs; statement; first.\n\n"
	"No other program should use the card meanwhile.",
    .examples = examples,
    .options = options,
    .args_size = sizeof(struct ll_probe_args),
    .statuses = statuses,
};
