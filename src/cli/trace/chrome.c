#include <inttypes.h>
#include <string.h>

#include "abi/cupti.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "cli/trace/write.h"

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
		switch (record->head.kind) {
		case LL_TRACE_ALLOCATE:
		case LL_TRACE_FREE:
			put_memory(out, process->pid, record, &held_bytes);
			break;
		default:
			put_span(out, process->pid, lane_of(out, &lanes, process->pid, record), event);
			break;
		}
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
