/* loadline trace: where libcupti is looked for, and what its outputs are called. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "trace/command/internal.h"

static char folder[64];

static int make_folder(void **state)
{
	static const char *const variables[] = {"LOADLINE_CUPTI", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH"};
	(void)state;
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
		unsetenv(variables[i]);
	snprintf(folder, sizeof folder, "/tmp/loadline-test.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[128];
	(void)state;
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	return system(command);
}

TEST_EACH(make_folder, remove_folder);

/* An empty file below the test's folder, with the folders above it; its path. */
static const char *make_file(const char *name)
{
	static char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	for (char *slash = strchr(path + strlen(folder) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	return path;
}

static void set_to(const char *variable, const char *below)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/%s", folder, below);
	setenv(variable, path, 1);
}

/* That the file of that name below the test's folder is found. */
static void assert_finds(const char *interpreter, const char *name)
{
	char found[PATH_MAX] = "", wanted[PATH_MAX];
	snprintf(wanted, sizeof wanted, "%s/%s", folder, name);
	assert_int_equal(ll_trace_find_cupti(interpreter, found), 0);
	assert_string_equal(found, wanted);
}

TEST(cupti_is_looked_for_in_the_order_that_is_told)
{
	char python[PATH_MAX];
	/* From the last place to the first: each goes before those behind it. */
	make_file("env/bin/python3");
	make_file("env/lib/python3.12/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12");
	snprintf(python, sizeof python, "%s/env/bin/python3", folder);
	make_file("cuda/targets/x86_64-linux/lib/libcupti.so.13");
	set_to("CUDA_HOME", "cuda");
	assert_finds(python, "cuda/targets/x86_64-linux/lib/libcupti.so.13");
	make_file("cuda/extras/CUPTI/lib64/libcupti.so.12");
	assert_finds(python, "cuda/extras/CUPTI/lib64/libcupti.so.12");
	make_file("libraries/libcupti.so.11.8");
	set_to("LD_LIBRARY_PATH", "none:/there/is/none");
	assert_finds(python, "cuda/extras/CUPTI/lib64/libcupti.so.12");
	set_to("LD_LIBRARY_PATH", "libraries");
	assert_finds(python, "libraries/libcupti.so.11.8");
	make_file("libraries/libcupti.so.13");
	make_file("libraries/libcupti.so.12");
	assert_finds(python, "libraries/libcupti.so.13");
	make_file("own.so");
	set_to("LOADLINE_CUPTI", "own.so");
	assert_finds(python, "own.so");
	set_to("LOADLINE_CUPTI", "none.so");
	char found[PATH_MAX];
	assert_int_equal(ll_trace_find_cupti(python, found), -ENOENT);
}

/* Where the machine has a toolkit, that goes before. */
TEST(a_python_s_own_packages_are_found)
{
	char python[PATH_MAX], found[PATH_MAX];
	snprintf(python, sizeof python, "%s/env/bin/python3", folder);
	make_file("env/bin/python3");
	if (ll_trace_find_cupti(python, found) == 0)
		SKIP_TEST("the machine's own toolkit goes before");
	make_file("env/lib/python3.12/site-packages/nvidia/cu13/lib/libcupti.so.13");
	assert_finds(python, "env/lib/python3.12/site-packages/nvidia/cu13/lib/libcupti.so.13");
}

TEST(a_file_that_is_no_library_has_a_fault)
{
	char text[PATH_MAX + 80];
	const char *fault = ll_trace_cupti_fault(make_file("libcupti.so.13"), text, sizeof text);
	assert_non_null(fault);
	assert_non_null(strstr(fault, "libcupti.so.13 cannot be loaded"));
}

static void assert_name(const char *pattern, pid_t pid, bool is_alone, const char *wanted)
{
	struct ll_strbuf path = LL_STRBUF_INIT;
	ll_trace_outputs_name(pattern, pid, is_alone, &path);
	assert_string_equal(path.buf, wanted);
	ll_strbuf_fini(&path);
}

TEST(outputs_are_called_as_asked)
{
	assert_name("output_%p.csv", 47, true, "output_47.csv");
	assert_name("output_%p.csv", 47, false, "output_47.csv");
	assert_name("%p/%p.csv", 47, false, "47/47.csv");
	assert_name("a.b/plain.csv", 47, true, "a.b/plain.csv");
	assert_name("a.b/plain.csv", 47, false, "a.b/plain-47.csv");
	assert_name("100%%.csv", 47, true, "100%.csv");
	assert_name("100%%p.csv", 47, false, "100%p-47.csv");
}

TEST(outputs_that_cannot_be_written_are_refused_before)
{
	char list[PATH_MAX];
	struct ll_err err;
	snprintf(list, sizeof list, "%s/a_%%p.csv,%s/all.json", folder, folder);
	assert_int_equal(ll_trace_outputs_check(NULL, &err), 0);
	assert_int_equal(ll_trace_outputs_check(list, &err), 0);
	assert_fails(ll_trace_outputs_check("a.csv,,b.csv", &err), -EINVAL, "an empty name");
	assert_fails(ll_trace_outputs_check("a.csv,b.svg", &err), -EINVAL, "b.svg");
	assert_fails(ll_trace_outputs_check(".csv", &err), -EINVAL, "neither");
	assert_fails(ll_trace_outputs_check("100%.csv", &err), -EINVAL, "only %p and %%");
	assert_fails(ll_trace_outputs_check("/there/is/none/a.csv", &err), -ENOENT, "/there/is/none/a.csv");
	make_file("folder.csv/x");
	snprintf(list, sizeof list, "%s/folder.csv", folder);
	assert_fails(ll_trace_outputs_check(list, &err), -EISDIR, "folder.csv");
}
