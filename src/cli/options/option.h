/*
 * option.h - the option table of a command, one row for each option. The parser, --help, the manual page and the shell
 * completions use the same row.
 *
 * A command has a struct for the values of its options, and describes each field by a row:
 *
 *     struct hold_args {
 *             char *cards;
 *             const char *target;
 *             uint64_t resume_after_ns;
 *             bool json;
 *     };
 *     static const struct ll_option hold_options[] = {
 *         LL_OPTION_CARDS(struct hold_args, cards),
 *         {.name = "target", .letter = 't', .placeholder = "LEVEL", LL_OPTION_TEXT(struct hold_args, target),
 *          .fallback = "50%", .help = N_("Level to hold: a percentage, or watts for the power metric.")},
 *         {.name = "resume-after", .placeholder = "TIME", LL_OPTION_DURATION(struct hold_args, resume_after_ns),
 *          .fallback = "5s", .help = N_("Hold again after the card was quiet for this long.")},
 *         LL_OPTION_JSON(struct hold_args, json),
 *         LL_OPTION_END,
 *     };
 *
 * The kind macros check at compile time that the field has the type that the parser writes. A fallback is parsed like a
 * user's value. An option that is not given and has no fallback leaves its field zero. Every command has --help without
 * a row.
 *
 * The parser accepts --name=value, --name value, -n value, -nvalue and several flags in one word (-ab). It does not
 * accept abbreviated names. Options and operands may be mixed; "--" ends the options. If an option is given twice, the
 * last value counts; a list joins its values with commas. A value in a word of its own must not begin with "--", and a
 * text must not be empty: both are usually mistakes. A table has at most 64 rows.
 */
#ifndef LOADLINE_CLI_OPTIONS_OPTION_H
#define LOADLINE_CLI_OPTIONS_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/translate.h"

struct ll_err;
struct ll_command;
struct ll_option;

enum ll_option_kind {
	LL_OPTION_KIND_FLAG,     /* bool, takes no value */
	LL_OPTION_KIND_TEXT,     /* const char *, part of argv or the fallback: nobody frees it */
	LL_OPTION_KIND_LIST,     /* char *, repeated values joined by commas; freed by ll_options_fini */
	LL_OPTION_KIND_CHOICE,   /* int, the index of the word in .choices */
	LL_OPTION_KIND_BYTES,    /* uint64_t bytes */
	LL_OPTION_KIND_DURATION, /* uint64_t nanoseconds */
	LL_OPTION_KIND_PERCENT,  /* double percent, .min to .max */
	LL_OPTION_KIND_CELSIUS,  /* double degrees Celsius, .min to .max */
	LL_OPTION_KIND_UINT,     /* uint64_t, .min to .max */
	LL_OPTION_KIND_OPTIONAL, /* const char *: --name gives "", --name=value gives value, neither NULL */
};

enum ll_option_complete {
	LL_COMPLETE_NOTHING,
	LL_COMPLETE_FILE,    /* the shell offers file names */
	LL_COMPLETE_CARD,    /* card indices and "all" */
	LL_COMPLETE_COMMAND, /* subcommands */
	LL_COMPLETE_CLAIM,   /* claims and tenants that `loadline status` shows now */
};

struct ll_option {
	const char *name;        /* without dashes; NULL ends the table */
	const char *alias;       /* another name of it, of earlier versions; NULL: none. It is shown nowhere */
	char letter;             /* short form, or 0 */
	const char *placeholder; /* "TIME"; NULL for a flag */
	enum ll_option_kind kind;
	size_t offset;              /* of the field; set by the kind macros */
	const char *fallback;       /* shown as the default and parsed; NULL: none */
	const char *const *choices; /* CHOICE: words, NULL-ended; TEXT: only offered by completion */
	/* CHOICE: other words for the first choices, in their order, NULL-ended; NULL: none. They are shown nowhere */
	const char *const *choice_aliases;
	double min;
	double max; /* numbers: the allowed range; max 0 means no limit. BYTES, DURATION: min 1 means not 0 */
	enum ll_option_complete complete;
	const char *help; /* one or more whole sentences */
	const char *more; /* further sentences, where other options have the same help; NULL: none */
};

#define LL_OPTION_FIELD_(type, field, want)                                                                            \
	(offsetof(type, field) +                                                                                       \
	 0 * sizeof(char[__builtin_types_compatible_p(__typeof__(((type *)0)->field), want) ? 1 : -1]))

