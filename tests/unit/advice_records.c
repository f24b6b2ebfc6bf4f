/* What earlier runs did: the records, their text, and the file, also when it is damaged. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "advice/advice.h"
#include "base/strbuf.h"
#include "test.h"

enum { WRITERS = 8, EACH = 5 };

static char folder[PATH_MAX];

static int setup(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/earlier.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[PATH_MAX + 16];
	(void)state;
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	return system(command);
}

static struct ll_earlier_record record_of(uint64_t program, enum ll_way way, uint64_t ended_s)
{
	return (struct ll_earlier_record){.ended_s = ended_s,
					  .program = program,
					  .others = 0xabcdef,
					  .way = way,
					  .ns = UINT64_C(12345000000),
					  .launches = 678,
					  .card = "GPU-1",
					  .name = "python train.py",
					  .others_names = "infer.py, 名字"};
}

static void write_file(const char *text, size_t length)
{
	char path[PATH_MAX + 16];
	snprintf(path, sizeof path, "%s/" LL_EARLIER_FILE, folder);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, length, file), length);
	fclose(file);
}

TEST(a_later_run_takes_the_place_of_an_earlier_one_and_the_oldest_makes_room)
{
	struct ll_earlier *earlier = calloc(1, sizeof *earlier);
	assert_non_null(earlier);
	for (uint64_t i = 0; i < LL_EARLIER_RECORDS; i++) {
		struct ll_earlier_record record = record_of(1 + i, LL_WAY_SLICES, 1000 + i);
		ll_earlier_put(earlier, &record);
	}
	struct ll_earlier_record again = record_of(1, LL_WAY_SLICES, 9000);
	again.launches = 5;
	ll_earlier_put(earlier, &again);
	assert_int_equal(earlier->count, LL_EARLIER_RECORDS);
	assert_int_equal(ll_earlier_find(earlier, "GPU-1", 1, 0xabcdef, LL_WAY_SLICES)->launches, 5);
	assert_null(ll_earlier_find(earlier, "GPU-1", 1, 0xabcdef, LL_WAY_SPACE));
	assert_null(ll_earlier_find(earlier, "GPU-2", 1, 0xabcdef, LL_WAY_SLICES));
	assert_null(ll_earlier_find(earlier, "GPU-1", 1, 0xabcdee, LL_WAY_SLICES));
	/* Program 2 has the oldest now. */
	struct ll_earlier_record more = record_of(7000, LL_WAY_SPACE, 9001);
	ll_earlier_put(earlier, &more);
	assert_int_equal(earlier->count, LL_EARLIER_RECORDS);
	assert_null(ll_earlier_find(earlier, "GPU-1", 2, 0xabcdef, LL_WAY_SLICES));
	assert_non_null(ll_earlier_find(earlier, "GPU-1", 3, 0xabcdef, LL_WAY_SLICES));
	assert_non_null(ll_earlier_find(earlier, "GPU-1", 7000, 0xabcdef, LL_WAY_SPACE));
	free(earlier);
}

TEST(what_is_written_is_read)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT, again = LL_STRBUF_INIT;
	struct ll_earlier *earlier = calloc(1, sizeof *earlier), *read = calloc(1, sizeof *read);
	assert_true(earlier && read);
	struct ll_earlier_record one = record_of(UINT64_MAX, LL_WAY_SLICES, 1764240000);
	struct ll_earlier_record other = record_of(1, LL_WAY_SPACE, 1764240001);
	ll_earlier_put(earlier, &one);
	ll_earlier_put(earlier, &other);
	ll_earlier_format(&text, earlier);
	assert_int_equal(ll_earlier_parse(text.buf, read), 0);
	assert_int_equal(read->count, 2);
	assert_true(read->records[0].program == UINT64_MAX && read->records[1].program == 1);
	assert_int_equal(read->records[0].ns, one.ns);
	assert_int_equal(read->records[1].ended_s, other.ended_s);
	assert_int_equal(read->records[1].way, LL_WAY_SPACE);
	assert_string_equal(read->records[1].others_names, other.others_names);
	ll_earlier_format(&again, read);
	assert_string_equal(again.buf, text.buf);
	free(earlier);
	free(read);
}

