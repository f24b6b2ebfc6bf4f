#include "probe/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"

#define AWAY_NS (LL_PROBE_AWAY_US * UINT64_C(1000))

struct interval {
	uint64_t from_ns, to_ns;
};

static int compare_intervals(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;
	return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

/* Sorts, and joins what touches or overlaps. Returns how many are left. */
static size_t join_intervals(struct interval *list, size_t count, uint64_t touching_ns)
{
	size_t kept = 0;
	qsort(list, count, sizeof *list, compare_intervals);
	for (size_t i = 1; i < count; i++) {
		if (list[i].from_ns > list[kept].to_ns + touching_ns)
			list[++kept] = list[i];
		else if (list[i].to_ns > list[kept].to_ns)
			list[kept].to_ns = list[i].to_ns;
	}
	return count ? kept + 1 : 0;
}

static int read_blocks(const struct ll_probe_records *records, struct interval *list, struct ll_probe_kernel *kernel,
		       struct ll_err *err)
{
	for (uint32_t i = 0; i < records->block_count; i++) {
		const struct ll_probe_block *block = &records->blocks[i];
		if (!block->is_done || block->end_ns < block->start_ns)
			return ll_err_set(err, -EIO, "a kernel's account: block %u of %u wrote %s", i,
					  records->block_count, block->is_done ? "an end before its start" : "nothing");
		list[i] = (struct interval){block->start_ns, block->end_ns};
		kernel->start_ns = block->start_ns < kernel->start_ns ? block->start_ns : kernel->start_ns;
		kernel->end_ns = block->end_ns > kernel->end_ns ? block->end_ns : kernel->end_ns;
		uint32_t sm = block->sm % LL_PROBE_SMS;
		kernel->sm_count += !(kernel->sms[sm / 64] >> sm % 64 & 1);
		kernel->sms[sm / 64] |= UINT64_C(1) << sm % 64;
	}
	return 0;
}

/* The listed gaps of all rounds. Where more were met than are listed, all from the last listed one on is unknown. */
static int read_gaps(const struct ll_probe_records *records, struct interval *list, struct ll_probe_kernel *kernel,
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
			list[count++] = (struct interval){gap->at_ns, to_ns};
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
static void add_holes(struct ll_probe_kernel *kernel, const struct interval *runs, size_t run_count,
		      const struct interval *gaps, size_t gap_count)
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
	LL_SCOPE_FREE struct interval *runs = calloc(records->block_count + 1, sizeof *runs);
	LL_SCOPE_FREE struct interval *gaps = calloc(records->trace_count * LL_PROBE_GAPS + 1, sizeof *gaps);
	if (!runs || !gaps)
		return ll_err_set(err, -ENOMEM, "a kernel's account: %s", strerror(ENOMEM));
	int rc = read_blocks(records, runs, &kernel, err);
	if (rc == 0)
		rc = read_gaps(records, gaps, &kernel, &gap_count, err);
	if (rc < 0)
		return rc;
	size_t run_count = join_intervals(runs, records->block_count, AWAY_NS);
	gap_count = join_intervals(gaps, gap_count, 0);
	add_holes(&kernel, runs, run_count, gaps, gap_count);
	*ret_kernel = kernel;
	return 0;
}
