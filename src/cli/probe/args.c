#include "cli/probe/args.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/scope.h"
#include "probe/report.h"

#define ARGS struct ll_probe_args

enum { CELL_RUNS = 5, MAX_RUNS = 10000, MAX_EACH = LL_PROBE_LAUNCHES / 2, MAX_CONNECTIONS = 32 };

static const char *const experiment_words[] = {"matrix", "slice", "preemption", "idle", "first", NULL};
static const char *const parallel_words[] = {"streams", "threads", "per-thread", "legacy", "processes", NULL};
static const char *const under_words[] = {"default", "mps", "mps:50%", "exclusive", NULL};
static const char *const priority_words[] = {"equal", "different", NULL};
static const char *const grid_words[] = {"tiny", "full", NULL};

const struct ll_option ll_probe_options[] = {
    LL_OPTION_CARDS(ARGS, cards),
    {.name = "experiment",
     .letter = 'e',
     .placeholder = "LIST",
     LL_OPTION_LIST(ARGS, experiments),
     .choices = experiment_words,
     .help = "What to measure: matrix (which kernels run together), slice (time slice and switch "
	     "between processes), preemption (the effect of a stream's priority when a kernel "
	     "arrives), idle (the cost of an idle context), first (the classic first kernel: 512 "
	     "numbers, 2 blocks of 128 threads). The default is all except first, or the matrix alone "
	     "if cells are chosen."},
    {.name = "parallel",
     .placeholder = "LIST",
     LL_OPTION_LIST(ARGS, parallel),
     .choices = parallel_words,
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
     .choices = priority_words,
     .help = "Stream priorities: equal, or different (the first stream, thread or process has the "
	     "highest, the others the lowest). The default is both."},
    {.name = "grid",
     .placeholder = "LIST",
     LL_OPTION_LIST(ARGS, grid),
     .choices = grid_words,
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

/* ---- words in lists ---- */

/* Calls take for each word of a comma-separated list. */
static int each_word(const char *option, const char *list, int (*take)(const char *word, void *to, struct ll_err *err),
		     void *to, struct ll_err *err)
{
	LL_SCOPE_FREE char *copy = strdup(list);
	char *rest = copy;
	if (!copy)
		return ll_err_set(err, -ENOMEM, "--%s: %s", option, strerror(ENOMEM));
	for (const char *word; (word = strsep(&rest, ","));) {
		int rc = take(word, to, err);
		if (rc < 0)
			return ll_err_wrap(err, "--%s", option);
	}
	return 0;
}

static int find_word(const char *word, const char *const *words, struct ll_err *err)
{
	char all[120] = "";
	for (int i = 0; words[i]; i++) {
		if (strcmp(words[i], word) == 0)
			return i;
		strncat(all, i ? ", " : "", sizeof all - strlen(all) - 1);
		strncat(all, words[i], sizeof all - strlen(all) - 1);
	}
	return ll_err_set(err, -EINVAL, "'%.60s': not one of %s", word, all);
}

static int take_experiment(const char *word, void *to, struct ll_err *err)
{
	int found = find_word(word, experiment_words, err);
	if (found >= 0)
		*(unsigned *)to |= 1U << found;
	return found < 0 ? found : 0;
}

static int take_parallel(const char *word, void *to, struct ll_err *err)
{
	int found = find_word(word, parallel_words, err);
	if (found >= 0)
		((struct ll_probe_choice *)to)->parallel[found] = true;
	return found < 0 ? found : 0;
}

static int take_priority(const char *word, void *to, struct ll_err *err)
{
	struct ll_probe_choice *choice = to;
	int found = find_word(word, priority_words, err);
	choice->equal |= found == 0;
	choice->different |= found == 1;
	return found < 0 ? found : 0;
}

static int take_grid(const char *word, void *to, struct ll_err *err)
{
	struct ll_probe_choice *choice = to;
	int found = find_word(word, grid_words, err);
	choice->tiny |= found == 0;
	choice->full |= found == 1;
	return found < 0 ? found : 0;
}

static int take_connections(const char *word, void *to, struct ll_err *err)
{
	struct ll_probe_choice *choice = to;
	uint64_t connections;
	int rc = ll_parse_uint(word, 1, MAX_CONNECTIONS, &connections, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < choice->connections_count; i++) {
		if (choice->connections[i] == connections)
			return 0;
	}
	if (choice->connections_count == LL_PROBE_CHOICES)
		return ll_err_set(err, -EINVAL, "more than %d values", LL_PROBE_CHOICES);
	choice->connections[choice->connections_count++] = (unsigned)connections;
	return 0;
}

static int read_under(const char *word, struct ll_probe_under *ret_under, struct ll_err *err)
{
	static const char mps[] = "mps:";
	if (strncmp(word, mps, strlen(mps)) != 0) {
		static const char *const plain[] = {"default", "mps", "exclusive", NULL};
		int found = find_word(word, plain, NULL);
		if (found < 0)
			return ll_err_set(err, -EINVAL, "'%.60s': not one of default, mps, mps:N%%, exclusive", word);
		*ret_under = (struct ll_probe_under){.manner = (enum ll_probe_manner)found};
		return 0;
	}
	double percent;
	int rc = ll_parse_share(word + strlen(mps), &percent, err);
	if (rc < 0)
		return rc;
	if (percent < 1 || percent > 100 || percent != (double)(unsigned)percent)
		return ll_err_set(err, -EINVAL, "'%.60s': a whole percentage from 1 to 100", word);
	*ret_under = (struct ll_probe_under){.manner = LL_PROBE_MPS, .percent = (unsigned)percent};
	return 0;
}

static int take_under(const char *word, void *to, struct ll_err *err)
{
	struct ll_probe_choice *choice = to;
	struct ll_probe_under under = {.manner = LL_PROBE_DEFAULT};
	int rc = read_under(word, &under, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < choice->under_count; i++) {
		if (ll_probe_under_same(choice->unders[i], under))
			return 0;
	}
	if (choice->under_count == LL_PROBE_CHOICES)
		return ll_err_set(err, -EINVAL, "more than %d values", LL_PROBE_CHOICES);
	choice->unders[choice->under_count++] = under;
	return 0;
}

/* ---- all of them ---- */

/* Fills in the choice, with the defaults of options that were not given. The default includes exclusive cells;
 * cmd_probe.c leaves them out if the card is not in that mode. */
static int read_choice(const struct ll_probe_args *args, struct ll_probe_choice *choice, struct ll_err *err)
{
	int rc = each_word("parallel", args->parallel ? args->parallel : "streams,threads,per-thread,processes",
			   take_parallel, choice, err);
	if (rc == 0)
		rc = each_word("under", args->under ? args->under : "default,mps,mps:50%,exclusive", take_under, choice,
			       err);
	if (rc == 0)
		rc = each_word("priority", args->priority ? args->priority : "equal,different", take_priority, choice,
			       err);
	if (rc == 0)
		rc = each_word("grid", args->grid ? args->grid : "tiny,full", take_grid, choice, err);
	if (rc == 0)
		rc = each_word("connections", args->connections ? args->connections : "1,8,32", take_connections,
			       choice, err);
	return rc;
}

static int check_load(const struct ll_probe_args *args, struct ll_err *err)
{
	if (args->kernel_ns < LL_NS_PER_US || args->kernel_ns > LL_NS_PER_S / 2)
		return ll_err_set(err, -EINVAL, "--kernel: 1us to 500ms");
	if (args->count * args->each > LL_PROBE_LAUNCHES)
		return ll_err_set(err, -EINVAL, "--count times --each: at most %d kernels", LL_PROBE_LAUNCHES);
	return 0;
}

int ll_probe_args_read(const struct ll_probe_args *args, struct ll_probe_wish *ret_wish, struct ll_err *err)
{
	bool chooses = args->parallel || args->under || args->priority || args->grid || args->connections;
	struct ll_probe_wish wish = {
	    .load = {.parties = (uint32_t)args->count, .kernels = (uint32_t)args->each, .length_ns = args->kernel_ns},
	    .runs = args->runs,
	    .cell_runs = args->runs < CELL_RUNS ? args->runs : CELL_RUNS,
	};
	const char *experiments = chooses ? "matrix" : "matrix,slice,preemption,idle";
	int rc = each_word("experiment", args->experiments ? args->experiments : experiments, take_experiment,
			   &wish.experiments, err);
	if (rc == 0)
		rc = read_choice(args, &wish.choice, err);
	if (rc == 0)
		rc = check_load(args, err);
	if (rc == 0 && chooses && !(wish.experiments & LL_PROBE_MATRIX))
		rc = ll_err_set(err, -EINVAL, "cells are chosen, but --experiment leaves out the matrix");
	if (rc == 0 && (wish.experiments & LL_PROBE_MATRIX) && ll_probe_cells(&wish.choice, NULL, 0) == 0)
		rc = ll_err_set(err, -EINVAL, "no such cell: a default stream has no priority to choose");
	if (rc == 0 && args->svg && !(wish.experiments & LL_PROBE_MATRIX))
		rc = ll_err_set(err, -EINVAL, "--svg: the picture is of the matrix, which --experiment leaves out");
	if (rc == 0)
		*ret_wish = wish;
	return rc;
}
