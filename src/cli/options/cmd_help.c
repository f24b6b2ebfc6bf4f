#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/common/language.h"
#include "cli/common/table.h"
#include "cli/options/command.h"
#include "cli/options/help_text.h"
#include "cli/options/option.h"

struct help_args {
	bool as_man;
	int shell; /* index into shells */
};

static const char *const shells[] = {"none", "bash", "zsh", "fish", NULL};

static const struct ll_option help_options[] = {
    {.name = "man",
     LL_OPTION_FLAG(struct help_args, as_man),
     .help = N_("Show the manual page; in roff if the output is no terminal.")},
    {.name = "completion",
     .placeholder = "SHELL",
     LL_OPTION_CHOICE(struct help_args, shell),
     .choices = shells,
     .fallback = "none",
     .help = N_("Print the completion script for a shell instead.")},
    LL_OPTION_END,
};

static const struct ll_example help_examples[] = {
    {"loadline help hold", N_("What loadline hold does and its options.")},
    {"loadline help --man hold", N_("The manual page, if it is not installed.")},
    {"loadline help --man loadline.yaml", N_("The keys of loadline.yaml.")},
    {"source <(loadline help --completion bash)", N_("Completion in this shell only.")},
    {NULL, NULL},
};

static void add_help(const struct help_args *args, const struct ll_command *command, struct ll_strbuf *out)
{
	if (args->as_man && command)
		ll_man_command(command, out);
	else if (args->as_man)
		ll_man_program(out);
	else if (command)
		ll_help_command(command, out);
	else
		ll_help_program(ll_command_parts, out);
}

static int fail_unknown(const char *word, const struct ll_command *const *list, struct ll_err *err)
{
	const char *nearest = ll_nearest_command(list, word);
	ll_err_set(err, -EINVAL, "%.60s: unknown command", word);
	if (nearest)
		ll_err_hint(err, "did you mean '%.*s'?", (int)strcspn(nearest, " "), nearest);
	return -EINVAL;
}

/* Finds the command that the operands name, such as "run" or "mps start". */
static int find_command(const struct ll_operands *operands, const struct ll_command **ret_command, struct ll_err *err)
{
	const struct ll_command *command = NULL;
	const struct ll_command *const *list = ll_commands;
	for (int i = 0; i < operands->count; i++) {
		if (!list)
			return ll_err_set(err, -EINVAL, "%.60s: one command at a time", operands->words[i]);
		command = ll_command_find_in(list, operands->words[i]);
		if (!command)
			return fail_unknown(operands->words[i], list, err);
		list = command->subcommands;
	}
	*ret_command = command;
	return 0;
}

/* By man(1) with its pager. Returns false if there is none: nothing is shown then. */
static bool show_page(const struct ll_strbuf *page)
{
	void (*former)(int) = signal(SIGPIPE, SIG_IGN);
	FILE *man = popen("command -v man >/dev/null && exec man -l -", "we");
	if (man)
		fwrite(page->buf, 1, page->length, man);
	bool is_shown = man && pclose(man) == 0;
	signal(SIGPIPE, former);
	return is_shown;
}

static int run_help(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	static void (*const completions[])(struct ll_strbuf *) = {NULL, ll_completion_bash, ll_completion_zsh,
								  ll_completion_fish};
	const struct help_args *args = data;
	const struct ll_command *command = NULL;
	LL_SCOPE_STRBUF struct ll_strbuf out = LL_STRBUF_INIT;
	bool is_file = args->as_man && operands->count == 1 && strcmp(operands->words[0], "loadline.yaml") == 0;
	int rc = is_file ? 0 : find_command(operands, &command, err);
	if (rc)
		return rc;
	if (args->shell || args->as_man)
		ll_language_leave();
	if (is_file)
		ll_man_config(&out);
	else if (args->shell)
		completions[args->shell](&out);
	else
		add_help(args, command, &out);
	bool is_page = args->as_man && !args->shell && isatty(STDOUT_FILENO) && !out.failed;
	if (is_page && show_page(&out))
		return 0;
	if (is_page)
		ll_log(LL_LOG_WARN, "this is the page's source: there is no man to show it");
	return ll_print_text(&out, err);
}

const struct ll_command ll_command_help = {
    .name = "help",
    .summary = N_("explain loadline or one of its commands"),
    .operands = "[COMMAND]",
    .description = N_("Prints the help of COMMAND, its manual page, or a shell completion script. All of them "
		      "come from the parser's own table, so they agree with it."),
    .examples = help_examples,
    .options = help_options,
    .args_size = sizeof(struct help_args),
    .complete = LL_COMPLETE_COMMAND,
    .run = run_help,
};

static const struct ll_option version_options[] = {LL_OPTION_END};

static int run_version(void *args, const struct ll_operands *operands, struct ll_err *err)
{
	(void)args, (void)operands, (void)err;
	puts("loadline " LOADLINE_VERSION);
	return 0;
}

const struct ll_command ll_command_version = {
    .name = "version",
    .summary = N_("print the version"),
    .description = N_("Prints the program's name and version."),
    .options = version_options,
    .run = run_version,
};

/* Beside the only command that needs them: a program that has one command is not linked with all of them. */
const struct ll_command *const ll_commands[] = {
#define LL_COMMAND_PART(title)
#define LL_COMMAND(name) &ll_command_##name,
#include "cli/options/commands.def"
#undef LL_COMMAND
#undef LL_COMMAND_PART
    NULL,
};

const struct ll_command_part ll_command_parts[] = {
#define LL_COMMAND_PART(text) {.title = (text)},
#define LL_COMMAND(name) {.command = &ll_command_##name},
#include "cli/options/commands.def"
#undef LL_COMMAND
#undef LL_COMMAND_PART
    {.title = NULL},
};

const struct ll_command *ll_command_find(const char *name)
{
	return ll_command_find_in(ll_commands, name);
}
