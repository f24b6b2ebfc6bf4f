#include "cli/options/option.h"

#include <errno.h>

#include "test.h"

struct args {
	bool json;
	bool quiet;
	const char *target;
	char *cards;
	int metric;
	uint64_t max_memory_bytes;
	uint64_t resume_after_ns;
	uint64_t for_ns;
	double share_percent;
	double max_celsius;
	uint64_t count;
	const char *sim;
};

static const char *const metrics[] = {"util", "sm", "power", NULL};
static const char *const old_metrics[] = {"use", NULL};

static const struct ll_option options[] = {
    LL_OPTION_CARDS(struct args, cards),
    LL_OPTION_JSON(struct args, json),
    {.name = "quiet", .letter = 'q', LL_OPTION_FLAG(struct args, quiet), .help = "Quiet."},
    {.name = "target",
     .alias = "level",
     .letter = 't',
     .placeholder = "LEVEL",
     LL_OPTION_TEXT(struct args, target),
     .fallback = "50%"},
    {.name = "metric",
     .placeholder = "M",
     LL_OPTION_CHOICE(struct args, metric),
     .choices = metrics,
     .choice_aliases = old_metrics,
     .fallback = "sm"},
    {.name = "max-memory", .placeholder = "SIZE", LL_OPTION_BYTES(struct args, max_memory_bytes), .min = 1},
    {.name = "for", .placeholder = "T", LL_OPTION_DURATION(struct args, for_ns), .min = 1},
    {.name = "resume-after", .placeholder = "T", LL_OPTION_DURATION(struct args, resume_after_ns), .fallback = "5s"},
    {.name = "share", .placeholder = "P", LL_OPTION_PERCENT(struct args, share_percent), .min = 1, .max = 99},
    {.name = "max-temperature", .placeholder = "C", LL_OPTION_CELSIUS(struct args, max_celsius)},
    {.name = "count", .placeholder = "N", LL_OPTION_UINT(struct args, count), .min = 1, .max = 8},
    {.name = "sim", .placeholder = "SCENARIO", LL_OPTION_OPTIONAL(struct args, sim)},
    LL_OPTION_END,
};

struct fixture {
	struct args args;
	struct ll_operands operands;
	bool wants_help;
	bool stops_at_operand;
	struct ll_err err;
	char *words[16];
};

static int set_up(void **state)
{
	*state = calloc(1, sizeof(struct fixture));
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	ll_options_fini(options, &f->args);
	free(f);
	return 0;
}

TEST_EACH(set_up, tear_down);

static int parse(struct fixture *f, const char *const *words)
{
	int count = 0;
	ll_options_fini(options, &f->args);
	f->args = (struct args){0};
	for (; words[count]; count++)
		f->words[count] = (char *)words[count];
	f->words[count] = NULL;
	return ll_options_parse(options, &f->args, count, f->words, f->stops_at_operand, &f->operands, &f->wants_help,
				&f->err);
}

#define PARSE(f, ...) parse(f, (const char *const[]){__VA_ARGS__, NULL})

TEST_GIVEN(struct fixture *f, defaults_are_parsed_like_values)
{
	assert_int_equal(parse(f, (const char *const[]){NULL}), 0);
	assert_string_equal(f->args.target, "50%");
	assert_int_equal(f->args.metric, 1);
	assert_int_equal(f->args.resume_after_ns, UINT64_C(5000000000));
	assert_null(f->args.cards);
	assert_null(f->args.sim);
	assert_false(f->args.json);
	assert_int_equal(f->operands.count, 0);
}

TEST_GIVEN(struct fixture *f, every_spelling_of_a_value_is_taken)
{
	assert_int_equal(PARSE(f, "--target=60", "-q", "--json"), 0);
	assert_string_equal(f->args.target, "60");
	assert_true(f->args.quiet && f->args.json);
	assert_int_equal(PARSE(f, "--target", "-5"), 0);
	assert_string_equal(f->args.target, "-5");
	assert_int_equal(PARSE(f, "-t70"), 0);
	assert_string_equal(f->args.target, "70");
	assert_int_equal(PARSE(f, "-qt", "80"), 0);
	assert_string_equal(f->args.target, "80");
	assert_true(f->args.quiet);
}

