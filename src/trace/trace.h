/*
 * trace.h - what a traced program writes, and how it is read.
 */
#ifndef LOADLINE_TRACE_TRACE_H
#define LOADLINE_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct ll_err;
struct ll_trace_writer;

/* ---- record ---- */

/*
 * The format of the files that a traced process writes into the folder of `loadline trace`: a header, then
 * records.
 *
 * A file can be read at any time: complete records are written in blocks, and the reader ends at the first incomplete
 * one. All times are CLOCK_MONOTONIC, so that the files of all processes share one time axis. The byte order is the
 * machine's: a file is read on the machine that wrote it, and is removed after the command's end.
 *
 * A process has one file for each source: CUPTI's records, timing events, and waits at the gate.
 */

/* Variables in the environment of a traced program, and functions of its libraries. */
#define LL_TRACE_FOLDER "LOADLINE_TRACE"            /* absolute path of the folder for the files */
#define LL_TRACE_BY "LOADLINE_TRACE_BY"             /* "auto", "cupti" or "events" */
#define LL_TRACE_CUPTI "LOADLINE_TRACE_CUPTI"       /* libcupti's file */
#define LL_TRACE_MOST "LOADLINE_TRACE_MAX_EVENTS"   /* most events in a file */
#define LL_TRACE_INJECTION "CUDA_INJECTION64_PATH"  /* the driver's own: a library that cuInit loads */
#define LL_TRACE_IS_ON "loadline_trace_is_by_cupti" /* int (void), in trace.h */

#define LL_TRACE_AT_END "loadline_trace_at_end" /* void (void (*)(void)), in trace.h */

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

/* ---- writer ---- */

/*
 * Writes a traced process's file of records. Each name is written once, and records are written in blocks.
 *
 * The writer runs inside the user's program: it prints nothing and handles no signals. After a failure it counts the
 * lost records and goes on. Flushed records survive any end of the process. The writing threads share one lock: CUPTI's
 * own thread, or a thread whose launches are timed by events. It is held during the write of a block.
 *
 * After a fork the child has no writer: it closes the parent's by ll_trace_writer_forget.
 */

/* Makes a file in the folder that LOADLINE_TRACE names. -ENOENT: the process is not traced. Other -errno: the file
 * cannot be made. */
int ll_trace_writer_open(enum ll_trace_source source, struct ll_trace_writer **ret_writer);

/* Returns the number of this name in the file, and writes a new name. 0: name is NULL, or memory ran out. */
uint32_t ll_trace_writer_name(struct ll_trace_writer *writer, const char *name);

/* Writes a record. The caller fills in all fields but head.bytes. */
void ll_trace_writer_add(struct ll_trace_writer *writer, const struct ll_trace_record *record);

/* Writes the UUID of a device. Call it once for each device. */
void ll_trace_writer_add_card(struct ll_trace_writer *writer, uint32_t device, const char *uuid);

/* Counts records that CUPTI has dropped. */
void ll_trace_writer_add_dropped(struct ll_trace_writer *writer, uint64_t count);

/* Notes in the header why CUPTI writes no records. */
void ll_trace_writer_refuse(struct ll_trace_writer *writer, uint32_t cupti_version, const char *reason);

/* Notes CUPTI's version in the header. */
void ll_trace_writer_note_version(struct ll_trace_writer *writer, uint32_t cupti_version);

/* Writes the buffered records. */
void ll_trace_writer_flush(struct ll_trace_writer *writer);

/* Flushes, closes and frees the writer. No other thread may use it then. */
void ll_trace_writer_close(struct ll_trace_writer *writer);

/* Closes the parent's descriptor in a forked child. It frees nothing, because a thread of the parent may have held the
 * lock. */
void ll_trace_writer_forget(struct ll_trace_writer *writer);

/* ---- reader ---- */

/*
 * Reads the records' file of a traced process, during or after its writing.
 *
 * Reading ends at the first incomplete record, which a process leaves that was killed during a write. -ENODATA: the
 * file has no header yet. -EBADMSG: it is not a file of records.
 */

enum { LL_TRACE_DEVICES = 64 };

struct ll_trace_file {
	struct ll_trace_header header;          /* its texts are NUL-terminated */
	const struct ll_trace_record **records; /* the events, in the order of the file; 8-byte aligned */
	size_t record_count;
	const char **names; /* indexed by a name's number; [0] is "" */
	size_t name_count;
	const char *cards[LL_TRACE_DEVICES]; /* UUIDs, indexed by device; NULL: not known */
	void *map;
	size_t map_bytes;
};

int ll_trace_file_open(const char *path, struct ll_trace_file *ret_file, struct ll_err *err);
void ll_trace_file_fini(struct ll_trace_file *file);

/* Returns the record's name, "" if it has none. */
const char *ll_trace_file_name(const struct ll_trace_file *file, const struct ll_trace_record *record);

/* ---- activity ---- */

/*
 * Reads CUPTI's activity records in the traced process, and writes them to its file (trace.h).
 *
 * CUPTI's threads fill buffers that this module allocates, and return a buffer when it is full or at a flush
 * (ll_activity_flush). Kernels run as without a trace: the kind of record that serialises kernels is not used. Device
 * times are CUPTI's, converted to CLOCK_MONOTONIC.
 */

/*
 * Opens the library at path and starts the recording. Call it once in a process. False: the library does not exist, the
 * records of its version are not known, or CUPTI refuses (another profiler is at work, no permission). Then ret_reason
 * has the reason as a sentence. *ret_version: CUPTI's API version, 0 if it is not known.
 */
bool ll_activity_begin(const char *path, struct ll_trace_writer *writer, uint32_t *ret_version, char *ret_reason,
		       size_t size);

/* Writes the complete records. is_last: also the records in buffers that have unfinished work. */
void ll_activity_flush(bool is_last);

/* ---- inject ---- */

/*
 * Libloadline-trace.so inside a traced program.
 *
 * The driver loads it in cuInit, because CUDA_INJECTION64_PATH names it, and calls InitializeInjection. From then on
 * CUPTI's records are written (trace.h). A thread flushes them every LL_INJECT_FLUSH_NS, so that a killed program
 * loses only the records of that time.
 *
 * The library is also preloaded, because a program may end by _exit, as the children of Python's multiprocessing do,
 * and then no exit handler runs. The library's _exit, _Exit and quick_exit flush the records and call libc's functions.
 * In a program without CUDA, in a forked child, and in the child of a vfork they only call libc's. The governing
 * library reports the waits of launches to this library (activity.c).
 */

#define LL_INJECT_FLUSH_NS (200 * LL_NS_PER_MS)

__attribute__((visibility("default"))) int InitializeInjection(void);

/* Returns whether CUPTI's records are being written in this process. If not, libloadline-events.so times the launches.
 */
__attribute__((visibility("default"))) int loadline_trace_is_by_cupti(void);

/* Sets the function that _exit, _Exit and quick_exit call as well. libloadline-events.so sets its last harvest. There
 * is one such function. */
__attribute__((visibility("default"))) void loadline_trace_at_end(void (*fn)(void));

#endif
