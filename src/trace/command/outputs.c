#include "trace/command/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "abi/cupti.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/utf8.h"

/* ---- folder ---- */

static const char beginning[] = "loadline-trace-";

/* A younger folder may have been made just now, and not be locked yet. */
enum { LEFT_AFTER_S = 60 };

static void empty_folder(int fd)
{
	DIR *dir = fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 0));
	struct dirent *entry;
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			unlinkat(fd, entry->d_name, 0);
	}
	if (dir)
		closedir(dir);
}

/* Other users may write to TMPDIR, so the folder is opened once, checked and emptied by its descriptor. */
static void remove_left(int parent_fd, const char *name)
{
	struct stat st;
	LL_SCOPE_CLOSE int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0 || st.st_uid != geteuid() || time(NULL) - st.st_mtime < LEFT_AFTER_S)
		return;
	if (flock(fd, LOCK_EX | LOCK_NB) != 0)
		return;
	empty_folder(fd);
	unlinkat(parent_fd, name, AT_REMOVEDIR);
}

static void remove_all_left(const char *parent)
{
	DIR *dir = opendir(parent);
	struct dirent *entry;
	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, beginning, strlen(beginning)) == 0)
			remove_left(dirfd(dir), entry->d_name);
	}
	if (dir)
		closedir(dir);
}

int ll_trace_folder_make(struct ll_trace_folder *folder, struct ll_err *err)
{
	const char *named = getenv("TMPDIR");
	const char *parent = named && *named == '/' ? named : "/tmp";
	int n = snprintf(folder->path, sizeof folder->path, "%s/%sXXXXXX", parent, beginning);
	if (n < 0 || (size_t)n >= sizeof folder->path)
		return ll_err_set(err, -ENAMETOOLONG, "TMPDIR: %s", strerror(ENAMETOOLONG));
	remove_all_left(parent);
	if (!mkdtemp(folder->path))
		return ll_err_set(err, -errno, "%.200s: %s", folder->path, strerror(errno));
	folder->lock_fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder->lock_fd >= 0)
		flock(folder->lock_fd, LOCK_SH | LOCK_NB);
	return 0;
}

void ll_trace_folder_remove(struct ll_trace_folder *folder)
{
	int fd = folder->lock_fd >= 0 ? folder->lock_fd : open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		empty_folder(fd);
		close(fd);
	}
	rmdir(folder->path);
	folder->lock_fd = -1;
}

/* ---- csv ---- */

static const char header[] =
    "start_ns,duration_ns,grid_x,grid_y,grid_z,block_x,block_y,block_z,registers_per_thread,"
    "static_shared_bytes,dynamic_shared_bytes,size_bytes,throughput_gb_per_s,source_memory,destination_memory,"
    "device,context,stream,name,correlation_id,kind,address";

/* Writes a text as in RFC 4180: in quotes if it has a comma, a quote or a line break. */
static void put_text(FILE *file, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		fputs(text, file);
		return;
	}
	putc('"', file);
	for (; *text; text++) {
		if (*text == '"')
			putc('"', file);
		putc(*text, file);
	}
	putc('"', file);
}

static const char *memory_word(uint8_t kind)
{
	static const char *const words[] = {"",      "pageable", "pinned",        "device",
					    "array", "managed",  "device static", "managed static"};
	return kind < sizeof words / sizeof *words ? words[kind] : "";
}

static void put_shape(FILE *file, const struct ll_trace_record *record)
{
	if (record->head.kind != LL_TRACE_KERNEL || !record->grid[0]) {
		fputs(",,,,,,,,,", file);
		return;
	}
	fprintf(file, "%u,%u,%u,%u,%u,%u,", record->grid[0], record->grid[1], record->grid[2], record->block[0],
		record->block[1], record->block[2]);
	if (record->registers) /* 0: not known; events do not tell it */
		fprintf(file, "%u,%u", record->registers, record->static_shared_bytes);
	else
		putc(',', file);
	fprintf(file, ",%u,", record->dynamic_shared_bytes);
}

