/* What must hold for the option table of every command, also those written later. */
#include <ctype.h>

#include "base/strbuf.h"
#include "base/utf8.h"
#include "cli/options/command.h"
#include "cli/options/help_text.h"
#include "cli/options/option.h"
#include "test.h"

/* Does it for every command, those of groups included. */
static void for_each(const struct ll_command *const *list, void (*check)(const struct ll_command *command))
{
	for (; *list; list++) {
		check(*list);
		if ((*list)->subcommands)
			for_each((*list)->subcommands, check);
	}
}

static size_t rows(const struct ll_option *options)
{
	size_t count = 0;
	while (options[count].name)
		count++;
	return count;
}

static void check_row(const struct ll_option *option)
{
	assert_non_null(option->help);
	assert_true(isupper((unsigned char)option->help[0]));
	assert_int_equal(option->help[strlen(option->help) - 1], '.');
	assert_int_equal(option->kind == LL_OPTION_KIND_FLAG, option->placeholder == NULL);
	assert_true(option->kind != LL_OPTION_KIND_CHOICE || option->choices);
	assert_string_not_equal(option->name, "help");
	assert_int_not_equal(option->letter, 'h');
}

static bool is_same(const char *one, const char *other)
{
	return one && other && strcmp(one, other) == 0;
}

static void check_table(const struct ll_option *options)
{
	size_t count = rows(options);
	assert_true(count <= 64);
	for (size_t i = 0; i < count; i++) {
		check_row(&options[i]);
		for (size_t j = 0; j < i; j++) {
			assert_string_not_equal(options[i].name, options[j].name);
			assert_false(is_same(options[i].alias, options[j].name) ||
				     is_same(options[j].alias, options[i].name) ||
				     is_same(options[i].alias, options[j].alias));
			assert_true(!options[i].letter || options[i].letter != options[j].letter);
		}
	}
}

static void check_options(const struct ll_command *command)
{
	check_table(command->options);
}

TEST(option_rows_are_whole_and_unique)
{
	check_table(ll_global_options);
	for_each(ll_commands, check_options);
}

static void check_defaults(const struct ll_command *command)
{
	struct ll_operands operands;
	bool wants_help;
	struct ll_err err = {0};
	char *words[] = {NULL};
	void *args = calloc(1, command->args_size + 1);
	assert_non_null(args);
	int rc = ll_options_parse(command->options, args, 0, words, false, &operands, &wants_help, &err);
	if (rc != 0)
		fail_msg("%s: %s", command->name, err.text);
	ll_options_fini(command->options, args);
	free(args);
}

TEST(defaults_are_values_the_parser_takes)
{
	for_each(ll_commands, check_defaults);
}

static void check_name(const struct ll_command *command)
{
	const struct ll_command *const *list = command->group ? command->group->subcommands : ll_commands;
	char name[LL_COMMAND_NAME_SIZE];
	assert_ptr_equal(ll_command_find_in(list, command->name), command);
	/* A word after a group that has a `run` is a command of it, or of the operands, not both. */
	assert_true(!command->run || !command->subcommands || command->takes_command || !command->operands);
	assert_true(command->run || !command->group); /* a program of its own is named after the command alone */
	ll_command_name(command, '-', name);
	assert_int_equal(strncmp(name, command->group ? command->group->name : command->name, 2), 0);
}

TEST(commands_are_found_by_their_whole_name)
{
	for_each(ll_commands, check_name);
	for (const struct ll_command *const *command = ll_commands; *command; command++)
		assert_ptr_equal(ll_command_find((*command)->name), *command);
	assert_null(ll_command_find(""));
	assert_null(ll_command_find("hel"));
	assert_null(ll_command_find("start"));
}

TEST(subcommands_know_their_group)
{
	char name[LL_COMMAND_NAME_SIZE];
	const struct ll_command *group = ll_command_find("mps");
	assert_non_null(group);
	for (const struct ll_command *const *command = group->subcommands; *command; command++)
		assert_ptr_equal((*command)->group, group);
	assert_string_equal(ll_command_name(ll_command_find_in(group->subcommands, "start"), ' ', name), "mps start");
}

static void check_help(const struct ll_command *command)
{
	LL_SCOPE_STRBUF struct ll_strbuf help = LL_STRBUF_INIT;
	ll_help_command(command, &help);
	assert_false(help.failed);
	for (const struct ll_option *option = command->options; option->name; option++)
		assert_non_null(strstr(help.buf, option->name));
	for (const struct ll_command *const *inner = command->subcommands; inner && *inner; inner++)
		assert_non_null(strstr(help.buf, (*inner)->name));
	char *rest = help.buf;
	for (char *line = strtok_r(rest, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (ll_utf8_columns(line) > LL_WRAP_WIDTH)
			fail_msg("%s: too long: %.120s", command->name, line);
	}
}

TEST(help_fits_the_terminal_and_names_every_option)
{
	for_each(ll_commands, check_help);
}

TEST(wrapping_keeps_indented_paragraphs_and_fills_others)
{
	LL_SCOPE_STRBUF struct ll_strbuf out = LL_STRBUF_INIT;
	ll_wrap(&out, "one two\n\n  a\n  b\n\nthree", 0, 4);
	assert_string_equal(out.buf, "one two\n\n      a\n      b\n\n    three\n");
	ll_strbuf_reset(&out);
	LL_SCOPE_STRBUF struct ll_strbuf words = LL_STRBUF_INIT;
	for (int i = 0; i < 40; i++)
		ll_strbuf_adds(&words, i ? " 12345" : "12345");
	ll_wrap(&out, words.buf, 10, 10);
	assert_int_equal(strcspn(out.buf, "\n"), 5 + 6 * 10);
	assert_int_equal(strncmp(strchr(out.buf, '\n') + 1, "          12345 ", 16), 0);
}

TEST(first_sentence_has_no_full_stop)
{
	assert_int_equal(ll_wrap_first_sentence("Do it. Then more."), 5);
	assert_int_equal(ll_wrap_first_sentence("Wait 1.5 s."), 10);
	assert_int_equal(ll_wrap_first_sentence("no stop"), 7);
}

TEST(manual_page_escapes_what_roff_would_eat)
{
	static const struct ll_option options[] = {LL_OPTION_END};
	static const struct ll_command command = {.name = "x",
						  .summary = "a-b",
						  .description = ".dot and 'quote \\ back-slash\n\n  kept\n  .too",
						  .options = options};
	LL_SCOPE_STRBUF struct ll_strbuf page = LL_STRBUF_INIT;
	ll_man_command(&command, &page);
	assert_non_null(strstr(page.buf, "\n\\&.dot and \\(aqquote \\e back\\-slash\n.PP\n.EX\n  kept\n  .too\n.EE\n"));
	assert_non_null(strstr(page.buf, "loadline\\-x \\- a\\-b\n"));
}
