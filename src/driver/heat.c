#include <math.h>
#include <stdio.h>
#include <string.h>

#include "driver/fail.h"
#include "driver/readings.h"

static double read_threshold(const struct ll_card *card, enum ll_nvml_temperature_threshold threshold)
{
	const struct ll_nvml *nvml = ll_card_nvml(card);
	unsigned celsius;
	if (!nvml->nvmlDeviceGetTemperatureThreshold ||
	    nvml->nvmlDeviceGetTemperatureThreshold(card->nvml, threshold, &celsius))
		return (double)NAN;
	return celsius;
}

int ll_read_celsius(const struct ll_card *card, double *ret_celsius, struct ll_err *err)
{
	const struct ll_card *whole = ll_card_whole(card);
	const struct ll_nvml *nvml = ll_card_nvml(whole);
	unsigned celsius;
	if (!nvml->nvmlDeviceGetTemperature)
		return ll_card_lacks(whole, err, "temperature");
	int rc = ll_card_check(whole, nvml->nvmlDeviceGetTemperature(whole->nvml, LL_NVML_TEMPERATURE_GPU, &celsius),
			       err, "temperature");
	if (!rc)
		*ret_celsius = celsius;
	return rc;
}

int ll_read_temperature(const struct ll_card *card, struct ll_temperature *ret_temperature, struct ll_err *err)
{
	const struct ll_card *whole = ll_card_whole(card);
	double celsius;
	int rc = ll_read_celsius(whole, &celsius, err);
	if (rc)
		return rc;
	*ret_temperature = (struct ll_temperature){
	    .celsius = celsius,
	    .slowdown_celsius = read_threshold(whole, LL_NVML_TEMPERATURE_THRESHOLD_SLOWDOWN),
	    .shutdown_celsius = read_threshold(whole, LL_NVML_TEMPERATURE_THRESHOLD_SHUTDOWN),
	};
	return 0;
}

int ll_read_clocks(const struct ll_card *card, struct ll_clocks *ret_clocks, struct ll_err *err)
{
	const struct ll_card *whole = ll_card_whole(card);
	const struct ll_nvml *nvml = ll_card_nvml(whole);
	struct ll_clocks clocks = {0};
	if (!nvml->nvmlDeviceGetClockInfo)
		return ll_card_lacks(whole, err, "clocks");
	ll_nvml_result status = nvml->nvmlDeviceGetClockInfo(whole->nvml, LL_NVML_CLOCK_SM, &clocks.sm_mhz);
	if (status == LL_NVML_SUCCESS)
		status = nvml->nvmlDeviceGetClockInfo(whole->nvml, LL_NVML_CLOCK_MEM, &clocks.memory_mhz);
	int rc = ll_card_check(whole, status, err, "clocks");
	if (rc)
		return rc;
	if (!nvml->nvmlDeviceGetMaxClockInfo ||
	    nvml->nvmlDeviceGetMaxClockInfo(whole->nvml, LL_NVML_CLOCK_SM, &clocks.max_sm_mhz))
		clocks.max_sm_mhz = 0;
	*ret_clocks = clocks;
	return 0;
}

static const struct {
	unsigned long long reason;
	unsigned slowdown;
} reasons[] = {
    {LL_NVML_CLOCKS_SW_THERMAL_SLOWDOWN, LL_SLOWDOWN_THERMAL},
    {LL_NVML_CLOCKS_HW_THERMAL_SLOWDOWN, LL_SLOWDOWN_THERMAL | LL_SLOWDOWN_HARDWARE},
    {LL_NVML_CLOCKS_HW_POWER_BRAKE, LL_SLOWDOWN_POWER_BRAKE | LL_SLOWDOWN_HARDWARE},
    {LL_NVML_CLOCKS_HW_SLOWDOWN, LL_SLOWDOWN_HARDWARE},
    {LL_NVML_CLOCKS_SW_POWER_CAP, LL_SLOWDOWN_POWER_CAP},
};

static const struct {
	unsigned slowdown;
	const char *name;
} names[] = {
    {LL_SLOWDOWN_THERMAL, "thermal"},
    {LL_SLOWDOWN_POWER_BRAKE, "power brake"},
    {LL_SLOWDOWN_HARDWARE, "hardware"},
    {LL_SLOWDOWN_POWER_CAP, "power cap"},
};

int ll_read_slowdown(const struct ll_card *card, unsigned *ret_slowdown, struct ll_err *err)
{
	const struct ll_card *whole = ll_card_whole(card);
	const struct ll_nvml *nvml = ll_card_nvml(whole);
	__typeof__(nvml->nvmlDeviceGetCurrentClocksEventReasons) query =
	    nvml->nvmlDeviceGetCurrentClocksEventReasons ? nvml->nvmlDeviceGetCurrentClocksEventReasons
							 : nvml->nvmlDeviceGetCurrentClocksThrottleReasons;
	unsigned long long bits = 0;
	if (!query)
		return ll_card_lacks(whole, err, "slowdown");
	int rc = ll_card_check(whole, query(whole->nvml, &bits), err, "slowdown");
	if (rc)
		return rc;
	unsigned slowdown = 0;
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
		slowdown |= bits & reasons[i].reason ? reasons[i].slowdown : 0;
	*ret_slowdown = slowdown;
	return 0;
}

const char *ll_slowdown_text(unsigned slowdown, char *text, size_t size)
{
	size_t used = 0;
	snprintf(text, size, "none");
	for (size_t i = 0; i < sizeof names / sizeof *names && used < size; i++) {
		if (slowdown & names[i].slowdown)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", names[i].name);
	}
	return text;
}
