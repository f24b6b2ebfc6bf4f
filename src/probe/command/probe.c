/*
 * probe.c - the program loadline-probe.
 */
#include "probe/command/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/scope.h"
#include "cli/options/program.h"
#include "cli/run/run.h"
#include "driver/readings.h"
#include "probe/probe.h"
#include "protocol/inherited.h"
#include "protocol/run_settings.h"

/* ---- args ---- */

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

/* The words that a list may have, and those that it has, one bit for each. */
struct chosen {
	const char *const *words;
	unsigned mask;
};

static int take_word(const char *word, void *to, struct ll_err *err)
{
	struct chosen *chosen = to;
	int found = find_word(word, chosen->words, err);
	if (found < 0)
		return found;
	chosen->mask |= 1U << found;
	return 0;
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

/* What the user asks for. */
struct wish {
	unsigned experiments; /* enum ll_probe_experiment */
	struct ll_probe_choice choice;
	struct ll_probe_load load;
	size_t runs;      /* runs of the slice, preemption and idle measurements */
	size_t cell_runs; /* runs of each cell */
};

/* Reads the lists, with the defaults of options that were not given. The default includes exclusive cells; make_cells
 * leaves them out if the card is not in that mode. */
static int read_lists(const struct ll_probe_args *args, bool chooses, struct wish *wish, struct ll_err *err)
{
	struct ll_probe_choice *choice = &wish->choice;
	struct chosen experiments = {.words = ll_probe_experiment_words}, parallel = {.words = ll_probe_parallel_words},
		      priority = {.words = ll_probe_priority_words}, grid = {.words = ll_probe_grid_words};
	const struct {
		const char *option, *list, *fallback;
		int (*take)(const char *word, void *to, struct ll_err *err);
		void *to;
	} lists[] = {
	    {"experiment", args->experiments, chooses ? "matrix" : "matrix,slice,preemption,idle", take_word,
	     &experiments},
	    {"parallel", args->parallel, "streams,threads,per-thread,processes", take_word, &parallel},
	    {"under", args->under, "default,mps,mps:50%,exclusive", take_under, choice},
	    {"priority", args->priority, "equal,different", take_word, &priority},
	    {"grid", args->grid, "tiny,full", take_word, &grid},
	    {"connections", args->connections, "1,8,32", take_connections, choice},
	};
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < sizeof lists / sizeof *lists; i++)
		rc = each_word(lists[i].option, lists[i].list ? lists[i].list : lists[i].fallback, lists[i].take,
			       lists[i].to, err);
	wish->experiments = experiments.mask;
	for (int i = 0; i < LL_PROBE_PARALLELS; i++)
		choice->parallel[i] = parallel.mask >> i & 1;
	choice->equal = priority.mask & 1;
	choice->different = priority.mask & 2;
	choice->tiny = grid.mask & 1;
	choice->full = grid.mask & 2;
	return rc;
}

/* Reads the options. -EINVAL: the error names the option and the bad word. */
static int read_wish(const struct ll_probe_args *args, struct wish *wish, struct ll_err *err)
{
	bool chooses = args->parallel || args->under || args->priority || args->grid || args->connections;
	wish->load = (struct ll_probe_load){
	    .parties = (uint32_t)args->count, .kernels = (uint32_t)args->each, .length_ns = args->kernel_ns};
	wish->runs = args->runs;
	wish->cell_runs = args->runs < CELL_RUNS ? args->runs : CELL_RUNS;
	int rc = read_lists(args, chooses, wish, err);
	if (rc < 0)
		return rc;
	if (args->kernel_ns < LL_NS_PER_US || args->kernel_ns > LL_NS_PER_S / 2)
		return ll_err_set(err, -EINVAL, "--kernel: 1us to 500ms");
	if (args->count * args->each > LL_PROBE_LAUNCHES)
		return ll_err_set(err, -EINVAL, "--count times --each: at most %d kernels", LL_PROBE_LAUNCHES);
	bool has_matrix = wish->experiments & LL_PROBE_MATRIX;
	if (chooses && !has_matrix)
		return ll_err_set(err, -EINVAL, "cells are chosen, but --experiment leaves out the matrix");
	if (has_matrix && ll_probe_cells(&wish->choice, NULL, 0) == 0)
		return ll_err_set(err, -EINVAL, "no such cell: a default stream has no priority to choose");
	if (args->svg && !has_matrix)
		return ll_err_set(err, -EINVAL, "--svg: the picture is of the matrix, which --experiment leaves out");
	return 0;
}

