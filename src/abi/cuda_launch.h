/*
 * cuda_launch.h - types of the driver functions that give a card work: copies of rectangles, operations on values in
 * memory, attributes of launches and streams, libraries of kernels.
 *
 * This header includes cuda.h. As there, the names are ours, and tests/sim/abi_compare_cuda.c compares all values and
 * layouts with the toolkit's cuda.h.
 */
#ifndef LOADLINE_ABI_CUDA_LAUNCH_H
#define LOADLINE_ABI_CUDA_LAUNCH_H

#include "abi/cuda.h"

struct ll_cu_array;
struct ll_cu_library;
/* A kernel of a library. It belongs to no context. Functions that take a struct ll_cu_function also accept its handle.
 * It then means the function of the current context, or for cuLaunchKernel of the stream's context. */
struct ll_cu_kernel;

enum ll_cu_library_option {
	LL_CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE = 0,
	LL_CU_LIBRARY_BINARY_IS_PRESERVED = 1,
};

enum ll_cu_function_loading_state {
	LL_CU_FUNCTION_LOADING_STATE_UNLOADED = 0,
	LL_CU_FUNCTION_LOADING_STATE_LOADED = 1,
};

enum ll_cu_occupancy_flags {
	LL_CU_OCCUPANCY_DEFAULT = 0,
	LL_CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE = 1,
};

/* Attributes of a launch, a stream or a kernel node. Each of them accepts some. */
enum ll_cu_launch_attribute_id {
	LL_CU_LAUNCH_ATTRIBUTE_IGNORE = 0,
	LL_CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW = 1,
	LL_CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
	LL_CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY = 3,
	LL_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
	LL_CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 5,
	LL_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
	LL_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT = 7,
	LL_CU_LAUNCH_ATTRIBUTE_PRIORITY = 8,
	LL_CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP = 9,
	LL_CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN = 10,
	LL_CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT = 12,
};

/* The values that loadline reads. The other values are copied as bytes. */
union ll_cu_launch_attribute_value {
	char bytes[64];
	long long aligned;
	int cooperative;
	int priority;
	struct {
		struct ll_cu_event *event;
		int flags;
	} launch_completion_event;
};

/* The type of the elements of `attributes` in struct ll_cu_launch_config. */
struct ll_cu_launch_attribute {
	enum ll_cu_launch_attribute_id id;
	char pad[4];
	union ll_cu_launch_attribute_value value;
};

/* The part of cuLaunchCooperativeKernelMultiDevice that one card runs. */
struct ll_cu_launch_params {
	struct ll_cu_function *function;
	unsigned int grid_x;
	unsigned int grid_y;
	unsigned int grid_z;
	unsigned int block_x;
	unsigned int block_y;
	unsigned int block_z;
	unsigned int shared_bytes;
	struct ll_cu_stream *stream;
	void **params;
};

/* A rectangle of bytes. The from_ and to_ fields count from the address that their type (enum ll_cu_memory_type)
 * selects. */
struct ll_cu_memcpy2d {
	size_t from_x_bytes;
	size_t from_y;
	enum ll_cu_memory_type from_type;
	const void *from_host;
	ll_cu_deviceptr from_device;
	struct ll_cu_array *from_array;
	size_t from_pitch_bytes;
	size_t to_x_bytes;
	size_t to_y;
	enum ll_cu_memory_type to_type;
	void *to_host;
	ll_cu_deviceptr to_device;
	struct ll_cu_array *to_array;
	size_t to_pitch_bytes;
	size_t width_bytes;
	size_t height;
};

/* A block; a layer is from_height (to_height) rows of from_pitch_bytes. */
struct ll_cu_memcpy3d {
	size_t from_x_bytes;
	size_t from_y;
	size_t from_z;
	size_t from_lod;
	enum ll_cu_memory_type from_type;
	const void *from_host;
	ll_cu_deviceptr from_device;
	struct ll_cu_array *from_array;
	void *reserved0;
	size_t from_pitch_bytes;
	size_t from_height;
	size_t to_x_bytes;
	size_t to_y;
	size_t to_z;
	size_t to_lod;
	enum ll_cu_memory_type to_type;
	void *to_host;
	ll_cu_deviceptr to_device;
	struct ll_cu_array *to_array;
	void *reserved1;
	size_t to_pitch_bytes;
	size_t to_height;
	size_t width_bytes;
	size_t height;
	size_t depth;
};

/* The same between contexts. */
struct ll_cu_memcpy3d_peer {
	size_t from_x_bytes;
	size_t from_y;
	size_t from_z;
	size_t from_lod;
	enum ll_cu_memory_type from_type;
	const void *from_host;
	ll_cu_deviceptr from_device;
	struct ll_cu_array *from_array;
	struct ll_cu_context *from_context;
	size_t from_pitch_bytes;
	size_t from_height;
	size_t to_x_bytes;
	size_t to_y;
	size_t to_z;
	size_t to_lod;
	enum ll_cu_memory_type to_type;
	void *to_host;
	ll_cu_deviceptr to_device;
	struct ll_cu_array *to_array;
	struct ll_cu_context *to_context;
	size_t to_pitch_bytes;
	size_t to_height;
	size_t width_bytes;
	size_t height;
	size_t depth;
};

enum ll_cu_stream_mem_op_type {
	LL_CU_STREAM_MEM_OP_WAIT_VALUE_32 = 1,
	LL_CU_STREAM_MEM_OP_WRITE_VALUE_32 = 2,
	LL_CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES = 3,
	LL_CU_STREAM_MEM_OP_WAIT_VALUE_64 = 4,
	LL_CU_STREAM_MEM_OP_WRITE_VALUE_64 = 5,
	LL_CU_STREAM_MEM_OP_BARRIER = 6,
};

/* Wait and write operations have the same layout. */
union ll_cu_stream_mem_op {
	enum ll_cu_stream_mem_op_type operation;
	struct {
		enum ll_cu_stream_mem_op_type operation;
		ll_cu_deviceptr address;
		uint64_t value; /* 32-bit operations: the low half */
		unsigned int flags;
		ll_cu_deviceptr alias;
	} value;
	uint64_t pad[6];
};

#endif
