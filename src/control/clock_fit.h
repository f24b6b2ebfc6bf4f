/*
 * clock_fit.h - when would a kernel submitted now start on an idle card, on the card's own clock?
 *
 * The card's clock and the host's run apart by a constant and a few parts per million. Every kernel gives a pair
 * (submitted at, on the host's clock; started at, on the card's). A start can only be later than the ideal, never
 * earlier, so the smallest difference is the truth: the fit follows the lower envelope of the differences and
 * lets it rise by LL_CLOCK_FIT_DRIFT_PPM, more than clocks drift and far less than anything we look for.
 */
#ifndef LOADLINE_CONTROL_CLOCK_FIT_H
#define LOADLINE_CONTROL_CLOCK_FIT_H

#include <stdbool.h>
#include <stdint.h>

#define LL_CLOCK_FIT_DRIFT_PPM 50

struct ll_clock_fit {
	bool has_fit;
	int64_t offset_ns; /* card minus host, launch latency included */
	int64_t lowest_ns; /* the same, as the last pair told it that did not wait for anything */
	uint64_t at_ns;    /* host time of the last pair */
};

/* Takes one pair. Pairs come in order of submit_ns. */
void ll_clock_fit_add(struct ll_clock_fit *fit, uint64_t submit_ns, uint64_t start_ns);

/* Card time at which a kernel submitted at host_ns starts when nothing is in its way. Needs has_fit. */
uint64_t ll_clock_fit_to_card(const struct ll_clock_fit *fit, uint64_t host_ns);

/* The same, if the clocks have not run apart since a pair was last seen that did not wait: where all of them wait, what
 * the fit allows for drift adds up to more than they drift. */
uint64_t ll_clock_fit_to_card_earliest(const struct ll_clock_fit *fit, uint64_t host_ns);

/* The same, if the clocks have run apart since the last pair as fast as they may: in a pause of 37 s clocks that
 * drift by 8 ppm come to seem 0.3 ms late (doc/facts.md). */
uint64_t ll_clock_fit_to_card_latest(const struct ll_clock_fit *fit, uint64_t host_ns);

/* The reverse: the host time of a card time, early by the launch latency (some us). Needs has_fit. */
uint64_t ll_clock_fit_to_host(const struct ll_clock_fit *fit, uint64_t card_ns);

#endif
