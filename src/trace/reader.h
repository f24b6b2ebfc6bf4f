/*
 * reader.h - a traced process's file of records, read while or after it is written.
 *
 * What is torn (a process was killed in the middle of a write) ends the reading there; a file that has no header yet is
 * -ENODATA, one that is none of ours -EBADMSG.
 */
#ifndef LOADLINE_TRACE_READER_H
#define LOADLINE_TRACE_READER_H

#include <stddef.h>

#include "trace/record.h"

struct ll_err;

enum { LL_TRACE_DEVICES = 64 };

struct ll_trace_file {
	struct ll_trace_header header;          /* its texts end with a NUL */
	const struct ll_trace_record **records; /* of kinds that are events, as they were written; 8-byte aligned */
	size_t record_count;
	const char **names; /* by number; [0] is "" */
	size_t name_count;
	const char *cards[LL_TRACE_DEVICES]; /* UUIDs by device; NULL: not told */
	void *map;
	size_t map_bytes;
};

int ll_trace_file_open(const char *path, struct ll_trace_file *ret_file, struct ll_err *err);
void ll_trace_file_fini(struct ll_trace_file *file);

/* The record's name; "" where it has none. */
const char *ll_trace_file_name(const struct ll_trace_file *file, const struct ll_trace_record *record);

#endif
