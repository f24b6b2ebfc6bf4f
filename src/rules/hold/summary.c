#include "rules/hold/summary.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"

/* How long every sample must stay in the band before settling is final. */
#define SETTLE_NS (60 * LL_NS_PER_S)
/* Ratios come from whole percents. A sample one point off must be inside a band of one point in spite of rounding. */
#define SLACK 1e-9

void ll_summary_init(struct ll_summary *summary, const struct ll_summary_config *config)
{
	memset(summary, 0, sizeof *summary);
	summary->config = *config;
	if (summary->config.average < 1)
		summary->config.average = 1;
}

void ll_summary_hold(struct ll_summary *summary, uint64_t now_ns)
{
	if (summary->held_since_ns != 0)
		return;
	if (summary->first_kernel_ns == 0)
		summary->first_kernel_ns = now_ns;
	if (summary->yielded_since_ns != 0)
		summary->yielded_ns += now_ns - summary->yielded_since_ns;
	summary->yielded_since_ns = 0;
	summary->held_since_ns = now_ns;
}

void ll_summary_stop(struct ll_summary *summary, uint64_t now_ns, bool is_yield)
{
	if (summary->held_since_ns == 0)
		return;
	summary->held_since_ns = 0;
	summary->yielded_since_ns = now_ns;
	summary->yield_count += is_yield;
	summary->recent_count = 0;
}

void ll_summary_keep(struct ll_summary *summary, uint64_t since_ns)
{
	if (summary->first_kernel_ns != 0)
		return;
	if (summary->yielded_since_ns == 0)
		summary->yielded_since_ns = since_ns;
	summary->yield_count++;
}

static void count_error(struct ll_summary_errors *errors, double value, double error)
{
	errors->count++;
	errors->value_sum += value;
	errors->error_sum += error;
	errors->max_abs_error = fmax(errors->max_abs_error, fabs(error));
}

static bool is_judged(const struct ll_summary *summary, const struct ll_summary_sample *sample)
{
	return summary->held_since_ns != 0 && sample->end_ns > sample->start_ns && !isnan(sample->value) &&
	       sample->start_ns >= summary->held_since_ns + summary->config.guard_ns &&
	       sample->largest_step <= summary->config.step_limit + SLACK;
}

static double recent_error(const struct ll_summary *summary)
{
	uint32_t count =
	    summary->recent_count < summary->config.average ? summary->recent_count : summary->config.average;
	double sum = 0.0;
	for (uint32_t i = 1; i <= count; i++)
		sum += summary->recent_errors[(summary->recent_count - i) % LL_SUMMARY_AVERAGE_MOST];
	return count ? sum / count : 0.0;
}

/* Whether this sample is inside the band. */
static bool place_sample(struct ll_summary *summary, uint64_t end_ns, double error)
{
	summary->recent_errors[summary->recent_count++ % LL_SUMMARY_AVERAGE_MOST] = error;
	bool is_inside = fabs(recent_error(summary)) <= summary->config.band + SLACK;
	if (is_inside && summary->inside_count == 0)
		summary->inside_since_ns = end_ns;
	summary->inside_count = is_inside ? summary->inside_count + 1 : 0;
	return is_inside;
}

bool ll_summary_add(struct ll_summary *summary, const struct ll_summary_sample *sample)
{
	if (!is_judged(summary, sample))
		return false;
	double error = sample->value - sample->target;
	bool is_inside = place_sample(summary, sample->end_ns, error);
	count_error(&summary->all, sample->value, error);
	if (summary->has_settled && sample->end_ns - summary->settle_ns >= SETTLE_NS)
		summary->is_settle_final = true;
	if (!is_inside && !summary->is_settle_final) {
		summary->has_settled = false;
		return true;
	}
	if (!summary->has_settled) {
		summary->has_settled = true;
		summary->settle_ns = sample->end_ns;
		memset(&summary->settled, 0, sizeof summary->settled);
	}
	count_error(&summary->settled, sample->value, error);
	return true;
}

void ll_summary_add_busy(struct ll_summary *summary, uint64_t busy_ns)
{
	summary->busy_ns += busy_ns;
}

void ll_summary_add_energy(struct ll_summary *summary, double joules, bool is_synthetic)
{
	summary->energy_joules += joules;
	if (is_synthetic)
		summary->synthetic_joules += joules;
}

static double seconds_between(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? (double)(to_ns - from_ns) / (double)LL_NS_PER_S : 0.0;
}

static struct ll_summary_level level_of(const struct ll_summary_errors *errors)
{
	double count = (double)errors->count;
	bool is_empty = errors->count == 0;
	return (struct ll_summary_level){
	    .sample_count = errors->count,
	    .mean_value = is_empty ? NAN : errors->value_sum / count,
	    .mean_error = is_empty ? NAN : errors->error_sum / count,
	    .max_abs_error = is_empty ? NAN : errors->max_abs_error,
	};
}

void ll_summary_compute(const struct ll_summary *summary, uint64_t now_ns, struct ll_summary_result *ret_result)
{
	double yielded_seconds = seconds_between(0, summary->yielded_ns);
	if (summary->yielded_since_ns != 0)
		yielded_seconds += seconds_between(summary->yielded_since_ns, now_ns);
	*ret_result = (struct ll_summary_result){
	    .seconds = summary->first_kernel_ns ? seconds_between(summary->first_kernel_ns, now_ns) : 0.0,
	    .level = level_of(summary->has_settled ? &summary->settled : &summary->all),
	    .of_all = level_of(&summary->all),
	    .has_settled = summary->has_settled,
	    .settle_seconds =
		summary->has_settled ? seconds_between(summary->first_kernel_ns, summary->settle_ns) : NAN,
	    .inside_count = summary->inside_count,
	    .inside_seconds = seconds_between(summary->first_kernel_ns, summary->inside_since_ns),
	    .recent_error = recent_error(summary),
	    .yield_count = summary->yield_count,
	    .yielded_seconds = yielded_seconds,
	    .synthetic_busy_seconds = seconds_between(0, summary->busy_ns),
	    .energy_joules = summary->energy_joules,
	    .synthetic_joules = summary->synthetic_joules,
	};
}
