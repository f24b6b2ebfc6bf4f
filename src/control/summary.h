/*
 * summary.h - the account that `hold` gives at its end, kept online in constant memory.
 *
 * Settled: settling is the first sample from which on every judged sample of the next 60 s (or of the
 * rest of the run, if it is shorter) stays within the band. While those 60 s last, a sample outside moves it on to the
 * next sample inside; after them it stands. settle_seconds runs from the first kernel to that sample's end. A run of up
 * to a minute thus has exactly "the first sample after which all stay inside".
 *
 * Mean and largest error are over the judged samples from settling on, and over all judged samples; when the card never
 * settled, the former are the latter, so that a failure shows as a large error and not as an empty one.
 *
 * Judged is a sample whose window lies wholly in holding (not in a yield, nor within guard_ns after one or after the
 * first kernel) and whose target made no sudden step of more than step_limit in it. Its error is its value minus
 * the mean target of its own window (ll_curve_window). Yielded time thus never counts.
 *
 * Values are in the metric's unit: ratio or watts. Times are one clock's ns. Caller's memory, no pointers.
 */
#ifndef LOADLINE_CONTROL_SUMMARY_H
#define LOADLINE_CONTROL_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

struct ll_summary_config {
	double band;       /* 0.01 for the ratios; watts for power */
	double step_limit; /* 0.01 for the ratios */
	uint64_t guard_ns; /* what a reading still shows of the past: 0 for util and GPM, some seconds for power */
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
	struct ll_summary_errors settled; /* since settle_ns */
	struct ll_summary_errors all;
};

struct ll_summary_level {
	uint64_t sample_count; /* that the others are over; 0: those are NAN */
	double mean_value;
	double mean_error; /* signed: value minus target */
	double max_abs_error;
};

struct ll_summary_result {
	double seconds;                 /* from the first kernel to the end; 0 when none ran */
	struct ll_summary_level level;  /* since it settled; of all samples when it never did */
	struct ll_summary_level of_all; /* judged samples, also those before it settled */
	bool has_settled;
	double settle_seconds; /* NAN when never */
	uint64_t yield_count;
	double yielded_seconds;
	double synthetic_busy_seconds;
	double energy_joules;    /* of the card, the whole run */
	double synthetic_joules; /* the part charged to the load */
};

void ll_summary_init(struct ll_summary *summary, const struct ll_summary_config *config);

/* Kernels run from now_ns on: the first kernel, or the end of a yield. Calling it again while holding changes nothing.
 */
void ll_summary_hold(struct ll_summary *summary, uint64_t now_ns);

/* Kernels stopped at now_ns. is_yield: for foreign work, so it counts as a yield (heat and errors do not, their time
 * does count as yielded). Nothing when not holding. */
void ll_summary_stop(struct ll_summary *summary, uint64_t now_ns, bool is_yield);

/* One complete reading, in order of time. Returns whether it was judged. */
bool ll_summary_add(struct ll_summary *summary, const struct ll_summary_sample *sample);

/* Own kernels ran for this long more. */
void ll_summary_add_busy(struct ll_summary *summary, uint64_t busy_ns);

/* The card used this much more; is_synthetic: while holding, so it is charged to the load. */
void ll_summary_add_energy(struct ll_summary *summary, double joules, bool is_synthetic);

/* The account as of now_ns; the run may go on. */
void ll_summary_result(const struct ll_summary *summary, uint64_t now_ns, struct ll_summary_result *ret_result);

#endif
