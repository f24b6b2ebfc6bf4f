#include "cli/options/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "cli/common/env_sim.h"
#include "cli/common/language.h"
#include "cli/common/table.h"
#include "cli/options/command.h"
#include "cli/options/help_text.h"
#include "cli/options/option.h"

struct name {
	const char *theirs, *ours;
};

/* If a name has several rows, the first one whose option is in the table counts. */
static const struct name option_names[] = {
    {"gpu", "cards"},  {"gpus", "cards"},        {"device", "cards"}, {"devices", "cards"},
    {"memory", "mem"}, {"memory", "max-memory"}, {"name", "tenant"},  {"duration", "for"},
    {"time", "for"},   {"v", "version"},         {"V", "version"},
};

static const struct name command_names[] = {
    {"ps", "clients"}, {"list", "clients"}, {"ls", "clients"}, {"ps", "status"}, {"list", "status"}, {"ls", "status"},
};

static bool has_option(const struct ll_option *option, const char *name)
{
	for (; option->name; option++) {
		if (strcmp(option->name, name) == 0)
			return true;
	}
	return false;
}

const char *ll_elsewhere_option(const struct ll_option *options, const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof option_names / sizeof *option_names; i++) {
		const struct name *row = &option_names[i];
		if (strlen(row->theirs) == length && strncmp(row->theirs, name, length) == 0 &&
		    has_option(options, row->ours))
			return row->ours;
	}
	return NULL;
}

const char *ll_elsewhere_letter(const struct ll_option *options, char letter)
{
	return ll_elsewhere_option(options, &letter, 1);
}

const char *ll_elsewhere_command(const struct ll_command *const *list, const char *name)
{
	for (size_t i = 0; i < sizeof command_names / sizeof *command_names; i++) {
		const struct name *row = &command_names[i];
		if (strcmp(row->theirs, name) == 0 && ll_command_find_in(list, row->ours))
			return row->ours;
	}
	return NULL;
}

static int print_program_help(const struct ll_program *program, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf out = LL_STRBUF_INIT;
	if (program->parts)
		ll_help_program(program->parts, &out);
	else
		ll_help_command(program->commands[0], &out);
	return ll_print_text(&out, err);
}

static int print_command_help(const struct ll_command *command, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf out = LL_STRBUF_INIT;
	ll_help_command(command, &out);
	return ll_print_text(&out, err);
}

/* JSON lines are for scripts: nothing that such a run prints depends on the language. */
static void choose_language(const struct ll_option *option, const void *args)
{
	for (; option->name; option++) {
		if (option->kind == LL_OPTION_KIND_FLAG && strcmp(option->name, "json") == 0 &&
		    *(const bool *)((const char *)args + option->offset))
			ll_language_leave();
	}
}

static int parse_and_run(const struct ll_program *program, const struct ll_command *command, void *args, int argc,
			 char **argv, struct ll_err *err)
{
	struct ll_operands operands;
	bool wants_help;
	int rc =
	    ll_options_parse(command->options, args, argc, argv, command->takes_command, &operands, &wants_help, err);
	if (rc < 0)
		return rc;
	if (wants_help)
		return print_command_help(command, err);
	choose_language(command->options, args);
	if (operands.count && !command->operands)
		return ll_err_set(err, -EINVAL, "%.60s: unexpected word", operands.words[0]);
	return command->run ? command->run(args, &operands, err) : program->run(args, &operands, err);
}

static int run_found(const struct ll_program *program, const struct ll_command *command, int argc, char **argv,
		     struct ll_err *err);

/* A group has only the option --help here. Its first operand is the subcommand. */
static int run_group(const struct ll_program *program, const struct ll_command *group, int argc, char **argv,
		     struct ll_err *err)
{
	static const struct ll_option none[] = {LL_OPTION_END};
	char unused;
	struct ll_operands operands;
	bool wants_help;
	LL_SCOPE_STRBUF struct ll_strbuf names = LL_STRBUF_INIT;
	int rc = ll_options_parse(none, &unused, argc - 1, argv + 1, true, &operands, &wants_help, err);
	if (rc < 0 && !err->hint[0])
		ll_err_hint(err, "try 'loadline %s --help'", group->name);
	if (rc < 0)
		return rc;
	if (wants_help)
		return print_command_help(group, err);
	const struct ll_command *command =
	    operands.count ? ll_command_find_in(group->subcommands, operands.words[0]) : NULL;
	if (command)
		return run_found(program, command, operands.count, operands.words, err);
	ll_command_add_names(group->subcommands, ", ", &names);
	if (!operands.count) {
		ll_err_set(err, -EINVAL, "%s: no command", group->name);
		return ll_err_hint(err, "use one of: %s", names.buf);
	}
	const char *nearest = ll_nearest_command(group->subcommands, operands.words[0]);
	ll_err_set(err, -EINVAL, "%s %.60s: unknown command", group->name, operands.words[0]);
	return nearest ? ll_err_hint(err, "did you mean 'loadline %s %s'?", group->name, nearest)
		       : ll_err_hint(err, "use one of: %s", names.buf);
}