/* ---- probe ---- */

enum { MAX_CELLS = LL_PROBE_PARALLELS * LL_PROBE_CHOICES * LL_PROBE_CHOICES * 4 };

/* The state of the command. */
struct probe_run {
	const struct ll_probe_args *args;
	struct wish wish;
	const struct ll_card *card;
	struct ll_probe_environment environment;
	struct ll_probe_keeper keeper;
	const struct ll_probe_cell *told; /* of the row that was printed last; NULL: none */
	struct ll_probe_host host;
	struct ll_probe_report report;
	struct ll_probe_cell *cells;
	struct ll_probe_result *results;
	int signal_status; /* the exit status after -EINTR */
	FILE *svg;         /* --svg, open */
	bool has_made_svg;
	sigset_t old_signals;
};

/* ---- before ---- */

static int choose_card(const struct ll_driver *driver, const char *text, const struct ll_card **ret_card,
		       struct ll_err *err)
{
	LL_SCOPE_FREE const struct ll_card **cards = NULL;
	size_t count = 0;
	int rc = ll_run_cards_choose(driver, text, &cards, &count, err);
	if (rc < 0)
		return rc;
	if (text && count > 1)
		return ll_err_set(err, -EINVAL, "-i %.60s: probe looks at one card at a time", text);
	if (count == 0)
		return ll_err_set(err, -ENODEV, "no card to probe");
	*ret_card = cards[0];
	return 0;
}

static int make_cells(struct probe_run *run, struct ll_err *err)
{
	struct ll_probe_choice *choice = &run->wish.choice;
	enum ll_compute_mode mode;
	bool is_exclusive =
	    run->card && ll_read_compute_mode(run->card, &mode, NULL) == 0 && mode == LL_MODE_EXCLUSIVE_PROCESS;
	/* Silently leaves out cells that need another compute mode, unless the user asked for them. */
	if (!run->args->under && !run->args->set_exclusive && !is_exclusive) {
		size_t count = choice->under_count;
		choice->under_count = 0;
		for (size_t i = 0; i < count; i++) {
			if (choice->unders[i].manner != LL_PROBE_EXCLUSIVE)
				choice->unders[choice->under_count++] = choice->unders[i];
		}
	}
	run->cells = calloc(MAX_CELLS, sizeof *run->cells);
	run->results = calloc(MAX_CELLS, sizeof *run->results);
	if (!run->cells || !run->results)
		return ll_err_set(err, -ENOMEM, "cells: %s", strerror(ENOMEM));
	if (run->wish.experiments & LL_PROBE_MATRIX)
		run->report.count = ll_probe_cells(choice, run->cells, MAX_CELLS);
	run->report.results = run->results;
	return 0;
}

static void describe_card(struct probe_run *run, const struct ll_driver *driver)
{
	struct ll_probe_report *report = &run->report;
	snprintf(report->card_label, sizeof report->card_label, "%s", run->card->label);
	report->card_index = run->card->index;
	snprintf(report->card_name, sizeof report->card_name, "%s", run->card->name);
	snprintf(report->card_uuid, sizeof report->card_uuid, "%s", run->card->uuid);
	snprintf(report->driver_version, sizeof report->driver_version, "%s", ll_driver_nvml(driver)->driver_version);
	report->is_simulated = ll_driver_sim_folder(driver) != NULL;
	report->sm_count = run->card->sm_count;
	report->measured = run->wish.experiments;
}

/* Warns of other processes on the card, because their work changes the figures. */
static void warn_of_company(const struct ll_card *card)
{
	struct ll_process_list list = {0};
	if (ll_read_processes(card, LL_PROCESS_ALL, &list, NULL) == 0 && list.count)
		ll_warn("card %s: %zu other process%s on it: their work is in these figures", card->label, list.count,
			list.count == 1 ? " is" : "es are");
	ll_process_list_fini(&list);
	struct ll_run_settings settings;
	if (ll_run_settings_find(&settings) != -ENOENT)
		ll_warn("under `loadline run`: its limits are in these figures");
}

/* ---- measuring ---- */

