/* A traced process's file: what is written is read, as far as it got. */
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace/trace.h"

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/loadline-test.XXXXXX");
	unsetenv(LL_TRACE_MOST);
	return mkdtemp(folder) && setenv(LL_TRACE_FOLDER, folder, 1) == 0 ? 0 : -1;
}

/* The path of the only file. */
static void find_file(char path[512])
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int count = 0;
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, 512, "%s/%s", folder, entry->d_name);
		count++;
	}
	closedir(dir);
	assert_int_equal(count, 1);
}

static int remove_folder(void **state)
{
	char path[512];
	(void)state;
	find_file(path);
	unlink(path);
	return rmdir(folder);
}

TEST_EACH(make_folder, remove_folder);

static void add_kernels(struct ll_trace_writer *writer, const char *name, uint64_t from, uint64_t count)
{
	for (uint64_t i = from; i < from + count; i++) {
		struct ll_trace_record record = {
		    .head = {.kind = LL_TRACE_KERNEL, .name = ll_trace_writer_name(writer, name)},
		    .start_ns = i,
		    .end_ns = i + 1,
		    .device = 3,
		};
		ll_trace_writer_add(writer, &record);
	}
}

TEST(test_what_is_written_is_read)
{
	struct ll_trace_writer *writer;
	struct ll_trace_file file;
	char path[512], long_name[LL_TRACE_NAME_LONGEST + 100];
	memset(long_name, 'x', sizeof long_name - 1);
	long_name[sizeof long_name - 1] = '\0';
	assert_int_equal(ll_trace_writer_open(LL_TRACE_SOURCE_CUPTI, &writer), 0);
	ll_trace_writer_note_version(writer, 130000);
	ll_trace_writer_add_card(writer, 3, "GPU-three");
	add_kernels(writer, "first", 0, 5000);
	add_kernels(writer, long_name, 5000, 1);
	add_kernels(writer, "first", 5001, 1);
	add_kernels(writer, NULL, 5002, 1);
	ll_trace_writer_add_dropped(writer, 7);
	ll_trace_writer_flush(writer);
	find_file(path);
	assert_int_equal(ll_trace_file_open(path, &file, NULL), 0);
	assert_int_equal(file.header.pid, getpid());
	assert_int_equal(file.header.source, LL_TRACE_SOURCE_CUPTI);
	assert_int_equal(file.header.cupti_version, 130000);
	assert_int_equal(file.header.dropped_cupti, 7);
	assert_non_null(strstr(file.header.command, "trace_file"));
	assert_string_equal(file.cards[3], "GPU-three");
	assert_int_equal(file.record_count, 5003);
	for (size_t i = 0; i < file.record_count; i++)
		assert_int_equal(file.records[i]->start_ns, i);
	assert_string_equal(ll_trace_file_name(&file, file.records[4999]), "first");
	assert_int_equal(strlen(ll_trace_file_name(&file, file.records[5000])), LL_TRACE_NAME_LONGEST - 1);
	assert_string_equal(ll_trace_file_name(&file, file.records[5001]), "first");
	assert_string_equal(ll_trace_file_name(&file, file.records[5002]), "");
	ll_trace_file_fini(&file);
	ll_trace_writer_close(writer);
}

TEST(test_a_torn_file_is_read_up_to_the_tear)
{
	struct ll_trace_writer *writer;
	struct ll_trace_file file;
	struct ll_err err;
	struct stat st;
	char path[512];
	assert_int_equal(ll_trace_writer_open(LL_TRACE_SOURCE_CUPTI, &writer), 0);
	add_kernels(writer, "one", 0, 10);
	add_kernels(writer, "two", 10, 10);
	ll_trace_writer_flush(writer);
	find_file(path);
	assert_int_equal(stat(path, &st), 0);
	size_t last = SIZE_MAX;
	for (off_t length = st.st_size; length >= 0; length -= 8) {
		assert_int_equal(truncate(path, length), 0);
		if ((size_t)length < sizeof(struct ll_trace_header)) {
			assert_fails(ll_trace_file_open(path, &file, &err), -ENODATA, path);
			continue;
		}
		assert_int_equal(ll_trace_file_open(path, &file, &err), 0);
		assert_true(file.record_count <= last && file.record_count <= 20);
		last = file.record_count;
		for (size_t i = 0; i < file.record_count; i++)
			assert_string_equal(ll_trace_file_name(&file, file.records[i]), i < 10 ? "one" : "two");
		ll_trace_file_fini(&file);
	}
	assert_int_equal(last, 0);
	ll_trace_writer_close(writer);
}

