/*
 * args.h - the options of `loadline run`, and what they mean for the programs it starts.
 */
#ifndef LOADLINE_CLI_RUN_ARGS_H
#define LOADLINE_CLI_RUN_ARGS_H

#include <stdbool.h>

#include "cli/options/limit_words.h"
#include "cli/options/option.h"
#include "driver/cards.h"
#include "ledger/run_settings.h"

/* What the programs of a card share. */
enum ll_run_by {
	LL_RUN_BY_TIME,  /* its time */
	LL_RUN_BY_SPACE, /* its SMs, at the same time, as clients of MPS */
	LL_RUN_BY_AUTO,  /* by space where an MPS daemon takes the program as it is asked for, else by time */
};

struct ll_run_args {
	char *cards;
	const char *mem, *compute, *weight, *priority, *tenant, *max_kernel; /* NULL: not given */
	int count_context;                                                   /* 0: yes, 1: no */
	int by;                                                              /* enum ll_run_by */
	bool allow_ungoverned;
	bool strict;
};

extern const struct ll_option ll_run_options[];

/* The rows that `run` and `mps run` have alike, over struct ll_run_args. */
#define LL_RUN_OPTION_WEIGHT                                                                                           \
	{                                                                                                              \
		.name = "weight", .letter = 'w', .placeholder = "NUMBER", LL_OPTION_TEXT(struct ll_run_args, weight),  \
		.help = LL_LIMIT_WEIGHT_HELP " The default is 1."                                                      \
	}
#define LL_RUN_OPTION_PRIORITY                                                                                         \
	{                                                                                                              \
		.name = "priority", .letter = 'p', .placeholder = "CLASS",                                             \
		LL_OPTION_TEXT(struct ll_run_args, priority), .choices = ll_limit_priorities,                          \
		.help = LL_LIMIT_PRIORITY_HELP " The default is normal."                                               \
	}

/*
 * The settings of a new tenant: a random id, a name made from the command and this process's id where none was
 * given. The folder is left empty, and so is the share of space where no --compute says it. -EINVAL names the option.
 */
int ll_run_args_settings(const struct ll_run_args *args, const char *command, struct ll_run_settings *ret_settings,
			 struct ll_err *err);

/*
 * Inside a tenant (outer) a program stays in it: its limits hold for the whole tree, so one may not be left for
 * another. -EPERM when the options ask for that.
 */
int ll_run_args_check_nested(const struct ll_run_args *args, const struct ll_run_settings *outer, struct ll_err *err);

/* Whether the limits make sense on this card: not above its memory, above what a context takes. -EINVAL. */
int ll_run_args_check_card(const struct ll_run_settings *settings, const struct ll_card *card, struct ll_err *err);

#endif