static int tell_cell(void *user, const struct ll_probe_result *result, struct ll_err *err)
{
	struct probe_run *run = user;
	if (run->args->json)
		return ll_probe_json_cell(result, err);
	int rc = ll_probe_text_cell(result, run->told, err);
	run->told = &result->cell; /* in run->results, as long as this run */
	return rc;
}

static int arrange_environment(void *user, struct ll_probe_under under, unsigned connections,
			       const char *const **ret_environment, struct ll_err *err)
{
	struct probe_run *run = user;
	return ll_probe_environment_arrange(&run->environment, under, connections, ret_environment, err);
}

/* Called before the driver is opened: a signal in one of the driver's threads would end the process. */
static int block_signals(struct probe_run *run, struct ll_err *err)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	signal(SIGPIPE, SIG_IGN); /* a write to a closed pipe then fails, and the probe ends after it has cleaned up */
	pthread_sigmask(SIG_BLOCK, &set, &run->old_signals);
	run->host.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return run->host.signal_fd < 0 ? ll_err_set(err, -errno, "wait for signals: %s", strerror(errno)) : 0;
}

static int measure_all(struct probe_run *run, struct ll_err *err)
{
	const struct ll_probe_plan plan = {
	    .card = run->card,
	    .load = run->wish.load,
	    .runs = run->wish.cell_runs,
	    .cells = run->cells,
	    .count = run->report.count,
	};
	unsigned wanted = run->wish.experiments;
	size_t runs = run->wish.runs;
	int rc = 0;
	if (wanted & LL_PROBE_MATRIX)
		rc = ll_probe_measure(&plan, &run->host, run->results, run->report.memories, err);
	if (rc == 0 && wanted & LL_PROBE_SLICE)
		rc = ll_probe_slicing_measure(run->card, &run->host, runs, &run->report.slicing, err);
	if (rc == 0 && wanted & LL_PROBE_PREEMPTION)
		rc = ll_probe_arrival_measure(run->card, &run->host, runs, &run->report.arrival, err);
	if (rc == 0 && wanted & LL_PROBE_IDLE)
		rc = ll_probe_idling_measure(run->card, &run->host, runs < 20 ? runs : 20, &run->report.idling, err);
	return rc;
}

/* Measures, and afterwards restores the environment, also after a failure. */
static int measure_card(struct probe_run *run, struct ll_err *err)
{
	struct ll_err fini_err = {0};
	int rc = measure_all(run, err);
	if (rc == -EINTR) {
		/* As a shell does: 130 for Ctrl-C. The signal is taken off the queue. */
		struct signalfd_siginfo info;
		bool is_read = read(run->host.signal_fd, &info, sizeof info) == (ssize_t)sizeof info;
		run->signal_status = is_read ? 128 + (int)info.ssi_signo : LL_EXIT_FAILED;
	}
	int fini_rc = ll_probe_environment_fini(&run->environment, &fini_err);
	if (fini_rc < 0 && rc == -EINTR)
		ll_error("%s", fini_err.text);
	if (fini_rc < 0 && rc == 0) {
		rc = fini_rc;
		if (err)
			*err = fini_err;
	}
	return rc;
}

/* ---- after ---- */

/* Opens the file before the measurement, so that a bad name does not cost two minutes. The old content stays until the
 * picture is written.
 */
static int open_svg(struct probe_run *run, struct ll_err *err)
{
	const char *path = run->args->svg;
	if (!path)
		return 0;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	run->has_made_svg = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = open(path, O_WRONLY | O_CLOEXEC);
	run->svg = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (run->svg)
		return 0;
	ll_err_set(err, -errno, "--svg: %.200s: %s", path, strerror(errno));
	return ll_err_exit_with(err, LL_EXIT_FAILED);
}

static int write_svg(struct probe_run *run, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf svg = LL_STRBUF_INIT;
	ll_probe_svg(&run->report, &svg);
	if (svg.failed)
		return ll_err_set(err, -ENOMEM, "--svg: %s", strerror(ENOMEM));
	/* A pipe or a terminal cannot be truncated (EINVAL). */
	bool is_cut = ftruncate(fileno(run->svg), 0) == 0 || errno == EINVAL;
	bool is_whole = is_cut && fwrite(svg.buf, 1, svg.length, run->svg) == svg.length && fflush(run->svg) == 0;
	if (!is_whole)
		return ll_err_set(err, -EIO, "--svg: %.200s: %s", run->args->svg, strerror(errno));
	run->has_made_svg = false; /* the file is complete, and is kept */
	return 0;
}

