/* What several processes have written becomes one timeline, with tables and a summary whose numbers can be told by
 * hand. */
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/cupti.h"
#include "base/clock.h"
#include "base/strbuf.h"
#include "trace/command/internal.h"
#include "trace/trace.h"

#define MS LL_NS_PER_MS

static const char card[] = "GPU-one";
static char folder[64];

static struct ll_trace_writer *open_writer(enum ll_trace_source source)
{
	struct ll_trace_writer *writer;
	if (ll_trace_writer_open(source, &writer) < 0)
		_exit(1);
	ll_trace_writer_add_card(writer, 0, card);
	return writer;
}

static void add(struct ll_trace_writer *writer, enum ll_trace_kind kind, const char *name, uint64_t start_ms,
		uint64_t end_ms, const struct ll_trace_record *more)
{
	struct ll_trace_record record = more ? *more : (struct ll_trace_record){.stream = 7};
	record.head = (struct ll_trace_prefix){.kind = (uint16_t)kind, .name = ll_trace_writer_name(writer, name)};
	record.start_ns = start_ms * MS;
	record.end_ns = end_ms * MS;
	ll_trace_writer_add(writer, &record);
}

/* 10..30 computes, 30..40 communicates, 50..55 copies to the card; holds 3000 bytes at most. */
static void be_first(void)
{
	struct ll_trace_writer *writer = open_writer(LL_TRACE_SOURCE_CUPTI);
	struct ll_trace_record kernel = {.stream = 7,
					 .correlation = 2,
					 .grid = {4, 2, 1},
					 .block = {32, 1, 1},
					 .registers = 40,
					 .dynamic_shared_bytes = 9};
	struct ll_trace_record copy = {
	    .stream = 8, .bytes = 5000000, .from = LL_CUPTI_MEMORY_PINNED, .to = LL_CUPTI_MEMORY_DEVICE};
	struct ll_trace_record first = {.bytes = 1000, .address = 16, .to = LL_CUPTI_MEMORY_DEVICE};
	struct ll_trace_record second = {.bytes = 2000, .address = 32, .to = LL_CUPTI_MEMORY_DEVICE};
	add(writer, LL_TRACE_KERNEL, "ncclDevKernel_AllReduce", 30, 40, NULL);
	add(writer, LL_TRACE_KERNEL, "first, \"quoted\"", 10, 30, &kernel); /* later in the file, earlier in time */
	add(writer, LL_TRACE_ALLOCATE, NULL, 1, 1, &first);
	add(writer, LL_TRACE_ALLOCATE, NULL, 2, 2, &second);
	add(writer, LL_TRACE_FREE, NULL, 3, 3, &first);
	add(writer, LL_TRACE_ALLOCATE, NULL, 4, 4, &first);
	add(writer, LL_TRACE_COPY, NULL, 50, 55, &copy);
	ll_trace_writer_add_dropped(writer, 3);
	ll_trace_writer_close(writer);
}

/* 20..36 computes; waited at the gate 60..70. CUPTI refused. */
static void be_second(void)
{
	struct ll_trace_writer *refused = open_writer(LL_TRACE_SOURCE_CUPTI);
	ll_trace_writer_refuse(refused, 0, "no permission");
	ll_trace_writer_close(refused);
	struct ll_trace_writer *writer = open_writer(LL_TRACE_SOURCE_EVENTS);
	struct ll_trace_writer *gate = open_writer(LL_TRACE_SOURCE_GATE);
	add(writer, LL_TRACE_KERNEL, "second", 20, 36, NULL);
	add(gate, LL_TRACE_GATE, NULL, 60, 70, NULL);
	ll_trace_writer_close(writer);
	ll_trace_writer_close(gate);
}

static pid_t in_process(void (*body)(void))
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return pid;
}

static pid_t first_pid, second_pid;

static int write_files(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/loadline-test.XXXXXX");
	if (!mkdtemp(folder) || setenv(LL_TRACE_FOLDER, folder, 1))
		return -1;
	first_pid = in_process(be_first);
	second_pid = in_process(be_second);
	return 0;
}

