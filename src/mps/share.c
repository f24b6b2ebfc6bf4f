#include "mps/share.h"

#include "base/strbuf.h"

/* Percentages come as tenths; what lies that far beneath a whole number is one. */
#define ROUNDING 1e-6

unsigned ll_mps_share_sms(unsigned sm_count, double percent)
{
	if (percent >= 100)
		return sm_count;
	unsigned sms = (unsigned)(sm_count * percent / 100 + ROUNDING) & ~1u;
	unsigned least = sm_count < LL_MPS_LEAST_SMS ? sm_count : LL_MPS_LEAST_SMS;
	return sms > least ? sms : least;
}

bool ll_mps_share_is_floor(unsigned sm_count, double percent)
{
	return ll_mps_share_sms(sm_count, percent) > sm_count * percent / 100 + ROUNDING;
}

void ll_mps_share_add(struct ll_strbuf *out, const char *label, unsigned sm_count, double percent)
{
	unsigned sms = ll_mps_share_sms(sm_count, percent);
	ll_strbuf_addf(out, "%g %% of card %s's %u SMs: %u for each client", percent, label, sm_count, sms);
	if (ll_mps_share_is_floor(sm_count, percent))
		ll_strbuf_addf(out, ", which is %.1f %%: MPS gives no client fewer", 100.0 * sms / sm_count);
	else if (sms + ROUNDING < sm_count * percent / 100)
		ll_strbuf_adds(out, ", because MPS rounds down to pairs of SMs");
}
