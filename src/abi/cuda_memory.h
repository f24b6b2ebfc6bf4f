/*
 * cuda_memory.h - types of the driver functions that take, share and report device memory.
 *
 * This header includes cuda.h. As there, the names are ours, and tests/sim/abi_compare_cuda.c compares all values and
 * layouts with the toolkit's cuda.h. Fields that are not used here are declared as reserved bytes.
 */
#ifndef LOADLINE_ABI_CUDA_MEMORY_H
#define LOADLINE_ABI_CUDA_MEMORY_H

#include "abi/cuda.h"

struct ll_cu_mem_pool;
struct ll_cu_array;
struct ll_cu_mipmapped_array;
struct ll_cu_external_memory;
struct ll_cu_array_map_info;        /* only passed through */
struct ll_cu_exec_affinity_param;   /* only passed through */
struct ll_cu_mem_decompress_params; /* only passed through */
struct ll_cu_green_context;         /* a context on some of the SMs */
struct ll_cu_resource_desc;         /* only passed through */

/* Functions from before CUDA 3.2 have addresses and sizes of 32 bits. */
typedef unsigned int ll_cu_deviceptr_v1;

/* Types of VDPAU, only passed through: a device, and the function that finds VDPAU's functions. */
typedef uint32_t ll_vdp_device;
typedef void ll_vdp_get_proc_address(void);

/* Physical memory made by cuMemCreate, or a multicast object. */
typedef unsigned long long ll_cu_mem_handle;

/* Values of cuMemPrefetchAsync and cuMemAdvise in place of a device. */
#define LL_CU_DEVICE_CPU ((ll_cu_device)-1)
#define LL_CU_DEVICE_INVALID ((ll_cu_device)-2)

enum ll_cu_mem_allocation_type {
	LL_CU_MEM_ALLOCATION_TYPE_INVALID = 0,
	LL_CU_MEM_ALLOCATION_TYPE_PINNED = 1,
	LL_CU_MEM_ALLOCATION_TYPE_MANAGED = 2, /* from CUDA 13.0 on */
	LL_CU_MEM_ALLOCATION_TYPE_MAX = 0x7FFFFFFF,
};

enum ll_cu_mem_location_type {
	LL_CU_MEM_LOCATION_TYPE_INVALID = 0,
	LL_CU_MEM_LOCATION_TYPE_DEVICE = 1,
	LL_CU_MEM_LOCATION_TYPE_HOST = 2,
	LL_CU_MEM_LOCATION_TYPE_HOST_NUMA = 3,
	LL_CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT = 4,
	LL_CU_MEM_LOCATION_TYPE_MAX = 0x7FFFFFFF,
};

/* Flags: the handle types as which an allocation may be exported. */
enum ll_cu_mem_handle_type {
	LL_CU_MEM_HANDLE_TYPE_NONE = 0,
	LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
	LL_CU_MEM_HANDLE_TYPE_WIN32 = 2,
	LL_CU_MEM_HANDLE_TYPE_WIN32_KMT = 4,
	LL_CU_MEM_HANDLE_TYPE_FABRIC = 8,
	LL_CU_MEM_HANDLE_TYPE_MAX = 0x7FFFFFFF,
};

enum ll_cu_mem_access_flags {
	LL_CU_MEM_ACCESS_FLAGS_PROT_NONE = 0,
	LL_CU_MEM_ACCESS_FLAGS_PROT_READ = 1,
	LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
	LL_CU_MEM_ACCESS_FLAGS_PROT_MAX = 0x7FFFFFFF,
};

/* The handles that cuMemGetHandleForAddressRange makes. */
enum ll_cu_mem_range_handle_type {
	LL_CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD = 1,
	LL_CU_MEM_RANGE_HANDLE_TYPE_MAX = 0x7FFFFFFF,
};

enum ll_cu_mem_granularity_flags {
	LL_CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
	LL_CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1,
};

enum ll_cu_multicast_granularity_flags {
	LL_CU_MULTICAST_GRANULARITY_MINIMUM = 0,
	LL_CU_MULTICAST_GRANULARITY_RECOMMENDED = 1,
};

/* Values of allocFlags.usage in struct ll_cu_mem_allocation_prop. */
#define LL_CU_MEM_CREATE_USAGE_TILE_POOL 0x1
#define LL_CU_MEM_CREATE_USAGE_HW_DECOMPRESS 0x2

/* The first three values are int, the others uint64_t. A program may set the threshold to any value, and the two HIGH
 * values to 0, which restarts them. */
enum ll_cu_mem_pool_attribute {
	LL_CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
	LL_CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC = 2,
	LL_CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
	LL_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4,
	LL_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5,
	LL_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH = 6,
	LL_CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7,
	LL_CU_MEMPOOL_ATTR_USED_MEM_HIGH = 8,
};

enum ll_cu_graph_mem_attribute {
	LL_CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT = 0,
	LL_CU_GRAPH_MEM_ATTR_USED_MEM_HIGH = 1,
	LL_CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT = 2,
	LL_CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH = 3,
};

enum ll_cu_mem_attach_flags {
	LL_CU_MEM_ATTACH_GLOBAL = 1,
	LL_CU_MEM_ATTACH_HOST = 2,
	LL_CU_MEM_ATTACH_SINGLE = 4,
};

enum ll_cu_mem_advise {
	LL_CU_MEM_ADVISE_SET_READ_MOSTLY = 1,
	LL_CU_MEM_ADVISE_UNSET_READ_MOSTLY = 2,
	LL_CU_MEM_ADVISE_SET_PREFERRED_LOCATION = 3,
	LL_CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION = 4,
	LL_CU_MEM_ADVISE_SET_ACCESSED_BY = 5,
	LL_CU_MEM_ADVISE_UNSET_ACCESSED_BY = 6,
};

