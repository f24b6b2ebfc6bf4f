/*
 * clock_fit.h - maps the host's clock to the card's: when a kernel that is submitted now starts on an idle card.
 *
 * The two clocks differ by a constant and drift by a few parts per million. Every kernel gives a pair: when it was
 * submitted, on the host's clock, and when it started, on the card's. A start can be later than on an idle card, never
 * earlier. So the smallest difference is right: the fit follows the lower envelope of the differences, and lets it rise
 * by LL_CLOCK_FIT_DRIFT_PPM. That is more than clocks drift, and far less than the delays that matter here.
 *
 * Pure arithmetic. Times are ns.
 */
#ifndef LOADLINE_RULES_SHARE_CLOCK_FIT_H
#define LOADLINE_RULES_SHARE_CLOCK_FIT_H

#include <stdbool.h>
#include <stdint.h>

#define LL_CLOCK_FIT_DRIFT_PPM 50

struct ll_clock_fit {
	bool has_fit;
	int64_t offset_ns; /* card minus host, with the launch latency */
	int64_t lowest_ns; /* the same, from the last pair whose kernel did not wait */
	uint64_t at_ns;    /* host time of the last pair */
};

/* Adds one pair. Pairs must come in order of submit_ns. */
void ll_clock_fit_add(struct ll_clock_fit *fit, uint64_t submit_ns, uint64_t start_ns);

/* Returns the card's time at which a kernel that is submitted at host_ns starts on an idle card. Needs has_fit. */
uint64_t ll_clock_fit_to_card(const struct ll_clock_fit *fit, uint64_t host_ns);

/* The same without drift since the last pair whose kernel did not wait. If all kernels wait, the drift that the fit
 * allows adds up to more than the clocks drift. */
uint64_t ll_clock_fit_to_card_earliest(const struct ll_clock_fit *fit, uint64_t host_ns);

/* The same with the largest allowed drift since the last pair. Without it clocks that drift by 8 ppm make a kernel look
 * 0.3 ms late after a pause of 37 s (doc/facts.md). */
uint64_t ll_clock_fit_to_card_latest(const struct ll_clock_fit *fit, uint64_t host_ns);

/* Returns the host's time for a time of the card. It is early by the launch latency, some us. Needs has_fit. */
uint64_t ll_clock_fit_to_host(const struct ll_clock_fit *fit, uint64_t card_ns);

#endif
