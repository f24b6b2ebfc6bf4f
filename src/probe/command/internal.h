/*
 * internal.h - the parts of 'loadline probe': its options, the environment of its processes, what it changes on the
 * machine, its output.
 */
#ifndef LOADLINE_CLI_PROBE_INTERNAL_H
#define LOADLINE_CLI_PROBE_INTERNAL_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/strbuf.h"
#include "cli/options/option.h"
#include "driver/cards.h"
#include "mps/mps.h"
#include "probe/probe.h"

struct ll_err;
struct ll_probe_keeper;

/* ---- args ---- */

/* The options of `loadline probe`. */

struct ll_probe_args {
	char *cards;
	char *experiments;
	char *parallel, *under, *priority, *grid, *connections;
	uint64_t count, each, kernel_ns, runs;
	const char *svg;
	bool list, json, set_exclusive;
};

/* The words of lists, NULL-ended, in the order of their enums. */
extern const char *const ll_probe_experiment_words[],
    *const ll_probe_parallel_words[], *const ll_probe_priority_words[], *const ll_probe_grid_words[];

/* ---- environment ---- */

/*
 * The environment of the probe's processes: their variables, a private MPS daemon, the card's compute
 * mode.
 */

enum { LL_PROBE_VARIABLES = 9, LL_PROBE_VARIABLE_SIZE = 320 };

/* The caller zeroes it and fills in the first four fields. */
struct ll_probe_environment {
	struct ll_probe_keeper *keeper; /* must outlive the environment */
	const struct ll_driver *driver;
	const struct ll_card *card;
	bool may_set_exclusive;
	struct ll_mps_place mps; /* of the private daemon, while the keeper's debt has its folder */
	char no_mps[300];        /* why that could not be started */
	char texts[LL_PROBE_VARIABLES][LL_PROBE_VARIABLE_SIZE];
	const char *variables[LL_PROBE_VARIABLES + 1];
};

/* The function for arrange of struct ll_probe_host. user: the environment. */
int ll_probe_environment_arrange(void *user, struct ll_probe_under under, unsigned connections,
				 const char *const **ret_environment, struct ll_err *err);

/* Restores the mode, ends the daemon and removes its folders. It tries all of these, and returns the first error. */
int ll_probe_environment_fini(struct ll_probe_environment *environment, struct ll_err *err);

/* ---- keeper ---- */

/*
 * What the probe changes on the machine, and the process that puts it back if the probe is killed.
 *
 * The probe starts a private MPS daemon in a temporary folder, for one card. No other program's clients find it, and it
 * needs neither root nor another compute mode. The probe may also change a card's compute mode. Daemon, folder and mode
 * would outlive a probe that dies by SIGKILL. So a separate process, the keeper, waits for the end of the probe, and
 * then undoes what the probe has not undone. A pipe connects the two: before each change the probe writes into it what
 * must be undone, and the pipe closes when the probe ends.
 */

/* Short, because the folder has the driver's sockets (mps/mps.h). */
enum { LL_PROBE_MPS_FOLDER_SIZE = 80 };

/* What must be undone. An empty text: nothing. */
struct ll_probe_debt {
	char folder[LL_PROBE_MPS_FOLDER_SIZE]; /* of the private MPS daemon: end the daemon and remove the folder */
	char exclusive_uuid[LL_UUID_SIZE];     /* of a card: restore its default mode */
};

struct ll_probe_keeper {
	pid_t pid; /* 0: there is no keeper, and the other calls do nothing */
	int fd;
	struct ll_probe_debt debt;
};

/* Starts the keeper by fork. Call it before the driver is opened, because the driver has threads. Signals that the
 * caller blocks are blocked in the keeper too. */
int ll_probe_keeper_start(struct ll_probe_keeper *keeper, struct ll_err *err);

/* Ends the keeper. Waits for its end if nothing is to be undone; otherwise the keeper tries once more by itself. */
void ll_probe_keeper_end(struct ll_probe_keeper *keeper);

/* ---- output ---- */

/* The output of `loadline probe`: a table with statements below it, or JSON lines. */

/* ---- text ---- */

void ll_probe_text_begin(const struct ll_probe_report *report);
/* Prints the row of a cell, as soon as it is measured. previous: the cell of the row before; NULL: it is the first. */
int ll_probe_text_cell(const struct ll_probe_result *result, const struct ll_probe_cell *previous, struct ll_err *err);
/* Prints the measurements other than the matrix, and the statements. */
void ll_probe_text_end(const struct ll_probe_report *report);
void ll_probe_text_first(const struct ll_probe_first *first);
/* Prints the cells for --list. */
void ll_probe_text_list(const struct ll_probe_cell *cells, size_t count);

/* ---- JSON: {"event":"card"|"cell"|"slice"|"preemption"|"idle"|"memory"|"statement"|"first"|"list", …} ---- */

int ll_probe_json_begin(const struct ll_probe_report *report, struct ll_err *err);
int ll_probe_json_cell(const struct ll_probe_result *result, struct ll_err *err);
int ll_probe_json_end(const struct ll_probe_report *report, struct ll_err *err);
int ll_probe_json_first(const struct ll_probe_first *first, struct ll_err *err);
int ll_probe_json_list(const struct ll_probe_cell *cells, size_t count, struct ll_err *err);

#endif
