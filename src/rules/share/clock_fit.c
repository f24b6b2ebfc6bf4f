#include "rules/share/clock_fit.h"

static int64_t drift_ns(const struct ll_clock_fit *fit, uint64_t host_ns)
{
	if (host_ns <= fit->at_ns)
		return 0;
	return (int64_t)((host_ns - fit->at_ns) / (1000000 / LL_CLOCK_FIT_DRIFT_PPM));
}

void ll_clock_fit_add(struct ll_clock_fit *fit, uint64_t submit_ns, uint64_t start_ns)
{
	int64_t offset_ns = (int64_t)(start_ns - submit_ns);
	int64_t risen_ns = fit->offset_ns + drift_ns(fit, submit_ns);
	bool has_waited = fit->has_fit && offset_ns >= risen_ns;
	fit->offset_ns = has_waited ? risen_ns : offset_ns;
	fit->lowest_ns = has_waited ? fit->lowest_ns : offset_ns;
	fit->has_fit = true;
	if (submit_ns > fit->at_ns)
		fit->at_ns = submit_ns;
}

uint64_t ll_clock_fit_to_card(const struct ll_clock_fit *fit, uint64_t host_ns)
{
	return host_ns + (uint64_t)fit->offset_ns;
}

uint64_t ll_clock_fit_to_card_earliest(const struct ll_clock_fit *fit, uint64_t host_ns)
{
	return host_ns + (uint64_t)fit->lowest_ns;
}

uint64_t ll_clock_fit_to_card_latest(const struct ll_clock_fit *fit, uint64_t host_ns)
{
	return ll_clock_fit_to_card(fit, host_ns) + (uint64_t)drift_ns(fit, host_ns);
}

uint64_t ll_clock_fit_to_host(const struct ll_clock_fit *fit, uint64_t card_ns)
{
	return card_ns - (uint64_t)fit->offset_ns;
}