static void put_size(FILE *file, const struct ll_trace_record *record)
{
	uint64_t ns = record->end_ns - record->start_ns;
	if (record->bytes)
		fprintf(file, "%" PRIu64, record->bytes);
	putc(',', file);
	if (record->bytes && ns) /* bytes per ns are GB/s */
		fprintf(file, "%.3f", (double)record->bytes / (double)ns);
	fprintf(file, ",%s,%s,", memory_word(record->from), memory_word(record->to));
}

static void put_event(FILE *file, const struct ll_trace_run *run, const struct ll_trace_event *event)
{
	const struct ll_trace_record *record = event->record;
	bool is_gate = record->head.kind == LL_TRACE_GATE;
	fprintf(file, "%" PRId64 ",%" PRIu64 ",", (int64_t)(record->start_ns - run->command_start_ns),
		record->end_ns - record->start_ns);
	put_shape(file, record);
	put_size(file, record);
	fprintf(file, "%u,", record->device);
	if (is_gate)
		fputs(",,", file);
	else
		fprintf(file, "%u,%u,", record->context, record->stream);
	put_text(file, ll_trace_event_name(event));
	putc(',', file);
	if (record->correlation)
		fprintf(file, "%u", record->correlation);
	fprintf(file, ",%s,", ll_trace_event_kind(event));
	if (record->address)
		fprintf(file, "0x%" PRIx64, record->address);
	putc('\n', file);
}

void ll_trace_write_csv(FILE *file, const struct ll_trace_run *run, const struct ll_trace_process *process)
{
	fprintf(file, "%s\n", header);
	for (size_t i = 0; i < process->count; i++)
		put_event(file, run, &process->events[i]);
}

/* ---- chrome ---- */

enum { LANES = 1024 };

/* GATE stands in place of a context in the lane of a thread that waited at the gate. */
#define GATE UINT32_MAX

/* A stream of a process becomes a thread of the picture. Lanes are numbered in the order of their first events. */
struct lane {
	uint32_t device, context, stream;
};

struct lanes {
	struct lane items[LANES];
	uint32_t count;
};

struct output {
	FILE *file;
	const struct ll_trace_run *run;
	bool has_any;
};

/* JSON must be UTF-8, but a command's words need not be: what is none becomes '?'. */
static void put_string(FILE *file, const char *text)
{
	size_t length;
	putc('"', file);
	for (uint32_t c; (length = ll_utf8_next(text, &c)); text += length) {
		if (c == '"' || c == '\\')
			fprintf(file, "\\%c", (int)c);
		else if (c < ' ' || c == 0x7f)
			fprintf(file, "\\u%04x", c);
		else if (c == LL_UTF8_BAD)
			putc('?', file);
		else
			fwrite(text, 1, length, file);
	}
	putc('"', file);
}

static void begin_event(struct output *out)
{
	fputs(out->has_any ? ",\n" : "\n", out->file);
	out->has_any = true;
}

/* Writes a time in microseconds with three decimals. */
static void put_us(FILE *file, const char *key, uint64_t ns)
{
	fprintf(file, ",\"%s\":%" PRIu64 ".%03u", key, ns / LL_NS_PER_US, (unsigned)(ns % LL_NS_PER_US));
}

static uint64_t since_start_ns(const struct output *out, uint64_t ns)
{
	return ns > out->run->command_start_ns ? ns - out->run->command_start_ns : 0;
}

static void put_meta(struct output *out, pid_t pid, uint32_t thread, const char *what, const char *name)
{
	begin_event(out);
	fprintf(out->file, "{\"ph\":\"M\",\"pid\":%d,\"tid\":%u,\"name\":\"%s\",\"args\":{\"name\":", (int)pid, thread,
		what);
	put_string(out->file, name);
	fputs("}}", out->file);
}

/* Returns the lane's number, or 0 if there is no room for another lane. Events beyond the last lane share lane 0. */
static uint32_t lane_of(struct output *out, struct lanes *lanes, pid_t pid, const struct ll_trace_record *record)
{
	char name[80];
	bool is_gate = record->head.kind == LL_TRACE_GATE;
	uint32_t context = is_gate ? GATE : record->context;
	for (uint32_t i = 0; i < lanes->count; i++) {
		const struct lane *lane = &lanes->items[i];
		if (lane->device == record->device && lane->context == context && lane->stream == record->stream)
			return i + 1;
	}
	if (lanes->count == LANES)
		return 0;
	lanes->items[lanes->count++] = (struct lane){record->device, context, record->stream};
	if (is_gate)
		snprintf(name, sizeof name, "device %u waits at the gate, thread %u", record->device, record->stream);
	else
		snprintf(name, sizeof name, "device %u context %u stream %u", record->device, context, record->stream);
	put_meta(out, pid, lanes->count, "thread_name", name);
	return lanes->count;
}

