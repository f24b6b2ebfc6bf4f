#include "cuda/local/versions.h"

#include <limits.h>
#include <string.h>

/* Functions with a version in their symbol, and functions that are not in all versions: the symbol of a plain name, and
 * the CUDA version from which it has this meaning. */
static const struct {
	const char *name;
	int since;
	const char *symbol;
} versions[] = {
    {"cuDeviceGetUuid", 9020, "cuDeviceGetUuid"},
    {"cuDeviceGetUuid", 11040, "cuDeviceGetUuid_v2"},
    {"cuGetProcAddress", 11030, "cuGetProcAddress"},
    {"cuGetProcAddress", 12000, "cuGetProcAddress_v2"},
    {"cuDeviceTotalMem", 2000, "cuDeviceTotalMem"},
    {"cuDeviceTotalMem", 3020, "cuDeviceTotalMem_v2"},
    {"cuDevicePrimaryCtxRelease", 7000, "cuDevicePrimaryCtxRelease"},
    {"cuDevicePrimaryCtxRelease", 11000, "cuDevicePrimaryCtxRelease_v2"},
    {"cuDevicePrimaryCtxReset", 7000, "cuDevicePrimaryCtxReset"},
    {"cuDevicePrimaryCtxReset", 11000, "cuDevicePrimaryCtxReset_v2"},
    {"cuDevicePrimaryCtxSetFlags", 7000, "cuDevicePrimaryCtxSetFlags"},
    {"cuDevicePrimaryCtxSetFlags", 11000, "cuDevicePrimaryCtxSetFlags_v2"},
    {"cuCtxCreate", 2000, "cuCtxCreate"},
    {"cuCtxCreate", 3020, "cuCtxCreate_v2"},
    {"cuCtxCreate", 11040, "cuCtxCreate_v3"},
    {"cuCtxCreate", 12050, "cuCtxCreate_v4"},
    {"cuGLCtxCreate", 2000, "cuGLCtxCreate"},
    {"cuGLCtxCreate", 3020, "cuGLCtxCreate_v2"},
    {"cuVDPAUCtxCreate", 3010, "cuVDPAUCtxCreate"},
    {"cuVDPAUCtxCreate", 3020, "cuVDPAUCtxCreate_v2"},
    {"cuCtxDestroy", 2000, "cuCtxDestroy"},
    {"cuCtxDestroy", 4000, "cuCtxDestroy_v2"},
    {"cuCtxSynchronize", 2000, "cuCtxSynchronize"},
    {"cuCtxSynchronize", 13000, "cuCtxSynchronize_v2"},
    {"cuCtxPushCurrent", 4000, "cuCtxPushCurrent_v2"},
    {"cuCtxPopCurrent", 4000, "cuCtxPopCurrent_v2"},
    {"cuModuleGetGlobal", 3020, "cuModuleGetGlobal_v2"},
    {"cuMemGetInfo", 2000, "cuMemGetInfo"},
    {"cuMemGetInfo", 3020, "cuMemGetInfo_v2"},
    {"cuMemAlloc", 2000, "cuMemAlloc"},
    {"cuMemAlloc", 3020, "cuMemAlloc_v2"},
    {"cuMemAllocPitch", 2000, "cuMemAllocPitch"},
    {"cuMemAllocPitch", 3020, "cuMemAllocPitch_v2"},
    {"cuMemFree", 2000, "cuMemFree"},
    {"cuMemFree", 3020, "cuMemFree_v2"},
    {"cuMemGetAddressRange", 2000, "cuMemGetAddressRange"},
    {"cuMemGetAddressRange", 3020, "cuMemGetAddressRange_v2"},
    {"cuMemAllocHost", 3020, "cuMemAllocHost_v2"},
    {"cuMemHostGetDevicePointer", 3020, "cuMemHostGetDevicePointer_v2"},
    {"cuMemHostRegister", 6050, "cuMemHostRegister_v2"},
    {"cuMemcpyHtoD", 3020, "cuMemcpyHtoD_v2"},
    {"cuMemcpyDtoH", 3020, "cuMemcpyDtoH_v2"},
    {"cuMemcpyDtoD", 3020, "cuMemcpyDtoD_v2"},
    {"cuMemcpyHtoDAsync", 3020, "cuMemcpyHtoDAsync_v2"},
    {"cuMemcpyDtoHAsync", 3020, "cuMemcpyDtoHAsync_v2"},
    {"cuMemcpyDtoDAsync", 3020, "cuMemcpyDtoDAsync_v2"},
    {"cuMemsetD8", 3020, "cuMemsetD8_v2"},
    {"cuMemsetD16", 3020, "cuMemsetD16_v2"},
    {"cuMemsetD32", 3020, "cuMemsetD32_v2"},
    {"cuArrayCreate", 2000, "cuArrayCreate"},
    {"cuArrayCreate", 3020, "cuArrayCreate_v2"},
    {"cuArrayGetDescriptor", 2000, "cuArrayGetDescriptor"},
    {"cuArrayGetDescriptor", 3020, "cuArrayGetDescriptor_v2"},
    {"cuArray3DCreate", 2000, "cuArray3DCreate"},
    {"cuArray3DCreate", 3020, "cuArray3DCreate_v2"},
    {"cuArray3DGetDescriptor", 2000, "cuArray3DGetDescriptor"},
    {"cuArray3DGetDescriptor", 3020, "cuArray3DGetDescriptor_v2"},
    {"cuCtxGetId", 12000, "cuCtxGetId"},
    {"cuMemAllocAsync", 11020, "cuMemAllocAsync"},
    {"cuMemAllocFromPoolAsync", 11020, "cuMemAllocFromPoolAsync"},
    {"cuMemFreeAsync", 11020, "cuMemFreeAsync"},
    {"cuMemPoolCreate", 11020, "cuMemPoolCreate"},
    {"cuMemPoolDestroy", 11020, "cuMemPoolDestroy"},
    {"cuMemPoolTrimTo", 11020, "cuMemPoolTrimTo"},
    {"cuMemPoolSetAttribute", 11020, "cuMemPoolSetAttribute"},
    {"cuMemPoolGetAttribute", 11020, "cuMemPoolGetAttribute"},
    {"cuMemPoolSetAccess", 11020, "cuMemPoolSetAccess"},
    {"cuMemPoolGetAccess", 11020, "cuMemPoolGetAccess"},
    {"cuMemPoolExportToShareableHandle", 11020, "cuMemPoolExportToShareableHandle"},
    {"cuMemPoolImportFromShareableHandle", 11020, "cuMemPoolImportFromShareableHandle"},
    {"cuMemPoolExportPointer", 11020, "cuMemPoolExportPointer"},
    {"cuMemPoolImportPointer", 11020, "cuMemPoolImportPointer"},
    {"cuDeviceGetDefaultMemPool", 11020, "cuDeviceGetDefaultMemPool"},
    {"cuDeviceGetMemPool", 11020, "cuDeviceGetMemPool"},
    {"cuDeviceSetMemPool", 11020, "cuDeviceSetMemPool"},
    {"cuMemGetDefaultMemPool", 13000, "cuMemGetDefaultMemPool"},
    {"cuMemGetMemPool", 13000, "cuMemGetMemPool"},
    {"cuMemSetMemPool", 13000, "cuMemSetMemPool"},
    {"cuDeviceGetGraphMemAttribute", 11040, "cuDeviceGetGraphMemAttribute"},
    {"cuDeviceSetGraphMemAttribute", 11040, "cuDeviceSetGraphMemAttribute"},
    {"cuDeviceGraphMemTrim", 11040, "cuDeviceGraphMemTrim"},
    {"cuMemAddressReserve", 10020, "cuMemAddressReserve"},
    {"cuMemAddressFree", 10020, "cuMemAddressFree"},
    {"cuMemCreate", 10020, "cuMemCreate"},
    {"cuMemRelease", 10020, "cuMemRelease"},
    {"cuMemMap", 10020, "cuMemMap"},
    {"cuMemUnmap", 10020, "cuMemUnmap"},
    {"cuMemSetAccess", 10020, "cuMemSetAccess"},
    {"cuMemGetAccess", 10020, "cuMemGetAccess"},
    {"cuMemGetAllocationGranularity", 10020, "cuMemGetAllocationGranularity"},
    {"cuMemGetAllocationPropertiesFromHandle", 10020, "cuMemGetAllocationPropertiesFromHandle"},
    {"cuMemRetainAllocationHandle", 11000, "cuMemRetainAllocationHandle"},
    {"cuMemExportToShareableHandle", 10020, "cuMemExportToShareableHandle"},
    {"cuMemImportFromShareableHandle", 10020, "cuMemImportFromShareableHandle"},
    {"cuMemMapArrayAsync", 11010, "cuMemMapArrayAsync"},
    {"cuMulticastCreate", 12010, "cuMulticastCreate"},
    {"cuMulticastAddDevice", 12010, "cuMulticastAddDevice"},
    {"cuMulticastBindMem", 12010, "cuMulticastBindMem"},
    {"cuMulticastBindAddr", 12010, "cuMulticastBindAddr"},
    /* The real driver has them from 13.1 on. This driver reports 13.0, and has them. */
    {"cuMulticastBindMem_v2", 13000, "cuMulticastBindMem_v2"},
    {"cuMulticastBindAddr_v2", 13000, "cuMulticastBindAddr_v2"},
    {"cuMulticastUnbind", 12010, "cuMulticastUnbind"},
    {"cuMulticastGetGranularity", 12010, "cuMulticastGetGranularity"},
    {"cuMemAllocManaged", 6000, "cuMemAllocManaged"},
    {"cuMemPrefetchAsync", 8000, "cuMemPrefetchAsync"},
    {"cuMemPrefetchAsync", 12020, "cuMemPrefetchAsync_v2"},
    {"cuMemPrefetchBatchAsync", 13000, "cuMemPrefetchBatchAsync"},
    {"cuMemDiscardBatchAsync", 13000, "cuMemDiscardBatchAsync"},
    {"cuMemDiscardAndPrefetchBatchAsync", 13000, "cuMemDiscardAndPrefetchBatchAsync"},
    {"cuMemBatchDecompressAsync", 12060, "cuMemBatchDecompressAsync"},
    {"cuCheckpointProcessLock", 12080, "cuCheckpointProcessLock"},
    {"cuCheckpointProcessCheckpoint", 12080, "cuCheckpointProcessCheckpoint"},
    {"cuCheckpointProcessRestore", 12080, "cuCheckpointProcessRestore"},
    {"cuCheckpointProcessUnlock", 12080, "cuCheckpointProcessUnlock"},
    {"cuCheckpointProcessGetState", 12080, "cuCheckpointProcessGetState"},
    {"cuMemGetHandleForAddressRange", 11070, "cuMemGetHandleForAddressRange"},
    {"cuMemAdvise", 8000, "cuMemAdvise"},
    {"cuMemAdvise", 12020, "cuMemAdvise_v2"},
    {"cuPointerGetAttributes", 7000, "cuPointerGetAttributes"},
    {"cuPointerSetAttribute", 6000, "cuPointerSetAttribute"},
    {"cuArrayGetMemoryRequirements", 11060, "cuArrayGetMemoryRequirements"},
    {"cuArrayDestroy", 2000, "cuArrayDestroy"},
    {"cuMipmappedArrayCreate", 5000, "cuMipmappedArrayCreate"},
    {"cuMipmappedArrayGetLevel", 5000, "cuMipmappedArrayGetLevel"},
    {"cuMipmappedArrayGetMemoryRequirements", 11060, "cuMipmappedArrayGetMemoryRequirements"},
    {"cuMipmappedArrayDestroy", 5000, "cuMipmappedArrayDestroy"},
    {"cuImportExternalMemory", 10000, "cuImportExternalMemory"},
    {"cuExternalMemoryGetMappedBuffer", 10000, "cuExternalMemoryGetMappedBuffer"},
    {"cuExternalMemoryGetMappedMipmappedArray", 10000, "cuExternalMemoryGetMappedMipmappedArray"},
    {"cuDestroyExternalMemory", 10000, "cuDestroyExternalMemory"},
    {"cuIpcGetMemHandle", 4010, "cuIpcGetMemHandle"},
    {"cuIpcOpenMemHandle", 4010, "cuIpcOpenMemHandle"},
    {"cuIpcOpenMemHandle", 11000, "cuIpcOpenMemHandle_v2"},
    {"cuIpcCloseMemHandle", 4010, "cuIpcCloseMemHandle"},
    {"cuIpcGetEventHandle", 4010, "cuIpcGetEventHandle"},
    {"cuIpcOpenEventHandle", 4010, "cuIpcOpenEventHandle"},
    {"cuStreamDestroy", 4000, "cuStreamDestroy_v2"},
    {"cuStreamWriteValue32", 8000, "cuStreamWriteValue32"},
    {"cuStreamWriteValue32", 11070, "cuStreamWriteValue32_v2"},
    {"cuStreamWaitValue32", 11070, "cuStreamWaitValue32_v2"},
    {"cuEventDestroy", 4000, "cuEventDestroy_v2"},
    {"cuEventElapsedTime", 2000, "cuEventElapsedTime"},
    {"cuEventElapsedTime", 12080, "cuEventElapsedTime_v2"},
    {"cuLaunchHostFunc", 10000, "cuLaunchHostFunc"},
    {"cuEventRecordWithFlags", 11010, "cuEventRecordWithFlags"},
    {"cuLaunchKernelEx", 11060, "cuLaunchKernelEx"},
    {"cuFuncGetName", 12030, "cuFuncGetName"},
#define SIM_VERSION(name, since, symbol) {name, since, symbol},
#include "cuda/local/versions_launch.def"
#define SIM_VERSION(name, since, symbol) {name, since, symbol},
#include "cuda/local/versions_copy.def"
};

const char *sim_version_symbol(const char *name, int version, enum ll_cu_proc_address_result *ret_status)
{
	const char *best = NULL;
	bool is_versioned = false;
	int best_since = 0;
	for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
		if (strcmp(versions[i].name, name) != 0)
			continue;
		is_versioned = true;
		if (versions[i].since > version || versions[i].since < best_since)
			continue;
		best = versions[i].symbol;
		best_since = versions[i].since;
	}
	*ret_status =
	    is_versioned && !best ? LL_CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : LL_CU_GET_PROC_ADDRESS_SUCCESS;
	return is_versioned ? best : name;
}

/* A per-thread variant is as old as its function. */
static bool came_with(const char *symbol, const char *base)
{
	size_t length = strlen(base);
	return strncmp(symbol, base, length) == 0 &&
	       (!symbol[length] || strcmp(symbol + length, "_ptsz") == 0 || strcmp(symbol + length, "_ptds") == 0);
}

bool sim_version_is_newer(const struct sim_world *w, const char *symbol)
{
	int since = INT_MAX;
	for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
		if (came_with(symbol, versions[i].symbol) && versions[i].since < since)
			since = versions[i].since;
	}
	return since != INT_MAX && since > (int)w->cuda_version;
}
