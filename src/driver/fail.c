#include "driver/fail.h"

#include <errno.h>

int ll_card_check(const struct ll_card *card, ll_nvml_result status, struct ll_err *err, const char *what)
{
	if (status == LL_NVML_SUCCESS)
		return 0;
	const char *gone = ll_nvml_errno(status) == -ENODEV ? "card gone: " : "";
	char why[LL_STATUS_TEXT_SIZE];
	ll_nvml_status_text(ll_card_nvml(card), status, why);
	return ll_err_set(err, ll_nvml_errno(status), "card %s: %s: %s%s", card->label, what, gone, why);
}

int ll_card_lacks(const struct ll_card *card, struct ll_err *err, const char *what)
{
	return ll_err_set(err, -ENOSYS, "card %s: %s: driver %s cannot tell", card->label, what,
			  ll_card_nvml(card)->driver_version);
}
