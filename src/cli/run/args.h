/*
 * args.h - the options of `loadline run`, and their translation into the settings of a tenant.
 */
#ifndef LOADLINE_CLI_RUN_ARGS_H
#define LOADLINE_CLI_RUN_ARGS_H

#include <stdbool.h>

#include "cli/options/limit_words.h"
#include "cli/options/option.h"
#include "driver/cards.h"
#include "protocol/run_settings.h"

/* What the programs on a card share. */
enum ll_run_by {
	LL_RUN_BY_SLICES, /* the card's time, by its own time slices and by visits */
	LL_RUN_BY_SPACE,  /* the card's SMs at the same time, as clients of MPS */
	LL_RUN_BY_AUTO,   /* by space if an MPS daemon takes the program with these options, otherwise by slices */
};

/* On which of its CPUs the command runs. */
enum ll_run_cpus {
	LL_RUN_CPUS_ALL,
	LL_RUN_CPUS_NEAR, /* those near its cards */
};

/* What the caller of ll_run_start learns before the command starts. */
struct ll_run_watch {
	void *data;
	/* The queue has given the job a number: each time that it tells of the job. */
	void (*on_number)(void *data, uint64_t number, uint64_t job);
	/* The command starts now. job: token[0] */
	void (*on_start)(void *data, uint64_t job);
};

struct ll_run_args {
	char *cards;
	const char *mem, *mem_request, *compute, *weight, *class, *slowdown; /* NULL: not given */
	const char *tenant, *max_kernel, *project, *name;
	int count_context; /* 0: yes, 1: no */
	int by;            /* enum ll_run_by */
	int cpus;          /* enum ll_run_cpus */
	bool allow_ungoverned;
	bool strict;
	bool evictable, no_neighbour;
	bool overcommit;                              /* requests beyond the card's memory are allowed */
	uint64_t card_count, time_ns, wait_ns, after; /* for the queue; 0: not given */
	uint64_t after_ok;
	bool no_wait;
	const char *signal;
	const struct ll_run_watch *watch; /* no option sets it; NULL: nobody watches */
};

extern const struct ll_option ll_run_options[];

/* Option rows that `run` and `mps run` share. They fill struct ll_run_args. */
#define LL_RUN_OPTION_WEIGHT                                                                                           \
	{                                                                                                              \
		.name = "weight", .letter = 'w', .placeholder = "NUMBER", LL_OPTION_TEXT(struct ll_run_args, weight),  \
		.help = LL_LIMIT_WEIGHT_HELP, .more = N_("The default is 1.")                                          \
	}
#define LL_RUN_OPTION_CLASS                                                                                            \
	{                                                                                                              \
		.name = "class", .alias = "priority", .letter = 'p', .placeholder = "CLASS",                           \
		LL_OPTION_TEXT(struct ll_run_args, class), .choices = ll_limit_classes, .help = LL_LIMIT_CLASS_HELP,   \
		.more = N_("The default is normal.")                                                                   \
	}
#define LL_RUN_OPTION_SLOWDOWN                                                                                         \
	{                                                                                                              \
		.name = "slowdown", .placeholder = "NUMBER", LL_OPTION_TEXT(struct ll_run_args, slowdown),             \
		.help = LL_LIMIT_SLOWDOWN_HELP, .more = N_("The default is 1.3.")                                      \
	}

/* Reads args->signal, which must be given: "USR1@60s", "USR1". *ret_before_s: so long before the end. -EINVAL. */
int ll_run_args_signal(const struct ll_run_args *args, uint16_t *ret_signal, uint16_t *ret_before_s,
		       struct ll_err *err);

/*
 * Makes the settings of a new tenant, with a random id. Without --tenant the name is made of the command and this
 * process's id. The folder stays empty, and without --compute the share of space does too. -EINVAL: the error names the
 * option.
 */
int ll_run_args_settings(const struct ll_run_args *args, const char *command, struct ll_run_settings *ret_settings,
			 struct ll_err *err);

/*
 * Checks the options of a `run` inside a tenant (outer). All programs that a tenant starts stay in it, so limits and a
 * new name are not allowed: -EPERM.
 */
int ll_run_args_check_nested(const struct ll_run_args *args, const struct ll_run_settings *outer, struct ll_err *err);

/* Checks the memory limit and the request for this card. -EINVAL: one is larger than the card's memory, or the limit is
 * smaller than a context. */
int ll_run_args_check_card(const struct ll_run_settings *settings, const struct ll_card *card, struct ll_err *err);

#endif
