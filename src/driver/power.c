#include <math.h>

#include "driver/fail.h"
#include "driver/readings.h"

static const double milli = 1e-3;

static double field_watts(const struct ll_nvml_field_value *field)
{
	return field->status == LL_NVML_SUCCESS ? field->value.as_uint * milli : (double)NAN;
}

/* One call for both; NaN for what the driver does not have. */
static void read_fields(const struct ll_card *card, double *ret_instant, double *ret_average)
{
	const struct ll_nvml *nvml = ll_card_nvml(card);
	struct ll_nvml_field_value fields[] = {
	    {.field = LL_NVML_FI_POWER_INSTANT, .status = LL_NVML_ERROR_NOT_SUPPORTED},
	    {.field = LL_NVML_FI_POWER_AVERAGE, .status = LL_NVML_ERROR_NOT_SUPPORTED},
	};
	*ret_instant = *ret_average = (double)NAN;
	if (!nvml->nvmlDeviceGetFieldValues || nvml->nvmlDeviceGetFieldValues(card->nvml, 2, fields))
		return;
	*ret_instant = field_watts(&fields[0]);
	*ret_average = field_watts(&fields[1]);
}

static int read_usage(const struct ll_card *card, double *ret_watts, struct ll_err *err)
{
	const struct ll_nvml *nvml = ll_card_nvml(card);
	unsigned milliwatts;
	if (!nvml->nvmlDeviceGetPowerUsage)
		return ll_card_lacks(card, err, "power");
	int rc = ll_card_check(card, nvml->nvmlDeviceGetPowerUsage(card->nvml, &milliwatts), err, "power");
	if (!rc)
		*ret_watts = milliwatts * milli;
	return rc;
}

int ll_read_power(const struct ll_card *card, struct ll_power *ret_power, struct ll_err *err)
{
	const struct ll_card *whole = ll_card_whole(card);
	double instant;
	double average;
	read_fields(whole, &instant, &average);
	if (isnan(average)) {
		int rc = read_usage(whole, &average, err);
		if (rc && isnan(instant))
			return rc;
		average = rc ? instant : average;
	}
	*ret_power = (struct ll_power){
	    .watts = isnan(instant) ? average : instant,
	    .average_watts = average,
	    .is_instant = !isnan(instant),
	};
	return 0;
}

int ll_read_power_limit(const struct ll_card *card, double *ret_watts, struct ll_err *err)
{
	const struct ll_card *whole = ll_card_whole(card);
	const struct ll_nvml *nvml = ll_card_nvml(whole);
	unsigned milliwatts;
	if (!nvml->nvmlDeviceGetEnforcedPowerLimit)
		return ll_card_lacks(whole, err, "power limit");
	int rc =
	    ll_card_check(whole, nvml->nvmlDeviceGetEnforcedPowerLimit(whole->nvml, &milliwatts), err, "power limit");
	if (!rc)
		*ret_watts = milliwatts * milli;
	return rc;
}

int ll_read_energy(const struct ll_card *card, uint64_t *ret_energy_mj, struct ll_err *err)
{
	const struct ll_card *whole = ll_card_whole(card);
	const struct ll_nvml *nvml = ll_card_nvml(whole);
	unsigned long long energy_mj;
	if (!nvml->nvmlDeviceGetTotalEnergyConsumption)
		return ll_card_lacks(whole, err, "energy");
	int rc =
	    ll_card_check(whole, nvml->nvmlDeviceGetTotalEnergyConsumption(whole->nvml, &energy_mj), err, "energy");
	if (!rc)
		*ret_energy_mj = energy_mj;
	return rc;
}
