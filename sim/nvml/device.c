/*
 * The cards, their names, and MIG slices.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "nvml/local.h"

static ll_nvml_result answer_text(char *ret_text, unsigned size, const char *text)
{
	if (!ret_text)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	if (strlen(text) >= size)
		return LL_NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(ret_text, text, strlen(text) + 1);
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlDeviceGetCount_v2(unsigned int *ret_count)
{
	SIM_NVML_ENTER();
	if (!ret_count)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	*ret_count = sim_nvml_world()->card_count;
	return LL_NVML_SUCCESS;
}

static ll_nvml_result answer_handle(uint32_t card, struct ll_nvml_device **ret_device)
{
	struct sim_nvml_view view;
	ll_nvml_result status = sim_nvml_open("", sim_nvml_handle(card), &view);
	if (status)
		return status;
	*ret_device = sim_nvml_handle(card);
	sim_nvml_close(&view);
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlDeviceGetHandleByIndex_v2(unsigned int index, struct ll_nvml_device **ret_device)
{
	SIM_NVML_ENTER();
	if (!ret_device || index >= sim_nvml_world()->card_count)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	return answer_handle(index, ret_device);
}

ll_nvml_result nvmlDeviceGetHandleByUUID(const char *uuid, struct ll_nvml_device **ret_device)
{
	SIM_NVML_ENTER();
	const struct sim_world *w = sim_nvml_world();
	if (!ret_device || !uuid)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	for (uint32_t i = 0; i < w->slot_count; i++) {
		if (strcasecmp(w->cards[i].uuid, uuid) == 0)
			return answer_handle(i, ret_device);
	}
	return LL_NVML_ERROR_NOT_FOUND;
}

static void bus_ids(const struct sim_card *card, char legacy[16], char full[32])
{
	snprintf(legacy, 16, "%04X:%02X:%02X.0", card->pci_domain & 0xffff, card->pci_bus & 0xff,
		 card->pci_device & 0xff);
	snprintf(full, 32, "%08X:%02X:%02X.0", card->pci_domain, card->pci_bus, card->pci_device);
}

ll_nvml_result nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, struct ll_nvml_device **ret_device)
{
	SIM_NVML_ENTER();
	const struct sim_world *w = sim_nvml_world();
	char legacy[16], full[32];
	if (!ret_device || !bus_id)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	for (uint32_t i = 0; i < w->card_count; i++) {
		bus_ids(&w->cards[i], legacy, full);
		if (strcasecmp(bus_id, legacy) == 0 || strcasecmp(bus_id, full) == 0)
			return answer_handle(i, ret_device);
	}
	return LL_NVML_ERROR_NOT_FOUND;
}

ll_nvml_result nvmlDeviceGetName(struct ll_nvml_device *device, char *ret_name, unsigned int size)
{
	SIM_NVML_OPEN(view, device);
	return answer_text(ret_name, size, view.card->name);
}

ll_nvml_result nvmlDeviceGetUUID(struct ll_nvml_device *device, char *ret_uuid, unsigned int size)
{
	SIM_NVML_OPEN(view, device);
	return answer_text(ret_uuid, size, view.card->uuid);
}

ll_nvml_result nvmlDeviceGetPciInfo_v3(struct ll_nvml_device *device, struct ll_nvml_pci_info *ret_info)
{
	SIM_NVML_OPEN(view, device);
	const struct sim_card *card = &view.w->cards[view.physical];
	if (!ret_info)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	*ret_info = (struct ll_nvml_pci_info){
	    .domain = card->pci_domain,
	    .bus = card->pci_bus,
	    .device = card->pci_device,
	    .pci_device_id = 0x233510de,
	    .pci_subsystem_id = 0x18be10de,
	};
	bus_ids(card, ret_info->bus_id_legacy, ret_info->bus_id);
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlDeviceGetIndex(struct ll_nvml_device *device, unsigned int *ret_index)
{
	SIM_NVML_OPEN(view, device);
	if (!ret_index)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	*ret_index = view.is_slice ? view.card->slice_index : view.index;
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlDeviceGetMinorNumber(struct ll_nvml_device *device, unsigned int *ret_minor)
{
	SIM_NVML_OPEN(view, device);
	if (!ret_minor)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	*ret_minor = view.physical;
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlDeviceGetCudaComputeCapability(struct ll_nvml_device *device, int *ret_major, int *ret_minor)
{
	SIM_NVML_OPEN(view, device);
	if (!ret_major || !ret_minor)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	*ret_major = (int)view.card->capability_major;
	*ret_minor = (int)view.card->capability_minor;
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlDeviceGetNumGpuCores(struct ll_nvml_device *device, unsigned int *ret_cores)
{
	SIM_NVML_OPEN(view, device);
	if (!ret_cores)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	*ret_cores = view.card->sm_count * 128;
	return LL_NVML_SUCCESS;
}

/* Only for slices, as in the real library. */
ll_nvml_result nvmlDeviceGetAttributes_v2(struct ll_nvml_device *device, struct ll_nvml_attributes *ret_attributes)
{
	SIM_NVML_OPEN(view, device);
	if (!ret_attributes)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	if (!view.is_slice)
		return LL_NVML_ERROR_NOT_SUPPORTED;
	*ret_attributes = (struct ll_nvml_attributes){
	    .sm_count = view.card->sm_count,
	    .copy_engine_count = 1,
	    .gpu_instance_slices = 1,
	    .compute_instance_slices = 1,
	    .memory_mib = view.card->memory_bytes >> 20,
	};
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlDeviceGetPersistenceMode(struct ll_nvml_device *device, enum ll_nvml_enable_state *ret_state)
{
	SIM_NVML_OPEN(view, device);
	if (!ret_state)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	*ret_state = LL_NVML_FEATURE_ENABLED;
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlDeviceGetComputeMode(struct ll_nvml_device *device, enum ll_nvml_compute_mode *ret_mode)
{
	SIM_NVML_OPEN(view, device);
	if (!ret_mode)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	*ret_mode = (enum ll_nvml_compute_mode)view.w->cards[view.physical].compute_mode;
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlDeviceSetComputeMode(struct ll_nvml_device *device, enum ll_nvml_compute_mode mode)
{
	SIM_NVML_OPEN(view, device);
	if (mode != LL_NVML_COMPUTEMODE_DEFAULT && mode != LL_NVML_COMPUTEMODE_PROHIBITED &&
	    mode != LL_NVML_COMPUTEMODE_EXCLUSIVE_PROCESS)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	if (view.is_slice)
		return LL_NVML_ERROR_NOT_SUPPORTED;
	if (geteuid() != 0)
		return LL_NVML_ERROR_NO_PERMISSION;
	SIM_EDIT(view.w, view.card)->compute_mode = (uint32_t)mode;
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlDeviceGetMigMode(struct ll_nvml_device *device, unsigned int *ret_current, unsigned int *ret_pending)
{
	SIM_NVML_OPEN(view, device);
	if (!ret_current || !ret_pending)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	if (view.card->capability_major < 8 || view.is_slice)
		return LL_NVML_ERROR_NOT_SUPPORTED;
	*ret_current = view.card->slice_count ? LL_NVML_DEVICE_MIG_ENABLE : LL_NVML_DEVICE_MIG_DISABLE;
	*ret_pending = *ret_current;
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlDeviceGetMaxMigDeviceCount(struct ll_nvml_device *device, unsigned int *ret_count)
{
	SIM_NVML_OPEN(view, device);
	if (!ret_count || view.is_slice)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	*ret_count = view.card->capability_major < 8 ? 0 : 7;
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlDeviceGetMigDeviceHandleByIndex(struct ll_nvml_device *device, unsigned int index,
						   struct ll_nvml_device **ret_slice)
{
	SIM_NVML_OPEN(view, device);
	if (!ret_slice || index >= 7)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	for (uint32_t i = view.w->card_count; i < view.w->slot_count; i++) {
		if (view.w->cards[i].parent == view.index && view.w->cards[i].slice_index == index) {
			*ret_slice = sim_nvml_handle(i);
			return LL_NVML_SUCCESS;
		}
	}
	return LL_NVML_ERROR_NOT_FOUND;
}

ll_nvml_result nvmlDeviceIsMigDeviceHandle(struct ll_nvml_device *device, unsigned int *ret_is_slice)
{
	SIM_NVML_OPEN(view, device);
	if (!ret_is_slice)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	*ret_is_slice = view.is_slice;
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlDeviceGetDeviceHandleFromMigDeviceHandle(struct ll_nvml_device *slice,
							    struct ll_nvml_device **ret_device)
{
	SIM_NVML_OPEN(view, slice);
	if (!ret_device || !view.is_slice)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	*ret_device = sim_nvml_handle(view.physical);
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlDeviceGetGpuInstanceId(struct ll_nvml_device *slice, unsigned int *ret_id)
{
	SIM_NVML_OPEN(view, slice);
	if (!ret_id)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	if (!view.is_slice)
		return LL_NVML_ERROR_NOT_SUPPORTED;
	*ret_id = view.card->gpu_instance_id;
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlDeviceGetComputeInstanceId(struct ll_nvml_device *slice, unsigned int *ret_id)
{
	SIM_NVML_OPEN(view, slice);
	if (!ret_id)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	if (!view.is_slice)
		return LL_NVML_ERROR_NOT_SUPPORTED;
	*ret_id = 0;
	return LL_NVML_SUCCESS;
}
