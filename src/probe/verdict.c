#include "probe/verdict.h"

#include <errno.h>

const char *ll_probe_word_text(enum ll_probe_word word)
{
	static const char *const words[LL_PROBE_WORDS] = {"serialised", "time-sliced", "concurrent", "refused"};
	return words[word];
}

static enum ll_probe_word choose_word(const struct ll_verdict *verdict)
{
	if (verdict->overlap >= LL_PROBE_CONCURRENT)
		return LL_PROBE_CONCURRENT_WORD;
	bool is_switching = verdict->switch_ns.count && verdict->switch_ns.median >= LL_PROBE_SWITCH_NS;
	return verdict->cuts || is_switching ? LL_PROBE_TIME_SLICED : LL_PROBE_SERIALISED;
}

int ll_verdict_make(const struct ll_probe_kernel *kernels, size_t count, size_t parties, struct ll_verdict *ret_verdict)
{
	struct ll_timeline timeline;
	struct ll_turns turns = {0};
	int rc = ll_timeline_make(kernels, count, parties, &timeline);
	if (rc < 0)
		return rc;
	ll_turns_add(&turns, &timeline);
	struct ll_verdict verdict = {
	    .overlap = ll_timeline_overlap(&timeline),
	    .window_ns = ll_timeline_window_ns(&timeline),
	    .busy_ns = ll_timeline_busy_ns(&timeline),
	    .idle_ns = ll_timeline_idle_ns(&timeline),
	    .share = parties ? ll_timeline_share(&timeline, 0) : 0,
	    .cuts = turns.cuts,
	    .handovers = turns.handovers,
	    .slice_ns = ll_spread_of(&turns.slices_ns),
	    .switch_ns = ll_spread_of(&turns.switches_ns),
	};
	bool failed = turns.slices_ns.failed || turns.switches_ns.failed;
	verdict.word = choose_word(&verdict);
	ll_turns_fini(&turns);
	ll_timeline_fini(&timeline);
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
