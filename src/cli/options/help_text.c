#include "cli/options/help_text.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/common/env_sim.h"
#include "cli/options/command.h"
#include "cli/options/option.h"
#include "cli/options/wrap.h"

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
