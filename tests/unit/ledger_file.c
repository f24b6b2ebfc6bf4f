#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "test.h"

#include "base/scope.h"
#include "ledger/handle.h"
#include "ledger/layout.h"
#include "ledger/liveness.h"
#include "ledger_fixture.h"

static void overwrite(const struct fixture *f, off_t offset, const void *bytes, size_t count)
{
	LL_SCOPE_CLOSE int fd = open(f->path, O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, count, offset), count);
}

static void made_file_is_private_and_of_fixed_size(void **state)
{
	struct fixture *f = *state;
	struct stat st;
	open_ledger(f);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_size, LL_LEDGER_FILE_BYTES);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_string_equal(ll_ledger_path(f->ledger), f->path);
}

static void second_opening_finds_the_same_file(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *second = NULL;
	struct ll_claim *claim = take_claim(open_ledger(f), LL_PRIORITY_NORMAL);
	assert_int_equal(ll_ledger_open(f->folder, UUID, true, &second, NULL), 0);
	assert_int_equal(count_claims(second), 1);
	ll_claim_release(claim);
	assert_int_equal(count_claims(second), 0);
	ll_ledger_close(second);
}

static void missing_file_is_made_only_when_asked_for(void **state)
{
	struct fixture *f = *state;
	struct ll_err err;
	assert_fails(ll_ledger_open(f->folder, UUID, false, &f->ledger, &err), -ENOENT, UUID ".ledger");
	assert_fails(ll_ledger_open("/tmp/ll-no-such-folder", UUID, false, &f->ledger, &err), -ENOENT, "no-such");
	assert_int_equal(access("/tmp/ll-no-such-folder", F_OK), -1);
}

static void a_folder_that_cannot_be_made_says_what_to_set(void **state)
{
	static const char *const paths[] = {"/nonexistent/none/loadline", "/dev/null/loadline", "/proc/none/loadline"};
	(void)state;
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		struct ll_err err = {0};
		int fd = -1;
		assert_true(ll_ledger_folder_open(paths[i], &fd, &err) < 0);
		assert_non_null(strstr(err.text, paths[i]));
		assert_string_equal(err.hint, "set XDG_RUNTIME_DIR to a folder of your own, or unset it");
	}
}

static void truncated_file_is_refused_by_name(void **state)
{
	struct fixture *f = *state;
	struct ll_err err;
	static const off_t sizes[] = {0, 7, 100, 4096, LL_LEDGER_FILE_BYTES - 1};
	ll_ledger_close(open_ledger(f));
	f->ledger = NULL;
	for (size_t i = sizeof sizes / sizeof *sizes; i-- > 0;) {
		assert_int_equal(truncate(f->path, sizes[i]), 0);
		assert_fails(ll_ledger_open(f->folder, UUID, true, &f->ledger, &err), -EBADMSG, "truncated");
		assert_non_null(strstr(err.text, f->path));
		assert_non_null(strstr(err.hint, "remove"));
	}
}

static void make_other_version(struct fixture *f)
{
	uint32_t version = LL_LEDGER_VERSION + 1;
	ll_ledger_close(open_ledger(f));
	f->ledger = NULL;
	overwrite(f, offsetof(struct ll_ledger_file, version), &version, sizeof version);
}

static void other_version_in_use_is_refused_with_both_numbers(void **state)
{
	struct fixture *f = *state;
	struct ll_err err;
	make_other_version(f);
	LL_SCOPE_CLOSE int user = open(f->path, O_RDWR);
	assert_int_equal(ll_lock_try_shared(user, LL_LOCK_TENANTS + 3), 0);
	assert_fails(ll_ledger_open(f->folder, UUID, true, &f->ledger, &err), -EPROTO, "version 10");
	assert_non_null(strstr(err.text, "version 9"));
}

static void other_version_that_nobody_uses_is_made_anew(void **state)
{
	struct fixture *f = *state;
	struct ll_err err;
	uint32_t version = 0;
	make_other_version(f);
	assert_fails(ll_ledger_open(f->folder, UUID, false, &f->ledger, &err), -EPROTO, "version 9");
	assert_int_equal(ll_ledger_open(f->folder, UUID, true, &f->ledger, NULL), 0);
	LL_SCOPE_CLOSE int fd = open(f->path, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &version, sizeof version, offsetof(struct ll_ledger_file, version)), sizeof version);
	assert_int_equal(version, LL_LEDGER_VERSION);
	ll_claim_release(take_claim(f->ledger, LL_PRIORITY_NORMAL));
}

