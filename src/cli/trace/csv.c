#include <inttypes.h>
#include <string.h>

#include "cli/trace/write.h"

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
