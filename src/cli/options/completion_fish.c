#include "base/strbuf.h"
#include "cli/options/command.h"
#include "cli/options/help_text.h"
#include "cli/options/option.h"

/* Adds the first sentence of text, in single quotes. */
static void add_text(struct ll_strbuf *out, const char *text)
{
	size_t length = ll_wrap_first_sentence(text);
	ll_strbuf_addc(out, '\'');
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '\'' || text[i] == '\\')
			ll_strbuf_addc(out, '\\');
		ll_strbuf_addc(out, text[i]);
	}
	ll_strbuf_addc(out, '\'');
}

/* A value that may be left out stands in the option's own word, where fish offers no files. */
static void add_optional_values(struct ll_strbuf *out, const struct ll_option *option)
{
	for (int i = 0; option->choices && option->choices[i]; i++)
		ll_strbuf_addf(out, "%s%s", i ? " " : " -a '", option->choices[i]);
	ll_strbuf_adds(out, option->choices ? "'" : "");
}

static void add_values(struct ll_strbuf *out, const struct ll_option *option)
{
	if (option->kind == LL_OPTION_KIND_OPTIONAL) {
		add_optional_values(out, option);
	} else if (option->choices) {
		for (int i = 0; option->choices[i]; i++)
			ll_strbuf_addf(out, "%s%s", i ? " " : " -x -a '", option->choices[i]);
		ll_strbuf_addc(out, '\'');
	} else if (option->complete == LL_COMPLETE_FILE) {
		ll_strbuf_adds(out, " -r -F");
	} else if (option->complete == LL_COMPLETE_CARD) {
		ll_strbuf_adds(out, " -x -a 'all 0 1 2 3'");
	} else {
		ll_strbuf_adds(out, " -x");
	}
}

static void add_options(struct ll_strbuf *out, const char *condition, const struct ll_option *option)
{
	for (; option->name; option++) {
		ll_strbuf_addf(out, "complete -c loadline -n '%s' -l %s", condition, option->name);
		if (option->letter)
			ll_strbuf_addf(out, " -s %c", option->letter);
		if (option->kind != LL_OPTION_KIND_FLAG)
			add_values(out, option);
		ll_strbuf_adds(out, " -d ");
		add_text(out, option->help);
		ll_strbuf_addc(out, '\n');
	}
	ll_strbuf_addf(out, "complete -c loadline -n '%s' -l help -s h -d 'Print a help and exit'\n", condition);
}

static void add_commands(struct ll_strbuf *out, const char *condition, const struct ll_command *const *command)
{
	for (; *command; command++) {
		ll_strbuf_addf(out, "complete -c loadline -n '%s' -a %s -d ", condition, (*command)->name);
		add_text(out, (*command)->summary);
		ll_strbuf_addc(out, '\n');
	}
}

/* "status" is a command, and also a subcommand of mps. If the group's name stands before it, the subcommand is meant,
 * so the command's line excludes the group's name. */
static void add_other_groups(struct ll_strbuf *out, const char *name)
{
	for (const struct ll_command *const *command = ll_commands; *command; command++) {
		if ((*command)->subcommands && ll_command_find_in((*command)->subcommands, name))
			ll_strbuf_addf(out, "; and not __fish_seen_subcommand_from %s", (*command)->name);
	}
}

static void add_subcommand(struct ll_strbuf *out, const struct ll_command *command)
{
	LL_SCOPE_STRBUF struct ll_strbuf condition = LL_STRBUF_INIT;
	if (command->group)
		ll_strbuf_addf(&condition, "__fish_seen_subcommand_from %s; and ", command->group->name);
	ll_strbuf_addf(&condition, "__fish_seen_subcommand_from %s", command->name);
	if (!command->group)
		add_other_groups(&condition, command->name);
	if (command->complete == LL_COMPLETE_COMMAND)
		add_commands(out, condition.buf, ll_commands);
	add_options(out, condition.buf, command->options);
	if (command->complete == LL_COMPLETE_CLAIM)
		ll_strbuf_addf(out, "complete -c loadline -n '%s' -a '(__loadline_claims)'\n", condition.buf);
	/* After "--" come a program and its words, which are completed as files. */
	if (command->takes_command)
		ll_strbuf_addf(out, "complete -c loadline -n '%s; and contains -- -- (commandline -opc)' -F\n",
			       condition.buf);
}

static void add_group(struct ll_strbuf *out, const struct ll_command *group)
{
	LL_SCOPE_STRBUF struct ll_strbuf condition = LL_STRBUF_INIT;
	ll_strbuf_addf(&condition, "__fish_seen_subcommand_from %s; and not __fish_seen_subcommand_from ", group->name);
	ll_command_add_names(group->subcommands, " ", &condition);
	add_commands(out, condition.buf, group->subcommands);
	add_options(out, condition.buf, group->options);
	if (group->takes_command)
		ll_strbuf_addf(out, "complete -c loadline -n '%s; and contains -- -- (commandline -opc)' -F\n",
			       condition.buf);
	for (const struct ll_command *const *command = group->subcommands; *command; command++)
		add_subcommand(out, *command);
}

void ll_completion_fish(struct ll_strbuf *out)
{
	ll_strbuf_adds(out, "# fish completion for loadline, made from its option table\n"
			    "function __loadline_claims\n"
			    "\tloadline (string match -- '--sim*' (commandline -opc)) " LL_COMPLETION_CLAIMS "\nend\n"
			    "complete -c loadline -f\n");
	add_commands(out, "__fish_use_subcommand", ll_commands);
	add_options(out, "__fish_use_subcommand", ll_global_options);
	for (const struct ll_command *const *command = ll_commands; *command; command++) {
		if ((*command)->subcommands)
			add_group(out, *command);
		else
			add_subcommand(out, *command);
	}
}