/* The signal for that would end the program; it is made in a child, because there is no way back. */
static void file_over_the_limit_of_files_is_refused_and_ends_nobody(void **state)
{
	struct fixture *f = *state;
	int status;
	pid_t pid = fork();
	if (!pid) {
		struct rlimit limit = {.rlim_cur = LL_LEDGER_FILE_BYTES - 1, .rlim_max = LL_LEDGER_FILE_BYTES};
		struct ll_ledger *ledger;
		if (setrlimit(RLIMIT_FSIZE, &limit) || ll_ledger_open(f->folder, UUID, true, &ledger, NULL) != -EFBIG)
			_exit(1);
		limit.rlim_cur = LL_LEDGER_FILE_BYTES;
		_exit(setrlimit(RLIMIT_FSIZE, &limit) || ll_ledger_open(f->folder, UUID, true, &ledger, NULL) ? 2 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* As the first version made it: shorter, and the slots begin elsewhere. */
static void file_of_the_first_version_is_refused_by_its_number(void **state)
{
	struct fixture *f = *state;
	struct ll_err err;
	struct {
		uint64_t magic;
		uint32_t version, slot_count, slot_bytes, file_bytes;
		char uuid[96];
	} header = {LL_LEDGER_MAGIC, 1, LL_LEDGER_CLAIMS, LL_LEDGER_SLOT_BYTES, 135168, UUID};
	LL_SCOPE_CLOSE int fd = open(f->path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 135168), 0);
	assert_int_equal(pwrite(fd, &header, sizeof header, 0), sizeof header);
	LL_SCOPE_CLOSE int user = open(f->path, O_RDWR);
	assert_int_equal(ll_lock_try(user, LL_LOCK_HOLD), 0);
	assert_fails(ll_ledger_open(f->folder, UUID, true, &f->ledger, &err), -EPROTO, "is of version 1");
	assert_non_null(strstr(err.text, "knows version 9"));
	assert_non_null(strstr(err.hint, "other version"));
}

static void corrupt_header_is_refused(void **state)
{
	struct fixture *f = *state;
	struct ll_err err;
	static const struct {
		off_t offset;
		const char *text;
	} damage[] = {
	    {offsetof(struct ll_ledger_file, magic), "corrupt"},
	    {offsetof(struct ll_ledger_file, slot_count), "corrupt"},
	    {offsetof(struct ll_ledger_file, slot_bytes), "corrupt"},
	    {offsetof(struct ll_ledger_file, file_bytes), "corrupt"},
	    {offsetof(struct ll_ledger_file, uuid) + 4, "another card"},
	};
	for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
		ll_ledger_close(open_ledger(f));
		f->ledger = NULL;
		overwrite(f, damage[i].offset, "\xff", 1);
		assert_fails(ll_ledger_open(f->folder, UUID, true, &f->ledger, &err), -EBADMSG, damage[i].text);
		assert_int_equal(unlink(f->path), 0);
	}
}

static void symlink_in_place_of_the_file_is_refused(void **state)
{
	struct fixture *f = *state;
	struct ll_err err;
	assert_int_equal(symlink("/etc/passwd", f->path), 0);
	assert_fails(ll_ledger_open(f->folder, UUID, true, &f->ledger, &err), -EPERM, "symbolic link");
}

static void file_open_to_others_is_refused(void **state)
{
	struct fixture *f = *state;
	struct ll_err err;
	ll_ledger_close(open_ledger(f));
	f->ledger = NULL;
	assert_int_equal(chmod(f->path, 0644), 0);
	assert_fails(ll_ledger_open(f->folder, UUID, true, &f->ledger, &err), -EPERM, "other users");
}

static void folder_that_others_may_write_is_refused(void **state)
{
	struct fixture *f = *state;
	struct ll_err err;
	assert_int_equal(chmod(f->folder, 0770), 0);
	assert_fails(ll_ledger_open(f->folder, UUID, true, &f->ledger, &err), -EPERM, "mode 0770");
	assert_non_null(strstr(err.hint, "chmod"));
}

static void symlink_in_place_of_the_folder_is_refused(void **state)
{
	struct fixture *f = *state;
	struct ll_err err;
	char link[80];
	snprintf(link, sizeof link, "%s.link", f->folder);
	assert_int_equal(symlink(f->folder, link), 0);
	assert_fails(ll_ledger_open(link, UUID, true, &f->ledger, &err), -EPERM, "symbolic link");
	unlink(link);
}

static void uuid_that_is_a_path_is_refused(void **state)
{
	struct fixture *f = *state;
	struct ll_err err;
	assert_fails(ll_ledger_open(f->folder, "../evil", true, &f->ledger, &err), -EINVAL, "UUID");
	assert_fails(ll_ledger_open(f->folder, "", true, &f->ledger, &err), -EINVAL, "UUID");
}

static void folder_of_the_simulated_world_comes_first(void **state)
{
	(void)state;
	char path[LL_FOLDER_SIZE];
	assert_int_equal(ll_ledger_folder("/tmp/world", path, NULL), 0);
	assert_string_equal(path, "/tmp/world");
}

/* What a process of another user gets: in a child, because there is no way back. */
static bool folder_of_user_is(uid_t uid, const char *runtime_folder, const char *expected)
{
	int status;
	pid_t pid = fork();
	if (!pid) {
		char path[LL_FOLDER_SIZE];
		setenv("XDG_RUNTIME_DIR", runtime_folder, 1);
		bool is_so = (geteuid() == uid || !setuid(uid)) && !ll_ledger_folder(NULL, path, NULL) &&
			     !strcmp(path, expected);
		_exit(is_so ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status == 0;
}

static void folder_of_a_user_is_in_its_runtime_folder_or_tmp(void **state)
{
	(void)state;
	uid_t uid = geteuid() ? geteuid() : 12345;
	char in_tmp[40];
	snprintf(in_tmp, sizeof in_tmp, "/tmp/loadline-%lu", (unsigned long)uid);
	assert_true(folder_of_user_is(uid, "/run/user/7", "/run/user/7/loadline"));
	assert_true(folder_of_user_is(uid, "relative", in_tmp));
	assert_true(folder_of_user_is(uid, "", in_tmp));
}

static void folder_of_root_is_the_systems(void **state)
{
	(void)state;
	if (geteuid() || access("/run", W_OK))
		SKIP_TEST("only root may write in /run");
	assert_true(folder_of_user_is(0, "/run/user/7", "/run/loadline"));
}

/* Children wait for the pipe's end, so that they all start at once. */
static pid_t start_opener(const struct fixture *f, const int gate[2])
{
	pid_t pid = fork();
	if (pid)
		return pid;
	char byte;
	close(gate[1]);
	if (read(gate[0], &byte, 1) != 0)
		_exit(2);
	struct ll_ledger *ledger = NULL;
	struct ll_claim *claim = NULL;
	struct ll_claim_wish wish = {.priority = LL_PRIORITY_NORMAL};
	if (ll_ledger_open(f->folder, UUID, true, &ledger, NULL) || ll_claim_take(ledger, &wish, "0", &claim, NULL))
		_exit(1);
	_exit(0);
}

static void open_from_many_at_once(struct fixture *f, int *killed)
{
	enum { CHILDREN = 12 };
	pid_t pids[CHILDREN];
	int gate[2];
	assert_int_equal(pipe(gate), 0);
	for (int i = 0; i < CHILDREN; i++)
		pids[i] = start_opener(f, gate);
	close(gate[0]);
	close(gate[1]);
	for (int i = 0; i < CHILDREN; i++) {
		int status;
		if (i % 3 == 0)
			kill(pids[i], SIGKILL);
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		*killed += WIFSIGNALED(status);
		assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	}
}

static void making_is_free_of_races_also_when_makers_are_killed(void **state)
{
	struct fixture *f = *state;
	int killed = 0;
	for (int round = 0; round < 30; round++) {
		open_from_many_at_once(f, &killed);
		assert_int_equal(count_claims(open_ledger(f)), 0);
		ll_ledger_close(f->ledger);
		f->ledger = NULL;
		remove_files(f->folder);
	}
	printf("%d makers were killed\n", killed);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(made_file_is_private_and_of_fixed_size),
	    TEST(second_opening_finds_the_same_file),
	    TEST(missing_file_is_made_only_when_asked_for),
	    TEST(a_folder_that_cannot_be_made_says_what_to_set),
	    TEST(truncated_file_is_refused_by_name),
	    TEST(other_version_in_use_is_refused_with_both_numbers),
	    TEST(other_version_that_nobody_uses_is_made_anew),
	    TEST(file_of_the_first_version_is_refused_by_its_number),
	    TEST(file_over_the_limit_of_files_is_refused_and_ends_nobody),
	    TEST(corrupt_header_is_refused),
	    TEST(symlink_in_place_of_the_file_is_refused),
	    TEST(file_open_to_others_is_refused),
	    TEST(folder_that_others_may_write_is_refused),
	    TEST(symlink_in_place_of_the_folder_is_refused),
	    TEST(uuid_that_is_a_path_is_refused),
	    TEST(folder_of_the_simulated_world_comes_first),
	    TEST(folder_of_a_user_is_in_its_runtime_folder_or_tmp),
	    TEST(folder_of_root_is_the_systems),
	    TEST(making_is_free_of_races_also_when_makers_are_killed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