#define LL_OPTION_FLAG(type, field) .kind = LL_OPTION_KIND_FLAG, .offset = LL_OPTION_FIELD_(type, field, bool)
#define LL_OPTION_TEXT(type, field) .kind = LL_OPTION_KIND_TEXT, .offset = LL_OPTION_FIELD_(type, field, const char *)
#define LL_OPTION_LIST(type, field) .kind = LL_OPTION_KIND_LIST, .offset = LL_OPTION_FIELD_(type, field, char *)
#define LL_OPTION_CHOICE(type, field) .kind = LL_OPTION_KIND_CHOICE, .offset = LL_OPTION_FIELD_(type, field, int)
#define LL_OPTION_BYTES(type, field) .kind = LL_OPTION_KIND_BYTES, .offset = LL_OPTION_FIELD_(type, field, uint64_t)
#define LL_OPTION_DURATION(type, field)                                                                                \
	.kind = LL_OPTION_KIND_DURATION, .offset = LL_OPTION_FIELD_(type, field, uint64_t)
#define LL_OPTION_PERCENT(type, field) .kind = LL_OPTION_KIND_PERCENT, .offset = LL_OPTION_FIELD_(type, field, double)
#define LL_OPTION_CELSIUS(type, field) .kind = LL_OPTION_KIND_CELSIUS, .offset = LL_OPTION_FIELD_(type, field, double)
#define LL_OPTION_UINT(type, field) .kind = LL_OPTION_KIND_UINT, .offset = LL_OPTION_FIELD_(type, field, uint64_t)
#define LL_OPTION_OPTIONAL(type, field)                                                                                \
	.kind = LL_OPTION_KIND_OPTIONAL, .offset = LL_OPTION_FIELD_(type, field, const char *)

/* Rows that have the same meaning in every command. */
#define LL_OPTION_CARDS(type, field)                                                                                   \
	{                                                                                                              \
		.name = "cards", .letter = 'i', .placeholder = "CARDS", LL_OPTION_LIST(type, field),                   \
		.complete = LL_COMPLETE_CARD,                                                                          \
		.help = N_("Cards to use, in PCI order: an index, a range (2-3), a UUID, a PCI address, 'all', or "    \
			   "several of these with commas. May be repeated.")                                           \
	}
#define LL_OPTION_JSON(type, field)                                                                                    \
	{                                                                                                              \
		.name = "json", LL_OPTION_FLAG(type, field),                                                           \
		.help = N_("Print one JSON object per line. Numbers are JSON numbers, with their unit in the key.")    \
	}
#define LL_OPTION_END                                                                                                  \
	{                                                                                                              \
		.name = NULL                                                                                           \
	}

/* The words that are not options. */
struct ll_operands {
	int count;
	char **words; /* NULL-ended, so that exec can take it */
};

/*
 * Parses argv[0..argc), and fills args, which the caller has zeroed. argv has no program or command name, and a NULL
 * after its end. The operands are moved to the front of argv. stops_at_operand: the first operand ends the options.
 * *ret_wants_help: --help or -h was given, and the rest was not parsed. -EINVAL: an option is not in the table, or its
 * value is missing, bad or not allowed; the error's text names the option. Then args may be partly filled.
 * ll_options_fini accepts such args, and zeroed ones.
 */
int ll_options_parse(const struct ll_option *options, void *args, int argc, char **argv, bool stops_at_operand,
		     struct ll_operands *ret_operands, bool *ret_wants_help, struct ll_err *err);

/* Frees the lists in args and zeroes their fields. */
void ll_options_fini(const struct ll_option *options, void *args);

/* The options that stand before COMMAND. */
struct ll_globals {
	const char *sim; /* NULL: the real driver; "": the simulator's default scenario; else a scenario */
	int log_level;   /* enum ll_log_level */
	bool wants_version;
};

extern const struct ll_option ll_global_options[];

/*
 * Finds the option or the command that a misspelt word means.
 */

/* Returns the option of a table, or "help", which each command has, that is meant by a name of this length: the one
 * that other programs call so (program.h), else the nearest. NULL: none. */
const char *ll_nearest_option(const struct ll_option *options, const char *name, size_t length);

/* Returns the command of a NULL-ended list that is meant by a word: the one that other programs call so, else the
 * nearest. NULL: none. */
const char *ll_nearest_command(const struct ll_command *const *list, const char *word);

#endif