#define LINE "1764240000\tGPU-1\tab\tcd\tslices\t12.345\t678\ttrain.py\tinfer.py\n"

TEST(any_damage_of_the_text_is_seen)
{
	static const char *const good[] = {"loadline earlier 1\n", "loadline earlier 1\n" LINE LINE};
	static const char *const bad[] = {
	    "",
	    "loadline earlier 2\n",
	    LINE,
	    "loadline earlier 1\n\n",
	    "loadline earlier 1\n1764240000\tGPU-1\tab\tcd\tslices\t12.345\t678\ttrain.py\tinfer.py",
	    "loadline earlier 1\n1764240000\tGPU-1\tab\tcd\tslices\t12.345\t678\ttrain.py\n",
	    "loadline earlier 1\n1764240000\tGPU-1\tab\tcd\tslices\t12.345\t678\ttrain.py\tinfer.py\tmore\n",
	    "loadline earlier 1\n-1\tGPU-1\tab\tcd\tslices\t12.345\t678\ttrain.py\tinfer.py\n",
	    "loadline earlier 1\n1764240000\t\tab\tcd\tslices\t12.345\t678\ttrain.py\tinfer.py\n",
	    "loadline earlier 1\n1764240000\tGPU-1\tAB\tcd\tslices\t12.345\t678\ttrain.py\tinfer.py\n",
	    "loadline earlier 1\n1764240000\tGPU-1\tab\t11112222333344445\tslices\t12.345\t678\ttrain.py\tinfer.py\n",
	    "loadline earlier 1\n1764240000\tGPU-1\tab\tcd\ttime\t12.345\t678\ttrain.py\tinfer.py\n",
	    "loadline earlier 1\n1764240000\tGPU-1\tab\tcd\tslices\t12\t678\ttrain.py\tinfer.py\n",
	    "loadline earlier 1\n1764240000\tGPU-1\tab\tcd\tslices\t99999999999999.000\t678\ttrain.py\tinfer.py\n",
	    "loadline earlier 1\n1764240000\tGPU-1\tab\tcd\tslices\t12.345\t6.8\ttrain.py\tinfer.py\n",
	    "loadline earlier 1\n1764240000\tGPU-1\tab\tcd\tslices\t12.345\t678\t\033[31m\tinfer.py\n",
	    "loadline earlier 1\n1764240000\tGPU-1\tab\tcd\tslices\t12.345\t678\ttrain.py\t\xff\n",
	};
	struct ll_earlier *earlier = calloc(1, sizeof *earlier);
	assert_non_null(earlier);
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_int_equal(ll_earlier_parse(good[i], earlier), 0);
	assert_int_equal(earlier->count, 2);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (ll_earlier_parse(bad[i], earlier) != -EBADMSG || earlier->count)
			fail_msg("damage %zu was not seen", i);
	}
	free(earlier);
}

TEST(more_records_than_there_may_be_are_damage)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	struct ll_earlier *earlier = calloc(1, sizeof *earlier);
	assert_non_null(earlier);
	ll_strbuf_adds(&text, "loadline earlier 1\n");
	for (size_t i = 0; i < LL_EARLIER_RECORDS; i++)
		ll_strbuf_adds(&text, LINE);
	assert_int_equal(ll_earlier_parse(text.buf, earlier), 0);
	ll_strbuf_adds(&text, LINE);
	assert_int_equal(ll_earlier_parse(text.buf, earlier), -EBADMSG);
	free(earlier);
}

TEST(the_folder_is_that_of_the_world_or_of_the_users_state)
{
	char path[PATH_MAX];
	struct ll_err err;
	setenv("HOME", "/home/me", 1);
	unsetenv("XDG_STATE_HOME");
	assert_int_equal(ll_earlier_folder("/world", path, NULL), 0);
	assert_string_equal(path, "/world");
	assert_int_equal(ll_earlier_folder(NULL, path, NULL), 0);
	assert_string_equal(path, "/home/me/.local/state/loadline");
	setenv("XDG_STATE_HOME", "/state", 1);
	assert_int_equal(ll_earlier_folder("", path, NULL), 0);
	assert_string_equal(path, "/state/loadline");
	setenv("XDG_STATE_HOME", "relative", 1); /* to be ignored, says the specification */
	assert_int_equal(ll_earlier_folder(NULL, path, NULL), 0);
	assert_string_equal(path, "/home/me/.local/state/loadline");
	unsetenv("XDG_STATE_HOME");
	unsetenv("HOME");
	assert_fails(ll_earlier_folder(NULL, path, &err), -ENOENT, "neither XDG_STATE_HOME nor HOME");
}