TEST_GIVEN(struct fixture *f, kinds_convert)
{
	assert_int_equal(PARSE(f, "--metric=power", "--max-memory", "1G", "--resume-after=300ms", "--share=12.5%",
			       "--max-temperature", "85C", "--count=8", "--sim"),
			 0);
	assert_int_equal(f->args.metric, 2);
	assert_int_equal(f->args.max_memory_bytes, 1 << 30);
	assert_int_equal(f->args.resume_after_ns, 300000000);
	assert_true(f->args.share_percent == 12.5);
	assert_true(f->args.max_celsius == 85);
	assert_int_equal(f->args.count, 8);
	assert_string_equal(f->args.sim, "");
	assert_int_equal(PARSE(f, "--sim=old", "x"), 0);
	assert_string_equal(f->args.sim, "old");
}

TEST_GIVEN(struct fixture *f, names_and_words_of_before_are_taken)
{
	assert_int_equal(PARSE(f, "--level=60", "--metric=use"), 0);
	assert_string_equal(f->args.target, "60");
	assert_int_equal(f->args.metric, 0);
	assert_int_equal(PARSE(f, "--metric=fan"), -EINVAL);
	assert_string_equal(f->err.text, "--metric: 'fan': not one of util, sm, power");
}

TEST_GIVEN(struct fixture *f, repeated_lists_join_and_other_options_replace)
{
	assert_int_equal(PARSE(f, "-i", "0", "-i2-3", "--cards=all", "-t", "1", "-t", "2"), 0);
	assert_string_equal(f->args.cards, "0,2-3,all");
	assert_string_equal(f->args.target, "2");
}

TEST_GIVEN(struct fixture *f, operands_mix_with_options_until_two_dashes)
{
	assert_int_equal(PARSE(f, "one", "--json", "-", "--", "--quiet", "-x"), 0);
	assert_true(f->args.json);
	assert_false(f->args.quiet);
	assert_int_equal(f->operands.count, 4);
	assert_string_equal(f->operands.words[0], "one");
	assert_string_equal(f->operands.words[1], "-");
	assert_string_equal(f->operands.words[2], "--quiet");
	assert_string_equal(f->operands.words[3], "-x");
	assert_null(f->operands.words[4]);
}

TEST_GIVEN(struct fixture *f, first_operand_ends_the_options_where_asked)
{
	f->stops_at_operand = true;
	assert_int_equal(PARSE(f, "--json", "program", "--quiet"), 0);
	assert_false(f->args.quiet);
	assert_int_equal(f->operands.count, 2);
	assert_string_equal(f->operands.words[1], "--quiet");
}

TEST_GIVEN(struct fixture *f, help_is_known_everywhere)
{
	assert_int_equal(PARSE(f, "--help", "--nonsense"), 0);
	assert_true(f->wants_help);
	f->wants_help = false;
	assert_int_equal(PARSE(f, "-h"), 0);
	assert_true(f->wants_help);
	assert_int_equal(PARSE(f, "--", "--help"), 0);
	assert_false(f->wants_help);
}

TEST_GIVEN(struct fixture *f, mistakes_name_the_option_and_the_reason)
{
	static const struct {
		const char *words[3];
		const char *text;
	} rows[] = {
	    {{"--nonsense"}, "--nonsense: unknown option"},
	    {{"--targe=5"}, "--targe: unknown option"},
	    {{"--=5"}, "--: unknown option"},
	    {{"-x"}, "-x: unknown option"},
	    {{"-qx"}, "-x: unknown option"},
	    {{"--json=yes"}, "--json: takes no value"},
	    {{"--target"}, "--target: needs a value (LEVEL)"},
	    {{"--target", "--json"}, "--target: needs a value (LEVEL)"},
	    {{"-t"}, "--target: needs a value (LEVEL)"},
	    {{"--target="}, "--target: must not be empty"},
	    {{"-i", ""}, "--cards: must not be empty"},
	    {{"--metric=cpu"}, "--metric: 'cpu': not one of util, sm, power"},
	    {{"--max-memory=8GB"}, "--max-memory: '8GB': GB: write G or GiB"},
	    {{"--max-memory=0"}, "--max-memory: '0': must be more than 0"},
	    {{"--for=0s"}, "--for: '0s': must be more than 0"},
	    {{"--max-memory=8X"}, "--max-memory: '8X': not a size such as 512M or 8GiB"},
	    {{"--resume-after=soon"}, "--resume-after: 'soon': not a time such as 300ms, 5s or 10m"},
	    {{"--share=100%"}, "--share: '100%': not between 1 and 99"},
	    {{"--share=0.5%"}, "--share: '0.5%': not between 1 and 99"},
	    {{"--count=9"}, "--count: '9': not between 1 and 8"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(parse(f, rows[i].words), -EINVAL);
		assert_string_equal(f->err.text, rows[i].text);
	}
}
