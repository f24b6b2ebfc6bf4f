#include "probe/trace.h"

#include <errno.h>

#include "base/err.h"

static int check_gaps(const struct ll_probe_kernel *kernel, struct ll_err *err)
{
	uint64_t from_ns = kernel->start_ns;
	for (uint32_t i = 0; i < kernel->gap_count && i < LL_PROBE_GAPS; i++) {
		const struct ll_probe_gap *gap = &kernel->gaps[i];
		if (gap->at_ns < from_ns || gap->at_ns + gap->length_ns > kernel->end_ns)
			return ll_err_set(err, -EIO, "a kernel's account: a gap outside of the kernel");
		from_ns = gap->at_ns + gap->length_ns;
	}
	return 0;
}

int ll_probe_kernel_read(const struct ll_probe_trace *trace, const struct ll_probe_block *blocks, uint32_t block_count,
			 uint32_t party, struct ll_probe_kernel *ret_kernel, struct ll_err *err)
{
	struct ll_probe_kernel kernel = {
	    .party = party,
	    .blocks = block_count,
	    .start_ns = UINT64_MAX,
	    .max_gap_ns = trace->max_gap_ns,
	    .step_ns = trace->step_ns,
	    .gap_count = trace->gap_count,
	};
	for (uint32_t i = 0; i < block_count; i++) {
		const struct ll_probe_block *block = &blocks[i];
		if (!block->is_done || block->end_ns < block->start_ns)
			return ll_err_set(err, -EIO, "a kernel's account: block %u of %u wrote %s", i, block_count,
					  block->is_done ? "an end before its start" : "nothing");
		kernel.start_ns = block->start_ns < kernel.start_ns ? block->start_ns : kernel.start_ns;
		kernel.end_ns = block->end_ns > kernel.end_ns ? block->end_ns : kernel.end_ns;
		uint32_t sm = block->sm % LL_PROBE_SMS;
		kernel.sm_count += !(kernel.sms[sm / 64] >> sm % 64 & 1);
		kernel.sms[sm / 64] |= UINT64_C(1) << sm % 64;
	}
	for (uint32_t i = 0; i < kernel.gap_count && i < LL_PROBE_GAPS; i++)
		kernel.gaps[i] = trace->gaps[i];
	int rc = check_gaps(&kernel, err);
	if (rc == 0)
		*ret_kernel = kernel;
	return rc;
}
