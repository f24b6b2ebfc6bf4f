#include <errno.h>

#include "driver/fail.h"
#include "driver/readings.h"

_Static_assert((int)LL_MODE_PROHIBITED == (int)LL_NVML_COMPUTEMODE_PROHIBITED &&
		   (int)LL_MODE_EXCLUSIVE_PROCESS == (int)LL_NVML_COMPUTEMODE_EXCLUSIVE_PROCESS,
	       "our modes are NVML's");

int ll_read_compute_mode(const struct ll_card *card, enum ll_compute_mode *ret_mode, struct ll_err *err)
{
	const struct ll_card *whole = ll_card_whole(card);
	const struct ll_nvml *nvml = ll_card_nvml(whole);
	enum ll_nvml_compute_mode mode;
	if (!nvml->nvmlDeviceGetComputeMode)
		return ll_card_lacks(whole, err, "compute mode");
	int rc = ll_card_check(whole, nvml->nvmlDeviceGetComputeMode(whole->nvml, &mode), err, "compute mode");
	if (!rc)
		*ret_mode = (enum ll_compute_mode)mode;
	return rc;
}

int ll_set_compute_mode(const struct ll_card *card, enum ll_compute_mode mode, struct ll_err *err)
{
	const struct ll_card *whole = ll_card_whole(card);
	const struct ll_nvml *nvml = ll_card_nvml(whole);
	if (!nvml->nvmlDeviceSetComputeMode)
		return ll_card_lacks(whole, err, "set compute mode");
	int rc = ll_card_check(whole, nvml->nvmlDeviceSetComputeMode(whole->nvml, (enum ll_nvml_compute_mode)mode), err,
			       "set compute mode");
	if (rc == -EPERM)
		ll_err_hint(err, "only root may change a card's compute mode");
	return rc;
}

const char *ll_compute_mode_text(enum ll_compute_mode mode)
{
	switch (mode) {
	case LL_MODE_DEFAULT:
		return "default";
	case LL_MODE_EXCLUSIVE_THREAD:
		return "exclusive-thread";
	case LL_MODE_PROHIBITED:
		return "prohibited";
	case LL_MODE_EXCLUSIVE_PROCESS:
		return "exclusive-process";
	}
	return "unknown";
}

int ll_read_persistence(const struct ll_card *card, bool *ret_is_on, struct ll_err *err)
{
	const struct ll_card *whole = ll_card_whole(card);
	const struct ll_nvml *nvml = ll_card_nvml(whole);
	enum ll_nvml_enable_state state;
	if (!nvml->nvmlDeviceGetPersistenceMode)
		return ll_card_lacks(whole, err, "persistence mode");
	int rc = ll_card_check(whole, nvml->nvmlDeviceGetPersistenceMode(whole->nvml, &state), err, "persistence mode");
	if (!rc)
		*ret_is_on = state == LL_NVML_FEATURE_ENABLED;
	return rc;
}
