/*
 * Compares src/abi/nvml.h and nvml.def with the vendor's nvml.h, as abi_compare_cuda.c does for CUDA. It
 * comes with the toolkit's cuda_nvml_dev package; where there is none the program skips (77).
 */
#include "abi/nvml.h"

#include <stddef.h>
#include <stdio.h>

#if __has_include(<nvml.h>)

/* Keeps the plain names unversioned, so that every version can be named. */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#define SAME(ours, theirs) _Static_assert((int)LL_NVML_##ours == (int)theirs, #theirs)
#define SAME_NAME(name) _Static_assert((int)LL_NVML_##name == (int)NVML_##name, #name)

SAME_NAME(SUCCESS);
SAME_NAME(ERROR_UNINITIALIZED);
SAME_NAME(ERROR_INVALID_ARGUMENT);
SAME_NAME(ERROR_NOT_SUPPORTED);
SAME_NAME(ERROR_NO_PERMISSION);
SAME_NAME(ERROR_ALREADY_INITIALIZED);
SAME_NAME(ERROR_NOT_FOUND);
SAME_NAME(ERROR_INSUFFICIENT_SIZE);
SAME_NAME(ERROR_INSUFFICIENT_POWER);
SAME_NAME(ERROR_DRIVER_NOT_LOADED);
SAME_NAME(ERROR_TIMEOUT);
SAME_NAME(ERROR_IRQ_ISSUE);
SAME_NAME(ERROR_LIBRARY_NOT_FOUND);
SAME_NAME(ERROR_FUNCTION_NOT_FOUND);
SAME_NAME(ERROR_CORRUPTED_INFOROM);
SAME_NAME(ERROR_GPU_IS_LOST);
SAME_NAME(ERROR_RESET_REQUIRED);
SAME_NAME(ERROR_OPERATING_SYSTEM);
SAME_NAME(ERROR_LIB_RM_VERSION_MISMATCH);
SAME_NAME(ERROR_IN_USE);
SAME_NAME(ERROR_MEMORY);
SAME_NAME(ERROR_NO_DATA);
SAME_NAME(ERROR_INSUFFICIENT_RESOURCES);
SAME_NAME(ERROR_FREQ_NOT_SUPPORTED);
SAME_NAME(ERROR_ARGUMENT_VERSION_MISMATCH);
SAME_NAME(ERROR_DEPRECATED);
SAME_NAME(ERROR_NOT_READY);
SAME_NAME(ERROR_GPU_NOT_FOUND);
SAME_NAME(ERROR_INVALID_STATE);
SAME_NAME(ERROR_UNKNOWN);
SAME(UUID_BUFFER_SIZE, NVML_DEVICE_UUID_V2_BUFFER_SIZE);
SAME(NAME_BUFFER_SIZE, NVML_DEVICE_NAME_V2_BUFFER_SIZE);
SAME(VERSION_BUFFER_SIZE, NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE);
SAME(PCI_BUS_ID_BUFFER_SIZE, NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE);
SAME(PCI_BUS_ID_LEGACY_BUFFER_SIZE, NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE);
SAME_NAME(VALUE_TYPE_DOUBLE);
SAME_NAME(VALUE_TYPE_UNSIGNED_INT);
SAME_NAME(VALUE_TYPE_UNSIGNED_LONG);
SAME_NAME(VALUE_TYPE_UNSIGNED_LONG_LONG);
SAME_NAME(VALUE_TYPE_SIGNED_LONG_LONG);
SAME_NAME(VALUE_TYPE_SIGNED_INT);
SAME_NAME(VALUE_TYPE_UNSIGNED_SHORT);
SAME_NAME(TOTAL_POWER_SAMPLES);
SAME_NAME(GPU_UTILIZATION_SAMPLES);
SAME_NAME(MEMORY_UTILIZATION_SAMPLES);
SAME_NAME(ENC_UTILIZATION_SAMPLES);
SAME_NAME(DEC_UTILIZATION_SAMPLES);
SAME_NAME(PROCESSOR_CLK_SAMPLES);
SAME_NAME(MEMORY_CLK_SAMPLES);
SAME_NAME(TEMPERATURE_GPU);
SAME_NAME(TEMPERATURE_THRESHOLD_SHUTDOWN);
SAME_NAME(TEMPERATURE_THRESHOLD_SLOWDOWN);
SAME_NAME(TEMPERATURE_THRESHOLD_MEM_MAX);
SAME_NAME(TEMPERATURE_THRESHOLD_GPU_MAX);
SAME_NAME(CLOCK_GRAPHICS);
SAME_NAME(CLOCK_SM);
SAME_NAME(CLOCK_MEM);
SAME_NAME(CLOCK_VIDEO);
SAME_NAME(COMPUTEMODE_DEFAULT);
SAME_NAME(COMPUTEMODE_EXCLUSIVE_THREAD);
SAME_NAME(COMPUTEMODE_PROHIBITED);
SAME_NAME(COMPUTEMODE_EXCLUSIVE_PROCESS);
SAME_NAME(FEATURE_DISABLED);
SAME_NAME(FEATURE_ENABLED);
SAME_NAME(DEVICE_MIG_DISABLE);
SAME_NAME(DEVICE_MIG_ENABLE);
SAME(CLOCKS_GPU_IDLE, nvmlClocksEventReasonGpuIdle);
SAME(CLOCKS_APPLICATIONS_SETTING, nvmlClocksEventReasonApplicationsClocksSetting);
SAME(CLOCKS_SW_POWER_CAP, nvmlClocksEventReasonSwPowerCap);
SAME(CLOCKS_HW_SLOWDOWN, nvmlClocksThrottleReasonHwSlowdown);
SAME(CLOCKS_SYNC_BOOST, nvmlClocksEventReasonSyncBoost);
SAME(CLOCKS_SW_THERMAL_SLOWDOWN, nvmlClocksEventReasonSwThermalSlowdown);
SAME(CLOCKS_HW_THERMAL_SLOWDOWN, nvmlClocksThrottleReasonHwThermalSlowdown);
SAME(CLOCKS_HW_POWER_BRAKE, nvmlClocksThrottleReasonHwPowerBrakeSlowdown);
SAME(CLOCKS_DISPLAY_SETTING, nvmlClocksEventReasonDisplayClockSetting);
SAME(FI_TOTAL_ENERGY_CONSUMPTION, NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION);
SAME(FI_POWER_AVERAGE, NVML_FI_DEV_POWER_AVERAGE);
SAME(FI_POWER_INSTANT, NVML_FI_DEV_POWER_INSTANT);
SAME(GPM_GRAPHICS_UTIL, NVML_GPM_METRIC_GRAPHICS_UTIL);
SAME(GPM_SM_UTIL, NVML_GPM_METRIC_SM_UTIL);
SAME(GPM_SM_OCCUPANCY, NVML_GPM_METRIC_SM_OCCUPANCY);
SAME(GPM_INTEGER_UTIL, NVML_GPM_METRIC_INTEGER_UTIL);
SAME(GPM_ANY_TENSOR_UTIL, NVML_GPM_METRIC_ANY_TENSOR_UTIL);
SAME(GPM_DRAM_BW_UTIL, NVML_GPM_METRIC_DRAM_BW_UTIL);
SAME(GPM_FP64_UTIL, NVML_GPM_METRIC_FP64_UTIL);
SAME(GPM_FP32_UTIL, NVML_GPM_METRIC_FP32_UTIL);
SAME(GPM_FP16_UTIL, NVML_GPM_METRIC_FP16_UTIL);
SAME(GPM_PCIE_TX_PER_SEC, NVML_GPM_METRIC_PCIE_TX_PER_SEC);
SAME(GPM_PCIE_RX_PER_SEC, NVML_GPM_METRIC_PCIE_RX_PER_SEC);