static void put_arguments(FILE *file, const struct ll_trace_record *record)
{
	fprintf(file, ",\"args\":{\"device\":%u,\"context\":%u,\"stream\":%u", record->device, record->context,
		record->stream);
	if (record->correlation)
		fprintf(file, ",\"correlation_id\":%u", record->correlation);
	if (record->head.kind == LL_TRACE_KERNEL && record->grid[0])
		fprintf(file,
			",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"registers_per_thread\":%u,"
			"\"static_shared_bytes\":%u,\"dynamic_shared_bytes\":%u",
			record->grid[0], record->grid[1], record->grid[2], record->block[0], record->block[1],
			record->block[2], record->registers, record->static_shared_bytes, record->dynamic_shared_bytes);
	if (record->bytes)
		fprintf(file, ",\"size_bytes\":%" PRIu64, record->bytes);
	fputs("}}", file);
}

static void put_span(struct output *out, pid_t pid, uint32_t lane, const struct ll_trace_event *event)
{
	const struct ll_trace_record *record = event->record;
	begin_event(out);
	fprintf(out->file, "{\"ph\":\"X\",\"pid\":%d,\"tid\":%u,\"cat\":\"%s\",\"name\":", (int)pid, lane,
		ll_trace_event_kind(event));
	put_string(out->file, ll_trace_event_name(event));
	put_us(out->file, "ts", since_start_ns(out, record->start_ns));
	put_us(out->file, "dur", record->end_ns - record->start_ns);
	put_arguments(out->file, record);
}

/* Writes the counter of the process's device memory, counted from the allocations and frees in the trace. */
static void put_memory(struct output *out, pid_t pid, const struct ll_trace_record *record, uint64_t *held_bytes)
{
	if (record->to != LL_CUPTI_MEMORY_DEVICE && record->to != LL_CUPTI_MEMORY_MANAGED)
		return;
	if (record->head.kind == LL_TRACE_ALLOCATE)
		*held_bytes += record->bytes;
	else
		*held_bytes -= record->bytes < *held_bytes ? record->bytes : *held_bytes;
	begin_event(out);
	fprintf(out->file, "{\"ph\":\"C\",\"pid\":%d,\"tid\":0,\"name\":\"device memory\"", (int)pid);
	put_us(out->file, "ts", since_start_ns(out, record->start_ns));
	fprintf(out->file, ",\"args\":{\"bytes\":%" PRIu64 "}}", *held_bytes);
}

static void put_process(struct output *out, const struct ll_trace_process *process)
{
	static struct lanes lanes;
	uint64_t held_bytes = 0;
	lanes.count = 0;
	put_meta(out, process->pid, 0, "process_name", process->command);
	for (size_t i = 0; i < process->count; i++) {
		const struct ll_trace_event *event = &process->events[i];
		const struct ll_trace_record *record = event->record;
		if (record->head.kind == LL_TRACE_ALLOCATE || record->head.kind == LL_TRACE_FREE)
			put_memory(out, process->pid, record, &held_bytes);
		else
			put_span(out, process->pid, lane_of(out, &lanes, process->pid, record), event);
	}
}

void ll_trace_write_chrome(FILE *file, const struct ll_trace_run *run)
{
	struct output out = {.file = file, .run = run};
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", file);
	for (size_t i = 0; i < run->process_count; i++)
		put_process(&out, &run->processes[i]);
	fputs("\n]}\n", file);
}

/* ---- outputs ---- */

static bool ends_with(const char *text, const char *tail)
{
	size_t length = strlen(text), tail_length = strlen(tail);
	return length > tail_length && strcmp(text + length - tail_length, tail) == 0;
}

