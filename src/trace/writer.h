/*
 * writer.h - writes a traced process's file of records. Each name is written once, and records are written in blocks.
 *
 * The writer runs inside the user's program: it prints nothing and handles no signals. After a failure it counts the
 * lost records and goes on. Flushed records survive any end of the process. The writing threads share one lock: CUPTI's
 * own thread, or a thread whose launches are timed by events. It is held during the write of a block.
 *
 * After a fork the child has no writer: it closes the parent's by ll_trace_writer_forget.
 */
#ifndef LOADLINE_TRACE_WRITER_H
#define LOADLINE_TRACE_WRITER_H

#include <stddef.h>

#include "trace/record.h"

struct ll_trace_writer;

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

#endif
