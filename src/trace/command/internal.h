/*
 * internal.h - the parts of 'loadline trace': its options, the traced command, the records of its processes, the
 * summary and the files.
 */
#ifndef LOADLINE_CLI_TRACE_INTERNAL_H
#define LOADLINE_CLI_TRACE_INTERNAL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/clock.h"
#include "cli/options/option.h"
#include "rules/share/spans.h"
#include "trace/trace.h"

struct ll_err;
struct ll_sampler;
struct ll_strbuf;

/* ---- args ---- */

/* The options of `loadline trace`. */

struct ll_trace_args {
	char *cards, *outputs;
	int by; /* enum ll_trace_by */
	uint64_t for_ns, most_events, top;
	bool json;
};

/* ---- folder ---- */

/*
 * The private folder in which the processes of a traced command write their records.
 *
 * The folder is in TMPDIR, and is removed with its files. A killed trace leaves its folder. A trace holds a lock on its
 * folder, so the next trace recognises folders without an owner, and removes them.
 */

struct ll_trace_folder {
	char path[PATH_MAX];
	int lock_fd; /* not inherited; -1 if the file system has no locks */
};

/* Removes the folders that killed traces of this user left, and makes a new one. */
int ll_trace_folder_make(struct ll_trace_folder *folder, struct ll_err *err);

void ll_trace_folder_remove(struct ll_trace_folder *folder);

/* ---- cupti ---- */

/* Finds libcupti on this machine. */

/*
 * Searches these places in this order, and takes the newest version of a place: LOADLINE_CUPTI (a file);
 * LD_LIBRARY_PATH; the toolkit at CUDA_HOME or CUDA_PATH; /usr/local/cuda and /usr/local/cuda-*; the pip packages of
 * the Python that runs the command (nvidia/cuda_cupti/lib, nvidia/cu13/lib); the loader's own folders. Under the
 * simulated driver only LOADLINE_CUPTI is. interpreter: the command's file, or its interpreter's, or NULL. -ENOENT: not
 * found. If LOADLINE_CUPTI names a file that does not exist, the other places are not searched.
 */
int ll_trace_find_cupti(const char *interpreter, char ret_path[PATH_MAX]);

/*
 * Returns why this file cannot be used, as a sentence without a full stop: another word size, an unknown version. NULL:
 * it may work. The file is loaded in a child process, because loading it has side effects.
 */
const char *ll_trace_cupti_fault(const char *path, char *text, int size);

/* ---- sample ---- */

/*
 * Samples in /proc what the host does while the command runs.
 *
 * A look reads the state of the threads of the command and all its descendants. If a thread is running or ready to run,
 * the host computes. If none is, and one is in state D, the host waits for I/O. Otherwise all threads are asleep. A
 * look costs some 5 us for each thread, and ends at the first running thread. Looks come every LL_SAMPLE_EVERY_NS, or
 * less often if they would take more than a fiftieth of one core.
 */

#define LL_SAMPLE_EVERY_NS (10 * LL_NS_PER_MS)

struct ll_sampler {
	pid_t root;
	pid_t *tree; /* the root and its descendants, as of listed_ns */
	size_t count, room;
	uint64_t listed_ns;
	uint64_t looked_ns; /* time of the last look; 0: none yet */
	uint64_t next_ns;   /* when the next look is due */
	struct ll_spans host, io;
};

void ll_sampler_fini(struct ll_sampler *sampler);

/* Whether the process lives and is not a zombie. */
bool ll_sampler_is_alive(pid_t pid);

/* ---- launch ---- */

/*
 * Starts the traced command, watches it and waits for its end.
 *
 * The command is a child in the caller's process group. Ctrl-C ends the command but not loadline, so that loadline can
 * print the summary. loadline passes other signals that ask a program to end on to the command.
 */

enum ll_trace_by { LL_TRACE_BY_AUTO, LL_TRACE_BY_CUPTI, LL_TRACE_BY_EVENTS };

struct ll_trace_how {
	enum ll_trace_by by;
	char folder[PATH_MAX];  /* folder of the records */
	char cupti[PATH_MAX];   /* libcupti's file; "": not found */
	char library[PATH_MAX]; /* libloadline-trace.so */
	char events[PATH_MAX];  /* libloadline-events.so; "": not preloaded */
	uint64_t most_events;
	bool is_preloaded; /* false: only the driver loads the library, and the library for events is not used */
};

/* Finds libloadline-trace.so: the file that LOADLINE_TRACE_LIBRARY names, or the one installed with loadline. -ENOENT,
 * -EINVAL. */
int ll_trace_find_library(char ret_path[PATH_MAX], struct ll_err *err);

/* Finds libloadline-events.so: the file that LOADLINE_EVENTS_LIBRARY names, or the one installed with loadline.
 * -ENOENT, -EINVAL. */
int ll_trace_find_events_library(char ret_path[PATH_MAX], struct ll_err *err);

