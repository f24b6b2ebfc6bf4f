/* What the options of run mean for the programs that it starts. */
#include <errno.h>
#include <unistd.h>

#include "cli/run/run.h"
#include "test.h"

#define MIB (UINT64_C(1) << 20)

TEST(without_options_nothing_is_limited)
{
	struct ll_run_args args = {0};
	struct ll_run_settings settings;
	struct ll_err err = {0};
	assert_int_equal(ll_run_args_settings(&args, "python", &settings, &err), 0);
	assert_int_equal(settings.memory_limit_bytes, 0);
	assert_int_equal(settings.compute_cap_permille, 0);
	assert_int_equal(settings.weight_permille, 1000);
	assert_int_equal(settings.priority, LL_PRIORITY_NORMAL);
	assert_true(settings.counts_context);
	assert_int_equal(settings.max_kernel_ns, 0);
	assert_string_equal(settings.folder, "");
}

TEST(each_tenant_has_an_id_of_its_own)
{
	struct ll_run_args args = {0};
	struct ll_run_settings one;
	struct ll_run_settings two;
	assert_int_equal(ll_run_args_settings(&args, "a", &one, NULL), 0);
	assert_int_equal(ll_run_args_settings(&args, "a", &two, NULL), 0);
	assert_true(one.id && two.id && one.id != two.id);
}

static void made_name(const char *command, const char *expected_base)
{
	struct ll_run_args args = {0};
	struct ll_run_settings settings;
	char expected[LL_TENANT_NAME_SIZE + 20];
	assert_int_equal(ll_run_args_settings(&args, command, &settings, NULL), 0);
	snprintf(expected, sizeof expected, "%s-%d", expected_base, (int)getpid());
	assert_string_equal(settings.tenant, expected);
	assert_true(ll_tenant_name_is_valid(settings.tenant));
}

TEST(a_name_is_made_from_any_command)
{
	made_name("python3.11", "python3.11");
	made_name("/usr/bin/env", "env");
	made_name("./a b;c=d", "a_b_c_d");
	made_name("/folder/", "_folder_");
	made_name("\xc3\xa9t\xc3\xa9", "\xc3\xa9t\xc3\xa9");
	made_name("./训练 名字", "训练_名字");
	made_name("caf\xe9\033", "caf__");
	made_name("名字名字名字名字名字名字名字名字", "名字名字名字名字名字名字名字名"); /* whole characters */
	made_name("x123456789x123456789x123456789x123456789x123456789x123456789x123456789",
		  "x123456789x123456789x123456789x123456789x123456");
}

