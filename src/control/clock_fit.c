#include "control/clock_fit.h"

static int64_t drift_ns(const struct ll_clock_fit *fit, uint64_t host_ns)
{
	if (host_ns <= fit->at_ns)
		return 0;
	return (int64_t)((host_ns - fit->at_ns) / (1000000 / LL_CLOCK_FIT_DRIFT_PPM));
}

void ll_clock_fit_add(struct ll_clock_fit *fit, uint64_t submit_ns, uint64_t start_ns)
{
	int64_t offset_ns = (int64_t)(start_ns - submit_ns);
	if (!fit->has_fit) {
		fit->has_fit = true;
		fit->offset_ns = offset_ns;
	} else {
		int64_t risen_ns = fit->offset_ns + drift_ns(fit, submit_ns);
		fit->offset_ns = offset_ns < risen_ns ? offset_ns : risen_ns;
	}
	if (submit_ns > fit->at_ns)
		fit->at_ns = submit_ns;
}

uint64_t ll_clock_fit_to_card(const struct ll_clock_fit *fit, uint64_t host_ns)
{
	return host_ns + (uint64_t)fit->offset_ns;
}

uint64_t ll_clock_fit_to_card_latest(const struct ll_clock_fit *fit, uint64_t host_ns)
{
	return ll_clock_fit_to_card(fit, host_ns) + (uint64_t)drift_ns(fit, host_ns);
}

uint64_t ll_clock_fit_to_host(const struct ll_clock_fit *fit, uint64_t card_ns)
{
	return card_ns - (uint64_t)fit->offset_ns;
}
