/*
 * foreign.h - work of other programs, as our kernels, NVML's utilisation and the list of processes show it.
 */
#ifndef LOADLINE_RULES_HOLD_FOREIGN_H
#define LOADLINE_RULES_HOLD_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rules/share/clock_fit.h"

/* ---- contention ---- */

/*
 * Whether another program had the card while our kernel wanted it.
 *
 * Two signs, both on the card's clock. A gap inside a running kernel: the card ran another context in between. A late
 * start: the card ran another context when our kernel was due. The host cannot cause a gap, but it can cause lateness.
 * So lateness counts from the return of the launch call, because the driver has the kernel by then.
 *
 * Pure arithmetic. Times are ns.
 */
struct ll_contention_limits {
	uint64_t gap_ns;
	uint64_t late_ns;
	uint64_t first_late_ns; /* instead of late_ns, for the first kernel after a pause */
};

/* One finished kernel: host times around its launch, card times from its record. */
struct ll_kernel_trace {
	uint64_t submit_ns;    /* host's clock, before the launch call */
	uint64_t submitted_ns; /* host's clock, after it */
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t gap_ns;
	uint64_t previous_end_ns; /* card's clock: end of the kernel queued before it; 0: none */
	bool is_first;            /* after a pause: another context may have used the card last */
};

struct ll_contention {
	uint64_t late_ns; /* how late the kernel started, without the host's delay */
	uint64_t gap_ns;
	bool is_foreign;
};

/* Judges one kernel. Without a fit only gaps count. */
struct ll_contention ll_contention_judge(const struct ll_kernel_trace *trace, const struct ll_clock_fit *fit,
					 const struct ll_contention_limits *limits);

/* ---- foreign ---- */

/*
 * How much of a card's utilisation belongs to other programs: the total minus our own.
 *
 * For each window of 200 ms NVML says in what share of it any kernel ran, in whole percent. The records of our kernels
 * say exactly when ours ran. The difference is foreign work. It has two errors: the rounding (1 point), and how much
 * our own share changes if the window lies a little earlier or later. Only a difference over both counts as foreign, so
 * the load never takes itself for foreign work. Work that ran at the same time as ours (MPS) does not show, so the
 * difference is a lower bound.
 *
 * Own intervals are summed in bins of 5 ms over the last 20 s. That gives the share of a window of 200 ms to half a
 * point, without bias. The struct is 16 KiB without pointers, in the caller's memory. Times are ns of one clock; the
 * caller converts the card's.
 */
#define LL_FOREIGN_BIN_NS UINT64_C(5000000)

enum { LL_FOREIGN_BINS = 4000 };

struct ll_foreign {
	uint64_t known_until_ns;           /* all own work up to here was added */
	uint64_t first_bin;                /* number of the oldest bin kept; bin n begins at n * LL_FOREIGN_BIN_NS */
	uint64_t next_bin;                 /* one past the newest bin kept */
	uint32_t busy_ns[LL_FOREIGN_BINS]; /* own work, or UINT32_MAX: unknown */
};

enum ll_foreign_state {
	LL_FOREIGN_QUIET,
	LL_FOREIGN_SEEN,
	LL_FOREIGN_UNKNOWN, /* own work in the window is not known (any more), or the window is too short */
};

struct ll_foreign_verdict {
	enum ll_foreign_state state;
	double own_ratio;         /* share of the window in which own kernels ran; NAN when unknown */
	double foreign_ratio;     /* best estimate, 0..1; NAN when unknown */
	double uncertainty_ratio; /* the estimate may be wrong by this much in both directions */
	bool is_own_idle;         /* no own work in or near the window, so any reading over 0 is foreign */
};

/* Windows that begin before start_ns are not judged. */
void ll_foreign_init(struct ll_foreign *foreign, uint64_t start_ns);

/* Adds one own kernel, from start_ns to end_ns, in any order. Parts older than 20 s are dropped. */
void ll_foreign_add_own(struct ll_foreign *foreign, uint64_t start_ns, uint64_t end_ns);

/* Says that an unknown amount of own work may have run, because a context was opened or closed. Windows that touch this
 * time are not judged. */
