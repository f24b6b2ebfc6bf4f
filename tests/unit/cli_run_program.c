/* How run finds its command's file, what kind of program it is, and what environment it gets. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/run/run.h"
#include "test.h"

static char folder[32];
static char path[80];

static int setup(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/ll-run-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof path, "%s/ll-run-file", folder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static void write_file(const void *data, size_t size, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), (ssize_t)size);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

/* A program header and nothing else of a program, with the loader named behind it. */
struct small_program {
	ElfW(Ehdr) header;
	ElfW(Phdr) segment;
	char loader[32];
};

static struct small_program make_program(void)
{
	struct small_program program = {.loader = "/lib/ld-none.so.1"};
	memcpy(program.header.e_ident, ELFMAG, SELFMAG);
	program.header.e_ident[EI_CLASS] = sizeof(ElfW(Addr)) == 8 ? ELFCLASS64 : ELFCLASS32;
	program.header.e_ident[EI_DATA] = ELFDATA2LSB;
	program.header.e_machine = EM_X86_64;
	program.header.e_phoff = offsetof(struct small_program, segment);
	program.header.e_phentsize = sizeof program.segment;
	program.header.e_phnum = 1;
	program.segment.p_type = PT_INTERP;
	program.segment.p_offset = offsetof(struct small_program, loader);
	program.segment.p_filesz = strlen(program.loader) + 1;
	return program;
}

static struct ll_elf_kind kind_of(const struct small_program *program, size_t size)
{
	struct ll_elf_kind kind = {0};
	write_file(program, size, 0600);
	assert_int_equal(ll_elf_kind_read(path, &kind), 0);
	return kind;
}

TEST(a_dynamic_program_names_its_loader)
{
	struct small_program program = make_program();
	struct ll_elf_kind kind = kind_of(&program, sizeof program);
	assert_true(kind.is_elf && kind.is_readable_here && kind.has_loader && !kind.is_damaged);
	assert_int_equal(kind.machine, EM_X86_64);
	assert_string_equal(kind.loader, "/lib/ld-none.so.1");
	assert_int_equal(ll_elf_kind_read("/proc/self/exe", &kind), 0);
	assert_true(kind.has_loader);
}

TEST(a_program_without_loader_has_none)
{
	struct small_program program = make_program();
	program.segment.p_type = PT_LOAD;
	struct ll_elf_kind kind = kind_of(&program, sizeof program);
	assert_false(kind.has_loader || kind.is_damaged);
}

static void assert_damaged(const struct small_program *program, size_t size)
{
	struct ll_elf_kind kind = kind_of(program, size);
	assert_true(kind.is_elf && kind.is_damaged);
	assert_false(kind.has_loader);
}

TEST(a_program_that_is_cut_short_is_damaged)
{
	struct small_program program = make_program();
	for (size_t size = SELFMAG; size <= offsetof(struct small_program, loader); size++)
		assert_damaged(&program, size);
	program.header.e_phoff = UINT32_MAX;
	assert_damaged(&program, sizeof program);
	program = make_program();
	program.header.e_phentsize = 1;
	assert_damaged(&program, sizeof program);
	program = make_program();
	program.header.e_phnum = 0;
	assert_damaged(&program, sizeof program);
	program = make_program();
	program.segment.p_offset = UINT32_MAX;
	assert_damaged(&program, sizeof program);
	program = make_program();
	program.segment.p_filesz = 0;
	assert_damaged(&program, sizeof program);
}

TEST(a_loader_of_any_length_is_cut)
{
	struct small_program program = make_program();
	memset(program.loader, 'x', sizeof program.loader);
	program.segment.p_filesz = sizeof program.loader;
	struct ll_elf_kind kind = kind_of(&program, sizeof program);
	assert_true(kind.has_loader);
	assert_int_equal(strlen(kind.loader), sizeof program.loader);
}

TEST(what_is_no_program_is_no_elf)
{
	struct ll_elf_kind kind;
	write_file("#!/bin/sh\n", 10, 0600);
	assert_int_equal(ll_elf_kind_read(path, &kind), 0);
	assert_false(kind.is_elf);
	write_file("", 0, 0600);
	assert_int_equal(ll_elf_kind_read(path, &kind), 0);
	assert_false(kind.is_elf);
	assert_int_equal(ll_elf_kind_read("/no/such/file", &kind), -ENOENT);
}