/* argv[0] is the command's name. */
static int run_found(const struct ll_program *program, const struct ll_command *command, int argc, char **argv,
		     struct ll_err *err)
{
	char name[LL_COMMAND_NAME_SIZE];
	bool has_word = argc > 1 && argv[1][0] != '-';
	/* A group whose `run` takes no operands has no other words than its commands. */
	bool names_inner = has_word && command->subcommands &&
			   (!command->operands || ll_command_find_in(command->subcommands, argv[1]));
	if (command->subcommands && (!command->run || names_inner))
		return run_group(program, command, argc, argv, err);
	void *args = calloc(1, command->args_size + 1);
	if (!args)
		return ll_err_set(err, -ENOMEM, "out of memory");
	int rc = parse_and_run(program, command, args, argc - 1, argv + 1, err);
	if (rc == -EINVAL && !err->hint[0])
		ll_err_hint(err, "try 'loadline %s --help'", ll_command_name(command, ' ', name));
	if (rc < 0 && !err->status)
		err->status = command->failure_status;
	ll_options_fini(command->options, args);
	free(args);
	return rc;
}

int ll_program_run_command(const struct ll_command *command, int argc, char **argv, struct ll_err *err)
{
	static const struct ll_program no_program = {.commands = NULL};
	return run_found(&no_program, command, argc, argv, err);
}

/* Executes the program of this command in place of this one. */
static int start_program(const struct ll_command *command, char **argv, struct ll_err *err)
{
	static const char *const places[] = {"src/cli", "../lib/loadline", ".", NULL};
	char name[LL_COMMAND_NAME_SIZE], path[PATH_MAX];
	snprintf(name, sizeof name, "loadline-%s", command->name);
	if (ll_beside_find(places, name, path) < 0) {
		ll_err_set(err, -ENOENT, "%s is not beside this program, nor in %s", name, places[1]);
		ll_err_hint(err, "install all of the package loadline");
	} else {
		execv(path, argv);
		ll_err_set(err, -errno, "%s: %s", path, strerror(errno));
	}
	err->status = command->failure_status;
	return err->code;
}

/* words: from the command on. argv: all words of the program. */
static int run_command(const struct ll_program *program, const struct ll_operands *words, char **argv,
		       struct ll_err *err)
{
	const char *name = words->words[0];
	const struct ll_command *command = ll_command_find_in(program->commands, name);
	if (command && !command->run && !command->subcommands && !program->run)
		return start_program(command, argv, err);
	if (command)
		return run_found(program, command, words->count, words->words, err);
	const char *nearest = ll_nearest_command(program->commands, name);
	ll_err_set(err, -EINVAL, "%.60s: unknown command", name);
	if (nearest)
		ll_err_hint(err, "did you mean 'loadline %s'?", nearest);
	return -EINVAL;
}

static int run_program(const struct ll_program *program, int argc, char **argv, struct ll_err *err)
{
	struct ll_globals globals = {0};
	struct ll_operands rest;
	bool wants_help;
	ll_language_init();
	char **words = calloc((size_t)argc + 1, sizeof *words);
	if (!words)
		return ll_err_set(err, -ENOMEM, "out of memory");
	/* The parser reorders its words; --sim needs argv unchanged. */
	memcpy(words, argv, (size_t)argc * sizeof *words);
	int rc = ll_options_parse(ll_global_options, &globals, argc - 1, words + 1, true, &rest, &wants_help, err);
	if (rc == 0 && wants_help) {
		rc = print_program_help(program, err);
	} else if (rc == 0 && globals.wants_version) {
		puts("loadline " LOADLINE_VERSION);
	} else if (rc == 0 && globals.sim && strcmp(globals.sim, "list") == 0) {
		rc = ll_sim_print_scenarios(err);
	} else if (rc == 0 && rest.count == 0) {
		rc = ll_err_set(err, -EINVAL, "no command");
	} else if (rc == 0) {
		ll_log_set_level((enum ll_log_level)globals.log_level);
		if (globals.sim)
			rc = ll_sim_enter(globals.sim, argv, err);
		if (rc == 0)
			rc = run_command(program, &rest, argv, err);
	}
	free(words);
	return rc;
}

int ll_program_print_error(const struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf advice = LL_STRBUF_INIT;
	ll_sim_add_advice(&advice, err->hint);
	fprintf(stderr, "loadline: %s%s%s\n", err->text, advice.buf[0] ? "; " : "", advice.buf);
	return err->status ? err->status : ll_err_exit_code(err->code);
}

/* If descriptor 0, 1 or 2 is closed, a file opened later would get its number, and this program or a daemon that it
 * starts would use that file as its standard stream. What is written to a closed standard output still fails as there:
 * nobody gets it. */
static void open_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) == 0 || errno != EBADF)
			continue;
		int opened = open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR); /* fd is the lowest number */
		if (opened < 0)
			return;
	}
}

int ll_program_main(const struct ll_program *program, int argc, char **argv)
{
	struct ll_err err = {0};
	int rc;
	open_standard_descriptors();
	ll_utf8_locale_init();
	if (!program->serve || !program->serve(argc, argv, &rc, &err))
		rc = run_program(program, argc, argv, &err);
	/* An earlier write may have failed when stdout's buffer was full. */
	int code = ferror(stdout) ? EIO : 0;
	code = fflush(stdout) != 0 ? errno : code;
	if (code && rc == 0)
		rc = ll_err_set(&err, -EIO, "standard output: %s", strerror(code));
	if (rc == -EINVAL && !err.hint[0])
		ll_err_hint(&err, "try 'loadline --help'");
	return rc < 0 ? ll_program_print_error(&err) : rc;
}
