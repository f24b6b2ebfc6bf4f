#include "cli/options/help_text.h"

#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "base/utf8.h"
#include "cli/common/env_sim.h"
#include "cli/options/command.h"
#include "cli/options/option.h"

static void add_blanks(struct ll_strbuf *out, size_t count)
{
	while (count--)
		ll_strbuf_addc(out, ' ');
}

size_t ll_wrap_paragraph(const char *text, const char **ret_next)
{
	const char *end = strstr(text, "\n\n");
	size_t length = end ? (size_t)(end - text) : strlen(text);
	*ret_next = text + length + (end ? 2 : 0);
	return length;
}

size_t ll_wrap_first_sentence(const char *text)
{
	const char *end = strstr(text, ". ");
	size_t length = end ? (size_t)(end - text) : strlen(text);
	if (!end && length && text[length - 1] == '.')
		length--;
	return length;
}

/* Punctuation that must not begin a line, and that must not end one, in Chinese text. */
static const char closing[] = "，。、；：！？）》」』】”’…,.;:!?)]}";
static const char opening[] = "（《「『【“‘([{";

static bool is_one_of(const char *list, const char *character, size_t length)
{
	size_t next;
	for (uint32_t unused; (next = ll_utf8_next(list, &unused)); list += next) {
		if (next == length && memcmp(list, character, length) == 0)
			return true;
	}
	return false;
}

/* Returns the length of the text up to the first place where a line may end: a blank, or the edge of a wide character.
 * *ret_columns: its width. */
static size_t find_word(const char *text, const char *end, size_t *ret_columns)
{
	const char *at = text;
	bool may_end = false;
	*ret_columns = 0;
	while (at < end && *at != ' ' && *at != '\n') {
		uint32_t character;
		size_t length = ll_utf8_next(at, &character), width = ll_utf8_width(character);
		bool is_closing = is_one_of(closing, at, length);
		if (at > text && !is_closing && (may_end || (width > 1 && !is_one_of(opening, at - length, length))))
			break;
		may_end = (width > 1 || is_closing) && !is_one_of(opening, at, length);
		*ret_columns += width;
		at += length;
	}
	return (size_t)(at - text);
}

static void add_filled(struct ll_strbuf *out, const char *text, size_t length, size_t column, size_t indent)
{
	size_t at = column;
	const char *end = text + length;
	for (const char *word = text; word < end;) {
		size_t columns, size = find_word(word, end, &columns);
		size_t blanks = word > text && (word[-1] == ' ' || word[-1] == '\n');
		if (word != text && at + blanks + columns > LL_WRAP_WIDTH) {
			ll_strbuf_addc(out, '\n');
			add_blanks(out, indent);
			at = indent;
		} else if (blanks) {
			ll_strbuf_addc(out, ' ');
			at++;
		}
		ll_strbuf_add(out, word, size);
		at += columns;
		word += size;
		word += word < end && (*word == ' ' || *word == '\n');
	}
	ll_strbuf_addc(out, '\n');
}

static void add_kept(struct ll_strbuf *out, const char *text, size_t length, size_t column, size_t indent)
{
	add_blanks(out, column < indent ? indent - column : 0);
	for (size_t i = 0; i < length; i++) {
		ll_strbuf_addc(out, text[i]);
		if (text[i] == '\n')
			add_blanks(out, indent);
	}
	ll_strbuf_addc(out, '\n');
}

void ll_wrap(struct ll_strbuf *out, const char *text, size_t column, size_t indent)
{
	while (*text) {
		const char *next;
		size_t length = ll_wrap_paragraph(text, &next);
		if (*text == ' ')
			add_kept(out, text, length, column, indent);
		else
			add_filled(out, text, length, column, indent);
		text = next;
		column = indent;
		if (*text) {
			ll_strbuf_addc(out, '\n');
			add_blanks(out, *text == ' ' ? 0 : indent);
			column = *text == ' ' ? 0 : indent;
		}
	}
}

enum { HELP_COLUMN = 26 };

const char ll_help_about[] =
    N_("loadline lets several CUDA programs share one NVIDIA card, each with the memory and the "
       "share of time that you give it, and keeps the card at a chosen load when nobody works. "
       "That load is synthetic, and is labelled so wherever it is seen.");

const struct ll_help_status ll_help_statuses[] = {
    {LL_EXIT_OK, N_("Done.")},
    {LL_EXIT_FAILED, N_("Failed.")},
    {LL_EXIT_USAGE, N_("Bad usage: an unknown option, a bad value, an unreadable file named by an option.")},
    {LL_EXIT_NO_CARD, N_("No usable card or driver.")},
    {LL_EXIT_REFUSED, N_("A limit or a policy refuses.")},
    {0, NULL},
};

void ll_help_usage(const struct ll_command *command, struct ll_strbuf *out)
{
	if (!command) {
		ll_strbuf_adds(out, "[GLOBAL OPTION]... COMMAND [OPTION]...");
		return;
	}
	char name[LL_COMMAND_NAME_SIZE];
	ll_strbuf_adds(out, ll_command_name(command, ' ', name));
	if (command->subcommands && !command->run)
		ll_strbuf_adds(out, " COMMAND [OPTION]...");
	else if (command->options[0].name)
		ll_strbuf_adds(out, " [OPTION]...");
	if (command->operands)
		ll_strbuf_addf(out, " %s", command->operands);
}

void ll_help_signature(const struct ll_option *option, struct ll_strbuf *out)
{
	if (option->letter)
		ll_strbuf_addf(out, "-%c, ", option->letter);
	ll_strbuf_addf(out, "--%s", option->name);
	if (option->kind == LL_OPTION_KIND_OPTIONAL)
		ll_strbuf_addf(out, "[=%s]", option->placeholder);
	else if (option->placeholder)
		ll_strbuf_addf(out, " %s", option->placeholder);
}

