#include "shim/interpose/device_uuid.h"

#include <stdio.h>
#include <string.h>

#include "shim/interpose/real.h"

/*
 * Finds the prefix of the UUID. CUDA gives the UUID of a MIG slice in the same form as that of a card. NVML and
 * loadlined begin it with MIG. A slice is recognized by its name, for example "NVIDIA H200 MIG 1g.18gb".
 */
static ll_cu_result find_prefix(ll_cu_device device, const char **ret_prefix)
{
	char name[96] = "";
	ll_cu_result status = ll_real()->cuDeviceGetName(name, sizeof name, device);
	bool is_slice = status == LL_CUDA_SUCCESS && strstr(name, " MIG ") && LL_REAL_HAS(cuDeviceGetUuid_v2);
	*ret_prefix = is_slice ? "MIG" : "GPU";
	return ll_real_has_failed(status) ? status : LL_CUDA_SUCCESS;
}

ll_cu_result ll_device_find_uuid(ll_cu_device device, char *text, size_t size)
{
	struct ll_cu_uuid uuid;
	const char *prefix;
	ll_cu_result status = LL_REAL_HAS(cuDeviceGetUuid_v2) ? ll_real()->cuDeviceGetUuid_v2(&uuid, device)
							      : ll_real()->cuDeviceGetUuid(&uuid, device);
	if (status == LL_CUDA_SUCCESS)
		status = find_prefix(device, &prefix);
	if (status != LL_CUDA_SUCCESS)
		return status;
	const unsigned char *b = (const unsigned char *)uuid.bytes;
	snprintf(text, size, "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", prefix, b[0],
		 b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
	return LL_CUDA_SUCCESS;
}

bool ll_device_uuid(ll_cu_device device, char *text, size_t size)
{
	return ll_device_find_uuid(device, text, size) == LL_CUDA_SUCCESS;
}