/* Any byte of it may be anything: nothing is read outside the file. */
TEST(test_a_damaged_file_does_no_harm)
{
	struct ll_trace_writer *writer;
	struct ll_trace_file file;
	struct stat st;
	char path[512];
	assert_int_equal(ll_trace_writer_open(LL_TRACE_SOURCE_CUPTI, &writer), 0);
	ll_trace_writer_add_card(writer, 1, "GPU-one");
	add_kernels(writer, "one", 0, 4);
	ll_trace_writer_flush(writer);
	find_file(path);
	assert_int_equal(stat(path, &st), 0);
	static const unsigned char values[] = {0, 1, 7, 8, 0x7f, 0x80, 0xff};
	FILE *stream = fopen(path, "r+e");
	assert_non_null(stream);
	for (long at = 0; at < st.st_size; at++) {
		fseek(stream, at, SEEK_SET);
		int before = getc(stream);
		for (size_t i = 0; i < sizeof values; i++) {
			fseek(stream, at, SEEK_SET);
			putc(values[i], stream);
			fflush(stream);
			if (ll_trace_file_open(path, &file, NULL) != 0)
				continue;
			for (size_t j = 0; j < file.record_count; j++)
				assert_true(strlen(ll_trace_file_name(&file, file.records[j])) < 8000);
			ll_trace_file_fini(&file);
		}
		fseek(stream, at, SEEK_SET);
		putc(before, stream);
	}
	fclose(stream);
	ll_trace_writer_close(writer);
}

TEST(test_events_over_the_limit_are_counted)
{
	struct ll_trace_writer *writer;
	struct ll_trace_file file;
	char path[512];
	setenv(LL_TRACE_MOST, "12", 1);
	assert_int_equal(ll_trace_writer_open(LL_TRACE_SOURCE_EVENTS, &writer), 0);
	add_kernels(writer, "some", 0, 100);
	ll_trace_writer_flush(writer);
	find_file(path);
	assert_int_equal(ll_trace_file_open(path, &file, NULL), 0);
	assert_int_equal(file.record_count, 12);
	assert_int_equal(file.header.dropped_limit, 88);
	ll_trace_file_fini(&file);
	ll_trace_writer_close(writer);
}

/* A limit on the size of files fails writes as a full disk does, and ends nobody. */
TEST(test_what_the_disk_does_not_take_is_counted)
{
	struct ll_trace_writer *writer;
	struct ll_trace_file file;
	char path[512];
	struct rlimit before, small;
	assert_int_equal(ll_trace_writer_open(LL_TRACE_SOURCE_EVENTS, &writer), 0);
	getrlimit(RLIMIT_FSIZE, &before);
	small = before;
	small.rlim_cur = 100000;
	setrlimit(RLIMIT_FSIZE, &small);
	add_kernels(writer, "some", 0, 10000);
	ll_trace_writer_flush(writer);
	setrlimit(RLIMIT_FSIZE, &before);
	find_file(path);
	assert_int_equal(ll_trace_file_open(path, &file, NULL), 0);
	assert_in_range(file.record_count, 1, 1100);
	assert_in_range(file.header.dropped_disk, 10000 - 1100, 10000);
	for (size_t i = 1; i < file.record_count; i++)
		assert_true(file.records[i]->start_ns > file.records[i - 1]->start_ns);
	ll_trace_file_fini(&file);
	ll_trace_writer_close(writer);
}

TEST(test_what_was_flushed_survives_a_kill)
{
	struct ll_trace_file file;
	char path[512];
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		struct ll_trace_writer *writer;
		if (ll_trace_writer_open(LL_TRACE_SOURCE_CUPTI, &writer) < 0)
			_exit(1);
		add_kernels(writer, "kept", 0, 50);
		ll_trace_writer_flush(writer);
		add_kernels(writer, "lost", 50, 10);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	find_file(path);
	assert_int_equal(ll_trace_file_open(path, &file, NULL), 0);
	assert_int_equal(file.header.pid, pid);
	assert_int_equal(file.record_count, 50);
	ll_trace_file_fini(&file);
}