TEST(a_command_is_found_as_execvp_does)
{
	char found[PATH_MAX];
	char folders[200];
	struct ll_err err = {0};
	write_file("", 0, 0700);
	snprintf(folders, sizeof folders, "/no/such:%s:/bin", folder);
	setenv("PATH", folders, 1);
	assert_int_equal(ll_run_find("ll-run-file", found, &err), 0);
	assert_string_equal(found, path);
	assert_int_equal(ll_run_find(path, found, &err), 0);
	assert_string_equal(found, path);
	assert_fails(ll_run_find("no-such-file", found, &err), -ENOENT, "no-such-file: command not found");
	assert_int_equal(err.status, LL_RUN_NOT_FOUND);
	assert_fails(ll_run_find(folder, found, &err), -EISDIR, folder);
	assert_int_equal(err.status, LL_RUN_NOT_EXECUTABLE);
	chmod(path, 0600);
	assert_fails(ll_run_find("ll-run-file", found, &err), -EACCES, "ll-run-file: Permission denied");
	assert_int_equal(err.status, LL_RUN_NOT_EXECUTABLE);
	assert_fails(ll_run_find("", found, &err), -ENOENT, "command not found");
}

TEST(a_library_is_preloaded_once_and_last)
{
	static const char *const pairs[][2] = {
	    {NULL, "/x/a.so"},
	    {"", "/x/a.so"},
	    {" : ", "/x/a.so"},
	    {"/x/a.so", "/x/a.so"},
	    {"libm.so.6 /x/a.so", "libm.so.6:/x/a.so"},
	    {":/x/a.so: /x/b.so", "/x/b.so:/x/a.so"},
	    {"/x/a.so.2:/y/x/a.so", "/x/a.so.2:/y/x/a.so:/x/a.so"},
	    /* Only the simulated kernel driver comes after it. */
	    {"libm.so.6:/y/libloadline-sim-kernel.so", "libm.so.6:/x/a.so:/y/libloadline-sim-kernel.so"},
	};
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		char *list = ll_preload_append(pairs[i][0], "/x/a.so");
		assert_string_equal(list, pairs[i][1]);
		free(list);
	}
}

static int make_environment(const struct ll_run_settings *settings, const char *shim, const char *visible,
			    char ***ret_environment, struct ll_err *err)
{
	return ll_run_environment_make(
	    &(struct ll_run_environment){.settings = settings, .shim = shim, .visible = visible}, ret_environment, err);
}

static size_t count_variable(char **environment, const char *name)
{
	size_t count = 0;
	for (; *environment; environment++)
		count += strncmp(*environment, name, strlen(name)) == 0;
	return count;
}

TEST(environment_has_each_variable_once)
{
	struct ll_run_settings settings = {
	    .id = 1, .tenant = "t", .priority = LL_PRIORITY_NORMAL, .folder = "/run/loadline"};
	char **environment = NULL;
	struct ll_err err = {0};
	setenv("CUDA_VISIBLE_DEVICES", "0", 1);
	setenv("LD_PRELOAD", "libm.so.6", 1);
	setenv("LL_TEST_OTHER", "kept", 1);
	assert_int_equal(make_environment(&settings, "/x/shim.so", "GPU-1,GPU-2", &environment, &err), 0);
	assert_int_equal(count_variable(environment, "CUDA_VISIBLE_DEVICES="), 1);
	assert_int_equal(count_variable(environment, "CUDA_VISIBLE_DEVICES=GPU-1,GPU-2"), 1);
	assert_int_equal(count_variable(environment, "LD_PRELOAD="), 1);
	assert_int_equal(count_variable(environment, "LD_PRELOAD=libm.so.6:/x/shim.so"), 1);
	assert_int_equal(count_variable(environment, LL_RUN_VARIABLE "=id=1;tenant=t;"), 1);
	assert_int_equal(count_variable(environment, "LL_TEST_OTHER=kept"), 1);
	ll_run_environment_free(environment);
	assert_int_equal(make_environment(&settings, "/x/shim.so", NULL, &environment, &err), 0);
	assert_int_equal(count_variable(environment, "CUDA_VISIBLE_DEVICES=0"), 1);
	ll_run_environment_free(environment);
	unsetenv("LD_PRELOAD");
	ll_run_environment_free(NULL);
}

TEST(settings_that_do_not_fit_are_an_error)
{
	struct ll_run_settings settings = {.id = 1, .tenant = "not valid", .folder = "/"};
	char **environment = NULL;
	struct ll_err err;
	assert_fails(make_environment(&settings, "/x", "", &environment, &err), -EINVAL, "tenant");
	assert_null(environment);
}

TEST_ALL(setup, teardown);
