#include "base/strbuf.h"
#include "cli/command.h"
#include "cli/completion.h"
#include "cli/globals.h"

static const char head[] = "# bash completion for loadline, made from its option table\n"
			   "_loadline() {\n"
			   "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= words= i\n"
			   "\tif [[ $cur == = ]]; then\n"
			   "\t\tcur=\n"
			   "\telif [[ $prev == = ]]; then\n"
			   "\t\tprev=${COMP_WORDS[COMP_CWORD-2]}\n"
			   "\tfi\n"
			   "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
			   "\t\tcase ${COMP_WORDS[i]} in\n"
			   "\t\t";

static const char found[] = ")\n"
			    "\t\t\tcommand=${COMP_WORDS[i]}\n"
			    "\t\t\tbreak\n"
			    "\t\t\t;;\n"
			    "\t\tesac\n"
			    "\tdone\n"
			    "\tcase $command:$prev in\n";

static const char tail[] = "\tesac\n"
			   "\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
			   "}\n"
			   "complete -F _loadline loadline\n";

static void add_commands(struct ll_strbuf *out, const char *separator)
{
	for (const struct ll_command *const *command = ll_commands; *command; command++)
		ll_strbuf_addf(out, "%s%s", command == ll_commands ? "" : separator, (*command)->name);
}

/* compgen's arguments that offer an option's values. */
static void add_source(struct ll_strbuf *out, const struct ll_option *option)
{
	if (option->choices) {
		ll_strbuf_adds(out, "-W \"");
		for (int i = 0; option->choices[i]; i++)
			ll_strbuf_addf(out, "%s%s", i ? " " : "", option->choices[i]);
		ll_strbuf_adds(out, "\"");
	} else if (option->complete == LL_COMPLETE_FILE) {
		ll_strbuf_adds(out, "-f");
	} else if (option->complete == LL_COMPLETE_CARD) {
		ll_strbuf_adds(out, "-W \"all 0 1 2 3\"");
	} else {
		ll_strbuf_adds(out, "-W \"\"");
	}
}

static void add_values(struct ll_strbuf *out, const char *command, const struct ll_option *option)
{
	for (; option->name; option++) {
		if (option->kind == LL_OPTION_KIND_FLAG)
			continue;
		ll_strbuf_addf(out, "\t%s:--%s", command, option->name);
		if (option->letter)
			ll_strbuf_addf(out, " | %s:-%c", command, option->letter);
		ll_strbuf_adds(out, ")\n\t\tmapfile -t COMPREPLY < <(compgen ");
		add_source(out, option);
		ll_strbuf_adds(out, " -- \"$cur\")\n\t\treturn\n\t\t;;\n");
	}
}

static void add_names(struct ll_strbuf *out, const struct ll_option *option)
{
	for (; option->name; option++)
		ll_strbuf_addf(out, "--%s ", option->name);
	ll_strbuf_adds(out, "--help");
}

void ll_completion_bash(struct ll_strbuf *out)
{
	ll_strbuf_adds(out, head);
	add_commands(out, " | ");
	ll_strbuf_adds(out, found);
	add_values(out, "", ll_global_options);
	for (const struct ll_command *const *command = ll_commands; *command; command++)
		add_values(out, (*command)->name, (*command)->options);
	ll_strbuf_adds(out, "\tesac\n\tcase $command in\n\t'')\n\t\twords=\"");
	add_commands(out, " ");
	ll_strbuf_addc(out, ' ');
	add_names(out, ll_global_options);
	ll_strbuf_adds(out, "\"\n\t\t;;\n");
	for (const struct ll_command *const *command = ll_commands; *command; command++) {
		ll_strbuf_addf(out, "\t%s)\n\t\twords=\"", (*command)->name);
		if ((*command)->complete == LL_COMPLETE_COMMAND) {
			add_commands(out, " ");
			ll_strbuf_addc(out, ' ');
		}
		add_names(out, (*command)->options);
		ll_strbuf_adds(out, "\"\n\t\t;;\n");
	}
	ll_strbuf_adds(out, tail);
}