#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #theirs)
#define SAME_FIELD(ours, our_field, theirs, their_field)                                                               \
	_Static_assert(offsetof(struct ours, our_field) == offsetof(theirs, their_field) &&                            \
			   sizeof((*(struct ours *)0).our_field) == sizeof((*(theirs *)0).their_field),                \
		       #theirs "." #their_field)

SAME_SIZE(struct ll_nvml_pci_info, nvmlPciInfo_t);
SAME_FIELD(ll_nvml_pci_info, bus_id_legacy, nvmlPciInfo_t, busIdLegacy);
SAME_FIELD(ll_nvml_pci_info, domain, nvmlPciInfo_t, domain);
SAME_FIELD(ll_nvml_pci_info, bus, nvmlPciInfo_t, bus);
SAME_FIELD(ll_nvml_pci_info, device, nvmlPciInfo_t, device);
SAME_FIELD(ll_nvml_pci_info, pci_device_id, nvmlPciInfo_t, pciDeviceId);
SAME_FIELD(ll_nvml_pci_info, pci_subsystem_id, nvmlPciInfo_t, pciSubSystemId);
SAME_FIELD(ll_nvml_pci_info, bus_id, nvmlPciInfo_t, busId);
SAME_SIZE(struct ll_nvml_utilization, nvmlUtilization_t);
SAME_FIELD(ll_nvml_utilization, gpu, nvmlUtilization_t, gpu);
SAME_FIELD(ll_nvml_utilization, memory, nvmlUtilization_t, memory);
SAME_SIZE(struct ll_nvml_memory, nvmlMemory_t);
SAME_FIELD(ll_nvml_memory, total_bytes, nvmlMemory_t, total);
SAME_FIELD(ll_nvml_memory, free_bytes, nvmlMemory_t, free);
SAME_FIELD(ll_nvml_memory, used_bytes, nvmlMemory_t, used);
SAME_SIZE(struct ll_nvml_memory_v2, nvmlMemory_v2_t);
SAME_FIELD(ll_nvml_memory_v2, version, nvmlMemory_v2_t, version);
SAME_FIELD(ll_nvml_memory_v2, total_bytes, nvmlMemory_v2_t, total);
SAME_FIELD(ll_nvml_memory_v2, reserved_bytes, nvmlMemory_v2_t, reserved);
SAME_FIELD(ll_nvml_memory_v2, free_bytes, nvmlMemory_v2_t, free);
SAME_FIELD(ll_nvml_memory_v2, used_bytes, nvmlMemory_v2_t, used);
SAME_SIZE(struct ll_nvml_sample, nvmlSample_t);
SAME_FIELD(ll_nvml_sample, time_us, nvmlSample_t, timeStamp);
SAME_FIELD(ll_nvml_sample, value, nvmlSample_t, sampleValue);
#if NVML_API_VERSION >= 12
SAME_SIZE(struct ll_nvml_process_v1, nvmlProcessInfo_v1_t);
SAME_FIELD(ll_nvml_process_v1, pid, nvmlProcessInfo_v1_t, pid);
SAME_FIELD(ll_nvml_process_v1, used_bytes, nvmlProcessInfo_v1_t, usedGpuMemory);
#endif
SAME_SIZE(struct ll_nvml_process, nvmlProcessInfo_t);
SAME_FIELD(ll_nvml_process, pid, nvmlProcessInfo_t, pid);
SAME_FIELD(ll_nvml_process, used_bytes, nvmlProcessInfo_t, usedGpuMemory);
SAME_FIELD(ll_nvml_process, gpu_instance_id, nvmlProcessInfo_t, gpuInstanceId);
SAME_FIELD(ll_nvml_process, compute_instance_id, nvmlProcessInfo_t, computeInstanceId);
#ifdef nvmlProcessDetailList_v1
SAME_SIZE(struct ll_nvml_process_detail, nvmlProcessDetail_v1_t);
SAME_FIELD(ll_nvml_process_detail, pid, nvmlProcessDetail_v1_t, pid);
SAME_FIELD(ll_nvml_process_detail, used_bytes, nvmlProcessDetail_v1_t, usedGpuMemory);
SAME_FIELD(ll_nvml_process_detail, gpu_instance_id, nvmlProcessDetail_v1_t, gpuInstanceId);
SAME_FIELD(ll_nvml_process_detail, compute_instance_id, nvmlProcessDetail_v1_t, computeInstanceId);
SAME_FIELD(ll_nvml_process_detail, protected_bytes, nvmlProcessDetail_v1_t, usedGpuCcProtectedMemory);
SAME_SIZE(struct ll_nvml_process_detail_list, nvmlProcessDetailList_v1_t);
SAME_FIELD(ll_nvml_process_detail_list, version, nvmlProcessDetailList_v1_t, version);
SAME_FIELD(ll_nvml_process_detail_list, mode, nvmlProcessDetailList_v1_t, mode);
SAME_FIELD(ll_nvml_process_detail_list, count, nvmlProcessDetailList_v1_t, numProcArrayEntries);
SAME_FIELD(ll_nvml_process_detail_list, processes, nvmlProcessDetailList_v1_t, procArray);
_Static_assert(LL_NVML_PROCESS_DETAIL_LIST_V1 == nvmlProcessDetailList_v1, "nvmlProcessDetailList_v1");
#endif
SAME_SIZE(struct ll_nvml_process_utilization, nvmlProcessUtilizationSample_t);
SAME_FIELD(ll_nvml_process_utilization, pid, nvmlProcessUtilizationSample_t, pid);
SAME_FIELD(ll_nvml_process_utilization, time_us, nvmlProcessUtilizationSample_t, timeStamp);
SAME_FIELD(ll_nvml_process_utilization, sm_percent, nvmlProcessUtilizationSample_t, smUtil);
SAME_FIELD(ll_nvml_process_utilization, memory_percent, nvmlProcessUtilizationSample_t, memUtil);
SAME_FIELD(ll_nvml_process_utilization, encoder_percent, nvmlProcessUtilizationSample_t, encUtil);
SAME_FIELD(ll_nvml_process_utilization, decoder_percent, nvmlProcessUtilizationSample_t, decUtil);
SAME_SIZE(struct ll_nvml_attributes, nvmlDeviceAttributes_t);
SAME_FIELD(ll_nvml_attributes, sm_count, nvmlDeviceAttributes_t, multiprocessorCount);
SAME_FIELD(ll_nvml_attributes, copy_engine_count, nvmlDeviceAttributes_t, sharedCopyEngineCount);
SAME_FIELD(ll_nvml_attributes, decoder_count, nvmlDeviceAttributes_t, sharedDecoderCount);
SAME_FIELD(ll_nvml_attributes, encoder_count, nvmlDeviceAttributes_t, sharedEncoderCount);
SAME_FIELD(ll_nvml_attributes, jpeg_count, nvmlDeviceAttributes_t, sharedJpegCount);
SAME_FIELD(ll_nvml_attributes, ofa_count, nvmlDeviceAttributes_t, sharedOfaCount);
SAME_FIELD(ll_nvml_attributes, gpu_instance_slices, nvmlDeviceAttributes_t, gpuInstanceSliceCount);
SAME_FIELD(ll_nvml_attributes, compute_instance_slices, nvmlDeviceAttributes_t, computeInstanceSliceCount);
SAME_FIELD(ll_nvml_attributes, memory_mib, nvmlDeviceAttributes_t, memorySizeMB);
SAME_SIZE(struct ll_nvml_event, nvmlEventData_t);
SAME_FIELD(ll_nvml_event, device, nvmlEventData_t, device);
SAME_FIELD(ll_nvml_event, type, nvmlEventData_t, eventType);
SAME_FIELD(ll_nvml_event, data, nvmlEventData_t, eventData);
SAME_FIELD(ll_nvml_event, gpu_instance_id, nvmlEventData_t, gpuInstanceId);
SAME_FIELD(ll_nvml_event, compute_instance_id, nvmlEventData_t, computeInstanceId);
SAME_SIZE(struct ll_nvml_field_value, nvmlFieldValue_t);
SAME_FIELD(ll_nvml_field_value, field, nvmlFieldValue_t, fieldId);
SAME_FIELD(ll_nvml_field_value, scope, nvmlFieldValue_t, scopeId);
SAME_FIELD(ll_nvml_field_value, time_us, nvmlFieldValue_t, timestamp);
SAME_FIELD(ll_nvml_field_value, latency_us, nvmlFieldValue_t, latencyUsec);
SAME_FIELD(ll_nvml_field_value, type, nvmlFieldValue_t, valueType);
SAME_FIELD(ll_nvml_field_value, status, nvmlFieldValue_t, nvmlReturn);
SAME_FIELD(ll_nvml_field_value, value, nvmlFieldValue_t, value);
SAME_SIZE(struct ll_nvml_gpm_metric, nvmlGpmMetric_t);
SAME_FIELD(ll_nvml_gpm_metric, id, nvmlGpmMetric_t, metricId);
SAME_FIELD(ll_nvml_gpm_metric, status, nvmlGpmMetric_t, nvmlReturn);
SAME_FIELD(ll_nvml_gpm_metric, value, nvmlGpmMetric_t, value);
SAME_SIZE(struct ll_nvml_gpm_support, nvmlGpmSupport_t);
SAME_FIELD(ll_nvml_gpm_support, version, nvmlGpmSupport_t, version);
SAME_FIELD(ll_nvml_gpm_support, is_supported, nvmlGpmSupport_t, isSupportedDevice);
SAME_SIZE(union ll_nvml_value, nvmlValue_t);
_Static_assert(__builtin_types_compatible_p(__typeof__(((union ll_nvml_value *)0)->as_double),
					    __typeof__(((nvmlValue_t *)0)->dVal)),
	       "dVal");
_Static_assert(__builtin_types_compatible_p(__typeof__(((union ll_nvml_value *)0)->as_int),
					    __typeof__(((nvmlValue_t *)0)->siVal)),
	       "siVal");
_Static_assert(__builtin_types_compatible_p(__typeof__(((union ll_nvml_value *)0)->as_uint),
					    __typeof__(((nvmlValue_t *)0)->uiVal)),
	       "uiVal");
_Static_assert(__builtin_types_compatible_p(__typeof__(((union ll_nvml_value *)0)->as_ulong),
					    __typeof__(((nvmlValue_t *)0)->ulVal)),
	       "ulVal");
_Static_assert(__builtin_types_compatible_p(__typeof__(((union ll_nvml_value *)0)->as_ullong),
					    __typeof__(((nvmlValue_t *)0)->ullVal)),
	       "ullVal");
_Static_assert(__builtin_types_compatible_p(__typeof__(((union ll_nvml_value *)0)->as_llong),
					    __typeof__(((nvmlValue_t *)0)->sllVal)),
	       "sllVal");
_Static_assert(__builtin_types_compatible_p(__typeof__(((union ll_nvml_value *)0)->as_ushort),
					    __typeof__(((nvmlValue_t *)0)->usVal)),
	       "usVal");

/* The metrics array grows from header to header; what stands before it and its element do not. */
SAME_FIELD(ll_nvml_gpm_metrics, version, nvmlGpmMetricsGet_t, version);
SAME_FIELD(ll_nvml_gpm_metrics, count, nvmlGpmMetricsGet_t, numMetrics);
SAME_FIELD(ll_nvml_gpm_metrics, earlier, nvmlGpmMetricsGet_t, sample1);
SAME_FIELD(ll_nvml_gpm_metrics, later, nvmlGpmMetricsGet_t, sample2);
_Static_assert(offsetof(struct ll_nvml_gpm_metrics, metrics) == offsetof(nvmlGpmMetricsGet_t, metrics), "metrics");
_Static_assert((int)LL_NVML_GPM_METRIC_MAX >= (int)NVML_GPM_METRIC_MAX, "a newer header has more metrics");
SAME_NAME(GPM_SUPPORT_VERSION);
SAME(GPM_METRICS_VERSION, NVML_GPM_METRICS_GET_VERSION);
_Static_assert(LL_NVML_MEMORY_V2 == nvmlMemory_v2, "nvmlMemory_v2");
_Static_assert(LL_NVML_EVENT_XID_CRITICAL == nvmlEventTypeXidCriticalError, "nvmlEventTypeXidCriticalError");

/*
 * Signatures: from here on our type names mean the vendor's types (abi_compare_cuda.c says how). Some of theirs have
 * no tag, so "struct ll_nvml_x" is made to read as a plain typedef name.
 */
typedef struct nvmlDevice_st their_device;
typedef struct nvmlEventSet_st their_event_set;
typedef struct nvmlGpmSample_st their_gpm_sample;
#ifdef __clang__
#pragma clang diagnostic ignored "-Wkeyword-macro"
#endif
#define struct
#define ll_nvml_result nvmlReturn_t
#define ll_nvml_device their_device
#define ll_nvml_event_set their_event_set
#define ll_nvml_gpm_sample their_gpm_sample
#define ll_nvml_pci_info nvmlPciInfo_t
#define ll_nvml_utilization nvmlUtilization_t
#define ll_nvml_memory nvmlMemory_t
#define ll_nvml_memory_v2 nvmlMemory_v2_t
#define ll_nvml_sample nvmlSample_t
#define ll_nvml_process nvmlProcessInfo_t
#define ll_nvml_process_utilization nvmlProcessUtilizationSample_t
#define ll_nvml_attributes nvmlDeviceAttributes_t
#define ll_nvml_event nvmlEventData_t
#define ll_nvml_field_value nvmlFieldValue_t
#define ll_nvml_gpm_metrics nvmlGpmMetricsGet_t
#define ll_nvml_gpm_support nvmlGpmSupport_t
#define ll_nvml_value_type nvmlValueType_enum
#define ll_nvml_sampling_type nvmlSamplingType_enum
#define ll_nvml_temperature_sensor nvmlTemperatureSensors_enum
#define ll_nvml_temperature_threshold nvmlTemperatureThresholds_enum
#define ll_nvml_clock_type nvmlClockType_enum
#define ll_nvml_compute_mode nvmlComputeMode_enum
#define ll_nvml_enable_state nvmlEnableState_enum

/* The _v2 lists are not in every header, and have the _v3 signature. */
#define nvmlDeviceGetComputeRunningProcesses_v2 nvmlDeviceGetComputeRunningProcesses_v3
#define nvmlDeviceGetGraphicsRunningProcesses_v2 nvmlDeviceGetGraphicsRunningProcesses_v3
#define nvmlDeviceGetMPSComputeRunningProcesses_v2 nvmlDeviceGetMPSComputeRunningProcesses_v3

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define LL_NVML_OPENED(ret, name, symbol, need, hook, params)                                                          \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&symbol), ret(*) params), #symbol);
#include "abi/nvml.def"

int main(void)
{
	printf("src/abi/nvml.h agrees with nvml.h, API version %d\n", NVML_API_VERSION);
	return 0;
}

#else

int main(void)
{
	puts("no nvml.h here: skipped");
	return 77;
}

#endif
