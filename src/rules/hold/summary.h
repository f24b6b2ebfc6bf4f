/*
 * summary.h - the summary that `hold` gives at its end, kept up to date in constant memory.
 *
 * Judged samples: a sample is judged if the card was held for its whole window, if the window does not lie within
 * guard_ns after the first kernel or after a yield, and if the target made no sudden step of more than step_limit in
 * it. Its error is its value minus the mean target of its window (ll_curve_find_window). So yielded time never counts.
 *
 * Inside: a judged sample is inside the band if the mean error of it and of the judged samples before it is, `average`
 * samples in all, of the same time of holding. With an average of 1 each sample counts by itself.
 *
 * Settled: the level has settled at the first sample from which on every judged sample of the next 60 s, or of the rest
 * of a shorter run, is inside the band. During these 60 s a sample outside the band moves it to the next sample inside;
 * after them it is final. settle_seconds is the time from the first kernel to the end of that sample's window.
 *
 * Mean and largest error are given over the judged samples since the level settled, and over all judged samples. If the
 * level never settled, the first are the same as the second, so that a failure shows as a large error.
 *
 * Values are in the metric's unit: ratio or watts. Times are ns of one clock. The struct has no pointers and is in the
 * caller's memory.
 */
#ifndef LOADLINE_RULES_HOLD_SUMMARY_H
#define LOADLINE_RULES_HOLD_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

enum { LL_SUMMARY_AVERAGE_MOST = 5 };

struct ll_summary_config {
	double band;       /* 0.01 for the ratios; watts for power */
	unsigned average;  /* at most LL_SUMMARY_AVERAGE_MOST; 0 is taken as 1 */
	double step_limit; /* 0.01 for the ratios */
	uint64_t guard_ns; /* how long a reading still shows the past: 0 for util and GPM, some seconds for power */
};

struct ll_summary_sample {
	uint64_t start_ns; /* the window */
	uint64_t end_ns;
	double value;
	double target;       /* mean over the window */
	double largest_step; /* the target's largest sudden change in the window and guard_ns before it */
};

struct ll_summary_errors {
	uint64_t count;
	double value_sum;
	double error_sum;
	double max_abs_error;
};

struct ll_summary {
	struct ll_summary_config config;
	uint64_t first_kernel_ns;  /* 0: none yet */
	uint64_t held_since_ns;    /* 0: not holding */
	uint64_t yielded_since_ns; /* 0: not yielded */
	uint64_t yielded_ns;
	uint64_t yield_count;
	uint64_t busy_ns;
	double energy_joules;
	double synthetic_joules;
	bool has_settled;
	bool is_settle_final;
	uint64_t settle_ns;
	double recent_errors[LL_SUMMARY_AVERAGE_MOST]; /* a ring */
	uint32_t recent_count;                         /* so far in this time of holding */
	uint64_t inside_count;                         /* samples inside since the last one outside */
	uint64_t inside_since_ns;                      /* end of the first of them */
	struct ll_summary_errors settled;              /* since settle_ns */
	struct ll_summary_errors all;
};

struct ll_summary_level {
	uint64_t sample_count; /* 0: the other values are NAN */
	double mean_value;
	double mean_error; /* signed: value minus target */
	double max_abs_error;
};

struct ll_summary_result {
	double seconds;                 /* from the first kernel to the end; 0: no kernel ran */
	struct ll_summary_level level;  /* since the level settled; if it never did, the same as of_all */
	struct ll_summary_level of_all; /* of all judged samples */
	bool has_settled;
	double settle_seconds; /* NAN: never */
	uint64_t inside_count; /* judged samples inside since the last one outside, also after settling is final */
	double inside_seconds; /* from the first kernel to the first of them; valid if there is one */
	double recent_error;   /* the mean error by which the newest judged sample is inside or outside; 0: none */
	uint64_t yield_count;
	double yielded_seconds; /* also before the first kernel, so it may be over seconds */
	double synthetic_busy_seconds;
	double energy_joules;    /* of the card, the whole run */
	double synthetic_joules; /* the part charged to the load */
};

void ll_summary_init(struct ll_summary *summary, const struct ll_summary_config *config);

/* Says that kernels run from now_ns on: the first kernel, or the end of a yield. Does nothing while they run already.
 */
void ll_summary_hold(struct ll_summary *summary, uint64_t now_ns);

/* Says that kernels stopped at now_ns. is_yield: for foreign work, so yield_count grows; the time after any stop counts
 * as yielded. Does nothing if kernels do not run. */
void ll_summary_stop(struct ll_summary *summary, uint64_t now_ns, bool is_yield);

/* Says that foreign work has kept kernels from running since since_ns, before the first one. Counts a yield, and the
 * time up to the first kernel as yielded. */
void ll_summary_keep(struct ll_summary *summary, uint64_t since_ns);

/* Adds one reading, in order of time. True: it was judged. */
bool ll_summary_add(struct ll_summary *summary, const struct ll_summary_sample *sample);

/* Adds time in which own kernels ran. */
void ll_summary_add_busy(struct ll_summary *summary, uint64_t busy_ns);

/* Adds energy that the card used. is_synthetic: it was used while holding, so it is charged to the load. */
void ll_summary_add_energy(struct ll_summary *summary, double joules, bool is_synthetic);

/* Gives the summary as of now_ns. The run may go on. */
void ll_summary_compute(const struct ll_summary *summary, uint64_t now_ns, struct ll_summary_result *ret_result);

#endif
