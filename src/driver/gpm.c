#include "driver/gpm.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/translate.h"
#include "driver/internal.h"

static const char what[] = "GPM";

static const struct {
	const char *name;
	unsigned id;
} metrics[LL_GPM_COUNT] = {
    [LL_GPM_GRAPHICS] = {"graphics", LL_NVML_GPM_GRAPHICS_UTIL},
    [LL_GPM_SM] = {"sm", LL_NVML_GPM_SM_UTIL},
    [LL_GPM_OCCUPANCY] = {"occupancy", LL_NVML_GPM_SM_OCCUPANCY},
    [LL_GPM_TENSOR] = {"tensor", LL_NVML_GPM_ANY_TENSOR_UTIL},
    [LL_GPM_DRAM] = {"dram", LL_NVML_GPM_DRAM_BW_UTIL},
};

struct ll_gpm {
	const struct ll_card *card;
	unsigned instance_id; /* of a slice */
	struct ll_nvml_gpm_sample *earlier, *later;
	uint64_t earlier_ns;
	struct ll_nvml_gpm_metrics query; /* 16 KiB, so not on the stack */
};

const char *ll_gpm_metric_name(enum ll_gpm_metric metric)
{
	return metrics[metric].name;
}

static int fail_unsupported(const struct ll_card *card, struct ll_err *err)
{
	ll_err_set(err, -ENOSYS,
		   "card %s: no GPM (it needs Hopper or newer and driver 520 or newer): metrics sm, "
		   "occupancy, tensor and dram are not available",
		   card->label);
	ll_err_hint(err, card->is_mig ? N_("no other metric works on a MIG slice")
				      : N_("the metrics util and power remain"));
	return -ENOSYS;
}

static bool has_functions(const struct ll_card *card)
{
	const struct ll_nvml *nvml = ll_card_nvml(card);
	return nvml->nvmlGpmQueryDeviceSupport && nvml->nvmlGpmSampleAlloc && nvml->nvmlGpmSampleFree &&
	       nvml->nvmlGpmMetricsGet &&
	       (card->is_mig ? nvml->nvmlGpmMigSampleGet && nvml->nvmlDeviceGetGpuInstanceId
			     : !!nvml->nvmlGpmSampleGet);
}

int ll_gpm_check(const struct ll_card *card, struct ll_err *err)
{
	const struct ll_card *whole = ll_card_whole(card);
	struct ll_nvml_gpm_support support = {.version = LL_NVML_GPM_SUPPORT_VERSION};
	if (!has_functions(card))
		return fail_unsupported(card, err);
	ll_nvml_result status = ll_card_nvml(whole)->nvmlGpmQueryDeviceSupport(whole->nvml, &support);
	if (ll_nvml_errno(status) == -ENOSYS || (status == LL_NVML_SUCCESS && !support.is_supported))
		return fail_unsupported(card, err);
	return ll_card_check(card, status, err, what);
}

static ll_nvml_result take_sample(struct ll_gpm *gpm, struct ll_nvml_gpm_sample *sample)
{
	const struct ll_nvml *nvml = ll_card_nvml(gpm->card);
	return gpm->card->is_mig ? nvml->nvmlGpmMigSampleGet(ll_card_whole(gpm->card)->nvml, gpm->instance_id, sample)
				 : nvml->nvmlGpmSampleGet(gpm->card->nvml, sample);
}

static int start_sampling(struct ll_gpm *gpm, struct ll_err *err)
{
	const struct ll_nvml *nvml = ll_card_nvml(gpm->card);
	ll_nvml_result status = LL_NVML_SUCCESS;
	if (gpm->card->is_mig)
		status = nvml->nvmlDeviceGetGpuInstanceId(gpm->card->nvml, &gpm->instance_id);
	if (status == LL_NVML_SUCCESS)
		status = nvml->nvmlGpmSampleAlloc(&gpm->earlier);
	if (status == LL_NVML_SUCCESS)
		status = nvml->nvmlGpmSampleAlloc(&gpm->later);
	if (status == LL_NVML_SUCCESS)
		status = take_sample(gpm, gpm->earlier);
	gpm->earlier_ns = ll_now_ns();
	if (ll_nvml_errno(status) == -ENOSYS)
		return fail_unsupported(gpm->card, err);
	return ll_card_check(gpm->card, status, err, what);
}

