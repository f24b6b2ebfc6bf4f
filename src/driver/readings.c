#include "driver/readings.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/translate.h"
#include "driver/internal.h"
#include "driver/library.h"

/* ---- readings ---- */

/* ---- memory ---- */

int ll_read_memory(const struct ll_card *card, struct ll_memory *ret_memory, struct ll_err *err)
{
	const struct ll_nvml *nvml = ll_card_nvml(card);
	struct ll_nvml_memory_v2 newer = {.version = LL_NVML_MEMORY_V2};
	if (nvml->nvmlDeviceGetMemoryInfo_v2 &&
	    nvml->nvmlDeviceGetMemoryInfo_v2(card->nvml, &newer) == LL_NVML_SUCCESS) {
		*ret_memory = (struct ll_memory){newer.total_bytes, newer.used_bytes, newer.free_bytes};
		return 0;
	}
	struct ll_nvml_memory older;
	int rc = ll_card_check(card, nvml->nvmlDeviceGetMemoryInfo(card->nvml, &older), err, "memory");
	if (rc)
		return rc;
	*ret_memory = (struct ll_memory){older.total_bytes, older.used_bytes, older.free_bytes};
	return 0;
}

/* ---- power and energy ---- */

static const double milli = 1e-3;

static double field_watts(const struct ll_nvml_field_value *field)
{
	return field->status == LL_NVML_SUCCESS ? field->value.as_uint * milli : (double)NAN;
}

/* Reads both values with one call; NaN if the driver does not have a value. */
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

/* ---- heat, clocks, slowdown ---- */

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
    {LL_SLOWDOWN_THERMAL, N_("thermal")},
    {LL_SLOWDOWN_POWER_BRAKE, N_("power brake")},
    {LL_SLOWDOWN_HARDWARE, N_("hardware")},
    {LL_SLOWDOWN_POWER_CAP, N_("power cap")},
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
	snprintf(text, size, "%s", _("none"));
	for (size_t i = 0; i < sizeof names / sizeof *names && used < size; i++) {
		if (slowdown & names[i].slowdown)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", _(names[i].name));
	}
	return text;
}

/* ---- modes ---- */

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
		return N_("default");
	case LL_MODE_EXCLUSIVE_THREAD:
		return N_("exclusive-thread");
	case LL_MODE_PROHIBITED:
		return N_("prohibited");
	case LL_MODE_EXCLUSIVE_PROCESS:
		return N_("exclusive-process");
	}
	return N_("unknown");
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

/* ---- status ---- */

int ll_nvml_errno(ll_nvml_result status)
{
	switch (status) {
	case LL_NVML_SUCCESS:
		return 0;
	case LL_NVML_ERROR_UNINITIALIZED:
	case LL_NVML_ERROR_DRIVER_NOT_LOADED:
	case LL_NVML_ERROR_LIBRARY_NOT_FOUND:
	case LL_NVML_ERROR_GPU_IS_LOST:
	case LL_NVML_ERROR_GPU_NOT_FOUND:
	case LL_NVML_ERROR_RESET_REQUIRED:
	case LL_NVML_ERROR_LIB_RM_VERSION_MISMATCH:
		return -ENODEV;
	case LL_NVML_ERROR_NOT_SUPPORTED:
	case LL_NVML_ERROR_FUNCTION_NOT_FOUND:
	case LL_NVML_ERROR_DEPRECATED:
	case LL_NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
		return -ENOSYS;
	case LL_NVML_ERROR_NO_PERMISSION:
		return -EPERM;
	case LL_NVML_ERROR_TIMEOUT:
	case LL_NVML_ERROR_NOT_READY:
	case LL_NVML_ERROR_NO_DATA:
		return -EAGAIN;
	case LL_NVML_ERROR_MEMORY:
	case LL_NVML_ERROR_INSUFFICIENT_RESOURCES:
		return -ENOMEM;
	default:
		return -EIO;
	}
}

