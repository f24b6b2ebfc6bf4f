#include "probe/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"

/* ---- spread ---- */

void ll_samples_add(struct ll_samples *samples, double value)
{
	if (samples->count == samples->capacity) {
		size_t capacity = samples->capacity ? 2 * samples->capacity : 64;
		double *values = realloc(samples->values, capacity * sizeof *values);
		if (!values) {
			samples->failed = true;
			return;
		}
		samples->values = values;
		samples->capacity = capacity;
	}
	samples->values[samples->count++] = value;
}

static int compare_values(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double percentile_of(const struct ll_samples *samples, double share)
{
	double at = share * (double)(samples->count - 1);
	size_t below = (size_t)at;
	if (below + 1 >= samples->count)
		return samples->values[samples->count - 1];
	double part = at - (double)below;
	return samples->values[below] * (1 - part) + samples->values[below + 1] * part;
}

struct ll_spread ll_spread_of(struct ll_samples *samples)
{
	struct ll_spread spread = {.count = samples->count};
	if (!samples->count)
		return spread; /* and nothing to free */
	qsort(samples->values, samples->count, sizeof *samples->values, compare_values);
	spread.median = percentile_of(samples, 0.5);
	spread.low = percentile_of(samples, 0.05);
	spread.high = percentile_of(samples, 0.95);
	spread.min = samples->values[0];
	spread.max = samples->values[samples->count - 1];
	free(samples->values);
	*samples = (struct ll_samples){0};
	return spread;
}

/* ---- trace ---- */

#define AWAY_NS (LL_PROBE_AWAY_US * UINT64_C(1000))

/* Time in which a kernel of a party was on the card without interruption. Kernels that follow each other at once are
 * one span. */
struct span {
	uint64_t from_ns, to_ns;
	bool is_cut; /* it ended because blocks were interrupted, which went on later */
};

static int compare_spans(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

/* Sorts, and joins what touches or overlaps. Returns how many are left. */
static size_t join_spans(struct span *spans, size_t count, uint64_t touching_ns)
{
	size_t kept = 0;
	qsort(spans, count, sizeof *spans, compare_spans);
	for (size_t i = 1; i < count; i++) {
		struct span *last = &spans[kept];
		if (spans[i].from_ns > last->to_ns + touching_ns) {
			spans[++kept] = spans[i];
		} else if (spans[i].to_ns >= last->to_ns) {
			last->to_ns = spans[i].to_ns;
			last->is_cut = spans[i].is_cut;
		}
	}
	return count ? kept + 1 : 0;
}

static int read_blocks(const struct ll_probe_records *records, struct span *list, struct ll_probe_kernel *kernel,
		       struct ll_err *err)
{
	for (uint32_t i = 0; i < records->block_count; i++) {
		const struct ll_probe_block *block = &records->blocks[i];
		if (!block->is_done || block->end_ns < block->start_ns)
			return ll_err_set(err, -EIO, "a kernel's account: block %u of %u wrote %s", i,
					  records->block_count, block->is_done ? "an end before its start" : "nothing");
		list[i] = (struct span){.from_ns = block->start_ns, .to_ns = block->end_ns};
		kernel->start_ns = block->start_ns < kernel->start_ns ? block->start_ns : kernel->start_ns;
		kernel->end_ns = block->end_ns > kernel->end_ns ? block->end_ns : kernel->end_ns;
		uint32_t sm = block->sm % LL_PROBE_SMS;
		kernel->sm_count += !(kernel->sms[sm / 64] >> sm % 64 & 1);
		kernel->sms[sm / 64] |= UINT64_C(1) << sm % 64;
	}
	return 0;
}

/* The listed gaps of all rounds. Where more were met than are listed, all from the last listed one on is unknown. */
static int read_gaps(const struct ll_probe_records *records, struct span *list, struct ll_probe_kernel *kernel,
		     size_t *ret_count, struct ll_err *err)
{
	size_t count = 0;
	for (uint32_t t = 0; t < records->trace_count; t++) {
		const struct ll_probe_trace *trace = &records->traces[t];
		kernel->max_gap_ns = trace->max_gap_ns > kernel->max_gap_ns ? trace->max_gap_ns : kernel->max_gap_ns;
		if (!kernel->step_ns || trace->step_ns < kernel->step_ns)
			kernel->step_ns = trace->step_ns;
		for (uint32_t i = 0; i < trace->gap_count && i < LL_PROBE_GAPS; i++) {
			const struct ll_probe_gap *gap = &trace->gaps[i];
			uint64_t to_ns = gap->at_ns + gap->length_ns;
			if (gap->at_ns < kernel->start_ns || to_ns > kernel->end_ns || to_ns < gap->at_ns)
				return ll_err_set(err, -EIO, "a kernel's account: a gap outside of the kernel");
			list[count++] = (struct span){.from_ns = gap->at_ns, .to_ns = to_ns};
		}
		if (trace->gap_count > LL_PROBE_GAPS)
			list[count - 1].to_ns = kernel->end_ns;
	}
	*ret_count = count;
	return 0;
}

static void add_hole(struct ll_probe_kernel *kernel, uint64_t from_ns, uint64_t to_ns, bool is_cut)
{
	if (kernel->hole_count < LL_PROBE_GAPS)
		kernel->holes[kernel->hole_count] =
		    (struct ll_probe_hole){.at_ns = from_ns, .length_ns = to_ns - from_ns, .is_cut = is_cut};
	kernel->hole_count++;
}

/* Both lists in order. What lies between two runs of blocks, and what interrupted a run, each once. */
static void add_holes(struct ll_probe_kernel *kernel, const struct span *runs, size_t run_count,
		      const struct span *gaps, size_t gap_count)
{
	size_t gap = 0;
	for (size_t i = 0; i < run_count; i++) {
		for (; gap < gap_count && gaps[gap].from_ns < runs[i].to_ns; gap++)
			add_hole(kernel, gaps[gap].from_ns, gaps[gap].to_ns, true);
		uint64_t covered_ns = gap && gaps[gap - 1].to_ns > runs[i].to_ns ? gaps[gap - 1].to_ns : runs[i].to_ns;
		if (i + 1 < run_count && runs[i + 1].from_ns > covered_ns)
			add_hole(kernel, covered_ns, runs[i + 1].from_ns, false);
	}
}

int ll_probe_kernel_read(const struct ll_probe_records *records, uint32_t party, struct ll_probe_kernel *ret_kernel,
			 struct ll_err *err)
{
	struct ll_probe_kernel kernel = {.party = party, .blocks = records->block_count, .start_ns = UINT64_MAX};
	size_t gap_count = 0;
	LL_SCOPE_FREE struct span *runs = calloc(records->block_count + 1, sizeof *runs);
	LL_SCOPE_FREE struct span *gaps = calloc(records->trace_count * LL_PROBE_GAPS + 1, sizeof *gaps);
	if (!runs || !gaps)
		return ll_err_set(err, -ENOMEM, "a kernel's account: %s", strerror(ENOMEM));
	int rc = read_blocks(records, runs, &kernel, err);
	if (rc == 0)
		rc = read_gaps(records, gaps, &kernel, &gap_count, err);
	if (rc < 0)
		return rc;
	size_t run_count = join_spans(runs, records->block_count, AWAY_NS);
	gap_count = join_spans(gaps, gap_count, 0);
	add_holes(&kernel, runs, run_count, gaps, gap_count);
	*ret_kernel = kernel;
	return 0;
}

/* ---- timeline: who was on the card when ---- */

/* The spans of one party, in order. No two of them touch. */
struct lane {
	struct span *spans;
	size_t count;
};

struct timeline {
	struct lane lanes[LL_PROBE_PARTIES];
	size_t lane_count;
};

/* Kernels of a stream follow each other in 1.4 us (doc/facts.md); a switch between contexts takes 130. */
#define JOIN_NS UINT64_C(20000)

/* Adds a kernel's spans, which are the times between its holes. If there are more holes than are listed, nothing is
 * known after the last listed one. */
static void cut_kernel(const struct ll_probe_kernel *kernel, struct lane *lane)
{
	uint64_t from_ns = kernel->start_ns;
	for (uint32_t i = 0; i < ll_probe_listed(kernel); i++) {
		const struct ll_probe_hole *hole = &kernel->holes[i];
		lane->spans[lane->count++] =
		    (struct span){.from_ns = from_ns, .to_ns = hole->at_ns, .is_cut = hole->is_cut};
		from_ns = hole->at_ns + hole->length_ns;
	}
	if (kernel->hole_count <= LL_PROBE_GAPS && from_ns < kernel->end_ns)
		lane->spans[lane->count++] = (struct span){.from_ns = from_ns, .to_ns = kernel->end_ns};
}

static void fini_timeline(struct timeline *timeline)
{
	for (size_t i = 0; i < timeline->lane_count; i++)
		free(timeline->lanes[i].spans);
}

/* Kernels may be in any order. -EINVAL: a kernel's party is not below lane_count. -ENOMEM. */
static int make_timeline(const struct ll_probe_kernel *kernels, size_t count, size_t lane_count,
			 struct timeline *ret_timeline)
{
	struct timeline timeline = {.lane_count = lane_count};
	size_t room[LL_PROBE_PARTIES] = {0};
	for (size_t i = 0; i < count; i++) {
		if (kernels[i].party >= lane_count || lane_count > LL_PROBE_PARTIES)
			return -EINVAL;
		room[kernels[i].party] += LL_PROBE_GAPS + 1;
	}
	for (size_t i = 0; i < lane_count; i++) {
		timeline.lanes[i].spans = calloc(room[i] + 1, sizeof *timeline.lanes[i].spans);
		if (!timeline.lanes[i].spans) {
			fini_timeline(&timeline);
			return -ENOMEM;
		}
	}
	for (size_t i = 0; i < count; i++) {
		struct lane *lane = &timeline.lanes[kernels[i].party];
		if (lane->spans)
			cut_kernel(&kernels[i], lane);
	}
	for (size_t i = 0; i < lane_count; i++)
		timeline.lanes[i].count = join_spans(timeline.lanes[i].spans, timeline.lanes[i].count, JOIN_NS);
	*ret_timeline = timeline;
	return 0;
}

/* ---- all lanes in order ---- */

/* Steps through the spans of all lanes by their starts. */
struct walk {
	const struct timeline *timeline;
	size_t next[LL_PROBE_PARTIES];
};

static const struct span *walk_on(struct walk *walk, size_t *ret_lane)
{
	const struct span *first = NULL;
	for (size_t i = 0; i < walk->timeline->lane_count; i++) {
		const struct lane *lane = &walk->timeline->lanes[i];
		if (walk->next[i] == lane->count)
			continue;
		if (!first || lane->spans[walk->next[i]].from_ns < first->from_ns) {
			first = &lane->spans[walk->next[i]];
			*ret_lane = i;
		}
	}
	if (first)
		walk->next[*ret_lane]++;
	return first;
}

/* busy_ns: the time in which at least one party was on the card. idle_ns: the longest time between the first start and
 * the last end in which none was. If it is much longer than a switch, another program had the card, or the host was
 * slow to launch. */
struct cover {
	uint64_t from_ns, to_ns, busy_ns, idle_ns;
};

static struct cover cover_of(const struct timeline *timeline)
{
	struct walk walk = {.timeline = timeline};
	struct cover cover = {0};
	size_t lane;
	for (const struct span *span; (span = walk_on(&walk, &lane));) {
		if (!cover.busy_ns && !cover.to_ns) {
			cover.from_ns = cover.to_ns = span->from_ns;
		}
		if (span->to_ns <= cover.to_ns)
			continue;
		if (span->from_ns > cover.to_ns) {
			uint64_t idle_ns = span->from_ns - cover.to_ns;
			cover.idle_ns = idle_ns > cover.idle_ns ? idle_ns : cover.idle_ns;
			cover.to_ns = span->from_ns;
		}
		cover.busy_ns += span->to_ns - cover.to_ns;
		cover.to_ns = span->to_ns;
	}
	return cover;
}

/* A lane's time on the card before a moment. */
static uint64_t lane_ns(const struct lane *lane, uint64_t before_ns)
{
	uint64_t sum_ns = 0;
	for (size_t i = 0; i < lane->count && lane->spans[i].from_ns < before_ns; i++) {
		const struct span *span = &lane->spans[i];
		sum_ns += (span->to_ns < before_ns ? span->to_ns : before_ns) - span->from_ns;
	}
	return sum_ns;
}

/*
 * Returns how much of the time that could overlap did overlap, 0 to 1. That is the sum of all parties' times on the
 * card less the time in which any was on it, divided by the same sum less the longest party's time. For two parties it
 * is the part of the shorter one's time in which the other was there too. 0 for one party alone.
 */
static double overlap_of(const struct timeline *timeline, uint64_t busy_ns)
{
	uint64_t all_ns = 0, longest_ns = 0;
	for (size_t i = 0; i < timeline->lane_count; i++) {
		uint64_t own_ns = lane_ns(&timeline->lanes[i], UINT64_MAX);
		all_ns += own_ns;
		longest_ns = own_ns > longest_ns ? own_ns : longest_ns;
	}
	return all_ns == longest_ns ? 0 : (double)(all_ns - busy_ns) / (double)(all_ns - longest_ns);
}

/* Returns the first party's part, 0 to 1, of all parties' time on the card while all of them wanted it: from the first
 * start of any until the first has finished. */
static double first_share(const struct timeline *timeline)
{
	uint64_t first_end_ns = UINT64_MAX, all_ns = 0;
	for (size_t i = 0; i < timeline->lane_count; i++) {
		const struct lane *other = &timeline->lanes[i];
		if (other->count && other->spans[other->count - 1].to_ns < first_end_ns)
			first_end_ns = other->spans[other->count - 1].to_ns;
	}
	for (size_t i = 0; i < timeline->lane_count; i++)
		all_ns += lane_ns(&timeline->lanes[i], first_end_ns);
	return all_ns ? (double)lane_ns(&timeline->lanes[0], first_end_ns) / (double)all_ns : 0;
}

/* ---- turns ---- */

/* How parties take turns. It has no meaning for parties that overlap. */
struct turns {
	size_t cuts;      /* blocks interrupted while another party got the card */
	size_t handovers; /* from one party to another */
	struct ll_samples
	    slices_ns; /* lengths of spans between two switches, if the second switch cut the span short */
	struct ll_samples switches_ns; /* from the end of one party's span to the start of another's */
};

static void add_turns(struct turns *turns, const struct timeline *timeline)
{
	struct walk walk = {.timeline = timeline};
	size_t lane, last_lane = 0;
	const struct span *last = NULL;
	bool is_after_switch = false; /* the last span began with one */
	for (const struct span *span; (span = walk_on(&walk, &lane)); last = span, last_lane = lane) {
		if (!last)
			continue;
		bool is_switch = lane != last_lane;
		if (is_switch) {
			turns->handovers++;
			turns->cuts += last->is_cut;
			ll_samples_add(&turns->switches_ns,
				       span->from_ns > last->to_ns ? (double)(span->from_ns - last->to_ns) : 0);
			if (last->is_cut && is_after_switch)
				ll_samples_add(&turns->slices_ns, (double)(last->to_ns - last->from_ns));
		}
		is_after_switch = is_switch;
	}
}

/* ---- verdict ---- */

const char *ll_probe_word_text(enum ll_probe_word word)
{
	static const char *const words[LL_PROBE_WORDS] = {"serialised", "time-sliced", "concurrent", "refused"};
	return words[word];
}

int ll_verdict_make(const struct ll_probe_kernel *kernels, size_t count, size_t parties, struct ll_verdict *ret_verdict)
{
	struct timeline timeline;
	struct turns turns = {0};
	int rc = make_timeline(kernels, count, parties, &timeline);
	if (rc < 0)
		return rc;
	add_turns(&turns, &timeline);
	struct cover cover = cover_of(&timeline);
	bool failed = turns.slices_ns.failed || turns.switches_ns.failed;
	struct ll_verdict verdict = {
	    .overlap = overlap_of(&timeline, cover.busy_ns),
	    .window_ns = cover.to_ns - cover.from_ns,
	    .busy_ns = cover.busy_ns,
	    .idle_ns = cover.idle_ns,
	    .share = parties ? first_share(&timeline) : 0,
	    .cuts = turns.cuts,
	    .handovers = turns.handovers,
	    .slice_ns = ll_spread_of(&turns.slices_ns),
	    .switch_ns = ll_spread_of(&turns.switches_ns),
	};
	bool is_switching = verdict.switch_ns.count && verdict.switch_ns.median >= LL_PROBE_SWITCH_NS;
	verdict.word = verdict.overlap >= LL_PROBE_CONCURRENT ? LL_PROBE_CONCURRENT_WORD
		       : verdict.cuts || is_switching         ? LL_PROBE_TIME_SLICED
							      : LL_PROBE_SERIALISED;
	fini_timeline(&timeline);
	if (failed)
		return -ENOMEM;
	*ret_verdict = verdict;
	return 0;
}

enum ll_probe_word ll_verdicts_word(const struct ll_verdict *verdicts, size_t count, size_t *ret_agreeing)
{
	size_t votes[LL_PROBE_WORDS] = {0};
	enum ll_probe_word best = LL_PROBE_SERIALISED;
	for (size_t i = 0; i < count; i++)
		votes[verdicts[i].word]++;
	for (int word = 0; word < LL_PROBE_WORDS; word++) {
		if (votes[word] > votes[best])
			best = (enum ll_probe_word)word;
	}
	*ret_agreeing = votes[best];
	return best;
}
