#include "base/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "test.h"
#include "wait_for.h"

enum { OPEN_FDS = 40 };

/* ---- what a child does: it writes a line for each of its descriptors, "NUMBER FILE" ---- */

static int list_own_fds(int out)
{
	DIR *folder = opendir("/proc/self/fd");
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		char path[300], file[300];
		snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
		ssize_t length = readlink(path, file, sizeof file - 1);
		if (length < 0 || atoi(entry->d_name) == dirfd(folder))
			continue;
		file[length] = '\0';
		dprintf(out, "%s %s\n", entry->d_name, file);
	}
	return 0;
}

static int complain(void)
{
	static const char text[] = "the driver complains\n";
	return write(STDERR_FILENO, text, sizeof text - 1) > 0 ? 0 : 1;
}

/* ---- the tests ---- */

/* Of descriptors that a child must not have. */
static char mark[64];

static int open_marks(void **state)
{
	(void)state;
	snprintf(mark, sizeof mark, "/tmp/loadline-child.XXXXXX");
	int fd = mkstemp(mark);
	for (int i = 0; i < OPEN_FDS && fd >= 0; i++)
		assert_true(dup(fd) >= 0);
	return fd < 0;
}

static int remove_mark(void **state)
{
	(void)state;
	return unlink(mark);
}

static void read_all(int fd, struct ll_strbuf *ret_text)
{
	char text[4096];
	ssize_t n;
	while ((n = read(fd, text, sizeof text)) > 0)
		ll_strbuf_add(ret_text, text, (size_t)n);
}

static void check_fds(const char *list, bool has_relay)
{
	assert_null(strstr(list, mark));
	assert_non_null(strstr(list, "0 /dev/null\n"));
	assert_non_null(strstr(list, "1 /dev/null\n"));
	assert_non_null(strstr(list, has_relay ? "2 pipe:" : "2 /dev/null\n"));
	assert_non_null(strstr(list, "3 pipe:"));
	size_t lines = 0;
	for (const char *c = list; *c; c++)
		lines += *c == '\n';
	assert_int_equal(lines, 4);
}

TEST(a_child_has_the_descriptors_that_it_was_given_and_no_other)
{
	static const struct {
		unsigned flags;
		int err;
	} cases[] = {
	    {0, LL_CHILD_NULL},
	    {0, LL_CHILD_RELAYED},
	    {LL_CHILD_OWN_GROUP, LL_CHILD_RELAYED},
	    {LL_CHILD_ORPHAN, LL_CHILD_NULL},
	    {LL_CHILD_MORTAL, LL_CHILD_NULL},
	};
	static const char *const words[] = {"child", "list", NULL};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		LL_SCOPE_STRBUF struct ll_strbuf list = LL_STRBUF_INIT;
		int ends[2];
		pid_t pid = -1;
		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		struct ll_child child = {.words = words,
					 .in = LL_CHILD_NULL,
					 .out = LL_CHILD_NULL,
					 .err = cases[i].err,
					 .fds = &ends[1],
					 .fd_count = 1,
					 .flags = cases[i].flags};
		assert_int_equal(ll_child_start(&child, &pid, NULL), 0);
		close(ends[1]);
		read_all(ends[0], &list);
		close(ends[0]);
		check_fds(list.buf, cases[i].err == LL_CHILD_RELAYED);
		assert_int_equal(pid == 0, cases[i].flags == LL_CHILD_ORPHAN);
		if (pid)
			assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
}

TEST(a_fork_without_exec_keeps_one_descriptor)
{
	LL_SCOPE_STRBUF struct ll_strbuf list = LL_STRBUF_INIT;
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(list_own_fds(ll_child_keep_only(ends[1])));
	close(ends[1]);
	read_all(ends[0], &list);
	close(ends[0]);
	waitpid(pid, NULL, 0);
	check_fds(list.buf, false);
}

TEST(a_program_that_cannot_be_executed_is_an_error)
{
	static const unsigned flags[] = {0, LL_CHILD_ORPHAN, LL_CHILD_MORTAL};
	static const char *const words[] = {"child", NULL};
	struct ll_err err;
	pid_t pid = -1;
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
		struct ll_child child = {.path = "/nowhere/at/all", .words = words, .flags = flags[i]};
		assert_fails(ll_child_start(&child, &pid, &err), -ENOENT, "No such file");
		assert_int_equal(pid, -1);
		assert_true(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	}
}

static bool has_complaint(int fd)
{
	char text[256] = "";
	ssize_t n = pread(fd, text, sizeof text - 1, 0);
	return n > 0 && strstr(text, "the driver complains\n");
}

TEST(what_a_child_complains_of_comes_out_at_its_starter)
{
	static const char *const words[] = {"child", "complain", NULL};
	FILE *file = tmpfile();
	pid_t pid = -1;
	int status = -1, fd = fileno(file), own = dup(STDERR_FILENO);
	struct ll_child child = {.words = words, .in = LL_CHILD_NULL, .out = LL_CHILD_NULL, .err = LL_CHILD_RELAYED};
	dup2(fd, STDERR_FILENO);
	assert_int_equal(ll_child_start(&child, &pid, NULL), 0);
	wait_for(has_complaint(fd));
	dup2(own, STDERR_FILENO);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fclose(file);
	close(own);
}

/* Runs it in a shell. */
static int run_shell(const char *script, struct ll_child_run run, struct ll_strbuf *output, int *ret_status)
{
	const char *const words[] = {"sh", "-c", script, NULL};
	run.child = (struct ll_child){.path = "/bin/sh",
				      .words = words,
				      .in = LL_CHILD_NULL,
				      .out = LL_CHILD_COLLECTED,
				      .err = LL_CHILD_NULL,
				      .flags = LL_CHILD_OWN_GROUP};
	return ll_child_run(&run, output, ret_status, NULL);
}

TEST(a_child_that_is_run_tells_what_it_printed_and_how_it_ended)
{
	LL_SCOPE_STRBUF struct ll_strbuf output = LL_STRBUF_INIT;
	int status = -1;
	assert_int_equal(run_shell("read x; echo $x; echo err >&2; exit 3", (struct ll_child_run){.input = "in\n"},
				   &output, &status),
			 0);
	assert_string_equal(output.buf, "in\n");
	assert_int_equal(status, 3);
	assert_int_equal(run_shell("kill -TERM $$", (struct ll_child_run){.input = NULL}, &output, &status), 0);
	assert_int_equal(status, 128 + SIGTERM);
	assert_int_equal(run_shell("sleep 5 & echo x", (struct ll_child_run){.input = NULL}, &output, &status), 0);
	assert_string_equal(output.buf, "in\nx\n");
}

TEST(a_child_that_is_run_is_killed_with_its_group_at_the_deadline_and_when_it_is_told)
{
	LL_SCOPE_STRBUF struct ll_strbuf output = LL_STRBUF_INIT;
	int status = -1, ends[2];
	struct ll_child_run late = {.deadline_ns = ll_now_ns() + LL_NS_PER_S / 5};
	assert_int_equal(run_shell("sleep 100", late, &output, &status), -ETIMEDOUT);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(run_shell("sleep 100", (struct ll_child_run){.stop_fd = &ends[0]}, &output, &status), -EINTR);
	close(ends[0]);
	close(ends[1]);
	assert_true(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

TEST_ALL(open_marks, remove_mark);

int main(int argc, char **argv)
{
	if (argc > 1)
		return strcmp(argv[1], "list") == 0 ? list_own_fds(LL_CHILD_FIRST_FD) : complain();
	return tests_run(argc, argv);
}
