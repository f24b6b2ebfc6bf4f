/*
 * verdict.h - one word for how parties shared the card, from their kernels' accounts alone.
 *
 *   concurrent   at least half of what could run at once did
 *   time-sliced  not at once, and the card changed over between them at a price: kernels were interrupted while another
 *                party ran, or a hand-over left the card empty for longer than a switch at its fastest
 *   serialised   not at once, and one followed the other without such a hole: a kernel waited for another's end
 *   refused      the driver did not let all of them start; its error says why
 *
 * An H200 hands over within a context in 1.4 us and between contexts in 130 us (doc/facts.md): the line is drawn at 30.
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

/* Of one run. Times in ns, parts from 0 to 1. */
struct ll_verdict {
	enum ll_probe_word word;
	double overlap;
	uint64_t window_ns; /* from the first start to the last end */
	uint64_t busy_ns;   /* of it with a kernel on the card */
	uint64_t idle_ns;   /* the longest hole in it */
	double share;       /* of the first party while all wanted the card */
	size_t cuts, handovers;
	struct ll_spread slice_ns, switch_ns; /* of this run; count 0 where there was none */
};

/* -ENOMEM. Two parties or more; with one everything but the word is right. */
int ll_verdict_make(const struct ll_probe_kernel *kernels, size_t count, size_t parties,
		    struct ll_verdict *ret_verdict);

/* The word that most of the verdicts say, and in *ret_agreeing how many do. Of two as frequent the first in the enum's
 * order. */
enum ll_probe_word ll_verdicts_word(const struct ll_verdict *verdicts, size_t count, size_t *ret_agreeing);

#endif