int ll_cuda_errno(ll_cu_result status)
{
	switch (status) {
	case LL_CUDA_SUCCESS:
		return 0;
	case LL_CUDA_ERROR_NO_DEVICE:
	case LL_CUDA_ERROR_INVALID_DEVICE:
	case LL_CUDA_ERROR_STUB_LIBRARY:
	case LL_CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
	case LL_CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
		return -ENODEV;
	case LL_CUDA_ERROR_NOT_SUPPORTED:
	case LL_CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER:
	case LL_CUDA_ERROR_UNSUPPORTED_LIMIT:
	case LL_CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
	case LL_CUDA_ERROR_NO_BINARY_FOR_GPU:
		return -ENOSYS;
	case LL_CUDA_ERROR_NOT_PERMITTED:
		return -EPERM;
	case LL_CUDA_ERROR_NOT_READY:
	case LL_CUDA_ERROR_MPS_SERVER_NOT_READY:
	case LL_CUDA_ERROR_SYSTEM_NOT_READY:
		return -EAGAIN;
	case LL_CUDA_ERROR_OUT_OF_MEMORY:
		return -ENOMEM;
	case LL_CUDA_ERROR_DEVICE_UNAVAILABLE:
	case LL_CUDA_ERROR_MPS_MAX_CLIENTS_REACHED:
	case LL_CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED:
		return -EBUSY;
	default:
		return -EIO;
	}
}

const char *ll_cuda_status_text(const struct ll_cuda *cuda, ll_cu_result status, char text[LL_STATUS_TEXT_SIZE])
{
	const char *name = NULL;
	if (cuda && cuda->cuGetErrorName && cuda->cuGetErrorName(status, &name) == LL_CUDA_SUCCESS && name)
		snprintf(text, LL_STATUS_TEXT_SIZE, "%s (%d)", name, (int)status);
	else
		snprintf(text, LL_STATUS_TEXT_SIZE, "CUDA error %d", (int)status);
	return text;
}

const char *ll_nvml_status_text(const struct ll_nvml *nvml, ll_nvml_result status, char text[LL_STATUS_TEXT_SIZE])
{
	const char *name = nvml && nvml->nvmlErrorString ? nvml->nvmlErrorString(status) : NULL;
	if (name)
		snprintf(text, LL_STATUS_TEXT_SIZE, "%s (NVML error %d)", name, (int)status);
	else
		snprintf(text, LL_STATUS_TEXT_SIZE, "NVML error %d", (int)status);
	return text;
}

int ll_cuda_fail(const struct ll_cuda *cuda, ll_cu_result status, struct ll_err *err, const char *fmt, ...)
{
	char what[200];
	char why[LL_STATUS_TEXT_SIZE];
	int code = ll_cuda_errno(status);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, ll_translate(fmt), ap);
	va_end(ap);
	ll_err_set(err, code, "%s: %s", what, ll_cuda_status_text(cuda, status, why));
	if (status == LL_CUDA_ERROR_OUT_OF_MEMORY)
		ll_err_hint(err, "free memory on the card, or choose another one with -i");
	else if (status == LL_CUDA_ERROR_DEVICE_UNAVAILABLE)
		ll_err_hint(err, "the card's compute mode allows one process only, or none: see `loadline doctor`");
	return code;
}

int ll_nvml_fail(const struct ll_nvml *nvml, ll_nvml_result status, struct ll_err *err, const char *fmt, ...)
{
	char what[200];
	char why[LL_STATUS_TEXT_SIZE];
	int code = ll_nvml_errno(status);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, ll_translate(fmt), ap);
	va_end(ap);
	ll_err_set(err, code, "%s: %s", what, ll_nvml_status_text(nvml, status, why));
	if (status == LL_NVML_ERROR_RESET_REQUIRED)
		ll_err_hint(err, "the card must be reset, or the machine restarted");
	return code;
}

/* ---- health ---- */

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
	unsigned slowdown = 0;
	*ret_health = (struct ll_card_health){LL_HEALTH_UNKNOWN, LL_HEALTH_UNKNOWN, LL_HEALTH_UNKNOWN,
					      LL_HEALTH_UNKNOWN, LL_HEALTH_UNKNOWN};
	read_remaps(card, ret_health);
	read_ecc(card, ret_health);
	if (!ll_read_slowdown(card, &slowdown, NULL))
		ret_health->thermal_slowdown = (slowdown & LL_SLOWDOWN_THERMAL) != 0;
	read_links(card, ret_health);
}