static int remove_files(void **state)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	(void)state;
	while (dir && (entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	return rmdir(folder);
}

/* The window is 0..100; the host computes 56..80, and waits for a disk 78..90. */
static void read_run(struct ll_trace_run *run)
{
	struct ll_trace_filter all = {0};
	assert_int_equal(ll_trace_run_read(folder, &all, run, NULL), 0);
	run->start_ns = run->command_start_ns = 0;
	run->end_ns = 100 * MS;
	ll_spans_add(&run->host, 56 * MS, 80 * MS);
	ll_spans_add(&run->io, 78 * MS, 90 * MS);
}

TEST(a_card_s_time_is_told_part_by_part)
{
	struct ll_trace_run run;
	struct ll_trace_summary summary;
	read_run(&run);
	assert_int_equal(run.card_count, 1);
	assert_int_equal(ll_trace_summary_make(&run, &summary, NULL), 0);
	assert_int_equal(summary.card_count, 1);
	const struct ll_trace_card_sum *sum = &summary.cards[0];
	assert_string_equal(sum->uuid, card);
	assert_int_equal(sum->split.window_ns, 100 * MS);
	assert_int_equal(sum->split.busy_ns, 30 * MS);         /* 10..40 */
	assert_int_equal(sum->split.communication_ns, 4 * MS); /* 36..40 */
	assert_int_equal(sum->split.copies_ns, 5 * MS);        /* 50..55 */
	assert_int_equal(sum->split.gate_ns, 10 * MS);         /* 60..70 */
	assert_int_equal(sum->split.host_ns, (4 + 10) * MS);   /* 56..60, 70..80 */
	assert_int_equal(sum->split.io_ns, 10 * MS);           /* 80..90 */
	assert_int_equal(sum->split.waiting_ns, (10 + 10 + 1 + 10) * MS);
	assert_int_equal(sum->processes, 2);
	assert_int_equal(sum->overlap_ns, 16 * MS); /* 20..36 */
	assert_int_equal(sum->kernel_sum_ns, 46 * MS);
	assert_string_equal(ll_trace_main_cause(&sum->split), "waiting");
	assert_int_equal(summary.kernel_count, 3);
	assert_string_equal(summary.kernels[0].name, "first, \"quoted\"");
	assert_int_equal(summary.kernels[1].total_ns, 16 * MS);
	assert_int_equal(summary.dropped_cupti, 3);
	ll_trace_summary_fini(&summary);
	ll_trace_run_fini(&run);
}

TEST(processes_are_told_apart)
{
	struct ll_trace_run run;
	struct ll_trace_summary summary;
	struct ll_strbuf text = LL_STRBUF_INIT;
	read_run(&run);
	assert_int_equal(ll_trace_summary_make(&run, &summary, NULL), 0);
	assert_int_equal(summary.process_count, 2);
	const struct ll_trace_process_sum *first = &summary.processes[0], *second = &summary.processes[1];
	assert_int_equal(first->process->pid, first_pid);
	assert_int_equal(first->kernels, 2);
	assert_int_equal(first->to_card_bytes, 5000000);
	assert_int_equal(first->from_card_bytes, 0);
	assert_int_equal(first->peak_bytes, 3000);
	assert_null(first->process->refusal);
	assert_int_equal(second->process->pid, second_pid);
	assert_int_equal(second->busy_ns, 16 * MS);
	assert_int_equal(second->gate_waits, 1);
	assert_int_equal(second->gate_ns, 10 * MS);
	assert_int_equal(second->process->device->source, LL_TRACE_SOURCE_EVENTS);
	assert_string_equal(second->process->refusal, "no permission");
	ll_trace_summary_add_text(&text, &summary, 2);
	assert_false(text.failed);
	assert_non_null(strstr(text.buf, "no permission; it was traced by events"));
	assert_non_null(strstr(text.buf, "3 events were dropped by CUPTI"));
	assert_non_null(strstr(text.buf, "and 1 more"));
	ll_strbuf_fini(&text);
	ll_trace_summary_fini(&summary);
	ll_trace_run_fini(&run);
}

TEST(a_filter_leaves_other_cards_out)
{
	static const char *const others[] = {"GPU-two"}, *const same[] = {"GPU-two", "GPU-one"};
	struct ll_trace_filter filter = {others, 1};
	struct ll_trace_run run;
	assert_int_equal(ll_trace_run_read(folder, &filter, &run, NULL), 0);
	assert_int_equal(run.processes[0].count + run.processes[1].count, 0);
	ll_trace_run_fini(&run);
	filter = (struct ll_trace_filter){same, 2};
	assert_int_equal(ll_trace_run_read(folder, &filter, &run, NULL), 0);
	assert_int_equal(run.processes[0].count + run.processes[1].count, 9);
	ll_trace_run_fini(&run);
	assert_int_equal(ll_trace_run_read("/there/is/none", &filter, &run, NULL), -ENOENT);
}

TEST(the_table_has_a_row_for_each_event_by_start)
{
	static const char wanted[] =
	    "1000000,0,,,,,,,,,,1000,,,device,0,0,0,[CUDA memory allocation],,allocation,0x10\n"
	    "2000000,0,,,,,,,,,,2000,,,device,0,0,0,[CUDA memory allocation],,allocation,0x20\n"
	    "3000000,0,,,,,,,,,,1000,,,device,0,0,0,[CUDA memory free],,free,0x10\n"
	    "4000000,0,,,,,,,,,,1000,,,device,0,0,0,[CUDA memory allocation],,allocation,0x10\n"
	    "10000000,20000000,4,2,1,32,1,1,40,0,9,,,,,0,0,7,\"first, \"\"quoted\"\"\",2,kernel,\n"
	    "30000000,10000000,,,,,,,,,,,,,,0,0,7,ncclDevKernel_AllReduce,,kernel,\n"
	    "50000000,5000000,,,,,,,,,,5000000,1.000,pinned,device,0,0,8,[CUDA memcpy HtoD],,copy,\n";
	struct ll_trace_run run;
	char *text = NULL;
	size_t size = 0;
	read_run(&run);
	FILE *file = open_memstream(&text, &size);
	ll_trace_write_csv(file, &run, &run.processes[0]);
	fclose(file);
	assert_int_equal(strncmp(text, "start_ns,duration_ns,grid_x,", 28), 0);
	assert_string_equal(strchr(text, '\n') + 1, wanted);
	free(text);
	ll_trace_run_fini(&run);
}

static size_t count_spans(const json_t *events, const char *category, pid_t pid)
{
	size_t count = 0;
	const json_t *event;
	size_t i;
	json_array_foreach(events, i, event)
	{
		const char *phase = json_string_value(json_object_get(event, "ph"));
		const char *its = json_string_value(json_object_get(event, "cat"));
		count += strcmp(phase, "X") == 0 && strcmp(its, category) == 0 &&
			 json_integer_value(json_object_get(event, "pid")) == pid;
	}
	return count;
}

TEST(the_picture_is_json_of_all_processes)
{
	struct ll_trace_run run;
	char *text = NULL;
	size_t size = 0;
	json_error_t error;
	read_run(&run);
	run.processes[1].command = "a \"quoted\"\n\x01 \xff name"; /* not UTF-8 either */
	FILE *file = open_memstream(&text, &size);
	ll_trace_write_chrome(file, &run);
	fclose(file);
	json_t *picture = json_loads(text, 0, &error);
	if (!picture)
		fail_msg("%d: %s", error.line, error.text);
	const json_t *events = json_object_get(picture, "traceEvents");
	assert_int_equal(count_spans(events, "kernel", first_pid), 2);
	assert_int_equal(count_spans(events, "copy", first_pid), 1);
	assert_int_equal(count_spans(events, "kernel", second_pid), 1);
	assert_int_equal(count_spans(events, "gate", second_pid), 1);
	assert_int_equal(count_spans(events, "allocation", first_pid), 0); /* they are a counter */
	json_decref(picture);
	free(text);
	ll_trace_run_fini(&run);
}

TEST(the_text_names_programs_not_paths_and_keeps_its_lines)
{
	struct ll_trace_run run;
	struct ll_trace_summary summary;
	struct ll_strbuf text = LL_STRBUF_INIT;
	read_run(&run);
	run.processes[0].command = "/a/path/as/long/as/those/of/environments/of/python3.12/bin/python -c a\nb";
	run.processes[1].command = "/usr/bin/";
	assert_int_equal(ll_trace_summary_make(&run, &summary, NULL), 0);
	ll_trace_summary_add_text(&text, &summary, 1);
	assert_non_null(strstr(text.buf, "  python -c a b\n"));
	assert_null(strstr(text.buf, "/a/path"));
	ll_trace_summary_fini(&summary);
	ll_strbuf_fini(&text);
	ll_trace_run_fini(&run);
}

TEST_ALL(write_files, remove_files);