static int check_pattern(const char *name, struct ll_err *err)
{
	for (const char *c = strchr(name, '%'); c; c = strchr(c + 2, '%')) {
		if (c[1] != 'p' && c[1] != '%')
			return ll_err_set(err, -EINVAL, "-o: '%.200s': only %%p and %%%% are known", name);
	}
	if (ends_with(name, ".csv"))
		return 0;
	if (!ends_with(name, ".json")) {
		ll_err_set(err, -EINVAL, "-o: '%.200s': neither .csv nor .json", name);
		return ll_err_hint(err,
				   "use a .csv name for a table of one process, a .json name for the timeline of all");
	}
	if (strstr(name, "%p"))
		return ll_err_set(err, -EINVAL, "-o: '%.200s': a .json has all processes, so its name has no %%p",
				  name);
	return 0;
}

static int fail_output(const char *path, int code, struct ll_err *err)
{
	ll_err_set(err, -code, "-o: %.200s: %s", path, strerror(code));
	return ll_err_exit_with(err, LL_EXIT_FAILED);
}

/* Checks the folder before the command runs, so that a bad name does not waste a long run. */
static int check_place(const char *name, struct ll_err *err)
{
	char folder[PATH_MAX];
	struct stat st;
	snprintf(folder, sizeof folder, "%s", name);
	char *slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder] = '\0';
	else
		snprintf(folder, sizeof folder, ".");
	bool is_there = stat(name, &st) == 0;
	if (is_there && S_ISDIR(st.st_mode))
		return fail_output(name, EISDIR, err);
	if (access(is_there ? name : folder, W_OK) == 0)
		return 0;
	return fail_output(name, errno, err);
}

void ll_trace_outputs_name(const char *pattern, pid_t pid, bool is_alone, struct ll_strbuf *ret_path)
{
	const char *suffix = strrchr(pattern, '.');
	bool has_pid = false;
	ll_strbuf_reset(ret_path);
	for (const char *c = pattern; *c; c++) {
		if (c == suffix && !has_pid && !is_alone)
			ll_strbuf_addf(ret_path, "-%d", (int)pid);
		if (*c != '%') {
			ll_strbuf_addc(ret_path, *c);
			continue;
		}
		c++;
		has_pid |= *c == 'p';
		if (*c == 'p')
			ll_strbuf_addf(ret_path, "%d", (int)pid);
		else
			ll_strbuf_addc(ret_path, '%');
	}
}

static int write_one(const char *name, const struct ll_trace_run *run, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf path = LL_STRBUF_INIT;
	bool is_csv = ends_with(name, ".csv");
	int rc = 0;
	for (size_t i = 0; !rc && i < (is_csv ? run->process_count : 1); i++) {
		pid_t pid = is_csv ? run->processes[i].pid : 0;
		ll_trace_outputs_name(name, pid, !is_csv || run->process_count == 1, &path);
		if (path.failed)
			return ll_err_set(err, -ENOMEM, "-o: %s", strerror(ENOMEM));
		FILE *file = fopen(path.buf, "we");
		if (!file)
			return fail_output(path.buf, errno, err);
		if (is_csv)
			ll_trace_write_csv(file, run, &run->processes[i]);
		else
			ll_trace_write_chrome(file, run);
		bool failed = ferror(file) != 0;
		int code = fclose(file) != 0 ? errno : failed ? EIO : 0;
		rc = code ? fail_output(path.buf, code, err) : 0;
	}
	return rc;
}

/* Writes each file of the comma-separated list; without a run it checks their names. */
static int do_outputs(const char *list, const struct ll_trace_run *run, struct ll_err *err)
{
	LL_SCOPE_FREE char *copy = list ? strdup(list) : NULL;
	int rc = list && !copy ? ll_err_set(err, -ENOMEM, "-o: %s", strerror(ENOMEM)) : 0;
	char *rest = copy;
	for (char *name; !rc && (name = strsep(&rest, ","));) {
		if (!*name)
			return ll_err_set(err, -EINVAL, "-o: '%.200s': an empty name", list);
		if (run) {
			rc = write_one(name, run, err);
		} else {
			rc = check_pattern(name, err);
			rc = rc ? rc : check_place(name, err);
		}
	}
	return rc;
}

int ll_trace_outputs_check(const char *list, struct ll_err *err)
{
	return do_outputs(list, NULL, err);
}

int ll_trace_outputs_write(const char *list, const struct ll_trace_run *run, struct ll_err *err)
{
	return do_outputs(list, run, err);
}
