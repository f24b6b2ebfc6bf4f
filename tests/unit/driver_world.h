/*
 * driver_world.h - runs a function of a test in a simulated world of its own. A process joins one world for its life,
 * so each runs in a child; CHECK ends the child, and the test fails then. Needs LD_LIBRARY_PATH to name the simulator.
 */
#ifndef LOADLINE_TESTS_UNIT_DRIVER_WORLD_H
#define LOADLINE_TESTS_UNIT_DRIVER_WORLD_H

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                        \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

/* The call succeeds; err is the name of a struct ll_err. */
#define CHECK_OK(call)                                                                                                 \
	do {                                                                                                           \
		struct ll_err check_err = {0};                                                                         \
		struct ll_err *err = &check_err;                                                                       \
		if (call) {                                                                                            \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, check_err.text);                 \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

/* The call fails with code, and its text and hint contain part. */
#define CHECK_FAILS(call, expected_code, part)                                                                         \
	do {                                                                                                           \
		struct ll_err check_err = {0};                                                                         \
		struct ll_err *err = &check_err;                                                                       \
		int check_rc = (call);                                                                                 \
		if (check_rc != (expected_code) ||                                                                     \
		    (!strstr(check_err.text, (part)) && !strstr(check_err.hint, (part)))) {                            \
			fprintf(stderr, "%s:%d: %s: %d '%s'; '%s'\n", __FILE__, __LINE__, #call, check_rc,             \
				check_err.text, check_err.hint);                                                       \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

static inline void write_scenario(const char *path, const char *scenario)
{
	FILE *stream = fopen(path, "w");
	CHECK(stream && fputs(scenario, stream) >= 0);
	CHECK(!fclose(stream));
	setenv("LOADLINE_SIM_SCENARIO", path, 1);
}

static inline void remove_world(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	while (dir && (entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(folder);
}

static inline void in_world(const char *scenario, void (*run)(void))
{
	char folder[] = "/tmp/ll-world-XXXXXX";
	int status;
	assert_non_null(mkdtemp(folder));
	pid_t pid = fork();
	if (!pid) {
		char path[80];
		snprintf(path, sizeof path, "%s/scenario", folder);
		setenv("LOADLINE_SIM_DIR", folder, 1);
		write_scenario(path, scenario);
		run();
		exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	remove_world(folder);
	assert_int_equal(status, 0);
}

#endif
