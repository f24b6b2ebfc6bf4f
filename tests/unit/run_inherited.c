/* A process finds its tenant by what it inherited, or finds none. Each row is the life of a process: the steps of one
 * that `run` might have started. */
#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#include "cli/run/run.h"
#include "protocol/inherited.h"
#include "protocol/run_settings.h"
#include "wait_for.h"

enum { NOBODY = 65534, STEPS_MAX = 24, STEP_SIZE = 16, LONG = 3000, FILLERS = 200 };

static const struct ll_run_settings settings = {
    .id = 0x1234, .tenant = "heir", .priority = LL_PRIORITY_LOW, .memory_limit_bytes = 99, .folder = "/f"};

/* ---- a process that takes steps: PROGRAM RESULT-FILE STEP... ---- */

static void put_variable(const char *value)
{
	if (setenv(LL_RUN_VARIABLE, value, 1))
		_exit(1);
}

static void give_settings(void)
{
	char text[LL_RUN_TEXT_SIZE];
	if (ll_run_settings_write(&settings, text))
		_exit(1);
	put_variable(text);
}

static void give_long_value(void)
{
	char text[LONG];
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	put_variable(text);
}

/* More than a block of /proc/PID/environ, and names that are almost the variable's. */
static void fill_environment(void)
{
	char name[32], text[LONG];
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	for (int i = 0; i < FILLERS; i++) {
		snprintf(name, sizeof name, i % 2 ? LL_RUN_VARIABLE "%d" : "X%d" LL_RUN_VARIABLE, i);
		setenv(name, text + i, 1);
	}
}

static void keep_file(void)
{
	ll_run_bequeath(&settings);
}

static void close_all(void)
{
	for (int fd = STDERR_FILENO + 1; fd < 256; fd++)
		close(fd);
}

static void go_on_in_child(void)
{
	int status;
	pid_t child = fork();
	if (child < 0)
		_exit(1);
	if (!child)
		return;
	waitpid(child, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* Goes on when its parent has ended. */
static void go_on_as_orphan(void)
{
	pid_t parent = getpid(), child = fork();
	if (child)
		_exit(child < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
	while (getppid() == parent)
		usleep(1000);
}

static void become_nobody(void)
{
	if (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY) || prctl(PR_SET_DUMPABLE, 1))
		_exit(1);
}

static void garble(void)
{
	put_variable("id=1");
}

static void clear(void)
{
	clearenv();
}

static const struct {
	const char *name;
	void (*take)(void);
} steps[] = {
    {"env", give_settings}, {"long", give_long_value}, {"fill", fill_environment},  {"keep", keep_file},
    {"close", close_all},   {"fork", go_on_in_child},  {"orphan", go_on_as_orphan}, {"nobody", become_nobody},
    {"garble", garble},     {"clear", clear},
};

static int tell(const char *path)
{
	struct ll_run_settings found = {0};
	errno = EDOM;
	int rc = ll_run_settings_find(&found);
	bool is_kept = errno == EDOM;
	int fd = open(path, O_WRONLY);
	bool is_same = found.id == settings.id && found.memory_limit_bytes == settings.memory_limit_bytes &&
		       strcmp(found.tenant, settings.tenant) == 0;
	const char *answer = rc == -ENOENT ? "none" : rc == -EINVAL ? "garbled" : is_same ? "found" : "another";
	return dprintf(fd, "%s.\n", is_kept ? answer : "errno") < 0;
}

static int live(char **argv)
{
	for (char **step = argv + 2; *step; step++) {
		if (strcmp(*step, "tell") == 0)
			return tell(argv[1]);
		if (strcmp(*step, "exec") == 0) {
			char *words[STEPS_MAX + 3] = {argv[0], argv[1]};
			for (size_t i = 0; step[i]; i++)
				words[i + 2] = step[i + 1];
			execv("/proc/self/exe", words);
			return 1;
		}
		for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
			if (strcmp(*step, steps[i].name) == 0)
				steps[i].take();
		}
	}
	return 1;
}

/* ---- the rows ---- */

static const struct row {
	const char *steps, *expected;
	bool needs_root;
} rows[] = {
    {"tell", "none", false},
    {"exec tell", "none", false},
    /* its own environment, as it is and as it began */
    {"env exec tell", "found", false},
    {"env exec clear tell", "found", false},
    {"fill env exec clear tell", "found", false},
    {"fill exec tell", "none", false},
    {"garble exec tell", "garbled", false},
    {"garble exec clear tell", "garbled", false},
    {"long exec tell", "garbled", false},
    {"long exec clear tell", "garbled", false},
    /* a descriptor */
    {"keep exec tell", "found", false},
    {"keep clear exec tell", "found", false},
    {"keep exec exec exec tell", "found", false},
    {"keep fork fork exec tell", "found", false},
    {"keep orphan exec orphan exec tell", "found", false},
    {"keep close exec tell", "none", false},
    /* parents */
    {"env exec clear close fork exec tell", "found", false},
    {"env exec clear fork exec fork exec fork exec tell", "found", false},
    {"env exec fill clear fork exec fill fork exec tell", "found", false},
    {"keep fork close exec tell", "found", false},
    {"keep fork close exec fork exec tell", "found", false},
    {"garble exec clear fork exec tell", "garbled", false},
    {"long exec clear fork exec tell", "garbled", false},
    {"env exec clear fork garble exec clear fork exec tell", "found", false},
    {"env exec fork garble exec tell", "garbled", false},
    /* a parent that has ended, and no descriptor */
    {"env exec clear orphan exec tell", "none", false},
    /* another user's */
    {"keep nobody exec tell", "found", true},
    {"env exec clear fork nobody exec tell", "none", true},
    {"nobody env exec clear fork exec tell", "found", true},
};

static void make_words(const struct row *row, const char *path, char words[][STEP_SIZE], char **argv)
{
	size_t count = 0;
	argv[0] = (char *)"ledger_inherited";
	argv[1] = (char *)path;
	for (const char *step = row->steps; *step; count++) {
		size_t length = strcspn(step, " ");
		snprintf(words[count], STEP_SIZE, "%.*s", (int)length, step);
		argv[count + 2] = words[count];
		step += length + (step[length] == ' ');
	}
	argv[count + 2] = NULL;
}

static bool is_told(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && st.st_size > 0;
}

static void check_row(const struct row *row)
{
	char path[] = "/tmp/ll-inherited-XXXXXX", words[STEPS_MAX][STEP_SIZE], told[32] = "", expected[32];
	char *argv[STEPS_MAX + 3];
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0666), 0);
	make_words(row, path, words, argv);
	pid_t child = fork();
	if (!child) {
		execv("/proc/self/exe", argv);
		_exit(1);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	wait_for(is_told(fd));
	assert_true(pread(fd, told, sizeof told - 1, 0) >= 0);
	close(fd);
	unlink(path);
	snprintf(expected, sizeof expected, "%s.\n", row->expected);
	if (strcmp(told, expected) != 0)
		fail_msg("%s: %s and not %s", row->steps, told, row->expected);
}

TEST(a_tenant_is_found_by_what_was_inherited)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (!rows[i].needs_root || geteuid() == 0)
			check_row(&rows[i]);
		else
			say_skipped(__func__, "needs root");
	}
}

int main(int argc, char **argv)
{
	if (argc > 2)
		return live(argv);
	unsetenv(LL_RUN_VARIABLE);
	return tests_run(argc, argv);
}
