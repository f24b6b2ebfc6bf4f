#include "cli/options/option.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/nearest.h"
#include "base/parse.h"
#include "base/translate.h"
#include "cli/options/command.h"
#include "cli/options/program.h"

const char *ll_nearest_option(const struct ll_option *options, const char *name, size_t length)
{
	struct ll_nearest nearest = {.word = name, .length = length};
	const char *ours = ll_elsewhere_option(options, name, length);
	if (ours)
		return ours;
	for (; options->name; options++)
		ll_nearest_offer(&nearest, options->name);
	ll_nearest_offer(&nearest, "help");
	return nearest.name;
}

const char *ll_nearest_command(const struct ll_command *const *list, const char *word)
{
	struct ll_nearest nearest = {.word = word};
	const char *ours = ll_elsewhere_command(list, word);
	if (ours)
		return ours;
	for (; *list; list++)
		ll_nearest_offer(&nearest, (*list)->name);
	return nearest.name;
}

/* The state of the parser, which takes the words one by one. */
struct parser {
	const struct ll_option *options;
	char *args;
	char **words;
	int count;
	int next;
	uint64_t seen; /* bit n: options[n] was given */
	struct ll_err *err;
};

static int store_flag(const struct ll_option *option, void *field, const char *text, struct ll_err *err)
{
	(void)option, (void)text, (void)err;
	*(bool *)field = true;
	return 0;
}

static int store_text(const struct ll_option *option, void *field, const char *text, struct ll_err *err)
{
	if (!*text && option->kind == LL_OPTION_KIND_TEXT)
		return ll_err_set(err, -EINVAL, "must not be empty");
	*(const char **)field = text;
	return 0;
}

static int store_list(const struct ll_option *option, void *field, const char *text, struct ll_err *err)
{
	(void)option;
	char **list = field;
	if (!*text)
		return ll_err_set(err, -EINVAL, "must not be empty");
	char *joined = NULL;
	int length = *list ? asprintf(&joined, "%s,%s", *list, text) : asprintf(&joined, "%s", text);
	if (length < 0)
		return ll_err_set(err, -ENOMEM, "out of memory");
	free(*list);
	*list = joined;
	return 0;
}

static bool find_choice(const char *const *words, const char *text, int *ret_index)
{
	for (int i = 0; words && words[i]; i++) {
		if (strcmp(words[i], text) == 0) {
			*ret_index = i;
			return true;
		}
	}
	return false;
}

static int store_choice(const struct ll_option *option, void *field, const char *text, struct ll_err *err)
{
	char words[200] = "";
	if (find_choice(option->choices, text, field) || find_choice(option->choice_aliases, text, field))
		return 0;
	for (int i = 0; option->choices[i]; i++) {
		size_t used = strlen(words);
		snprintf(words + used, sizeof words - used, "%s%s", i ? ", " : "", option->choices[i]);
	}
	return ll_err_set(err, -EINVAL, "'%.60s': not one of %s", text, words);
}

/* A field that is 0 when the option is not given has no other way to say 0. */
static int store_amount(const struct ll_option *option, void *field, const char *text, struct ll_err *err)
{
	uint64_t amount;
	int rc = option->kind == LL_OPTION_KIND_BYTES ? ll_parse_bytes(text, &amount, err)
						      : ll_parse_duration(text, &amount, err);
	if (!rc && !amount && option->min > 0)
		rc = ll_err_set(err, -EINVAL, "'%.60s': must be more than 0", text);
	if (!rc)
		*(uint64_t *)field = amount;
	return rc;
}

static int store_real(const struct ll_option *option, void *field, const char *text, struct ll_err *err)
{
	double value;
	int rc = option->kind == LL_OPTION_KIND_PERCENT ? ll_parse_share(text, &value, err)
							: ll_parse_celsius(text, &value, err);
	if (rc < 0)
		return rc;
	if (option->max > 0 && (value < option->min || value > option->max))
		return ll_err_set(err, -EINVAL, "'%.60s': not between %g and %g", text, option->min, option->max);
	*(double *)field = value;
	return 0;
}