void ll_foreign_add_unknown(struct ll_foreign *foreign, uint64_t start_ns, uint64_t end_ns);

/* Says that all own work up to until_ns was added. Never goes backwards. */
void ll_foreign_own_known_until(struct ll_foreign *foreign, uint64_t until_ns);

/*
 * Judges NVML's reading for the window start_ns..end_ns. Own work must be known up to end_ns; otherwise the state is
 * LL_FOREIGN_UNKNOWN, and the caller tries again later. The result is best if own work is known for 10 ms more.
 */
void ll_foreign_judge(const struct ll_foreign *foreign, uint64_t start_ns, uint64_t end_ns, unsigned total_percent,
		      struct ll_foreign_verdict *ret_verdict);

/* Returns the share of a window in which own kernels ran; NAN: it is not fully known. The util trim needs it too. */
double ll_foreign_own_ratio(const struct ll_foreign *foreign, uint64_t start_ns, uint64_t end_ns);

/* ---- process watch ---- */

/*
 * New processes on a card, found in its process list and its used memory.
 *
 * A process that has a context and does not work is not foreign work; holding beside it costs it nothing
 * (doc/facts.md). But a process that arrives is about to work. Making a context or taking memory is reported once, as
 * an arrival, and the policy counts it as foreign work (hold_policy.h): in yield mode the load stops, and goes on after
 * --resume-after if nothing else is seen. Processes on the first list are not arrivals; other sensors see whether they
 * work.
 *
 * In a PID namespace the driver leaves processes outside of it off the list, so a missing one proves nothing. The used
 * memory is seen everywhere.
 *
 * The struct has no pointers and is in the caller's memory.
 */
enum { LL_PROCESS_WATCH_MAX = 128 }; /* processes remembered by pid; further ones are only counted */

struct ll_card_process {
	uint32_t pid;
	uint64_t memory_bytes; /* 0: unknown */
};

struct ll_process_watch {
	uint32_t own_pid;
	uint64_t step_bytes;
	size_t count;
	size_t unlisted_count;
	struct ll_card_process known[LL_PROCESS_WATCH_MAX];
	bool has_list;
	bool has_memory;
	uint64_t foreign_bytes;
};

enum ll_arrival_kind {
	LL_ARRIVAL_NONE,
	LL_ARRIVAL_PROCESS, /* a process that was not on the list */
	LL_ARRIVAL_GROWTH,  /* a known process took more than step_bytes at once */
	LL_ARRIVAL_MEMORY,  /* the memory of all others grew by more than step_bytes at once */
};

struct ll_arrival {
	enum ll_arrival_kind kind;
	uint32_t pid;   /* 0: unknown */
	uint64_t bytes; /* by which memory grew; 0: unknown */
};

/* own_pid is never reported. An MPS server of our own is not either if it is on the first list. step_bytes 0: the
 * default, 8 MiB. */
void ll_process_watch_init(struct ll_process_watch *watch, uint32_t own_pid, uint64_t step_bytes);

/* Changes the own process, because each context may have a new one. */
void ll_process_watch_own(struct ll_process_watch *watch, uint32_t own_pid);

/*
 * Takes a new list of the card's processes. True: there is an arrival, in *ret_arrival. The first list is the baseline
 * and reports nothing. A pid may be listed twice (compute and graphics); the larger memory counts. Of several arrivals
 * one is reported, a new process before growth.
 */
bool ll_process_watch_list(struct ll_process_watch *watch, const struct ll_card_process *processes, size_t count,
			   struct ll_arrival *ret_arrival);

/*
 * Takes a new reading of the card's used memory. own_bytes of it are ours. True: there is an arrival, in *ret_arrival.
 * is_own_steady false, while our context is being made or closed, makes this reading a new baseline.
 */
bool ll_process_watch_memory(struct ll_process_watch *watch, uint64_t used_bytes, uint64_t own_bytes,
			     bool is_own_steady, struct ll_arrival *ret_arrival);

/* Makes the next list and the next reading baselines: after suspend, a lost card or a pause. */
void ll_process_watch_reset(struct ll_process_watch *watch);

#endif
