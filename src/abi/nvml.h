/*
 * nvml.h - the part of NVML, the card's management library, that we use, declared by us.
 *
 * As in abi/cuda.h, the names are ours (ll_nvml_, LL_NVML_), and the layouts and values are the library's.
 * tests/sim/abi_compare_nvml.c compares them with nvml.h if there is one. The functions are in nvml.def.
 *
 * Units are the library's: power in mW, energy in mJ, clocks in MHz, times in microseconds of the wall clock.
 */
#ifndef LOADLINE_ABI_NVML_H
#define LOADLINE_ABI_NVML_H

struct ll_nvml_device;
struct ll_nvml_event_set;
struct ll_nvml_gpm_sample;

typedef enum {
	LL_NVML_SUCCESS = 0,
	LL_NVML_ERROR_UNINITIALIZED = 1,
	LL_NVML_ERROR_INVALID_ARGUMENT = 2,
	LL_NVML_ERROR_NOT_SUPPORTED = 3,
	LL_NVML_ERROR_NO_PERMISSION = 4,
	LL_NVML_ERROR_ALREADY_INITIALIZED = 5,
	LL_NVML_ERROR_NOT_FOUND = 6,
	LL_NVML_ERROR_INSUFFICIENT_SIZE = 7,
	LL_NVML_ERROR_INSUFFICIENT_POWER = 8,
	LL_NVML_ERROR_DRIVER_NOT_LOADED = 9,
	LL_NVML_ERROR_TIMEOUT = 10,
	LL_NVML_ERROR_IRQ_ISSUE = 11,
	LL_NVML_ERROR_LIBRARY_NOT_FOUND = 12,
	LL_NVML_ERROR_FUNCTION_NOT_FOUND = 13,
	LL_NVML_ERROR_CORRUPTED_INFOROM = 14,
	LL_NVML_ERROR_GPU_IS_LOST = 15,
	LL_NVML_ERROR_RESET_REQUIRED = 16,
	LL_NVML_ERROR_OPERATING_SYSTEM = 17,
	LL_NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
	LL_NVML_ERROR_IN_USE = 19,
	LL_NVML_ERROR_MEMORY = 20,
	LL_NVML_ERROR_NO_DATA = 21,
	LL_NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
	LL_NVML_ERROR_FREQ_NOT_SUPPORTED = 24,
	LL_NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
	LL_NVML_ERROR_DEPRECATED = 26,
	LL_NVML_ERROR_NOT_READY = 27,
	LL_NVML_ERROR_GPU_NOT_FOUND = 28,
	LL_NVML_ERROR_INVALID_STATE = 29,
	LL_NVML_ERROR_UNKNOWN = 999,
} ll_nvml_result;

/* In place of the memory of a process: the driver does not report it. */
#define LL_NVML_VALUE_NOT_AVAILABLE (~0ULL)

enum {
	LL_NVML_UUID_BUFFER_SIZE = 96,
	LL_NVML_NAME_BUFFER_SIZE = 96,
	LL_NVML_VERSION_BUFFER_SIZE = 80,
	LL_NVML_PCI_BUS_ID_BUFFER_SIZE = 32,
	LL_NVML_PCI_BUS_ID_LEGACY_BUFFER_SIZE = 16,
};

struct ll_nvml_pci_info {
	char bus_id_legacy[LL_NVML_PCI_BUS_ID_LEGACY_BUFFER_SIZE]; /* "0000:01:00.0" */
	unsigned int domain;
	unsigned int bus;
	unsigned int device;
	unsigned int pci_device_id; /* device id << 16 | vendor id */
	unsigned int pci_subsystem_id;
	char bus_id[LL_NVML_PCI_BUS_ID_BUFFER_SIZE]; /* "00000000:01:00.0" */
};

struct ll_nvml_utilization {
	unsigned int gpu;    /* percent of the last full window in which any kernel ran */
	unsigned int memory; /* percent of it in which memory was read or written */
};

struct ll_nvml_memory {
	unsigned long long total_bytes;
	unsigned long long free_bytes;
	unsigned long long used_bytes; /* includes the driver's reserve */
};

#define LL_NVML_MEMORY_V2 ((unsigned int)(sizeof(struct ll_nvml_memory_v2) | (2U << 24)))

struct ll_nvml_memory_v2 {
	unsigned int version; /* LL_NVML_MEMORY_V2 */
	unsigned long long total_bytes;
	unsigned long long reserved_bytes; /* the driver's reserve */
	unsigned long long free_bytes;
	unsigned long long used_bytes;
};