static int store_uint(const struct ll_option *option, void *field, const char *text, struct ll_err *err)
{
	uint64_t max = option->max > 0 ? (uint64_t)option->max : UINT64_MAX;
	return ll_parse_uint(text, (uint64_t)option->min, max, field, err);
}

typedef int store_fn(const struct ll_option *option, void *field, const char *text, struct ll_err *err);

static store_fn *const store[] = {
    [LL_OPTION_KIND_FLAG] = store_flag,    [LL_OPTION_KIND_TEXT] = store_text,
    [LL_OPTION_KIND_LIST] = store_list,    [LL_OPTION_KIND_CHOICE] = store_choice,
    [LL_OPTION_KIND_BYTES] = store_amount, [LL_OPTION_KIND_DURATION] = store_amount,
    [LL_OPTION_KIND_PERCENT] = store_real, [LL_OPTION_KIND_CELSIUS] = store_real,
    [LL_OPTION_KIND_UINT] = store_uint,    [LL_OPTION_KIND_OPTIONAL] = store_text,
};

static int set_value(struct parser *p, const struct ll_option *option, const char *text)
{
	int rc = store[option->kind](option, p->args + option->offset, text, p->err);
	if (rc < 0) {
		ll_err_wrap(p->err, "--%s", option->name);
		return rc;
	}
	p->seen |= UINT64_C(1) << (option - p->options);
	return 0;
}

/* Takes the next word as the option's value. */
static int take_value(struct parser *p, const struct ll_option *option)
{
	const char *word = p->next < p->count ? p->words[p->next] : NULL;
	if (!word || strncmp(word, "--", 2) == 0)
		return ll_err_set(p->err, -EINVAL, "--%s: needs a value (%s)", option->name, option->placeholder);
	p->next++;
	return set_value(p, option, word);
}

static bool is_name(const char *name, const char *word, size_t length)
{
	return name && strlen(name) == length && strncmp(name, word, length) == 0;
}

static const struct ll_option *find_long(const struct ll_option *option, const char *name, size_t length)
{
	for (; option->name; option++) {
		if (is_name(option->name, name, length) || is_name(option->alias, name, length))
			return option;
	}
	return NULL;
}

static const struct ll_option *find_letter(const struct ll_option *option, char letter)
{
	for (; option->name; option++) {
		if (option->letter == letter)
			return option;
	}
	return NULL;
}

/* name is an option with its value, as the user wrote it. */
static int hint_at_global(const struct parser *p, const struct ll_option *global, const char *name)
{
	return ll_err_hint(p->err, "write 'loadline --%.60s%s'", name,
			   global->kind == LL_OPTION_KIND_FLAG ? "" : " COMMAND");
}

static int fail_unknown(const struct parser *p, const char *name, size_t length)
{
	int shown = (int)(length < 60 ? length : 60);
	const struct ll_option *global = find_long(ll_global_options, name, length);
	if (global) {
		ll_err_set(p->err, -EINVAL, "--%.*s goes before the command", shown, name);
		return hint_at_global(p, global, name);
	}
	ll_err_set(p->err, -EINVAL, "--%.*s: unknown option", shown, name);
	const char *nearest = ll_nearest_option(p->options, name, length);
	if (nearest)
		ll_err_hint(p->err, "did you mean --%s?", nearest);
	return -EINVAL;
}

static int fail_unknown_letter(const struct parser *p, char letter)
{
	const char *name = ll_elsewhere_letter(p->options, letter);
	const char *global = ll_elsewhere_letter(ll_global_options, letter);
	ll_err_set(p->err, -EINVAL, "-%c: unknown option", letter);
	if (name)
		ll_err_hint(p->err, "did you mean --%s?", name);
	else if (global)
		hint_at_global(p, find_long(ll_global_options, global, strlen(global)), global);
	return -EINVAL;
}

