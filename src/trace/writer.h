/*
 * writer.h - a traced process's file of records: names are written once, records in blocks.
 *
 * It is used inside other people's programs: it prints nothing, takes no signals, and where something fails it counts
 * what is lost and goes on. What was flushed survives the process, however that ends. One lock, taken by those who
 * write: CUPTI's own thread, or a launching thread that is traced by events; held during the write of a block.
 *
 * After a fork the child has no writer: ll_trace_writer_forget lets go of the parent's.
 */
#ifndef LOADLINE_TRACE_WRITER_H
#define LOADLINE_TRACE_WRITER_H

#include <stddef.h>

#include "trace/record.h"

struct ll_trace_writer;

/* Makes a file in the folder that LOADLINE_TRACE names. -ENOENT: not traced; -errno. */
int ll_trace_writer_open(enum ll_trace_source source, struct ll_trace_writer **ret_writer);

/* The number of this name in the file, written when it is new; 0 for NULL and where memory runs out. */
uint32_t ll_trace_writer_name(struct ll_trace_writer *writer, const char *name);

/* kind and the rest are the caller's; head.bytes is filled in. */
void ll_trace_writer_add(struct ll_trace_writer *writer, const struct ll_trace_record *record);

/* Which card a device is: its UUID, once for each device. */
void ll_trace_writer_add_card(struct ll_trace_writer *writer, uint32_t device, const char *uuid);

/* Records that CUPTI says it has lost. */
void ll_trace_writer_add_dropped(struct ll_trace_writer *writer, uint64_t count);

/* Why there will be none. */
void ll_trace_writer_refuse(struct ll_trace_writer *writer, uint32_t cupti_version, const char *reason);

/* Which CUPTI writes it. */
void ll_trace_writer_note_version(struct ll_trace_writer *writer, uint32_t cupti_version);

/* Writes what is buffered. */
void ll_trace_writer_flush(struct ll_trace_writer *writer);

/* Flushes, and frees it. Nobody writes any more. */
void ll_trace_writer_close(struct ll_trace_writer *writer);

/* In a forked child: closes the descriptor, and nothing else, for the parent's threads may have held the lock. */
void ll_trace_writer_forget(struct ll_trace_writer *writer);

#endif
