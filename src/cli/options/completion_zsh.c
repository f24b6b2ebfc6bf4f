#include <string.h>

#include "base/strbuf.h"
#include "cli/options/command.h"
#include "cli/options/help_text.h"
#include "cli/options/option.h"

/* Adds the first sentence of text, escaped for single quotes and for a specification of _arguments. */
static void add_text(struct ll_strbuf *out, const char *text)
{
	size_t length = ll_wrap_first_sentence(text);
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '\'')
			ll_strbuf_adds(out, "'\\'");
		else if (strchr("[]:\\", text[i]))
			ll_strbuf_addc(out, '\\');
		ll_strbuf_addc(out, text[i]);
	}
}

static void add_action(struct ll_strbuf *out, const struct ll_option *option)
{
	ll_strbuf_addf(out, ":%s:", option->placeholder);
	if (option->choices && option->complete == LL_COMPLETE_FILE) {
		ll_strbuf_adds(out, "{compadd --");
		for (int i = 0; option->choices[i]; i++)
			ll_strbuf_addf(out, " %s", option->choices[i]);
		ll_strbuf_adds(out, "; _files}");
	} else if (option->choices) {
		for (int i = 0; option->choices[i]; i++)
			ll_strbuf_addf(out, "%s%s", i ? " " : "(", option->choices[i]);
		ll_strbuf_addc(out, ')');
	} else if (option->complete == LL_COMPLETE_FILE) {
		ll_strbuf_adds(out, "_files");
	} else if (option->complete == LL_COMPLETE_CARD) {
		ll_strbuf_adds(out, "(all 0 1 2 3)");
	}
}

static void add_option(struct ll_strbuf *out, const struct ll_option *option)
{
	const char *joint = "";
	if (option->kind == LL_OPTION_KIND_OPTIONAL)
		joint = "=-";
	else if (option->kind != LL_OPTION_KIND_FLAG)
		joint = "=";
	if (option->letter)
		ll_strbuf_addf(out, " \\\n\t\t\t'(-%c --%s)'{-%c%s,--%s%s}'[", option->letter, option->name,
			       option->letter, *joint ? "+" : "", option->name, joint);
	else
		ll_strbuf_addf(out, " \\\n\t\t\t'--%s%s[", option->name, joint);
	add_text(out, option->help);
	ll_strbuf_addc(out, ']');
	if (option->kind == LL_OPTION_KIND_OPTIONAL)
		ll_strbuf_addc(out, ':');
	if (option->kind != LL_OPTION_KIND_FLAG)
		add_action(out, option);
	ll_strbuf_addc(out, '\'');
}

static void add_options(struct ll_strbuf *out, const struct ll_option *option)
{
	for (; option->name; option++)
		add_option(out, option);
	ll_strbuf_adds(out, " \\\n\t\t\t'(-h --help)'{-h,--help}'[Print a help and exit]'");
}

/* Completes what stands behind "--": a program, then its words as if they stood alone. */
static const char program[] = "_loadline_program() {\n"
			      "\tlocal -i ended=${words[(i)--]}\n"
			      "\t(( ended < CURRENT )) || return 1\n"
			      "\tshift $ended words\n"
			      "\t(( CURRENT -= ended ))\n"
			      "\tif (( CURRENT == 1 )); then\n"
			      "\t\t_alternative 'programs:program:_command_names -e' 'files:file:_files'\n"
			      "\telse\n"
			      "\t\t_normal\n"
			      "\tfi\n"
			      "\treturn 0\n"
			      "}\n";

static void add_case(struct ll_strbuf *out, const struct ll_command *command)
{
	ll_strbuf_addf(out, "\t\t%s)\n", command->name);
	if (command->takes_command)
		ll_strbuf_adds(out, "\t\t\t_loadline_program && return\n");
	ll_strbuf_adds(out, "\t\t\t_arguments");
	if (command->subcommands)
		ll_strbuf_adds(out, " -C");
	add_options(out, command->options);
	if (command->complete == LL_COMPLETE_COMMAND)
		ll_strbuf_adds(out, " \\\n\t\t\t'1:command:(($loadline_commands))'");
	if (command->complete == LL_COMPLETE_CLAIM)
		ll_strbuf_adds(out, " \\\n\t\t\t'1:claim:_loadline_claims'");
	if (command->takes_command && !command->subcommands)
		ll_strbuf_adds(out, " \\\n\t\t\t'(-)1:program:_command_names -e' '*::argument:_normal'");
	if (command->subcommands) {
		ll_strbuf_adds(out, " \\\n\t\t\t'1:command:(");
		ll_command_add_names(command->subcommands, " ", out);
		ll_strbuf_adds(out, ")' '*::argument:->inner'\n"
				    "\t\t\t[[ $state == inner ]] && case $words[1] in\n");
		for (const struct ll_command *const *inner = command->subcommands; *inner; inner++)
			add_case(out, *inner);
		ll_strbuf_adds(out, "\t\t\tesac");
	}
	ll_strbuf_adds(out, "\n\t\t\t;;\n");
}

/* zsh's own completion functions see the script's variables, so none has the name of a variable of zsh: `commands` is
 * zsh's table of programs. */
void ll_completion_zsh(struct ll_strbuf *out)
{
	ll_strbuf_adds(out, "#compdef loadline\n# made from loadline's option table\n"
			    "_loadline_claims() {\n\tlocal -a claims\n"
			    "\tclaims=(${(f)\"$(loadline ${(M)${(z)BUFFER}:#--sim*} " LL_COMPLETION_CLAIMS ")\"})\n"
			    "\tcompadd -a claims\n}\n");
	ll_strbuf_adds(out, program);
	ll_strbuf_adds(out, "_loadline() {\n"
			    "\tlocal context state line\n\ttypeset -A opt_args\n\tlocal -a loadline_commands\n"
			    "\tloadline_commands=(\n");
	for (const struct ll_command *const *command = ll_commands; *command; command++) {
		ll_strbuf_addf(out, "\t\t'%s:", (*command)->name);
		add_text(out, (*command)->summary);
		ll_strbuf_adds(out, "'\n");
	}
	ll_strbuf_adds(out, "\t)\n\t_arguments -C");
	add_options(out, ll_global_options);
	ll_strbuf_adds(out, " \\\n\t\t\t'1:command:->command' '*::argument:->argument'\n"
			    "\tcase $state in\n\tcommand) _describe command loadline_commands ;;\n"
			    "\targument)\n\t\tcase $words[1] in\n");
	for (const struct ll_command *const *command = ll_commands; *command; command++)
		add_case(out, *command);
	ll_strbuf_adds(out, "\t\tesac\n\t\t;;\n\tesac\n}\n_loadline \"$@\"\n");
}
