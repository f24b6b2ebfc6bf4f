#include "base/log.h"

#include <errno.h>
#include <unistd.h>

#include "test.h"

static int pipe_fds[2];

static int redirect_to_pipe(void **state)
{
	(void)state;
	if (pipe(pipe_fds) != 0)
		return -1;
	ll_log_set_fd(pipe_fds[1]);
	ll_log_set_level(LL_LOG_INFO);
	return 0;
}

static int close_pipe(void **state)
{
	(void)state;
	ll_log_set_fd(STDERR_FILENO);
	close(pipe_fds[0]);
	return close(pipe_fds[1]);
}

TEST_EACH(redirect_to_pipe, close_pipe);

/* What was logged until now; at least one byte must have been. */
static char *logged(char *buf, size_t size)
{
	ssize_t n = read(pipe_fds[0], buf, size - 1);
	assert_true(n > 0);
	buf[n] = '\0';
	return buf;
}

TEST(line_has_time_level_and_text)
{
	char buf[256];
	ll_info("card %d: holding", 7);
	logged(buf, sizeof buf);
	int year;
	int ms;
	char rest[64];
	assert_int_equal(sscanf(buf, "%4d-%*2d-%*2d %*2d:%*2d:%*2d.%3d %63[^\n]", &year, &ms, rest), 3);
	assert_true(year >= 2024);
	assert_in_range(ms, 0, 999);
	assert_string_equal(rest, "INFO card 7: holding");
	assert_int_equal(buf[strlen(buf) - 1], '\n');
}

TEST(lines_above_the_level_are_dropped)
{
	char buf[256];
	ll_log_set_level(LL_LOG_WARN);
	ll_info("dropped");
	ll_debug("dropped");
	ll_warn("kept");
	assert_null(strstr(logged(buf, sizeof buf), "dropped"));
	assert_non_null(strstr(buf, "WARN kept\n"));
}

TEST(long_line_is_cut_and_ends_its_line)
{
	char buf[4096];
	char big[3000];
	memset(big, 'x', sizeof big - 1);
	big[sizeof big - 1] = '\0';
	ll_error("%s", big);
	logged(buf, sizeof buf);
	assert_true(strlen(buf) <= 1024);
	assert_int_equal(buf[strlen(buf) - 1], '\n');
}

TEST(errno_survives_logging)
{
	ll_log_set_fd(-1);
	errno = ENOSPC;
	ll_error("goes nowhere");
	assert_int_equal(errno, ENOSPC);
}
