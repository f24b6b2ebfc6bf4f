/*
 * record.h - the format of the files that a traced process writes into the folder of `loadline trace`: a header, then
 * records.
 *
 * A file can be read at any time: complete records are written in blocks, and the reader ends at the first incomplete
 * one. All times are CLOCK_MONOTONIC, so that the files of all processes share one time axis. The byte order is the
 * machine's: a file is read on the machine that wrote it, and is removed after the command's end.
 *
 * A process has one file for each source: CUPTI's records, timing events, and waits at the gate.
 */
#ifndef LOADLINE_TRACE_RECORD_H
#define LOADLINE_TRACE_RECORD_H

#include <stdint.h>

/* Variables in the environment of a traced program, and functions of its libraries. */
#define LL_TRACE_FOLDER "LOADLINE_TRACE"            /* absolute path of the folder for the files */
#define LL_TRACE_BY "LOADLINE_TRACE_BY"             /* "auto", "cupti" or "events" */
#define LL_TRACE_CUPTI "LOADLINE_TRACE_CUPTI"       /* libcupti's file */
#define LL_TRACE_MOST "LOADLINE_TRACE_MAX_EVENTS"   /* most events in a file */
#define LL_TRACE_INJECTION "CUDA_INJECTION64_PATH"  /* the driver's own: a library that cuInit loads */
#define LL_TRACE_ENTRY "InitializeInjection"        /* the function of that library that cuInit calls */
#define LL_TRACE_IS_ON "loadline_trace_is_by_cupti" /* int (void), in inject.h */

#define LL_TRACE_AT_END "loadline_trace_at_end" /* void (void (*)(void)), in inject.h */

#define LL_TRACE_MAGIC "LLTRACE\1"
#define LL_TRACE_DEFAULT_MOST UINT64_C(4000000)

enum ll_trace_source {
	LL_TRACE_SOURCE_NONE, /* CUPTI refused; the header's reason says why */
	LL_TRACE_SOURCE_CUPTI,
	LL_TRACE_SOURCE_EVENTS, /* timing events around each launch */
	LL_TRACE_SOURCE_GATE,   /* waits of a governed program's launches */
};

struct ll_trace_header {
	char magic[8];
	uint32_t header_bytes;
	uint32_t source; /* enum ll_trace_source */
	int32_t pid, parent;
	uint64_t opened_ns;
	uint32_t cupti_version;
	uint32_t unused;
	/* Numbers of records that are missing: over the limit, dropped by CUPTI, not written because the disk is full.
	 */
	uint64_t dropped_limit, dropped_cupti, dropped_disk;
	char reason[160];  /* for LL_TRACE_SOURCE_NONE; NUL-terminated */
	char command[320]; /* the command's words with blanks between, NUL-terminated, perhaps cut */
};

enum ll_trace_kind {
	LL_TRACE_END,  /* marks the end in the reader; never written */
	LL_TRACE_NAME, /* struct ll_trace_name */
	LL_TRACE_CARD, /* the device's UUID is the name */
	LL_TRACE_KERNEL,
	LL_TRACE_COPY,
	LL_TRACE_MEMSET,
	LL_TRACE_GRAPH, /* a launch of a graph, as one event */
	LL_TRACE_ALLOCATE,
	LL_TRACE_FREE,
	LL_TRACE_GATE, /* a launch that waited for its turn, its share or room in the queue */
	LL_TRACE_KINDS,
};

/* The head of every record. */
struct ll_trace_prefix {
	uint16_t kind;  /* enum ll_trace_kind */
	uint16_t bytes; /* of the whole record, a multiple of 8 */
	uint32_t name;  /* of struct ll_trace_name, written before it; 0: none */
};

/* An event. The kinds of memory have CUPTI's numbers. */
struct ll_trace_record {
	struct ll_trace_prefix head;
	uint64_t start_ns, end_ns; /* equal for an event without a duration */
	uint32_t device;           /* CUDA's ordinal in that process */
	uint32_t context, stream;  /* numbers that are unique in the process */
	uint32_t correlation;      /* 0: none */
	uint64_t bytes;            /* bytes that were copied, set, allocated or freed */
	uint64_t address;          /* ALLOCATE, FREE */
	uint32_t grid[3], block[3];
	uint32_t registers;
	uint32_t static_shared_bytes, dynamic_shared_bytes;
	uint8_t from, to; /* enum ll_cupti_memory_kind; ALLOCATE, FREE: to */
	uint16_t unused;
};

enum { LL_TRACE_NAME_LONGEST = 8000 };

/* The text follows, NUL-terminated and padded with NULs. Names are numbered from 1 in each file. */
struct ll_trace_name {
	struct ll_trace_prefix head;
};

_Static_assert(sizeof(struct ll_trace_header) == 544, "as the reader takes it");
_Static_assert(sizeof(struct ll_trace_record) == 96, "a multiple of 8");

#endif
