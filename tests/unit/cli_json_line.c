#include "cli/common/table.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "test.h"

/* What ll_json_line writes to stdout, caught through a pipe. */
static char *printed(json_t *object, char *buf, size_t size)
{
	int fds[2];
	assert_int_equal(pipe(fds), 0);
	fflush(stdout);
	int saved = dup(STDOUT_FILENO);
	dup2(fds[1], STDOUT_FILENO);
	int rc = ll_json_line(object, NULL);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(fds[1]);
	assert_int_equal(rc, 0);
	ssize_t n = read(fds[0], buf, size - 1);
	close(fds[0]);
	assert_true(n >= 0);
	buf[n] = '\0';
	return buf;
}

TEST(object_is_one_compact_line_at_once)
{
	char buf[200];
	json_t *object = json_pack("{s:s, s:i, s:o, s:b}", "event", "sample", "card", 0, "util_percent",
				   ll_json_real(50.04, 1), "foreign", 0);
	assert_string_equal(printed(object, buf, sizeof buf),
			    "{\"event\":\"sample\",\"card\":0,\"util_percent\":50.0,\"foreign\":false}\n");
}

TEST(reals_are_rounded_and_print_short)
{
	char buf[200];
	json_t *object = json_pack("{s:o, s:o, s:o, s:o}", "a", ll_json_real(0.1 + 0.2, 3), "b", ll_json_real(NAN, 1),
				   "c", ll_json_real(-INFINITY, 1), "d", ll_json_real(1e308, 9));
	assert_string_equal(printed(object, buf, sizeof buf), "{\"a\":0.3,\"b\":null,\"c\":null,\"d\":1e308}\n");
}

TEST(foreign_text_is_escaped_and_always_utf8)
{
	static const struct {
		const char *text, *line;
	} cases[] = {
	    {"名字", "{\"name\":\"名字\"}\n"},     {"a\"b\\c", "{\"name\":\"a\\\"b\\\\c\"}\n"},
	    {"tab\t", "{\"name\":\"tab\\t\"}\n"},  {"caf\xe9 noir", "{\"name\":\"caf? noir\"}\n"},
	    {"名\xe5\xad", "{\"name\":\"名\"}\n"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char buf[200];
		json_t *object = json_pack("{s:o}", "name", ll_json_text(cases[i].text));
		assert_string_equal(printed(object, buf, sizeof buf), cases[i].line);
	}
}

TEST(missing_object_is_an_error)
{
	struct ll_err err;
	assert_fails(ll_json_line(NULL, &err), -ENOMEM, "JSON");
}
