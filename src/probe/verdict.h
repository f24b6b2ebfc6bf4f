/*
 * verdict.h - one word for how parties shared the card, from their kernels' times alone. Pure.
 *
 *   concurrent   at least half of what could run at once did
 *   time-sliced  not at once, and the card switched contexts between them: kernels were interrupted while another party
 *                ran, or the card was empty between two parties for longer than the fastest switch takes
 *   serialised   not at once, and one followed the other without such a gap: a kernel waited for the end of another
 *   refused      the driver did not let all of them start; its error says why
 *
 * An H200 goes from one kernel to the next in 1.4 us within a context, and in 130 us between contexts (doc/facts.md).
 * The limit is 30 us.
 */
#ifndef LOADLINE_PROBE_VERDICT_H
#define LOADLINE_PROBE_VERDICT_H

#include <stddef.h>
#include <stdint.h>

#include "probe/timeline.h"

#define LL_PROBE_SWITCH_NS 30000.0
#define LL_PROBE_CONCURRENT 0.5

enum ll_probe_word {
	LL_PROBE_SERIALISED,
	LL_PROBE_TIME_SLICED,
	LL_PROBE_CONCURRENT_WORD,
	LL_PROBE_REFUSED,
	LL_PROBE_WORDS,
};

/* "serialised", "time-sliced", "concurrent", "refused". */
const char *ll_probe_word_text(enum ll_probe_word word);

/* The verdict on one run. Times are ns, shares 0 to 1. */
struct ll_verdict {
	enum ll_probe_word word;
	double overlap;
	uint64_t window_ns; /* from the first start to the last end */
	uint64_t busy_ns;   /* the part of it with a kernel on the card */
	uint64_t idle_ns;   /* the longest gap in it */
	double share;       /* of the first party while all parties wanted the card */
	size_t cuts, handovers;
	struct ll_spread slice_ns, switch_ns; /* of this run; count 0 where there was none */
};

/* Makes the verdict. With one party everything but the word is right. -ENOMEM. */
int ll_verdict_make(const struct ll_probe_kernel *kernels, size_t count, size_t parties,
		    struct ll_verdict *ret_verdict);

/* Returns the most frequent word of the verdicts, and in *ret_agreeing how many have it. Of two that are equally
 * frequent the first in the enum is returned. */
enum ll_probe_word ll_verdicts_word(const struct ll_verdict *verdicts, size_t count, size_t *ret_agreeing);

#endif
