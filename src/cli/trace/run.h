/*
 * run.h - reads the records of all processes of a traced command into one timeline.
 *
 * A process may have written several files: CUPTI's records, waits at the gate, and others after an exec. Files with
 * the same process id are merged, and their events are sorted by start. Cards are matched by UUID across processes.
 */
#ifndef LOADLINE_CLI_TRACE_RUN_H
#define LOADLINE_CLI_TRACE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "rules/share/spans.h"
#include "trace/reader.h"

enum { LL_TRACE_CARDS = 64, LL_TRACE_NO_CARD = LL_TRACE_CARDS };

struct ll_trace_event {
	const struct ll_trace_record *record;
	const struct ll_trace_file *file; /* the event's file */
	unsigned card;                    /* index in cards of the run; LL_TRACE_NO_CARD: not known */
};

struct ll_trace_process {
	pid_t pid;
	const char *command;
	const struct ll_trace_header *device; /* header of the file with device times; NULL: none */
	const char *refusal;                  /* why CUPTI refused; NULL: it did not refuse, or was not asked */
	struct ll_trace_event *events;        /* sorted by start */
	size_t count, room;
	uint64_t dropped_limit, dropped_cupti, dropped_disk;
};

struct ll_trace_run {
	struct ll_trace_file *files;
	size_t file_count;
	char **plain_names; /* demangled names that replace names in the files */
	size_t plain_count;
	struct ll_trace_process *processes; /* in the order of their first use of CUDA */
	size_t process_count;
	const char *cards[LL_TRACE_CARDS]; /* UUIDs; "" if the process did not record it */
	size_t card_count;
	uint64_t start_ns, end_ns; /* from the first process's cuInit to the command's end */
	uint64_t command_start_ns; /* the zero of the times in outputs */
	struct ll_spans host, io;  /* the sampler's spans (cli/trace/sample.h), sorted and merged */
};

/* Events of cards that are not in this list of UUIDs are left out. count 0: no event is left out. */
struct ll_trace_filter {
	const char *const *uuids;
	size_t count;
};

/* Reads the folder's files. Files that have no header yet are skipped. */
int ll_trace_run_read(const char *folder, const struct ll_trace_filter *filter, struct ll_trace_run *ret_run,
		      struct ll_err *err);
void ll_trace_run_fini(struct ll_trace_run *run);

/* Returns the name of an event in outputs: the kernel's name, or a name as in other profilers, such as "[CUDA memcpy
 * HtoD]". */
const char *ll_trace_event_name(const struct ll_trace_event *event);

/* Returns the kind of an event as a word, such as "kernel", "copy" or "gate". */
const char *ll_trace_event_kind(const struct ll_trace_event *event);

/* Whether a kernel of this name belongs to a communication library such as NCCL: it moves data between cards or
 * processes, and waits for others. */
bool ll_trace_is_communication(const char *name);

/* Whether the record is a copy between host and card, which runs on a copy engine beside kernels. */
bool ll_trace_is_host_copy(const struct ll_trace_record *record);

/* Whether the record makes the card busy: a kernel, a graph, a memset, or a copy within the card. */
bool ll_trace_is_busy(const struct ll_trace_record *record);

#endif
