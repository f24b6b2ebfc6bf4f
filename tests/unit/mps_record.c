/* Records: what is written comes back, and what was cut or garbled is not believed. */
#include "test.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mps/mps.h"

static const struct ll_mps_record sample = {
    .pipe = "/tmp/a pipe",
    .log = "/tmp/log",
    .pid = 4711,
    .start_ticks = 99,
    .card_count = 2,
    .cards = {{.uuid = "GPU-1", .is_changed = true, .before = LL_MODE_DEFAULT},
	      {.uuid = "GPU-2", .is_changed = false, .before = LL_MODE_EXCLUSIVE_PROCESS}},
};

static void assert_same(const struct ll_mps_record *a, const struct ll_mps_record *b)
{
	assert_string_equal(a->pipe, b->pipe);
	assert_string_equal(a->log, b->log);
	assert_int_equal(a->pid, b->pid);
	assert_int_equal(a->start_ticks, b->start_ticks);
	assert_int_equal(a->card_count, b->card_count);
	for (size_t i = 0; i < a->card_count; i++) {
		assert_string_equal(a->cards[i].uuid, b->cards[i].uuid);
		assert_int_equal(a->cards[i].is_changed, b->cards[i].is_changed);
		assert_int_equal(a->cards[i].before, b->cards[i].before);
	}
}

TEST(test_what_is_formatted_is_parsed)
{
	char text[2048];
	struct ll_mps_record record;
	assert_int_equal(ll_mps_record_format(&sample, text, sizeof text), 0);
	assert_int_equal(ll_mps_record_parse(text, &record), 0);
	assert_same(&record, &sample);
	assert_int_equal(ll_mps_record_format(&sample, text, 40), -ENOSPC);
}

TEST(test_a_record_cut_anywhere_is_garbled)
{
	char text[2048];
	struct ll_mps_record record;
	assert_int_equal(ll_mps_record_format(&sample, text, sizeof text), 0);
	for (size_t length = strlen(text) - 1; length-- > 0;) {
		text[length] = '\0';
		assert_int_equal(ll_mps_record_parse(text, &record), -EBADMSG);
	}
}

TEST(test_garbled_lines_are_refused)
{
	static const char *const texts[] = {
	    "",
	    "something else\nend\n",
	    "loadline mps 1\nend\n",
	    "loadline mps 1\npipe relative\nlog /l\ndaemon 1 1\nend\n",
	    "loadline mps 1\npipe /p\nlog /l\ndaemon -1 1\nend\n",
	    "loadline mps 1\npipe /p\nlog /l\ndaemon 1 1\ncard GPU-1 changed 9\nend\n",
	    "loadline mps 1\npipe /p\nlog /l\ndaemon 1 1\ncard GPU-1\nend\n",
	    "loadline mps 1\npipe /p\nlog /l\nwhat is this\nend\n",
	};
	struct ll_mps_record record;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		assert_int_equal(ll_mps_record_parse(texts[i], &record), -EBADMSG);
}

TEST(test_files_are_written_listed_and_removed)
{
	char folder[] = "/tmp/ll-record-XXXXXX";
	struct ll_err err = {0};
	struct ll_mps_record other = sample;
	struct ll_mps_record record;
	struct ll_mps_record *list = NULL;
	char path[LL_MPS_RECORD_PATH];
	size_t count = 9;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(ll_mps_record_read(folder, sample.pipe, &record, NULL), -ENOENT);
	assert_int_equal(ll_mps_record_list(folder, &list, &count, &err), 0);
	assert_int_equal(count, 0);
	snprintf(other.pipe, sizeof other.pipe, "/tmp/other");
	assert_int_equal(ll_mps_record_write(folder, &sample, &err), 0);
	assert_int_equal(ll_mps_record_write(folder, &other, &err), 0);
	assert_int_equal(ll_mps_record_write(folder, &sample, &err), 0);
	assert_int_equal(ll_mps_record_read(folder, sample.pipe, &record, &err), 0);
	assert_same(&record, &sample);
	assert_int_equal(ll_mps_record_list(folder, &list, &count, &err), 0);
	assert_int_equal(count, 2);
	free(list);
	list = NULL;
	ll_mps_record_path(folder, other.pipe, path);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(ll_mps_record_list(folder, &list, &count, &err), -EBADMSG);
	assert_non_null(strstr(err.text, path));
	assert_null(list);
	ll_mps_record_remove(folder, sample.pipe);
	ll_mps_record_remove(folder, other.pipe);
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(ll_mps_record_list(folder, &list, &count, &err), 0);
	assert_int_equal(count, 0);
}
