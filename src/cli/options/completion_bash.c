#include "base/strbuf.h"
#include "cli/options/command.h"
#include "cli/options/help_text.h"
#include "cli/options/option.h"

static const char head[] =
    "# bash completion for loadline, made from its option table\n"
    "_loadline() {\n"
    "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= words= i takes_command=0 sim=\n"
    "\tif [[ $cur == = ]]; then\n"
    "\t\tcur= prev+==\n"
    "\telif [[ $prev == = ]]; then\n"
    "\t\tprev=${COMP_WORDS[COMP_CWORD-2]}=\n"
    "\tfi\n"
    "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
    "\t\tcase ${COMP_WORDS[i]} in\n"
    "\t\t";

static const char found[] = ")\n"
			    "\t\t\tcommand=${COMP_WORDS[i]}\n"
			    "\t\t\tbreak\n"
			    "\t\t\t;;\n"
			    "\t\t--sim) sim=--sim ;;\n"
			    "\t\t=)\n"
			    "\t\t\t[[ ${COMP_WORDS[i-1]} != --sim ]] || sim+==${COMP_WORDS[i+1]}\n"
			    "\t\t\t((i++))\n"
			    "\t\t\t;;\n"
			    "\t\tesac\n"
			    "\tdone\n";

static const char tail[] = "\tesac\n"
			   "\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
			   "}\n"
			   "complete -F _loadline loadline\n";

/* Adds the arguments of compgen that complete an option's value. */
static void add_source(struct ll_strbuf *out, const struct ll_option *option)
{
	if (option->choices) {
		ll_strbuf_adds(out, "-W \"");
		for (int i = 0; option->choices[i]; i++)
			ll_strbuf_addf(out, "%s%s", i ? " " : "", option->choices[i]);
		ll_strbuf_addf(out, "\"%s", option->complete == LL_COMPLETE_FILE ? " -f" : "");
	} else if (option->complete == LL_COMPLETE_FILE) {
		ll_strbuf_adds(out, "-f");
	} else if (option->complete == LL_COMPLETE_CARD) {
		ll_strbuf_adds(out, "-W \"all 0 1 2 3\"");
	} else {
		ll_strbuf_adds(out, "-W \"\"");
	}
}

/* An option is in $prev, with "=" behind it if its value is in the same word. A value that may be left out is always in
 * the same word. */
static void add_values(struct ll_strbuf *out, const char *command, const struct ll_option *option)
{
	for (; option->name; option++) {
		if (option->kind == LL_OPTION_KIND_FLAG)
			continue;
		ll_strbuf_addf(out, "\t%s:--%s=", command, option->name);
		if (option->kind != LL_OPTION_KIND_OPTIONAL)
			ll_strbuf_addf(out, " | %s:--%s", command, option->name);
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

/* Adds the lines that turn a group and its subcommand into the command "mps-start". */
static void add_group(struct ll_strbuf *out, const struct ll_command *group)
{
	ll_strbuf_addf(out,
		       "\tif [[ $command == %s ]]; then\n\t\tfor ((i++; i < COMP_CWORD; i++)); do\n"
		       "\t\t\tcase ${COMP_WORDS[i]} in\n\t\t\t",
		       group->name);
	ll_command_add_names(group->subcommands, " | ", out);
	ll_strbuf_addf(out,
		       ")\n\t\t\t\tcommand=%s-${COMP_WORDS[i]}\n\t\t\t\tbreak\n\t\t\t\t;;\n"
		       "\t\t\tesac\n\t\tdone\n\tfi\n",
		       group->name);
}

static void add_words(struct ll_strbuf *out, const struct ll_command *command)
{
	char name[LL_COMMAND_NAME_SIZE];
	const struct ll_command *const *offered = command->complete == LL_COMPLETE_COMMAND ? ll_commands : NULL;
	if (command->subcommands)
		offered = command->subcommands;
	ll_strbuf_addf(out, "\t%s)\n\t\twords=\"", ll_command_name(command, '-', name));
	if (offered) {
		ll_command_add_names(offered, " ", out);
		ll_strbuf_addc(out, ' ');
	}
	add_names(out, command->options);
	ll_strbuf_adds(out, "\"\n");
	if (command->complete == LL_COMPLETE_CLAIM)
		ll_strbuf_adds(
		    out, "\t\t[[ $cur == -* ]] || words=$(\"${COMP_WORDS[0]}\" ${sim:+\"$sim\"} " LL_COMPLETION_CLAIMS
			 ")\n");
	ll_strbuf_adds(out, "\t\t;;\n");
}

/* Adds the commands that take a program after "--". The first word after it is completed as a command or a file, the
 * others as files. */
static void add_takers(struct ll_strbuf *out, const struct ll_command *const *command)
{
	for (; *command; command++) {
		char name[LL_COMMAND_NAME_SIZE];
		if ((*command)->takes_command)
			ll_strbuf_addf(out, "\t%s) takes_command=1 ;;\n", ll_command_name(*command, '-', name));
		if ((*command)->subcommands)
			add_takers(out, (*command)->subcommands);
	}
}

static void add_program_words(struct ll_strbuf *out)
{
	ll_strbuf_adds(out, "\tcase $command in\n");
	add_takers(out, ll_commands);
	ll_strbuf_adds(out, "\tesac\n"
			    "\tfor ((i++; takes_command && i < COMP_CWORD; i++)); do\n"
			    "\t\t[[ ${COMP_WORDS[i]} == -- ]] || continue\n"
			    "\t\tcompopt -o filenames 2>/dev/null\n"
			    "\t\tif ((i + 1 == COMP_CWORD)); then\n"
			    "\t\t\tmapfile -t COMPREPLY < <(compgen -c -f -- \"$cur\")\n"
			    "\t\telse\n"
			    "\t\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
			    "\t\tfi\n"
			    "\t\treturn\n"
			    "\tdone\n");
}

static void add_all(struct ll_strbuf *out, const struct ll_command *const *command, bool is_values)
{
	for (; *command; command++) {
		char name[LL_COMMAND_NAME_SIZE];
		if (is_values)
			add_values(out, ll_command_name(*command, '-', name), (*command)->options);
		else
			add_words(out, *command);
		if ((*command)->subcommands)
			add_all(out, (*command)->subcommands, is_values);
	}
}

void ll_completion_bash(struct ll_strbuf *out)
{
	ll_strbuf_adds(out, head);
	ll_command_add_names(ll_commands, " | ", out);
	ll_strbuf_adds(out, found);
	for (const struct ll_command *const *command = ll_commands; *command; command++) {
		if ((*command)->subcommands)
			add_group(out, *command);
	}
	add_program_words(out);
	ll_strbuf_adds(out, "\tcase $command:$prev in\n");
	add_values(out, "", ll_global_options);
	add_all(out, ll_commands, true);
	ll_strbuf_adds(out, "\tesac\n\tcase $command in\n\t'')\n\t\twords=\"");
	ll_command_add_names(ll_commands, " ", out);
	ll_strbuf_addc(out, ' ');
	add_names(out, ll_global_options);
	ll_strbuf_adds(out, "\"\n\t\t;;\n");
	add_all(out, ll_commands, false);
	ll_strbuf_adds(out, tail);
}