/*
 * Runs path with these words, and calls the sampler until the command ends. *ret_status: the exit status as a shell
 * gives it, 128 and the signal's number for a killed command. An error means that the command was not started; err's
 * exit status is 126 or 127 if exec failed.
 */
int ll_trace_start_program(const struct ll_trace_how *how, const char *path, char **words, struct ll_sampler *sampler,
			   int *ret_status, struct ll_err *err);

/* ---- run ---- */

/*
 * Reads the records of all processes of a traced command into one timeline.
 *
 * A process may have written several files: CUPTI's records, waits at the gate, and others after an exec. Files with
 * the same process id are merged, and their events are sorted by start. Cards are matched by UUID across processes.
 */

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
	size_t count;
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
	struct ll_spans host, io;  /* the sampler's spans (trace/command/internal.h), sorted and merged */
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

/* ---- summary ---- */

/*
 * The summary of a trace: the kernels that took most time, the overlap of the processes, and for each card
 * the causes of its idle time (rules/share/spans.h).
 */

struct ll_trace_kernel_sum {
	const char *name;
	uint64_t calls, total_ns, least_ns, most_ns;
	unsigned processes;
	size_t last_process; /* the last process counted; used while counting */
};

struct ll_trace_process_sum {
	const struct ll_trace_process *process;
	uint64_t kernels, copies, memsets, gate_waits;
	uint64_t busy_ns; /* time in which work of the process made a card busy (ll_trace_is_busy) */
	uint64_t copy_ns, gate_ns;
	uint64_t to_card_bytes, from_card_bytes;
	uint64_t peak_bytes; /* peak of the card's memory that the process allocated while traced */
};

struct ll_trace_card_sum {
	const char *uuid;
	struct ll_idle_split split;
	unsigned processes;     /* number of processes whose work made the card busy */
	uint64_t overlap_ns;    /* time in which such work of two or more processes was under way */
	uint64_t kernel_sum_ns; /* sum of the durations of all kernels */
};

struct ll_trace_summary {
	struct ll_trace_kernel_sum *kernels; /* sorted by total time, longest first */
	size_t kernel_count;
	struct ll_trace_process_sum *processes;
	size_t process_count;
	struct ll_trace_card_sum *cards;
	size_t card_count;
	uint64_t events, dropped_limit, dropped_cupti, dropped_disk;
	int status; /* the command's exit status */
	size_t still_running;
};

int ll_trace_summary_make(const struct ll_trace_run *run, struct ll_trace_summary *ret_summary, struct ll_err *err);
void ll_trace_summary_fini(struct ll_trace_summary *summary);

/* Returns the idle cause with the largest part, such as "host compute". NULL: the card was never idle. */
const char *ll_trace_main_cause(const struct ll_idle_split *split);

/* The first adds tables for people, with the `top` longest kernels. The second prints JSON lines on standard output. */
void ll_trace_summary_add_text(struct ll_strbuf *text, const struct ll_trace_summary *summary, size_t top);
int ll_trace_summary_print_json(const struct ll_trace_summary *summary, size_t top, struct ll_err *err);

/* ---- write ---- */

/* Writes a trace in its two formats. The caller checks the stream's errors when it closes the stream. */

/*
 * Writes a row for each event of a process, sorted by start. The columns are those of `nvprof --print-gpu-trace --csv`,
 * with their units in their names. start_ns counts from the start of the command. A field that an event does not have
 * is empty.
 */
void ll_trace_write_csv(FILE *file, const struct ll_trace_run *run, const struct ll_trace_process *process);

/*
 * Writes the JSON that Perfetto and chrome://tracing load. A process of the command is a process there. Each of its
 * streams is a thread, and so are the waits of each of its threads at the gate. A counter shows the device memory that
 * the process holds.
 */
void ll_trace_write_chrome(FILE *file, const struct ll_trace_run *run);

/* ---- outputs ---- */

/*
 * The files of `loadline trace -o`: a .csv for each process, and a .json for all processes.
 *
 * In a name, %p is the process id, and %% a percent sign. If several processes wrote records, a .csv name without %p
 * gets the process id before its suffix. The suffix decides the format. Other suffixes are refused.
 */

/* Checks the names before the command runs. list: names with commas between, or NULL. -EINVAL: a name cannot be used.
 * Other -errno: a folder cannot be written. */
int ll_trace_outputs_check(const char *list, struct ll_err *err);

int ll_trace_outputs_write(const char *list, const struct ll_trace_run *run, struct ll_err *err);

/* Makes the name for one process. is_alone: it is the only process. */
void ll_trace_outputs_name(const char *pattern, pid_t pid, bool is_alone, struct ll_strbuf *ret_path);

/* ---- card ---- */

/*
 * `loadline trace -i CARDS` without a command: shows NVML's readings of cards whose programs were not started
 * under trace. No tool can record the kernels of a running program. So the output lists the processes, and says what is
 * missing.
 */

/* Looks at the cards for for_ns, 0 for 10 s, or until SIGINT. Then it prints the result. */
int ll_trace_watch_cards(const char *names, uint64_t for_ns, bool is_json, struct ll_err *err);

#endif
