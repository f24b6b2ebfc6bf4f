/*
 * cupti.h - our declarations of the part of CUPTI, NVIDIA's profiling library, that we use: the beginning of its
 * activity records, and the functions of cupti_functions.def.
 *
 * New versions of CUDA have added fields to the records, always at the end. The fields that are declared here have the
 * same offsets in every version from API 13 (CUDA 11.0) on; tests/trace compares them with a toolkit's header if there
 * is one. Records are read in place. So no struct here may be larger than in the shortest version, and CUPTI itself
 * steps from one record to the next (cuptiActivityGetNextRecord).
 */
#ifndef LOADLINE_ABI_CUPTI_H
#define LOADLINE_ABI_CUPTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ll_cu_context;

typedef int ll_cupti_result;

enum {
	LL_CUPTI_SUCCESS = 0,
	LL_CUPTI_ERROR_INVALID_PARAMETER = 1,
	LL_CUPTI_ERROR_MAX_LIMIT_REACHED = 12, /* no more records in a buffer */
	LL_CUPTI_ERROR_NOT_COMPATIBLE = 14,
	LL_CUPTI_ERROR_NOT_INITIALIZED = 15,
	LL_CUPTI_ERROR_INVALID_KIND = 21,
	LL_CUPTI_ERROR_INSUFFICIENT_PRIVILEGES = 35,
	LL_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 39,
};

/* API versions: a running number up to 28 (CUDA 12.9), from then on MMmmpp of the toolkit. */
enum {
	LL_CUPTI_API_OLDEST = 13,
	LL_CUPTI_API_LAST_COUNTED = 99,
	LL_CUPTI_API_FIRST_DATED = 130000,
	LL_CUPTI_API_END = 140000, /* the first version that is not known */
};

/* Whether the records of this version begin as they are declared here. */
static inline bool ll_cupti_is_known(uint32_t version)
{
	return (version >= LL_CUPTI_API_OLDEST && version <= LL_CUPTI_API_LAST_COUNTED) ||
	       (version >= LL_CUPTI_API_FIRST_DATED && version < LL_CUPTI_API_END);
}

enum ll_cupti_activity_kind {
	LL_CUPTI_ACTIVITY_MEMCPY = 1,
	LL_CUPTI_ACTIVITY_MEMSET = 2,
	LL_CUPTI_ACTIVITY_KERNEL = 3, /* never enabled, because it makes kernels run one after another */
	LL_CUPTI_ACTIVITY_CONCURRENT_KERNEL = 10,
	LL_CUPTI_ACTIVITY_MEMCPY2 = 22, /* between cards */
	LL_CUPTI_ACTIVITY_MEMORY2 = 49, /* since API 15 */
};

enum { LL_CUPTI_API_MEMORY2 = 15 };

enum { LL_CUPTI_FLUSH_FORCED = 1 };

enum ll_cupti_memory_kind {
	LL_CUPTI_MEMORY_UNKNOWN,
	LL_CUPTI_MEMORY_PAGEABLE,
	LL_CUPTI_MEMORY_PINNED,
	LL_CUPTI_MEMORY_DEVICE,
	LL_CUPTI_MEMORY_ARRAY,
	LL_CUPTI_MEMORY_MANAGED,
	LL_CUPTI_MEMORY_DEVICE_STATIC,
	LL_CUPTI_MEMORY_MANAGED_STATIC,
};

enum { LL_CUPTI_MEMORY_ALLOCATION = 1, LL_CUPTI_MEMORY_RELEASE = 2 };

struct ll_cupti_activity {
	uint32_t kind;
};

struct ll_cupti_kernel {
	uint32_t kind;
	uint8_t cache_config;
	uint8_t shared_memory_config;
	uint16_t registers;
	uint32_t partitioned_cache_requested;
	uint32_t partitioned_cache_executed;
	uint64_t start_ns, end_ns; /* 0: unknown */
	uint64_t completed_ns;
	uint32_t device, context, stream;
	int32_t grid_x, grid_y, grid_z;
	int32_t block_x, block_y, block_z;
	int32_t static_shared_bytes, dynamic_shared_bytes;
	uint32_t local_bytes_per_thread, local_bytes_total;
	uint32_t correlation;
	int64_t grid_id;
	const char *name; /* mangled; lives as long as CUPTI */
};

struct ll_cupti_memcpy {
	uint32_t kind;
	uint8_t copy_kind;
	uint8_t from_kind, to_kind; /* enum ll_cupti_memory_kind */
	uint8_t flags;
	uint64_t bytes;
	uint64_t start_ns, end_ns;
	uint32_t device, context, stream;
	uint32_t correlation;
};

/* For copies between cards: the correlation has another offset. */
struct ll_cupti_memcpy_peer {
	uint32_t kind;
	uint8_t copy_kind;
	uint8_t from_kind, to_kind;
	uint8_t flags;
	uint64_t bytes;
	uint64_t start_ns, end_ns;
	uint32_t device, context, stream;
	uint32_t from_device, from_context;
	uint32_t to_device, to_context;
	uint32_t correlation;
};

struct ll_cupti_memset {
	uint32_t kind;
	uint32_t value;
	uint64_t bytes;
	uint64_t start_ns, end_ns;
	uint32_t device, context, stream;
	uint32_t correlation;
	uint16_t flags;
	uint16_t memory_kind;
};

struct ll_cupti_memory {
	uint32_t kind;
	uint32_t operation; /* LL_CUPTI_MEMORY_ALLOCATION or _RELEASE */
	uint32_t memory_kind;
	uint32_t correlation;
	uint64_t address;
	uint64_t bytes;
	uint64_t at_ns;
	uint64_t caller;
	uint32_t process, device, context, stream;
};

typedef void (*ll_cupti_request)(uint8_t **ret_buffer, size_t *ret_bytes, size_t *ret_most_records);
typedef void (*ll_cupti_complete)(struct ll_cu_context *context, uint32_t stream, uint8_t *buffer, size_t bytes,
				  size_t valid_bytes);
typedef uint64_t (*ll_cupti_clock)(void);

#endif
