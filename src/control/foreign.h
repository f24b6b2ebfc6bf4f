/*
 * foreign.h - total minus own: how much of a card's utilisation is somebody else's.
 *
 * NVML says for each 200 ms window in what share of it any kernel ran, in whole percent. The own kernels' records say
 * exactly when ours ran. The difference is foreign work, known within the rounding (1 point) and within what ours
 * varies when the window is moved by as much as its place is uncertain. It is called foreign only beyond all that, so
 * the load never mistakes itself for a stranger. Work that ran at the same time as ours (MPS) hides behind it: the
 * difference is a lower bound.
 *
 * Own intervals are summed in 5 ms bins over the last 20 s: enough to know the share of a 200 ms window to half a
 * point, with no bias. Caller's memory (16 KiB), no pointers. Times are ns of one clock: the caller converts the
 * card's.
 */
#ifndef LOADLINE_CONTROL_FOREIGN_H
#define LOADLINE_CONTROL_FOREIGN_H

#include <stdbool.h>
#include <stdint.h>

#define LL_FOREIGN_BIN_NS UINT64_C(5000000)

enum { LL_FOREIGN_BINS = 4000 };

struct ll_foreign_config {
	double threshold_ratio; /* while own work is in the window; 0: the default, 0.04 */
	uint64_t placement_ns;  /* a window may lie this much earlier or later than told; 0: the default, 10 ms */
};

struct ll_foreign {
	double threshold_ratio;
	uint64_t placement_ns;
	uint64_t known_until_ns;           /* own work is fully told up to here */
	uint64_t first_bin;                /* number of the oldest bin kept; bin n begins at n * LL_FOREIGN_BIN_NS */
	uint64_t next_bin;                 /* one past the newest bin kept */
	uint32_t busy_ns[LL_FOREIGN_BINS]; /* own work, or UINT32_MAX: unknown */
};

enum ll_foreign_state {
	LL_FOREIGN_QUIET,
	LL_FOREIGN_SEEN,
	LL_FOREIGN_UNKNOWN, /* own work in the window is not, or no longer, known, or it is too short: judge nothing */
};

struct ll_foreign_verdict {
	enum ll_foreign_state state;
	double own_ratio;         /* share of the window in which own kernels ran; NAN when unknown */
	double foreign_ratio;     /* best estimate, 0..1; NAN when unknown */
	double uncertainty_ratio; /* the estimate may be off by this much either way */
	bool is_own_idle; /* no own work in the window nor within placement of it: any reading over 0 is foreign */
};

/* config may be NULL for the defaults. Nothing is known about the time before start_ns. */
void ll_foreign_init(struct ll_foreign *foreign, const struct ll_foreign_config *config, uint64_t start_ns);

/* One own kernel ran from start_ns to end_ns. In any order, but at most 20 s old; parts older than that are dropped. */
void ll_foreign_add_own(struct ll_foreign *foreign, uint64_t start_ns, uint64_t end_ns);

/* Own work of unknown size may have run (a context was opened or closed): windows that touch it are not judged. */
void ll_foreign_add_unknown(struct ll_foreign *foreign, uint64_t start_ns, uint64_t end_ns);

/* All own work up to until_ns has been told (idle counts as told). Never goes backwards. */
void ll_foreign_own_known_until(struct ll_foreign *foreign, uint64_t until_ns);

/*
 * Judges NVML's reading for the complete window start_ns..end_ns. Own work must be known up to end_ns, else the state
 * is LL_FOREIGN_UNKNOWN (try again when it is); known for placement_ns more, the judgement is safest.
 */
void ll_foreign_judge(const struct ll_foreign *foreign, uint64_t start_ns, uint64_t end_ns, unsigned total_percent,
		      struct ll_foreign_verdict *ret_verdict);

/* The own busy share of a window, NAN when it is not fully known; also what util_trim.h wants. */
double ll_foreign_own_ratio(const struct ll_foreign *foreign, uint64_t start_ns, uint64_t end_ns);

#endif
