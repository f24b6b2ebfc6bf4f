#include "driver/health.h"

#include "driver/internal.h"
#include "driver/library.h"
#include "driver/readings.h"

enum { LINKS = 18 }; /* NVML_NVLINK_MAX_LINKS */

static void read_remaps(const struct ll_card *card, struct ll_card_health *health)
{
	const struct ll_nvml *nvml = ll_card_nvml(card);
	unsigned corrected, uncorrected, is_pending, has_failed;
	if (!nvml->nvmlDeviceGetRemappedRows ||
	    nvml->nvmlDeviceGetRemappedRows(card->nvml, &corrected, &uncorrected, &is_pending, &has_failed))
		return;
	health->row_remap_pending = is_pending != 0;
	health->row_remap_failure = has_failed != 0;
}

static void read_ecc(const struct ll_card *card, struct ll_card_health *health)
{
	const struct ll_nvml *nvml = ll_card_nvml(card);
	unsigned long long count;
	if (nvml->nvmlDeviceGetTotalEccErrors &&
	    !nvml->nvmlDeviceGetTotalEccErrors(card->nvml, LL_NVML_MEMORY_ERROR_UNCORRECTED, LL_NVML_ECC_VOLATILE,
					       &count))
		health->ecc_uncorrected = count;
}

static void add_link(const struct ll_card *card, unsigned link, struct ll_card_health *health)
{
	const struct ll_nvml *nvml = ll_card_nvml(card);
	for (unsigned counter = 0; counter < LL_NVML_NVLINK_ERRORS; counter++) {
		unsigned long long count;
		if (nvml->nvmlDeviceGetNvLinkErrorCounter(card->nvml, link, counter, &count))
			continue;
		if (health->nvlink_errors == LL_HEALTH_UNKNOWN)
			health->nvlink_errors = 0;
		health->nvlink_errors += count;
	}
}

static void read_links(const struct ll_card *card, struct ll_card_health *health)
{
	const struct ll_nvml *nvml = ll_card_nvml(card);
	enum ll_nvml_enable_state state;
	if (!nvml->nvmlDeviceGetNvLinkState || !nvml->nvmlDeviceGetNvLinkErrorCounter)
		return;
	for (unsigned link = 0; link < LINKS; link++) {
		if (!nvml->nvmlDeviceGetNvLinkState(card->nvml, link, &state) && state == LL_NVML_FEATURE_ENABLED)
			add_link(card, link, health);
	}
}

void ll_read_health(const struct ll_card *card, struct ll_card_health *ret_health)
{
	unsigned slowdown;
	*ret_health = (struct ll_card_health){LL_HEALTH_UNKNOWN, LL_HEALTH_UNKNOWN, LL_HEALTH_UNKNOWN,
					      LL_HEALTH_UNKNOWN, LL_HEALTH_UNKNOWN};
	read_remaps(card, ret_health);
	read_ecc(card, ret_health);
	if (!ll_read_slowdown(card, &slowdown, NULL))
		ret_health->thermal_slowdown = (slowdown & LL_SLOWDOWN_THERMAL) != 0;
	read_links(card, ret_health);
}
