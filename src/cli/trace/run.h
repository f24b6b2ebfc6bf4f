/*
 * run.h - everything that the processes of a traced command have written, as one timeline.
 *
 * A process may have written several files (CUPTI's records, waits at the gate; one more after an exec): they are put
 * together by process id, its events in the order of their starts. Cards are told apart by UUID across processes.
 */
#ifndef LOADLINE_CLI_TRACE_RUN_H
#define LOADLINE_CLI_TRACE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "control/spans.h"
#include "trace/reader.h"

enum { LL_TRACE_CARDS = 64, LL_TRACE_NO_CARD = LL_TRACE_CARDS };

struct ll_trace_event {
	const struct ll_trace_record *record;
	const struct ll_trace_file *file; /* that it is from */
	unsigned card;                    /* of the run; LL_TRACE_NO_CARD: not told */
};

struct ll_trace_process {
	pid_t pid;
	const char *command;
	const struct ll_trace_header *device; /* of the file with what the card did; NULL: none */
	const char *refusal;                  /* why CUPTI did not serve; NULL: it did, or was not asked */
	struct ll_trace_event *events;        /* by start */
	size_t count, room;
	uint64_t dropped_limit, dropped_cupti, dropped_disk;
};

struct ll_trace_run {
	struct ll_trace_file *files;
	size_t file_count;
	char **plain_names; /* that took the place of names in the files */
	size_t plain_count;
	struct ll_trace_process *processes; /* in the order in which they came to use CUDA */
	size_t process_count;
	const char *cards[LL_TRACE_CARDS]; /* UUIDs; "" where a process did not tell */
	size_t card_count;
	uint64_t start_ns, end_ns; /* from the first process's cuInit to the command's end */
	uint64_t command_start_ns; /* zero of the times that are shown */
	struct ll_spans host, io;  /* what the sampler saw (cli/trace/sample.h); settled */
};

/* What is left out: events of cards that are not among these UUIDs; count 0: nothing. */
struct ll_trace_filter {
	const char *const *uuids;
	size_t count;
};

/* Reads the folder. Files without a header yet are passed over. */
int ll_trace_run_read(const char *folder, const struct ll_trace_filter *filter, struct ll_trace_run *ret_run,
		      struct ll_err *err);
void ll_trace_run_fini(struct ll_trace_run *run);

/* The name to show for an event: of a kernel, or "[CUDA memcpy HtoD]" as profilers write it. */
const char *ll_trace_event_name(const struct ll_trace_event *event);

/* "kernel", "copy", "gate": for columns and categories. */
const char *ll_trace_event_kind(const struct ll_trace_event *event);

/* Whether a kernel of this name moves data between cards or processes and waits for others: nccl and its like. */
bool ll_trace_is_communication(const char *name);

/* A copy between host and card, on a copy engine beside kernels. */
bool ll_trace_is_host_copy(const struct ll_trace_record *record);

/* What makes the card busy: kernels, graphs, memsets, copies within the card. */
bool ll_trace_is_busy(const struct ll_trace_record *record);

#endif