/* The type of an element's channel. The driver has further formats (planar video, block compression). */
enum ll_cu_array_format {
	LL_CU_AD_FORMAT_UNSIGNED_INT8 = 0x01,
	LL_CU_AD_FORMAT_UNSIGNED_INT16 = 0x02,
	LL_CU_AD_FORMAT_UNSIGNED_INT32 = 0x03,
	LL_CU_AD_FORMAT_SIGNED_INT8 = 0x08,
	LL_CU_AD_FORMAT_SIGNED_INT16 = 0x09,
	LL_CU_AD_FORMAT_SIGNED_INT32 = 0x0a,
	LL_CU_AD_FORMAT_HALF = 0x10,
	LL_CU_AD_FORMAT_FLOAT = 0x20,
	LL_CU_AD_FORMAT_MAX = 0x7FFFFFFF,
};

/* Flags of a 3D descriptor. */
#define LL_CUDA_ARRAY3D_LAYERED 0x01
#define LL_CUDA_ARRAY3D_SURFACE_LDST 0x02
#define LL_CUDA_ARRAY3D_CUBEMAP 0x04
#define LL_CUDA_ARRAY3D_TEXTURE_GATHER 0x08
#define LL_CUDA_ARRAY3D_DEPTH_TEXTURE 0x10
#define LL_CUDA_ARRAY3D_COLOR_ATTACHMENT 0x20
#define LL_CUDA_ARRAY3D_SPARSE 0x40
#define LL_CUDA_ARRAY3D_DEFERRED_MAPPING 0x80

enum ll_cu_external_memory_type {
	LL_CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD = 1,
	LL_CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32 = 2,
	LL_CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_KMT = 3,
	LL_CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP = 4,
	LL_CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE = 5,
	LL_CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE = 6,
	LL_CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE_KMT = 7,
	LL_CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF = 8,
	LL_CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD = 9,
};

enum ll_cu_ipc_mem_flags {
	LL_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1,
};

struct ll_cu_mem_location {
	enum ll_cu_mem_location_type type;
	int id; /* of a device: its ordinal */
};

struct ll_cu_mem_allocation_prop {
	enum ll_cu_mem_allocation_type type;
	enum ll_cu_mem_handle_type handle_types;
	struct ll_cu_mem_location location;
	void *win32;
	unsigned char compression;
	unsigned char is_rdma_capable;
	unsigned short usage; /* LL_CU_MEM_CREATE_USAGE_… */
	unsigned char reserved[4];
};

struct ll_cu_mem_access_desc {
	struct ll_cu_mem_location location;
	enum ll_cu_mem_access_flags flags;
};

struct ll_cu_mem_pool_props {
	enum ll_cu_mem_allocation_type type;
	enum ll_cu_mem_handle_type handle_types;
	struct ll_cu_mem_location location;
	void *win32;
	size_t max_bytes; /* 0: as much as there is */
	unsigned short usage;
	unsigned char reserved[54];
};

/* The bytes of a handle of LL_CU_MEM_HANDLE_TYPE_FABRIC. */
enum { LL_CU_MEM_FABRIC_HANDLE_BYTES = 64 };

/* An allocation of an exported pool, in the form that is sent to another process. */
struct ll_cu_mem_pool_pointer {
	unsigned char bytes[64];
};

struct ll_cu_multicast_prop {
	unsigned int device_count;
	size_t bytes;
	unsigned long long handle_types;
	unsigned long long flags;
};

/* Sizes of arrays are in elements; an element has channels (1, 2 or 4) of one format. */
struct ll_cu_array_descriptor {
	size_t width;
	size_t height; /* 0: one dimension */
	enum ll_cu_array_format format;
	unsigned int channels;
};

struct ll_cu_array3d_descriptor {
	size_t width;
	size_t height;
	size_t depth; /* or layers */
	enum ll_cu_array_format format;
	unsigned int channels;
	unsigned int flags; /* LL_CUDA_ARRAY3D_… */
};

struct ll_cu_array_descriptor_v1 {
	unsigned int width;
	unsigned int height;
	enum ll_cu_array_format format;
	unsigned int channels;
};

struct ll_cu_array3d_descriptor_v1 {
	unsigned int width;
	unsigned int height;
	unsigned int depth;
	enum ll_cu_array_format format;
	unsigned int channels;
	unsigned int flags;
};

struct ll_cu_array_requirements {
	size_t bytes;
	size_t alignment;
	unsigned int reserved[4];
};

struct ll_cu_external_memory_desc {
	enum ll_cu_external_memory_type type;
	union {
		int fd; /* the driver owns it after a successful import */
		struct {
			void *handle;
			const void *name;
		} win32;
		const void *nvscibuf;
	} handle;
	unsigned long long bytes;
	unsigned int flags; /* 1: dedicated */
	unsigned int reserved[16];
};

struct ll_cu_external_buffer_desc {
	unsigned long long offset;
	unsigned long long bytes;
	unsigned int flags;
	unsigned int reserved[16];
};

struct ll_cu_external_mipmap_desc {
	unsigned long long offset;
	struct ll_cu_array3d_descriptor array;
	unsigned int levels;
	unsigned int reserved[16];
};

struct ll_cu_ipc_mem_handle {
	char bytes[64];
};

struct ll_cu_ipc_event_handle {
	char bytes[64];
};

#endif