int ll_gpm_open(const struct ll_card *card, struct ll_gpm **ret_gpm, struct ll_err *err)
{
	int rc = ll_gpm_check(card, err);
	if (rc)
		return rc;
	struct ll_gpm *gpm = calloc(1, sizeof *gpm);
	if (!gpm) {
		ll_err_set(err, -ENOMEM, "card %s: GPM: %s", card->label, strerror(ENOMEM));
		return -ENOMEM;
	}
	gpm->card = card;
	rc = start_sampling(gpm, err);
	if (rc) {
		ll_gpm_close(gpm);
		return rc;
	}
	*ret_gpm = gpm;
	return 0;
}

void ll_gpm_close(struct ll_gpm *gpm)
{
	if (!gpm)
		return;
	const struct ll_nvml *nvml = ll_card_nvml(gpm->card);
	if (gpm->earlier)
		nvml->nvmlGpmSampleFree(gpm->earlier);
	if (gpm->later)
		nvml->nvmlGpmSampleFree(gpm->later);
	free(gpm);
}

static ll_nvml_result compute_metrics(struct ll_gpm *gpm, struct ll_gpm_reading *reading)
{
	gpm->query.version = LL_NVML_GPM_METRICS_VERSION;
	gpm->query.count = LL_GPM_COUNT;
	gpm->query.earlier = gpm->earlier;
	gpm->query.later = gpm->later;
	for (unsigned i = 0; i < LL_GPM_COUNT; i++)
		gpm->query.metrics[i] = (struct ll_nvml_gpm_metric){.id = metrics[i].id};
	ll_nvml_result status = ll_card_nvml(gpm->card)->nvmlGpmMetricsGet(&gpm->query);
	for (unsigned i = 0; i < LL_GPM_COUNT; i++) {
		const struct ll_nvml_gpm_metric *metric = &gpm->query.metrics[i];
		reading->percent[i] = metric->status == LL_NVML_SUCCESS ? metric->value : (double)NAN;
	}
	return status;
}

int ll_gpm_check_metric(const struct ll_card *card, enum ll_gpm_metric metric, struct ll_err *err)
{
	struct ll_gpm *gpm;
	struct ll_gpm_reading reading;
	int rc = ll_gpm_open(card, &gpm, err);
	if (rc)
		return rc;
	/* A window this short gives no useful values. Other failures are left to later reads. */
	bool is_told =
	    take_sample(gpm, gpm->later) == LL_NVML_SUCCESS && compute_metrics(gpm, &reading) == LL_NVML_SUCCESS;
	bool is_lacking = is_told && ll_nvml_errno(gpm->query.metrics[metric].status) == -ENOSYS;
	ll_gpm_close(gpm);
	if (!is_lacking)
		return 0;
	ll_err_set(err, -ENOSYS, "card %s: its GPM does not give the %s reading", card->label,
		   ll_gpm_metric_name(metric));
	return ll_err_hint(err, "hold another metric: util, sm, occupancy or power");
}

/* Begins a new window at the later sample. The time between a failed read and the next sample is in no window. */
static void swap_samples(struct ll_gpm *gpm, uint64_t later_ns)
{
	struct ll_nvml_gpm_sample *old = gpm->earlier;
	gpm->earlier = gpm->later;
	gpm->later = old;
	gpm->earlier_ns = later_ns;
}

int ll_gpm_read(struct ll_gpm *gpm, struct ll_gpm_reading *ret_reading, struct ll_err *err)
{
	uint64_t now_ns = ll_now_ns();
	struct ll_gpm_reading reading = {.end_ns = now_ns, .window_ns = now_ns - gpm->earlier_ns};
	if (reading.window_ns < LL_GPM_MIN_WINDOW_NS)
		return ll_err_set(err, -EAGAIN, "card %s: GPM: the last read is less than 100 ms ago",
				  gpm->card->label);
	ll_nvml_result status = take_sample(gpm, gpm->later);
	if (status != LL_NVML_SUCCESS)
		return ll_card_check(gpm->card, status, err, what);
	status = compute_metrics(gpm, &reading);
	swap_samples(gpm, now_ns);
	if (status != LL_NVML_SUCCESS)
		return ll_card_check(gpm->card, status, err, what);
	*ret_reading = reading;
	return 0;
}