/* name is what follows the dashes: "target=50%". */
static int parse_long(struct parser *p, const char *name)
{
	size_t length = strcspn(name, "=");
	const char *value = name[length] ? name + length + 1 : NULL;
	const struct ll_option *option = find_long(p->options, name, length);
	if (!option)
		return fail_unknown(p, name, length);
	if (option->kind == LL_OPTION_KIND_FLAG && value)
		return ll_err_set(p->err, -EINVAL, "--%s: takes no value", option->name);
	if (value)
		return set_value(p, option, value);
	if (option->kind == LL_OPTION_KIND_FLAG || option->kind == LL_OPTION_KIND_OPTIONAL)
		return set_value(p, option, "");
	return take_value(p, option);
}

/* letters is what follows the dash: "ab" or "i0". */
static int parse_letters(struct parser *p, const char *letters)
{
	for (; *letters; letters++) {
		const struct ll_option *option = find_letter(p->options, *letters);
		if (!option)
			return fail_unknown_letter(p, *letters);
		if (option->kind != LL_OPTION_KIND_FLAG)
			return letters[1] ? set_value(p, option, letters + 1) : take_value(p, option);
		int rc = set_value(p, option, "");
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int set_fallbacks(struct parser *p)
{
	for (int i = 0; p->options[i].name; i++) {
		const struct ll_option *option = &p->options[i];
		if (!option->fallback || (p->seen & UINT64_C(1) << i))
			continue;
		int rc = set_value(p, option, option->fallback);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static bool is_option(const char *word)
{
	return word[0] == '-' && word[1];
}

static bool is_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

int ll_options_parse(const struct ll_option *options, void *args, int argc, char **argv, bool stops_at_operand,
		     struct ll_operands *ret_operands, bool *ret_wants_help, struct ll_err *err)
{
	struct parser p = {.options = options, .args = args, .words = argv, .count = argc, .err = err};
	bool ended = false;
	int operands = 0;
	while (p.next < argc) {
		char *word = argv[p.next++];
		int rc = 0;
		if (ended || !is_option(word)) {
			argv[operands++] = word;
			ended = ended || stops_at_operand;
		} else if (strcmp(word, "--") == 0) {
			ended = true;
		} else if (is_help(word)) {
			*ret_wants_help = true;
			return 0;
		} else {
			rc = word[1] == '-' ? parse_long(&p, word + 2) : parse_letters(&p, word + 1);
		}
		if (rc < 0)
			return rc;
	}
	int rc = set_fallbacks(&p);
	if (rc < 0)
		return rc;
	argv[operands] = NULL;
	*ret_operands = (struct ll_operands){.count = operands, .words = argv};
	*ret_wants_help = false;
	return 0;
}

void ll_options_fini(const struct ll_option *options, void *args)
{
	for (; options->name; options++) {
		if (options->kind != LL_OPTION_KIND_LIST)
			continue;
		char **list = (char **)((char *)args + options->offset);
		free(*list);
		*list = NULL;
	}
}

/* ---- the options before COMMAND ---- */

/* In the order of enum ll_log_level. */
static const char *const levels[] = {"error", "warn", "info", "debug", NULL};

/* The files of sim/scenarios, which are installed with the simulated driver, and the word for a list of them. */
static const char *const scenarios[] = {"h200",           "h200x8", "h100x8", "mig", "no-off", "slices-committed",
					"slices-ignored", "list",   NULL};

const struct ll_option ll_global_options[] = {
    {.name = "sim",
     .placeholder = "SCENARIO",
     LL_OPTION_OPTIONAL(struct ll_globals, sim),
     .choices = scenarios,
     .complete = LL_COMPLETE_FILE,
     .help =
	 N_("Run on the simulated driver instead of the real one, child processes included. SCENARIO "
	    "names the simulated cards: h200, h200x8, h100x8, mig, no-off, slices-committed, slices-ignored, or a file "
	    "that describes them. 'list' prints what each name stands for. Without SCENARIO the cards stay as they "
	    "are; they are one H200 at first.")},
    {.name = "log-level",
     .placeholder = "LEVEL",
     LL_OPTION_CHOICE(struct ll_globals, log_level),
     .choices = levels,
     .fallback = "info",
     .help = N_("The least important log lines to print.")},
    {.name = "version", LL_OPTION_FLAG(struct ll_globals, wants_version), .help = N_("Print the version and exit.")},
    LL_OPTION_END,
};
