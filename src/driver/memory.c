#include "driver/fail.h"
#include "driver/readings.h"

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
