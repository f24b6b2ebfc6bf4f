/*
 * Event sets: Xid reports.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "card/engine.h"
#include "nvml/local.h"

struct ll_nvml_event_set {
	uint64_t cards; /* registered cards, one bit each */
	uint64_t seen;  /* sequence of the last read report */
};

enum { POLL_NS = 5000000 };

ll_nvml_result nvmlEventSetCreate(struct ll_nvml_event_set **ret_set)
{
	SIM_NVML_ENTER();
	if (!ret_set)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	struct ll_nvml_event_set *set = calloc(1, sizeof *set);
	if (!set)
		return LL_NVML_ERROR_MEMORY;
	*ret_set = set;
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlEventSetFree(struct ll_nvml_event_set *set)
{
	SIM_NVML_ENTER();
	if (!set)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	free(set);
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlDeviceGetSupportedEventTypes(struct ll_nvml_device *device, unsigned long long *ret_types)
{
	SIM_NVML_OPEN(view, device);
	if (!ret_types)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	*ret_types = view.is_slice ? 0 : LL_NVML_EVENT_XID_CRITICAL;
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlDeviceRegisterEvents(struct ll_nvml_device *device, unsigned long long types,
					struct ll_nvml_event_set *set)
{
	SIM_NVML_OPEN(view, device);
	if (!set)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	if (view.is_slice || types & ~LL_NVML_EVENT_XID_CRITICAL)
		return LL_NVML_ERROR_NOT_SUPPORTED;
	if (!set->cards)
		set->seen = view.w->next_xid - 1;
	set->cards |= UINT64_C(1) << view.index;
	return LL_NVML_SUCCESS;
}

/* Returns the next report for a registered card. */
static bool take_report(struct sim_world *w, struct ll_nvml_event_set *set, struct ll_nvml_event *ret_event)
{
	/* Overwritten reports are lost, as in the real queue. */
	if (set->seen + SIM_XIDS < w->next_xid)
		set->seen = w->next_xid - SIM_XIDS;
	while (set->seen + 1 < w->next_xid) {
		const struct sim_xid *report = &w->xids[++set->seen % SIM_XIDS];
		uint32_t card =
		    w->cards[report->card].parent == SIM_NONE ? report->card : w->cards[report->card].parent;
		if (!(set->cards >> card & 1))
			continue;
		*ret_event = (struct ll_nvml_event){
		    .device = sim_nvml_handle(card),
		    .type = LL_NVML_EVENT_XID_CRITICAL,
		    .data = report->xid,
		    .gpu_instance_id = UINT32_MAX,
		    .compute_instance_id = UINT32_MAX,
		};
		return true;
	}
	return false;
}

ll_nvml_result nvmlEventSetWait_v2(struct ll_nvml_event_set *set, struct ll_nvml_event *ret_event,
				   unsigned int timeout_ms)
{
	SIM_NVML_ENTER();
	struct sim_world *w = sim_nvml_world();
	if (!set || !ret_event)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	uint64_t deadline_ns = ll_now_ns() + timeout_ms * LL_NS_PER_MS;
	for (;;) {
		sim_lock(w);
		sim_advance_to_now(w);
		bool is_there = take_report(w, set, ret_event);
		sim_unlock(w);
		uint64_t now_ns = ll_now_ns();
		if (is_there)
			return LL_NVML_SUCCESS;
		if (now_ns >= deadline_ns)
			return LL_NVML_ERROR_TIMEOUT;
		ll_sleep_until_ns(deadline_ns - now_ns < POLL_NS ? deadline_ns : now_ns + POLL_NS);
	}
}