union ll_nvml_value {
	double as_double;
	int as_int;
	unsigned int as_uint;
	unsigned long as_ulong;
	unsigned long long as_ullong;
	signed long long as_llong;
	unsigned short as_ushort;
};

enum ll_nvml_value_type {
	LL_NVML_VALUE_TYPE_DOUBLE = 0,
	LL_NVML_VALUE_TYPE_UNSIGNED_INT = 1,
	LL_NVML_VALUE_TYPE_UNSIGNED_LONG = 2,
	LL_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3,
	LL_NVML_VALUE_TYPE_SIGNED_LONG_LONG = 4,
	LL_NVML_VALUE_TYPE_SIGNED_INT = 5,
	LL_NVML_VALUE_TYPE_UNSIGNED_SHORT = 6,
};

struct ll_nvml_sample {
	unsigned long long time_us; /* wall clock */
	union ll_nvml_value value;
};

enum ll_nvml_sampling_type {
	LL_NVML_TOTAL_POWER_SAMPLES = 0,
	LL_NVML_GPU_UTILIZATION_SAMPLES = 1,
	LL_NVML_MEMORY_UTILIZATION_SAMPLES = 2,
	LL_NVML_ENC_UTILIZATION_SAMPLES = 3,
	LL_NVML_DEC_UTILIZATION_SAMPLES = 4,
	LL_NVML_PROCESSOR_CLK_SAMPLES = 5,
	LL_NVML_MEMORY_CLK_SAMPLES = 6,
};

/* An entry of the process lists whose symbols have no version. */
struct ll_nvml_process_v1 {
	unsigned int pid;
	unsigned long long used_bytes;
};

/* An entry of the _v2 and _v3 process lists. */
struct ll_nvml_process {
	unsigned int pid;
	unsigned long long used_bytes;
	unsigned int gpu_instance_id;     /* 0xffffffff without MIG */
	unsigned int compute_instance_id; /* 0xffffffff without MIG */
};

/* Values that choose the processes of nvmlDeviceGetRunningProcessDetailList. */
enum {
	LL_NVML_PROCESS_MODE_COMPUTE = 0,
	LL_NVML_PROCESS_MODE_GRAPHICS = 1,
	LL_NVML_PROCESS_MODE_MPS = 2,
};

struct ll_nvml_process_detail {
	unsigned int pid;
	unsigned long long used_bytes;
	unsigned int gpu_instance_id;     /* 0xffffffff without MIG */
	unsigned int compute_instance_id; /* 0xffffffff without MIG */
	unsigned long long protected_bytes;
};

#define LL_NVML_PROCESS_DETAIL_LIST_V1 ((unsigned int)(sizeof(struct ll_nvml_process_detail_list) | 1U << 24))

/* count: in: the room for entries; out: the number of entries. */
struct ll_nvml_process_detail_list {
	unsigned int version;
	unsigned int mode;
	unsigned int count;
	struct ll_nvml_process_detail *processes;
};

struct ll_nvml_process_utilization {
	unsigned int pid;
	unsigned long long time_us;
	unsigned int sm_percent;
	unsigned int memory_percent;
	unsigned int encoder_percent;
	unsigned int decoder_percent;
};

enum ll_nvml_temperature_sensor {
	LL_NVML_TEMPERATURE_GPU = 0,
};

enum ll_nvml_temperature_threshold {
	LL_NVML_TEMPERATURE_THRESHOLD_SHUTDOWN = 0,
	LL_NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1,
	LL_NVML_TEMPERATURE_THRESHOLD_MEM_MAX = 2,
	LL_NVML_TEMPERATURE_THRESHOLD_GPU_MAX = 3,
};

enum ll_nvml_clock_type {
	LL_NVML_CLOCK_GRAPHICS = 0,
	LL_NVML_CLOCK_SM = 1,
	LL_NVML_CLOCK_MEM = 2,
	LL_NVML_CLOCK_VIDEO = 3,
};

enum ll_nvml_compute_mode {
	LL_NVML_COMPUTEMODE_DEFAULT = 0,
	LL_NVML_COMPUTEMODE_EXCLUSIVE_THREAD = 1,
	LL_NVML_COMPUTEMODE_PROHIBITED = 2,
	LL_NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3,
};

enum ll_nvml_enable_state {
	LL_NVML_FEATURE_DISABLED = 0,
	LL_NVML_FEATURE_ENABLED = 1,
};

enum ll_nvml_mig_mode {
	LL_NVML_DEVICE_MIG_DISABLE = 0,
	LL_NVML_DEVICE_MIG_ENABLE = 1,
};

enum ll_nvml_memory_error {
	LL_NVML_MEMORY_ERROR_CORRECTED = 0,
	LL_NVML_MEMORY_ERROR_UNCORRECTED = 1,
};