TEST(names_are_utf8_that_can_be_shown_and_others_are_refused_with_the_reason)
{
	static const struct {
		const char *name, *why; /* NULL: it is a name */
	} cases[] = {
	    {"train-1", NULL},
	    {"名字", NULL},
	    {"ünïcödé", NULL},
	    {"ทดสอบ", NULL},
	    {"🚀", NULL},
	    {"a\tb", "'a?b': not a name: U+0009 is not printable"},
	    {"\033[31mred", "'?[31mred': not a name: U+001B is not printable"},
	    {"a\u200bb", "'a?b': not a name: U+200B is not printable"},
	    {"gpj\u202eexe", "'gpj?exe': not a name: U+202E is not printable"},
	    {"a\xc2\x85", "'a?': not a name: U+0085 is not printable"},
	    {"caf\xe9", "'caf': not a name: byte 0xe9 is not UTF-8"},
	    {"\xffx", "'?x': not a name: byte 0xff is not UTF-8"},
	    {"\xc0\xafx", "'?x': not a name: byte 0xc0 is not UTF-8"},
	    {"a\u3000b", "'a\u3000b': not a name: '\u3000'"},
	    {"a b", "'a b': not a name: ' '"},
	    {"a;b", "'a;b': not a name: ';'"},
	    {"", "'': not a name: 0 bytes"},
	    {"名字名字名字名字名字名字名字名字名字名字名x", "': not a name: 64 bytes"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char name[128];
		struct ll_run_settings settings;
		struct ll_err err = {0};
		snprintf(name, sizeof name, "%s", cases[i].name);
		struct ll_run_args args = {.tenant = name};
		if (cases[i].why) {
			assert_fails(ll_run_args_settings(&args, "x", &settings, &err), -EINVAL, cases[i].why);
			continue;
		}
		char text[LL_RUN_TEXT_SIZE];
		assert_int_equal(ll_run_args_settings(&args, "x", &settings, &err), 0);
		assert_string_equal(settings.tenant, name);
		snprintf(settings.folder, sizeof settings.folder, "/f");
		assert_int_equal(ll_run_settings_write(&settings, text), 0);
		assert_int_equal(ll_run_settings_read(text, &settings), 0);
		assert_string_equal(settings.tenant, name);
	}
}

TEST(a_request_makes_the_program_evictable)
{
	struct ll_run_args args = {.mem = "2G", .mem_request = "1G"};
	struct ll_run_settings settings;
	struct ll_err err = {0};
	assert_int_equal(ll_run_args_settings(&args, "x", &settings, &err), 0);
	assert_int_equal(settings.memory_limit_bytes, 2048 * MIB);
	assert_int_equal(settings.memory_request_bytes, 1024 * MIB);
	assert_true(settings.is_evictable);
	args.mem = "none";
	assert_int_equal(ll_run_args_settings(&args, "x", &settings, &err), 0);
	args.mem_request = "none";
	assert_int_equal(ll_run_args_settings(&args, "x", &settings, &err), 0);
	assert_int_equal(settings.memory_request_bytes, 0);
	assert_false(settings.is_evictable);
	args = (struct ll_run_args){.mem = "1G", .mem_request = "2G"};
	assert_fails(ll_run_args_settings(&args, "x", &settings, &err), -EINVAL, "more than the limit");
	args.mem_request = "much";
	assert_fails(ll_run_args_settings(&args, "x", &settings, &err), -EINVAL, "--mem-request");
}

TEST(options_become_settings)
{
	struct ll_run_args args = {.mem = "2G",
				   .compute = "12.5%",
				   .weight = "0.5",
				   .class = "high",
				   .slowdown = "1.5",
				   .tenant = "a.b_c-d+e@f:1",
				   .max_kernel = "1.5s:kill",
				   .count_context = 1};
	struct ll_run_settings settings;
	struct ll_err err = {0};
	assert_int_equal(ll_run_args_settings(&args, "x", &settings, &err), 0);
	assert_int_equal(settings.memory_limit_bytes, 2048 * MIB);
	assert_int_equal(settings.compute_cap_permille, 125);
	assert_int_equal(settings.weight_permille, 500);
	assert_int_equal(settings.priority, LL_PRIORITY_HIGH);
	assert_int_equal(settings.slowdown_permille, 1500);
	assert_string_equal(settings.tenant, "a.b_c-d+e@f:1");
	assert_int_equal(settings.max_kernel_ns, 1500000000);
	assert_true(settings.kills_at_max_kernel);
	assert_false(settings.counts_context);
	args.max_kernel = "10s";
	assert_int_equal(ll_run_args_settings(&args, "x", &settings, &err), 0);
	assert_false(settings.kills_at_max_kernel);
}

TEST(bad_values_name_their_option)
{
	struct ll_run_settings settings = {.id = 7};
	struct ll_err err;
	assert_fails(ll_run_args_settings(&(struct ll_run_args){.max_kernel = "0s"}, "x", &settings, &err), -EINVAL,
		     "--max-kernel");
	assert_fails(ll_run_args_settings(&(struct ll_run_args){.max_kernel = "5s:stop"}, "x", &settings, &err),
		     -EINVAL, "--max-kernel");
	assert_fails(ll_run_args_settings(&(struct ll_run_args){.class = "hold"}, "x", &settings, &err), -EINVAL,
		     "--class");
	assert_fails(ll_run_args_settings(&(struct ll_run_args){.tenant = "a/b"}, "x", &settings, &err), -EINVAL,
		     "--tenant");
	assert_fails(ll_run_args_settings(&(struct ll_run_args){.mem = "0"}, "x", &settings, &err), -EINVAL, "--mem");
	assert_int_equal(settings.id, 7);
}

TEST(inside_a_tenant_only_cards_may_be_chosen)
{
	struct ll_run_settings outer = {.id = 1, .tenant = "outer"};
	struct ll_err err = {0};
	assert_int_equal(ll_run_args_check_nested(&(struct ll_run_args){.allow_ungoverned = true}, &outer, &err), 0);
	assert_int_equal(ll_run_args_check_nested(&(struct ll_run_args){.cards = (char[]){"0"}}, &outer, &err), 0);
	assert_fails(ll_run_args_check_nested(&(struct ll_run_args){.mem = "1G"}, &outer, &err), -EPERM, "outer");
	assert_fails(ll_run_args_check_nested(&(struct ll_run_args){.compute = "none"}, &outer, &err), -EPERM, "outer");
	assert_fails(ll_run_args_check_nested(&(struct ll_run_args){.class = "low"}, &outer, &err), -EPERM, "outer");
	assert_fails(ll_run_args_check_nested(&(struct ll_run_args){.slowdown = "2"}, &outer, &err), -EPERM, "outer");
	assert_fails(ll_run_args_check_nested(&(struct ll_run_args){.tenant = "x"}, &outer, &err), -EPERM, "outer");
}

TEST(a_limit_fits_the_card_and_a_context)
{
	struct ll_card card = {.label = "3", .memory_bytes = 16384 * MIB, .sm_count = 100};
	struct ll_run_settings settings = {.counts_context = true};
	struct ll_err err = {0};
	assert_int_equal(ll_run_args_check_card(&settings, &card, &err), 0);
	settings.memory_limit_bytes = 16384 * MIB;
	assert_int_equal(ll_run_args_check_card(&settings, &card, &err), 0);
	settings.memory_limit_bytes++;
	assert_fails(ll_run_args_check_card(&settings, &card, &err), -EINVAL, "card 3 has only 16384 MiB");
	settings.memory_limit_bytes = 399 * MIB; /* 2 for each SM, and 2 for its threads' stacks */
	assert_fails(ll_run_args_check_card(&settings, &card, &err), -EINVAL, "some 400 MiB of card 3");
	assert_non_null(strstr(err.hint, "--mem 400M"));
	settings.memory_limit_bytes = 400 * MIB;
	assert_int_equal(ll_run_args_check_card(&settings, &card, &err), 0);
	/* On a quarter of the SMs a context takes a quarter. */
	settings.space_permille = 250;
	settings.memory_limit_bytes = 99 * MIB;
	assert_fails(ll_run_args_check_card(&settings, &card, &err), -EINVAL, "some 100 MiB of card 3");
	settings.memory_limit_bytes = 100 * MIB;
	assert_int_equal(ll_run_args_check_card(&settings, &card, &err), 0);
	settings = (struct ll_run_settings){.memory_limit_bytes = 1};
	assert_int_equal(ll_run_args_check_card(&settings, &card, &err), 0);
}

TEST(by_space_the_share_is_of_space)
{
	struct ll_run_args args = {.by = LL_RUN_BY_SPACE, .compute = "25%"};
	struct ll_run_settings settings;
	struct ll_err err = {0};
	assert_int_equal(ll_run_args_settings(&args, "x", &settings, &err), 0);
	assert_int_equal(settings.space_permille, 250);
	assert_int_equal(settings.compute_cap_permille, 0);
	/* It goes to the program and to what that starts. */
	char text[LL_RUN_TEXT_SIZE];
	struct ll_run_settings copy;
	memcpy(settings.folder, "/f", 3);
	assert_int_equal(ll_run_settings_write(&settings, text), 0);
	assert_int_equal(ll_run_settings_read(text, &copy), 0);
	assert_int_equal(copy.space_permille, 250);
	/* Who shares by slices may not leave that for MPS inside. */
	struct ll_run_settings outer = {.tenant = "t"};
	struct ll_run_args inner = {.by = LL_RUN_BY_SPACE};
	assert_fails(ll_run_args_check_nested(&inner, &outer, &err), -EPERM, "already governed");
	assert_int_equal(ll_run_args_check_nested(&inner, &copy, &err), 0);
	/* Weights and classes hold there too. */
	args.weight = "2", args.class = "low";
	assert_int_equal(ll_run_args_settings(&args, "x", &settings, &err), 0);
	assert_int_equal(settings.weight_permille, 2000);
	assert_int_equal(settings.priority, LL_PRIORITY_LOW);
}

TEST(what_a_card_does_not_tell_limits_nothing)
{
	struct ll_card card = {.label = "0"};
	struct ll_run_settings settings = {.memory_limit_bytes = 1, .counts_context = true};
	struct ll_err err = {0};
	assert_int_equal(ll_run_args_check_card(&settings, &card, &err), 0);
	settings.memory_limit_bytes = UINT64_MAX;
	assert_int_equal(ll_run_args_check_card(&settings, &card, &err), 0);
}
