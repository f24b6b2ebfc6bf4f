/* LOADLINE_RUN: what is written is read again, and a text with any damage is refused. */
#include <errno.h>

#include "test.h"

#include "protocol/run_settings.h"

enum { TEXT = 2 * LL_RUN_TEXT_SIZE };

static const struct ll_run_settings all = {
    .id = 0x5f21c9,
    .tenant = "train",
    .priority = LL_PRIORITY_LOW,
    .memory_limit_bytes = UINT64_C(20) << 30,
    .memory_request_bytes = UINT64_C(10) << 30,
    .compute_cap_permille = 250,
    .weight_permille = 2000,
    .slowdown_permille = 1500,
    .space_permille = 500,
    .counts_context = true,
    .max_kernel_ns = UINT64_C(10000000000),
    .kills_at_max_kernel = true,
    .is_evictable = true,
    .avoids_neighbours = true,
    .is_strict = true,
    .first_card = "MIG-GPU-0000/1/2",
    .place = "loadline/1000/fd01-1f3c",
    .folder = "/run/a;folder=/b c",
};

static const struct key {
	const char *key, *value; /* as written */
	const char *garbled[8];  /* NULL-ended */
} keys[] = {
    {"id", "5f21c9", {"0", "5F21C9", "0x5f", "-1", "5g", "11112222333344445"}},
    {"tenant", "train", {"a b", "a\n", "a,b", "=", "a\tb"}},
    {"mem", "21474836480", {"-1", "+1", " 1", "1 ", "20G", "0x10", "18446744073709551616"}},
    {"request", "10737418240", {"-1", "+1", " 1", "1 ", "20G", "0x10", "18446744073709551616"}},
    {"compute", "250", {"-1", "1001", "25%", " 1", "0.5", "4294967546"}},
    {"weight", "2000", {"-1", "100001", "2x", " 1", "0.5", "4294969296"}},
    {"slowdown", "1500", {"-1", "10001", "1.5", " 1", "4294968796"}},
    {"space", "500", {"-1", "1001", "25%", " 1", "0.5", "4294967796"}},
    {"priority", "3", {"0", "4", "5", "low", "-1", "4294967299"}},
    {"context", "1", {"2", "yes", "-1", "01x", "true"}},
    {"max-kernel", "10000000000", {"-1", "10s", " 1", "1e9", "18446744073709551616"}},
    {"kill", "1", {"2", "yes", "-1", "01x", "true"}},
    {"strict", "1", {"2", "yes", "-1", "01x", "true"}},
    {"evictable", "1", {"2", "yes", "-1", "01x", "true"}},
    {"no-neighbour", "1", {"2", "yes", "-1", "01x", "true"}},
    {"first", "MIG-GPU-0000/1/2", {"GPU 1", "GPU\n", "a=b", "\x80"}},
    {"place", "loadline/1000/fd01-1f3c", {"loadline", "elsewhere/1", "loadline/x y", "loadline/1000/\x80"}},
    {"folder", "/run/a;folder=/b c", {"run", "./run", "x/"}},
};
enum { KEYS = sizeof keys / sizeof *keys };

/* The text with all keys, but for one: that has this value, or is left out if the value is NULL. */
static void make_text(char text[TEXT], size_t changed, const char *value)
{
	size_t used = 0;
	text[0] = '\0';
	for (size_t i = 0; i < KEYS; i++) {
		const char *written = i == changed ? value : keys[i].value;
		if (written)
			used += (size_t)snprintf(text + used, TEXT - used, "%s%s=%s", used ? ";" : "", keys[i].key,
						 written);
	}
}

static void is_refused(const char *text)
{
	struct ll_run_settings settings = {.id = 77};
	if (ll_run_settings_read(text, &settings) != -EINVAL)
		fail_msg("taken: %s", text);
	assert_int_equal(settings.id, 77);
}

TEST(what_is_written_is_read)
{
	char text[LL_RUN_TEXT_SIZE], expected[TEXT];
	struct ll_run_settings settings;
	assert_int_equal(ll_run_settings_write(&all, text), 0);
	make_text(expected, KEYS, NULL);
	assert_string_equal(text, expected);
	assert_int_equal(ll_run_settings_read(text, &settings), 0);
	char again[LL_RUN_TEXT_SIZE];
	assert_int_equal(ll_run_settings_write(&settings, again), 0);
	assert_string_equal(again, text);
	struct ll_run_settings least = {.id = 1, .tenant = "t", .priority = LL_PRIORITY_HIGH, .folder = "/"};
	assert_int_equal(ll_run_settings_write(&least, text), 0);
	assert_int_equal(ll_run_settings_read(text, &settings), 0);
	assert_int_equal(settings.memory_limit_bytes, 0);
	assert_false(settings.counts_context);
}

TEST(a_garbled_value_is_refused)
{
	char text[TEXT];
	for (size_t i = 0; i < KEYS; i++) {
		for (size_t k = 0; keys[i].garbled[k]; k++) {
			make_text(text, i, keys[i].garbled[k]);
			is_refused(text);
		}
	}
}

/* `first` may be empty: the job has one card. `place` may be: it reaches no loadlined. */
TEST(an_empty_value_is_refused)
{
	char text[TEXT];
	for (size_t i = 0; i < KEYS; i++) {
		struct ll_run_settings settings;
		make_text(text, i, "");
		if (strcmp(keys[i].key, "first") == 0 || strcmp(keys[i].key, "place") == 0)
			assert_int_equal(ll_run_settings_read(text, &settings), 0);
		else
			is_refused(text);
	}
}

TEST(a_missing_key_is_refused)
{
	char text[TEXT];
	for (size_t i = 0; i < KEYS; i++) {
		make_text(text, i, NULL);
		is_refused(text);
	}
	is_refused("");
	is_refused(";");
	is_refused("garbage");
}

TEST(a_key_that_comes_twice_is_refused)
{
	char text[TEXT], twice[2 * TEXT];
	make_text(text, KEYS, NULL);
	for (size_t i = 0; i + 1 < KEYS; i++) { /* folder is the last: what follows belongs to the path */
		snprintf(twice, sizeof twice, "%s=%s;%s", keys[i].key, keys[i].value, text);
		is_refused(twice);
	}
}

TEST(a_key_that_is_not_known_is_refused)
{
	char text[TEXT], more[2 * TEXT], broken[TEXT];
	make_text(text, KEYS, NULL);
	snprintf(more, sizeof more, "future=7;%s", text);
	is_refused(more);
	snprintf(more, sizeof more, ";%s", text);
	is_refused(more);
	/* A key that was hit itself. */
	for (size_t i = 0; i < KEYS; i++) {
		char wrong[32];
		snprintf(wrong, sizeof wrong, "%s=", keys[i].key);
		make_text(broken, KEYS, NULL);
		char *at = strstr(broken, wrong);
		assert_non_null(at);
		*at = 'X';
		is_refused(broken);
	}
}

TEST(a_text_cut_anywhere_is_refused)
{
	char text[TEXT];
	make_text(text, KEYS, NULL);
	size_t folder = (size_t)(strstr(text, ";folder=") - text) + strlen(";folder=/");
	for (size_t length = 0; length < folder; length++) {
		char cut[TEXT];
		snprintf(cut, sizeof cut, "%.*s", (int)length, text);
		is_refused(cut);
	}
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	is_refused(text);
}