enum ll_nvml_ecc_counter {
	LL_NVML_ECC_VOLATILE = 0, /* since the driver was loaded */
	LL_NVML_ECC_AGGREGATE = 1,
};

/* Counters of a link: replays, recoveries, CRC errors of flits, CRC errors of data. */
enum { LL_NVML_NVLINK_ERRORS = 4 };

/* Flags of nvmlDeviceGetCurrentClocksEventReasons (older name: …ThrottleReasons). */
enum ll_nvml_clocks_event_reason {
	LL_NVML_CLOCKS_GPU_IDLE = 0x01,
	LL_NVML_CLOCKS_APPLICATIONS_SETTING = 0x02,
	LL_NVML_CLOCKS_SW_POWER_CAP = 0x04,
	LL_NVML_CLOCKS_HW_SLOWDOWN = 0x08,
	LL_NVML_CLOCKS_SYNC_BOOST = 0x10,
	LL_NVML_CLOCKS_SW_THERMAL_SLOWDOWN = 0x20,
	LL_NVML_CLOCKS_HW_THERMAL_SLOWDOWN = 0x40,
	LL_NVML_CLOCKS_HW_POWER_BRAKE = 0x80,
	LL_NVML_CLOCKS_DISPLAY_SETTING = 0x100,
};

struct ll_nvml_attributes {
	unsigned int sm_count;
	unsigned int copy_engine_count;
	unsigned int decoder_count;
	unsigned int encoder_count;
	unsigned int jpeg_count;
	unsigned int ofa_count;
	unsigned int gpu_instance_slices;
	unsigned int compute_instance_slices;
	unsigned long long memory_mib;
};

#define LL_NVML_EVENT_XID_CRITICAL 0x8ULL

struct ll_nvml_event {
	struct ll_nvml_device *device;
	unsigned long long type; /* LL_NVML_EVENT_… */
	unsigned long long data; /* the Xid */
	unsigned int gpu_instance_id;
	unsigned int compute_instance_id;
};

/* Identifiers of nvmlDeviceGetFieldValues. */
enum ll_nvml_field {
	LL_NVML_FI_TOTAL_ENERGY_CONSUMPTION = 83, /* mJ */
	LL_NVML_FI_POWER_AVERAGE = 185,           /* mW, over a second */
	LL_NVML_FI_POWER_INSTANT = 186,           /* mW */
};

struct ll_nvml_field_value {
	unsigned int field;
	unsigned int scope;
	long long time_us;
	long long latency_us;
	enum ll_nvml_value_type type;
	ll_nvml_result status;
	union ll_nvml_value value;
};

enum ll_nvml_gpm_metric_id {
	LL_NVML_GPM_GRAPHICS_UTIL = 1,
	LL_NVML_GPM_SM_UTIL = 2,
	LL_NVML_GPM_SM_OCCUPANCY = 3,
	LL_NVML_GPM_INTEGER_UTIL = 4,
	LL_NVML_GPM_ANY_TENSOR_UTIL = 5,
	LL_NVML_GPM_DRAM_BW_UTIL = 10,
	LL_NVML_GPM_FP64_UTIL = 11,
	LL_NVML_GPM_FP32_UTIL = 12,
	LL_NVML_GPM_FP16_UTIL = 13,
	LL_NVML_GPM_PCIE_TX_PER_SEC = 20, /* MiB/s */
	LL_NVML_GPM_PCIE_RX_PER_SEC = 21,
	/* rises from driver to driver; a driver reads and writes only the first `count` entries */
	LL_NVML_GPM_METRIC_MAX = 333,
};

struct ll_nvml_gpm_metric {
	unsigned int id; /* in: enum ll_nvml_gpm_metric_id */
	ll_nvml_result status;
	double value; /* percent, or as the id says */
	struct {
		char *short_name;
		char *long_name;
		char *unit;
	} info;
};

#define LL_NVML_GPM_METRICS_VERSION 1U
#define LL_NVML_GPM_SUPPORT_VERSION 1U

struct ll_nvml_gpm_metrics {
	unsigned int version; /* LL_NVML_GPM_METRICS_VERSION */
	unsigned int count;
	struct ll_nvml_gpm_sample *earlier;
	struct ll_nvml_gpm_sample *later;
	struct ll_nvml_gpm_metric metrics[LL_NVML_GPM_METRIC_MAX];
};

struct ll_nvml_gpm_support {
	unsigned int version; /* LL_NVML_GPM_SUPPORT_VERSION */
	unsigned int is_supported;
};

#endif