void ll_help_option(const struct ll_option *option, struct ll_strbuf *out)
{
	ll_strbuf_adds(out, _(option->help));
	if (option->more)
		ll_strbuf_addf(out, _(" %s"), _(option->more));
	if (option->kind == LL_OPTION_KIND_CHOICE) {
		LL_SCOPE_STRBUF struct ll_strbuf words = LL_STRBUF_INIT;
		for (int i = 0; option->choices[i]; i++)
			ll_strbuf_addf(&words, "%s%s", i ? ", " : "", option->choices[i]);
		ll_strbuf_addf(out, _(" One of %s."), words.buf);
	}
	if (option->fallback)
		ll_strbuf_addf(out, _(" (default: %s)"), option->fallback);
}

static void wrap(struct ll_strbuf *out, const char *text, size_t column)
{
	LL_SCOPE_STRBUF struct ll_strbuf advice = LL_STRBUF_INIT;
	ll_sim_add_advice(&advice, text);
	ll_wrap(out, advice.buf, column, column);
}

/* Adds one entry of a two-column list. left is at most one line, right is wrapped. */
static void add_entry(struct ll_strbuf *out, const struct ll_strbuf *left, const char *right)
{
	size_t used = left->length + 2;
	ll_strbuf_addf(out, "  %s", left->buf);
	if (used + 2 > HELP_COLUMN) {
		ll_strbuf_addc(out, '\n');
		used = 0;
	}
	ll_strbuf_addf(out, "%*s", (int)(HELP_COLUMN - used), "");
	wrap(out, right, HELP_COLUMN);
}

static void add_options(struct ll_strbuf *out, const struct ll_option *option)
{
	for (; option->name; option++) {
		LL_SCOPE_STRBUF struct ll_strbuf left = LL_STRBUF_INIT;
		LL_SCOPE_STRBUF struct ll_strbuf right = LL_STRBUF_INIT;
		ll_strbuf_adds(&left, option->letter ? "" : "    ");
		ll_help_signature(option, &left);
		ll_help_option(option, &right);
		add_entry(out, &left, right.buf);
	}
	LL_SCOPE_STRBUF struct ll_strbuf help = LL_STRBUF_INIT;
	ll_strbuf_adds(&help, "-h, --help");
	add_entry(out, &help, _("Print this help and exit."));
}

static void add_command(struct ll_strbuf *out, const struct ll_command *command)
{
	LL_SCOPE_STRBUF struct ll_strbuf name = LL_STRBUF_INIT;
	ll_strbuf_adds(&name, command->name);
	add_entry(out, &name, _(command->summary));
}

static void add_commands(struct ll_strbuf *out, const struct ll_command *const *command)
{
	ll_strbuf_adds(out, _("\nCommands:\n"));
	for (; *command; command++)
		add_command(out, *command);
}

static void add_parts(struct ll_strbuf *out, const struct ll_command_part *part)
{
	for (; part->title || part->command; part++) {
		if (part->title)
			ll_strbuf_addf(out, "\n%s:\n", _(part->title));
		else
			add_command(out, part->command);
	}
}

static void add_examples(struct ll_strbuf *out, const struct ll_example *example)
{
	ll_strbuf_adds(out, _("\nExamples:\n"));
	for (; example->line; example++) {
		ll_strbuf_adds(out, "  ");
		ll_sim_add_advice(out, example->line);
		ll_strbuf_adds(out, "\n      ");
		ll_wrap(out, _(example->does), 6, 6);
	}
}

static void add_statuses(struct ll_strbuf *out, const struct ll_help_status *row)
{
	ll_strbuf_adds(out, _("\nExit status:\n"));
	for (; row->meaning; row++) {
		LL_SCOPE_STRBUF struct ll_strbuf status = LL_STRBUF_INIT;
		ll_strbuf_addf(&status, "%d", row->status);
		add_entry(out, &status, _(row->meaning));
	}
}

static void add_usage(const struct ll_command *command, struct ll_strbuf *out)
{
	ll_sim_add_advice(out, _("Usage: loadline "));
	ll_help_usage(command, out);
}

void ll_help_command(const struct ll_command *command, struct ll_strbuf *out)
{
	add_usage(command, out);
	char name[LL_COMMAND_NAME_SIZE];
	ll_strbuf_addf(out, "\n\nloadline %s - %s\n\n", ll_command_name(command, ' ', name), _(command->summary));
	wrap(out, _(command->description), 0);
	if (command->subcommands)
		add_commands(out, command->subcommands);
	ll_strbuf_adds(out, _("\nOptions:\n"));
	add_options(out, command->options);
	if (command->statuses)
		add_statuses(out, command->statuses);
	if (command->examples)
		add_examples(out, command->examples);
	if (command->subcommands) {
		LL_SCOPE_STRBUF struct ll_strbuf more = LL_STRBUF_INIT;
		ll_strbuf_addf(&more, _("\n'loadline %s COMMAND --help' or 'man loadline-%s' says more.\n"),
			       command->name, command->name);
		ll_sim_add_advice(out, more.buf);
	}
}

void ll_help_program(const struct ll_command_part *parts, struct ll_strbuf *out)
{
	add_usage(NULL, out);
	ll_strbuf_adds(out, "\n\n");
	ll_wrap(out, _(ll_help_about), 0, 0);
	add_parts(out, parts);
	ll_strbuf_adds(out, _("\nGlobal options, before COMMAND:\n"));
	add_options(out, ll_global_options);
	add_statuses(out, ll_help_statuses);
	ll_sim_add_advice(out, _("\n'loadline COMMAND --help' or 'man loadline-COMMAND' says more.\n"));
}
