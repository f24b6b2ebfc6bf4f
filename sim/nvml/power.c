/*
 * Power, energy, temperature, clocks.
 */
#include <math.h>

#include "card/meter.h"
#include "nvml/local.h"

static const struct sim_card *physical_card_of(const struct sim_nvml_view *view)
{
	return &view->w->cards[view->physical];
}

/* A reading of the whole card; slices do not have it. */
#define ANSWER_CARD(function, type, value)                                                                             \
	ll_nvml_result function(struct ll_nvml_device *device, type *ret)                                              \
	{                                                                                                              \
		SIM_NVML_OPEN(view, device);                                                                           \
		if (!ret)                                                                                              \
			return LL_NVML_ERROR_INVALID_ARGUMENT;                                                         \
		if (view.is_slice)                                                                                     \
			return LL_NVML_ERROR_NOT_SUPPORTED;                                                            \
		*ret = (type)(value);                                                                                  \
		return LL_NVML_SUCCESS;                                                                                \
	}

ANSWER_CARD(nvmlDeviceGetPowerUsage, unsigned int, lround(sim_card_watts(view.card) * 1000))
ANSWER_CARD(nvmlDeviceGetPowerManagementLimit, unsigned int, lround(view.card->limit_watts * 1000))
ANSWER_CARD(nvmlDeviceGetEnforcedPowerLimit, unsigned int, lround(view.card->limit_watts * 1000))
ANSWER_CARD(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, view.card->meter.joules * 1000)
ANSWER_CARD(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, sim_card_clock_reasons(view.w, view.card))
ANSWER_CARD(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, sim_card_clock_reasons(view.w, view.card))

ll_nvml_result nvmlDeviceGetPowerManagementLimitConstraints(struct ll_nvml_device *device,
							    unsigned int *ret_min_milliwatts,
							    unsigned int *ret_max_milliwatts)
{
	SIM_NVML_OPEN(view, device);
	if (!ret_min_milliwatts || !ret_max_milliwatts)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	if (view.is_slice)
		return LL_NVML_ERROR_NOT_SUPPORTED;
	*ret_min_milliwatts = 200000;
	*ret_max_milliwatts = 700000;
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlDeviceGetTemperature(struct ll_nvml_device *device, enum ll_nvml_temperature_sensor sensor,
					unsigned int *ret_celsius)
{
	SIM_NVML_OPEN(view, device);
	if (!ret_celsius || sensor != LL_NVML_TEMPERATURE_GPU)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	*ret_celsius = (unsigned)lround(sim_card_celsius(view.w, physical_card_of(&view)));
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlDeviceGetTemperatureThreshold(struct ll_nvml_device *device,
						 enum ll_nvml_temperature_threshold threshold,
						 unsigned int *ret_celsius)
{
	SIM_NVML_OPEN(view, device);
	if (!ret_celsius)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	switch (threshold) {
	case LL_NVML_TEMPERATURE_THRESHOLD_SHUTDOWN:
		*ret_celsius = physical_card_of(&view)->shutdown_celsius;
		return LL_NVML_SUCCESS;
	case LL_NVML_TEMPERATURE_THRESHOLD_SLOWDOWN:
		*ret_celsius = physical_card_of(&view)->slowdown_celsius;
		return LL_NVML_SUCCESS;
	case LL_NVML_TEMPERATURE_THRESHOLD_GPU_MAX:
		*ret_celsius = physical_card_of(&view)->max_celsius;
		return LL_NVML_SUCCESS;
	case LL_NVML_TEMPERATURE_THRESHOLD_MEM_MAX:
		*ret_celsius = 95;
		return LL_NVML_SUCCESS;
	default:
		return LL_NVML_ERROR_NOT_SUPPORTED;
	}
}

ll_nvml_result nvmlDeviceGetClockInfo(struct ll_nvml_device *device, enum ll_nvml_clock_type type,
				      unsigned int *ret_mhz)
{
	SIM_NVML_OPEN(view, device);
	if (!ret_mhz || (unsigned)type > LL_NVML_CLOCK_VIDEO)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	uint32_t sm_mhz = sim_card_sm_mhz(view.w, physical_card_of(&view));
	*ret_mhz = type == LL_NVML_CLOCK_MEM ? physical_card_of(&view)->memory_mhz : sm_mhz;
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlDeviceGetMaxClockInfo(struct ll_nvml_device *device, enum ll_nvml_clock_type type,
					 unsigned int *ret_mhz)
{
	SIM_NVML_OPEN(view, device);
	if (!ret_mhz || (unsigned)type > LL_NVML_CLOCK_VIDEO)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	*ret_mhz = type == LL_NVML_CLOCK_MEM ? physical_card_of(&view)->memory_mhz : physical_card_of(&view)->open_mhz;
	return LL_NVML_SUCCESS;
}

static void answer_field(const struct sim_nvml_view *view, struct ll_nvml_field_value *field)
{
	field->time_us = (long long)((view->w->now_ns + view->w->wall_offset_ns) / 1000);
	field->latency_us = 0;
	field->status = view->is_slice ? LL_NVML_ERROR_NOT_SUPPORTED : LL_NVML_SUCCESS;
	field->value.as_ullong = 0;
	field->type = LL_NVML_VALUE_TYPE_UNSIGNED_INT;
	switch (field->field) {
	case LL_NVML_FI_TOTAL_ENERGY_CONSUMPTION:
		field->type = LL_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
		field->value.as_ullong = (unsigned long long)(view->card->meter.joules * 1000);
		break;
	case LL_NVML_FI_POWER_AVERAGE:
		field->value.as_uint = (unsigned)lround(sim_card_watts(view->card) * 1000);
		break;
	case LL_NVML_FI_POWER_INSTANT:
		field->value.as_uint = (unsigned)lround(sim_card_instant_watts(view->card) * 1000);
		break;
	default:
		field->status = LL_NVML_ERROR_NOT_SUPPORTED;
	}
}

ll_nvml_result nvmlDeviceGetFieldValues(struct ll_nvml_device *device, int count, struct ll_nvml_field_value *values)
{
	SIM_NVML_OPEN(view, device);
	if (count < 0 || (count && !values))
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	for (int i = 0; i < count; i++)
		answer_field(&view, &values[i]);
	return LL_NVML_SUCCESS;
}