TEST_WITH(setup, teardown, folders_are_made_and_only_the_user_may_enter_them)
{
	char path[PATH_MAX];
	struct stat st;
	struct ll_earlier_record record = record_of(1, LL_WAY_SLICES, 5);
	struct ll_earlier *read = calloc(1, sizeof *read);
	assert_non_null(read);
	snprintf(path, sizeof path, "%.100s/a/b/loadline", folder);
	assert_int_equal(ll_earlier_read(path, read, NULL), 0);
	assert_int_equal(read->count, 0);
	assert_int_equal(ll_earlier_note(path, &record, 0, NULL), 0);
	assert_int_equal(access(path, F_OK), -1); /* nothing to keep */
	assert_int_equal(ll_earlier_note(path, &record, 1, NULL), 0);
	assert_int_equal(ll_earlier_read(path, read, NULL), 0);
	assert_int_equal(read->count, 1);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	free(read);
}

TEST_WITH(setup, teardown, another_users_folder_is_left_alone)
{
	struct ll_err err;
	struct ll_earlier_record record = record_of(1, LL_WAY_SLICES, 5);
	char path[PATH_MAX];
	if (geteuid() != 0)
		SKIP_TEST("only root gives a folder away");
	assert_int_equal(chown(folder, 65534, 65534), 0);
	snprintf(path, sizeof path, "%.100s/loadline", folder);
	assert_fails(ll_earlier_note(path, &record, 1, &err), -EPERM, "belongs to user 65534");
	assert_int_equal(access(path, F_OK), -1);
}

TEST_WITH(setup, teardown, a_damaged_file_is_put_aside_and_another_begun)
{
	static const char nul[] = "loadline earlier 1\n\0";
	struct ll_err err;
	struct ll_earlier_record record = record_of(1, LL_WAY_SLICES, 5);
	struct ll_earlier *read = calloc(1, sizeof *read);
	assert_non_null(read);
	write_file("garbage", 7);
	assert_fails(ll_earlier_read(folder, read, &err), -EBADMSG, "is damaged");
	assert_false(ll_earlier_has_damaged(folder)); /* who reads changes nothing */
	assert_int_equal(ll_earlier_note(folder, &record, 1, NULL), 0);
	assert_true(ll_earlier_has_damaged(folder));
	assert_int_equal(ll_earlier_read(folder, read, NULL), 0);
	assert_int_equal(read->count, 1);
	write_file(nul, sizeof nul);
	assert_fails(ll_earlier_read(folder, read, &err), -EBADMSG, "is damaged");
	char *large = malloc(300000);
	assert_non_null(large);
	memset(large, 'x', 300000);
	write_file(large, 300000);
	free(large);
	assert_fails(ll_earlier_read(folder, read, &err), -EBADMSG, "is damaged");
	free(read);
}

/* Each adds records of its own: none is lost. */
TEST_WITH(setup, teardown, writers_at_the_same_time_wait_for_each_other)
{
	struct ll_earlier *read = calloc(1, sizeof *read);
	assert_non_null(read);
	for (uint64_t i = 0; i < WRITERS; i++) {
		pid_t pid = fork();
		assert_true(pid >= 0);
		for (uint64_t k = 0; !pid && k < EACH; k++) {
			struct ll_earlier_record record = record_of(1 + i * EACH + k, LL_WAY_SPACE, 5);
			if (ll_earlier_note(folder, &record, 1, NULL))
				_exit(1);
		}
		if (!pid)
			_exit(0);
	}
	for (int i = 0, status; i < WRITERS; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(ll_earlier_read(folder, read, NULL), 0);
	assert_int_equal(read->count, WRITERS * EACH);
	free(read);
}
