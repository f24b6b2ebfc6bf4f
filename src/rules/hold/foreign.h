/*
 * foreign.h - how much of a card's utilisation belongs to other programs: the total minus our own.
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
#ifndef LOADLINE_RULES_HOLD_FOREIGN_H
#define LOADLINE_RULES_HOLD_FOREIGN_H

#include <stdbool.h>
#include <stdint.h>

#define LL_FOREIGN_BIN_NS UINT64_C(5000000)

enum { LL_FOREIGN_BINS = 4000 };

struct ll_foreign_config {
	double threshold_ratio; /* while own work is in the window; 0: the default, 0.04 */
	uint64_t placement_ns;  /* a window may lie this much earlier or later than NVML says; 0: the default, 10 ms */
};

struct ll_foreign {
	double threshold_ratio;
	uint64_t placement_ns;
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

/* config NULL: the defaults. Windows that begin before start_ns are not judged. */
void ll_foreign_init(struct ll_foreign *foreign, const struct ll_foreign_config *config, uint64_t start_ns);

/* Adds one own kernel, from start_ns to end_ns, in any order. Parts older than 20 s are dropped. */
void ll_foreign_add_own(struct ll_foreign *foreign, uint64_t start_ns, uint64_t end_ns);

/* Says that an unknown amount of own work may have run, because a context was opened or closed. Windows that touch this
 * time are not judged. */
void ll_foreign_add_unknown(struct ll_foreign *foreign, uint64_t start_ns, uint64_t end_ns);

/* Says that all own work up to until_ns was added. Never goes backwards. */
void ll_foreign_own_known_until(struct ll_foreign *foreign, uint64_t until_ns);

/*
 * Judges NVML's reading for the window start_ns..end_ns. Own work must be known up to end_ns; otherwise the state is
 * LL_FOREIGN_UNKNOWN, and the caller tries again later. The result is best if own work is known for placement_ns more.
 */
void ll_foreign_judge(const struct ll_foreign *foreign, uint64_t start_ns, uint64_t end_ns, unsigned total_percent,
		      struct ll_foreign_verdict *ret_verdict);

/* Returns the share of a window in which own kernels ran; NAN: it is not fully known. util_trim.h needs it too. */
double ll_foreign_own_ratio(const struct ll_foreign *foreign, uint64_t start_ns, uint64_t end_ns);

#endif
