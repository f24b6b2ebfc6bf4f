#include "cli/probe/args.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/scope.h"
#include "probe/report.h"

enum { CELL_RUNS = 5, MAX_CONNECTIONS = 32 };

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
	int found = find_word(word, ll_probe_experiment_words, err);
	if (found >= 0)
		*(unsigned *)to |= 1U << found;
	return found < 0 ? found : 0;
}

static int take_parallel(const char *word, void *to, struct ll_err *err)
{
	int found = find_word(word, ll_probe_parallel_words, err);
	if (found >= 0)
		((struct ll_probe_choice *)to)->parallel[found] = true;
	return found < 0 ? found : 0;
}

static int take_priority(const char *word, void *to, struct ll_err *err)
{
	struct ll_probe_choice *choice = to;
	int found = find_word(word, ll_probe_priority_words, err);
	choice->equal |= found == 0;
	choice->different |= found == 1;
	return found < 0 ? found : 0;
}

static int take_grid(const char *word, void *to, struct ll_err *err)
{
	struct ll_probe_choice *choice = to;
	int found = find_word(word, ll_probe_grid_words, err);
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