static int run_first(const struct probe_run *run, struct ll_err *err)
{
	struct ll_probe_first first;
	int rc = ll_probe_first_run(run->card, &first, err);
	if (rc == 0 && run->args->json)
		rc = ll_probe_json_first(&first, err);
	else if (rc == 0)
		ll_probe_text_first(&first);
	return rc;
}

static int show_end(struct probe_run *run, struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; i < run->report.count; i++) {
		if (run->results[i].card_sms > run->report.sm_count)
			run->report.sm_count = run->results[i].card_sms;
	}
	if (run->args->json)
		rc = ll_probe_json_end(&run->report, err);
	else
		ll_probe_text_end(&run->report);
	if (rc == 0 && run->args->svg)
		rc = write_svg(run, err);
	return rc;
}

static int probe_card(struct probe_run *run, struct ll_err *err)
{
	int rc = 0;
	if (run->args->json)
		rc = ll_probe_json_begin(&run->report, err);
	else
		ll_probe_text_begin(&run->report);
	warn_of_company(run->card);
	if (rc == 0 && run->wish.experiments & ~(unsigned)LL_PROBE_FIRST) {
		rc = measure_card(run, err);
		if (rc == 0)
			rc = show_end(run, err);
		pthread_sigmask(SIG_SETMASK, &run->old_signals, NULL);
	}
	if (rc == 0 && run->wish.experiments & LL_PROBE_FIRST)
		rc = run_first(run, err);
	return rc;
}

static void fini_run(struct probe_run *run)
{
	for (size_t i = 0; run->results && i < run->report.count; i++)
		ll_probe_result_fini(&run->results[i]);
	free(run->results);
	free(run->cells);
	if (run->host.signal_fd >= 0)
		close(run->host.signal_fd);
	if (run->svg)
		fclose(run->svg);
	if (run->has_made_svg)
		unlink(run->args->svg);
}

static int open_and_probe(struct probe_run *run, struct ll_err *err)
{
	struct ll_driver *driver = NULL;
	int rc = block_signals(run, err);
	if (rc == 0 && run->wish.experiments & LL_PROBE_MATRIX)
		rc = ll_probe_keeper_start(&run->keeper, err);
	if (rc == 0)
		rc = ll_driver_open(&driver, err);
	if (rc == 0)
		rc = choose_card(driver, run->args->cards, &run->card, err);
	if (rc == 0)
		rc = make_cells(run, err);
	if (rc == 0) {
		describe_card(run, driver);
		run->environment.keeper = &run->keeper;
		run->environment.driver = driver;
		run->environment.card = run->card;
		run->environment.may_set_exclusive = run->args->set_exclusive;
		rc = open_svg(run, err);
	}
	if (rc == 0)
		rc = probe_card(run, err);
	ll_driver_close(driver);
	ll_probe_keeper_end(&run->keeper);
	return rc;
}

static int run_probe(void *words, const struct ll_operands *operands, struct ll_err *err)
{
	struct probe_run run = {.args = words};
	(void)operands;
	run.host =
	    (struct ll_probe_host){.user = &run, .signal_fd = -1, .arrange = arrange_environment, .tell = tell_cell};
	int rc = read_wish(run.args, &run.wish, err);
	if (rc == 0 && run.args->list) {
		rc = make_cells(&run, err);
		if (rc == 0 && run.args->json)
			rc = ll_probe_json_list(run.cells, run.report.count, err);
		else if (rc == 0)
			ll_probe_text_list(run.cells, run.report.count);
	} else if (rc == 0) {
		rc = open_and_probe(&run, err);
	}
	if (rc == -EINTR)
		rc = run.signal_status;
	fini_run(&run);
	return rc;
}

static bool serve(int argc, char **argv, int *ret_rc, struct ll_err *err)
{
	if (!ll_probe_worker_is_asked(argc, argv))
		return false;
	*ret_rc = ll_probe_worker_main(argc, argv, err);
	return true;
}

int main(int argc, char **argv)
{
	static const struct ll_command *const commands[] = {&ll_command_probe, NULL};
	static const struct ll_program probe = {.commands = commands, .run = run_probe, .serve = serve};
	return ll_program_main(&probe, argc, argv);
}
