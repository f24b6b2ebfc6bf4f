/*
 * reader.h - reads the records' file of a traced process, during or after its writing.
 *
 * Reading ends at the first incomplete record, which a process leaves that was killed during a write. -ENODATA: the
 * file has no header yet. -EBADMSG: it is not a file of records.
 */
#ifndef LOADLINE_TRACE_READER_H
#define LOADLINE_TRACE_READER_H

#include <stddef.h>

#include "trace/record.h"

struct ll_err;

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

#endif
