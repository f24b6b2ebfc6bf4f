/*
 * GPM: counters of the SMs, as differences between two samples.
 */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "nvml/local.h"

struct ll_nvml_gpm_sample {
	bool is_taken;
	bool has_tensor, has_dram;
	uint32_t card;
	uint64_t time_ns;
	struct sim_meter meter;
};

/* With shorter windows the real counters return 0 or NaN (doc/facts.md). */
#define SHORTEST_NS (100 * LL_NS_PER_MS)

static bool has_gpm(const struct sim_world *w, const struct sim_nvml_view *view)
{
	const struct sim_card *physical = &w->cards[view->physical];
	return physical->has_gpm && physical->capability_major >= 9;
}

ll_nvml_result nvmlGpmQueryDeviceSupport(struct ll_nvml_device *device, struct ll_nvml_gpm_support *support)
{
	SIM_NVML_OPEN(view, device);
	if (!support)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	if (support->version != LL_NVML_GPM_SUPPORT_VERSION)
		return LL_NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	support->is_supported = has_gpm(view.w, &view);
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlGpmSampleAlloc(struct ll_nvml_gpm_sample **ret_sample)
{
	SIM_NVML_ENTER();
	if (!ret_sample)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	*ret_sample = calloc(1, sizeof **ret_sample);
	return *ret_sample ? LL_NVML_SUCCESS : LL_NVML_ERROR_MEMORY;
}

ll_nvml_result nvmlGpmSampleFree(struct ll_nvml_gpm_sample *sample)
{
	SIM_NVML_ENTER();
	free(sample);
	return LL_NVML_SUCCESS;
}

static void take_sample(const struct sim_nvml_view *view, uint32_t card, struct ll_nvml_gpm_sample *sample)
{
	const struct sim_card *physical = &view->w->cards[view->physical];
	*sample = (struct ll_nvml_gpm_sample){
	    .is_taken = true,
	    .has_tensor = physical->has_gpm_tensor,
	    .has_dram = physical->has_gpm_dram,
	    .card = card,
	    .time_ns = view->w->now_ns,
	    .meter = view->w->cards[card].meter,
	};
}

/* Samples a whole card. In MIG mode its counters are read for each slice. */
ll_nvml_result nvmlGpmSampleGet(struct ll_nvml_device *device, struct ll_nvml_gpm_sample *sample)
{
	SIM_NVML_OPEN(view, device);
	if (!sample)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	if (!has_gpm(view.w, &view) || view.card->slice_count || view.is_slice)
		return LL_NVML_ERROR_NOT_SUPPORTED;
	take_sample(&view, view.index, sample);
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlGpmMigSampleGet(struct ll_nvml_device *device, unsigned int gpu_instance_id,
				   struct ll_nvml_gpm_sample *sample)
{
	SIM_NVML_OPEN(view, device);
	if (!sample)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	if (!has_gpm(view.w, &view))
		return LL_NVML_ERROR_NOT_SUPPORTED;
	for (uint32_t i = view.w->card_count; i < view.w->slot_count; i++) {
		if (view.w->cards[i].parent == view.index && view.w->cards[i].gpu_instance_id == gpu_instance_id) {
			take_sample(&view, i, sample);
			return LL_NVML_SUCCESS;
		}
	}
	return LL_NVML_ERROR_INVALID_ARGUMENT;
}

static bool is_given(unsigned id, const struct ll_nvml_gpm_sample *sample)
{
	return id == LL_NVML_GPM_ANY_TENSOR_UTIL ? sample->has_tensor
						 : id != LL_NVML_GPM_DRAM_BW_UTIL || sample->has_dram;
}

/* Computes the metric's value between the two samples. Returns false if the metric is not modelled. */
static bool compute_metric(unsigned id, const struct sim_meter *a, const struct sim_meter *b, double s,
			   double *ret_value)
{
	const double mib = 1 << 20;
	switch (id) {
	case LL_NVML_GPM_GRAPHICS_UTIL:
		*ret_value = (b->busy_s - a->busy_s) / s * 100;
		return true;
	case LL_NVML_GPM_SM_UTIL:
		*ret_value = (b->sm_s - a->sm_s) / s * 100;
		return true;
	case LL_NVML_GPM_SM_OCCUPANCY:
		*ret_value = (b->occupancy_s - a->occupancy_s) / s * 100;
		return true;
	case LL_NVML_GPM_FP32_UTIL:
		*ret_value = (b->fp32_s - a->fp32_s) / s * 100;
		return true;
	case LL_NVML_GPM_ANY_TENSOR_UTIL:
		*ret_value = (b->tensor_s - a->tensor_s) / s * 100;
		return true;
	case LL_NVML_GPM_DRAM_BW_UTIL:
		*ret_value = (b->dram_s - a->dram_s) / s * 100;
		return true;
	case LL_NVML_GPM_PCIE_TX_PER_SEC:
		*ret_value = (b->bytes_from_card - a->bytes_from_card) / s / mib;
		return true;
	case LL_NVML_GPM_PCIE_RX_PER_SEC:
		*ret_value = (b->bytes_to_card - a->bytes_to_card) / s / mib;
		return true;
	case LL_NVML_GPM_INTEGER_UTIL:
	case LL_NVML_GPM_FP64_UTIL:
	case LL_NVML_GPM_FP16_UTIL:
		*ret_value = 0;
		return true;
	default:
		return false;
	}
}

static const char *short_name(unsigned id)
{
	switch (id) {
	case LL_NVML_GPM_GRAPHICS_UTIL:
		return "GRAPHICS_UTIL";
	case LL_NVML_GPM_SM_UTIL:
		return "SM_UTIL";
	case LL_NVML_GPM_SM_OCCUPANCY:
		return "SM_OCCUPANCY";
	default:
		return "GPM_METRIC";
	}
}

ll_nvml_result nvmlGpmMetricsGet(struct ll_nvml_gpm_metrics *metrics)
{
	SIM_NVML_ENTER();
	if (!metrics)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	if (metrics->version != LL_NVML_GPM_METRICS_VERSION)
		return LL_NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	const struct ll_nvml_gpm_sample *a = metrics->earlier, *b = metrics->later;
	if (!a || !b || !a->is_taken || !b->is_taken || a->card != b->card || metrics->count > LL_NVML_GPM_METRIC_MAX)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	uint64_t length_ns = b->time_ns > a->time_ns ? b->time_ns - a->time_ns : 0;
	for (unsigned i = 0; i < metrics->count; i++) {
		struct ll_nvml_gpm_metric *metric = &metrics->metrics[i];
		double s = (double)length_ns * 1e-9, value;
		metric->info.short_name = (char *)(uintptr_t)short_name(metric->id);
		metric->info.long_name = metric->info.short_name;
		metric->info.unit = (char *)(uintptr_t) "%";
		if (!is_given(metric->id, b) || !compute_metric(metric->id, &a->meter, &b->meter, s, &value)) {
			metric->status = LL_NVML_ERROR_NOT_SUPPORTED;
			continue;
		}
		metric->status = LL_NVML_SUCCESS;
		metric->value = length_ns >= SHORTEST_NS ? value : length_ns >= SHORTEST_NS / 2 ? 0 : NAN;
	}
	return LL_NVML_SUCCESS;
}
