/* Where a daemon is looked for and started. */
#include "test.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mps/mps.h"

static int forget(void **state)
{
	(void)state;
	unsetenv("CUDA_MPS_PIPE_DIRECTORY");
	unsetenv("CUDA_MPS_LOG_DIRECTORY");
	return 0;
}

TEST_EACH(forget, NULL);

TEST(test_the_environment_names_the_place)
{
	struct ll_mps_place place;
	setenv("CUDA_MPS_PIPE_DIRECTORY", "/tmp/x", 1);
	assert_int_equal(ll_mps_place_find("/world", &place, NULL), 0);
	assert_string_equal(place.pipe, "/tmp/x");
	assert_string_equal(place.log, "/tmp/x/log");
	assert_true(place.is_named);
	setenv("CUDA_MPS_LOG_DIRECTORY", "/tmp/y", 1);
	assert_int_equal(ll_mps_place_find(NULL, &place, NULL), 0);
	assert_string_equal(place.log, "/tmp/y");
	/* NVIDIA's own, named: its logs are where they always are. */
	unsetenv("CUDA_MPS_LOG_DIRECTORY");
	setenv("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps", 1);
	assert_int_equal(ll_mps_place_find(NULL, &place, NULL), 0);
	if (geteuid() == 0)
		assert_string_equal(place.log, "/var/log/nvidia-mps");
	setenv("CUDA_MPS_PIPE_DIRECTORY", "", 1);
	assert_int_equal(ll_mps_place_find("/world", &place, NULL), 0);
	assert_string_equal(place.pipe, "/world/mps/pipe");
	assert_false(place.is_named);
}

TEST(test_without_it_root_has_nvidias_and_a_user_his_own)
{
	struct ll_mps_place place;
	setenv("XDG_RUNTIME_DIR", "/run/user/1", 1);
	assert_int_equal(ll_mps_place_find(NULL, &place, NULL), 0);
	assert_string_equal(place.pipe, geteuid() ? "/run/user/1/loadline/mps/pipe" : "/tmp/nvidia-mps");
	assert_string_equal(place.log, geteuid() ? "/run/user/1/loadline/mps/log" : "/var/log/nvidia-mps");
	assert_int_equal(ll_mps_place_find("/world", &place, NULL), 0);
	assert_string_equal(place.pipe, "/world/mps/pipe");
	assert_string_equal(place.log, "/world/mps/log");
}

TEST(test_paths_that_do_not_fit_are_refused)
{
	struct ll_mps_place place;
	struct ll_err err;
	char path[LL_MPS_PIPE_MAX + 3] = "/";
	memset(path + 1, 'x', LL_MPS_PIPE_MAX);
	assert_fails(ll_mps_place_at(NULL, path, &place, &err), -ENAMETOOLONG, "longer than");
	setenv("CUDA_MPS_PIPE_DIRECTORY", path, 1);
	assert_fails(ll_mps_place_find(NULL, &place, &err), -ENAMETOOLONG, "longer than");
	path[LL_MPS_PIPE_MAX] = '\0';
	setenv("CUDA_MPS_PIPE_DIRECTORY", path, 1);
	assert_int_equal(ll_mps_place_find(NULL, &place, &err), 0);
	setenv("CUDA_MPS_PIPE_DIRECTORY", "here", 1);
	assert_fails(ll_mps_place_find(NULL, &place, &err), -EINVAL, "not an absolute path");
}

TEST(test_folders_are_made_for_their_owner_alone)
{
	char folder[] = "/tmp/ll-place-XXXXXX";
	char deep[80];
	struct ll_mps_place place;
	struct ll_err err = {0};
	struct stat st;
	assert_non_null(mkdtemp(folder));
	snprintf(deep, sizeof deep, "%s/a/b", folder);
	assert_int_equal(ll_mps_place_at(NULL, deep, &place, &err), 0);
	assert_int_equal(ll_mps_place_make(&place, &err), 0);
	assert_int_equal(ll_mps_place_make(&place, &err), 0);
	assert_int_equal(stat(place.pipe, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(chmod(place.pipe, 0777), 0);
	assert_fails(ll_mps_place_make(&place, &err), -EPERM, "others may write it (mode 0777)");
	assert_int_equal(rmdir(place.pipe), 0);
	assert_int_equal(symlink("/tmp", place.pipe), 0);
	assert_fails(ll_mps_place_make(&place, &err), -EPERM, "is not a folder");
	assert_int_equal(unlink(place.pipe), 0);
	assert_int_equal(rmdir(place.log), 0);
	assert_int_equal(rmdir(deep), 0);
	*strrchr(deep, '/') = '\0';
	assert_int_equal(rmdir(deep), 0);
	assert_int_equal(rmdir(folder), 0);
}

TEST(test_a_folder_that_cannot_be_made_says_what_to_set)
{
	static const char *const paths[] = {"/dev/null/mps/pipe", "/proc/none/mps/pipe"};
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		struct ll_err err = {0};
		assert_true(ll_mps_folder_make(paths[i], 0700, &err) < 0);
		assert_string_equal(err.hint, "set XDG_RUNTIME_DIR or CUDA_MPS_PIPE_DIRECTORY to a folder of your own");
	}
}

TEST(test_beside_the_simulated_driver_there_is_no_real_program)
{
	char folder[] = "/tmp/ll-place-XXXXXX";
	char program[80];
	struct ll_mps_place place;
	struct ll_err err;
	assert_non_null(mkdtemp(folder));
	snprintf(program, sizeof program, "%s/nvidia-cuda-mps-control", folder);
	FILE *file = fopen(program, "we");
	assert_non_null(file);
	fclose(file);
	chmod(program, 0700);
	setenv("PATH", folder, 1);
	setenv("LD_LIBRARY_PATH", "/nowhere", 1);
	assert_int_equal(ll_mps_place_find(NULL, &place, NULL), 0);
	assert_string_equal(place.program, program);
	assert_int_equal(ll_mps_place_find("/world", &place, NULL), 0);
	assert_string_equal(place.program, "");
	assert_fails(ll_mps_place_need_program(&place, &err), -ENOENT, "no nvidia-cuda-mps-control");
	char path[200];
	snprintf(path, sizeof path, ":/nowhere:%s", folder);
	setenv("LD_LIBRARY_PATH", path, 1);
	assert_int_equal(ll_mps_place_find("/world", &place, NULL), 0);
	assert_string_equal(place.program, program);
	unlink(program);
	rmdir(folder);
}
