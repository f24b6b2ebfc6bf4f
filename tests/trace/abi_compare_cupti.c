/* Our declarations of CUPTI's records against a toolkit's own header: every version of each record that it has. Without
 * one it skips (77). */
#include <stdio.h>

#if defined(HAVE_CUPTI)

#include <cupti.h>

#include "abi/cupti.h"

#define SAME_AT(theirs, field, ours, mine)                                                                             \
	_Static_assert(offsetof(theirs, field) == offsetof(struct ours, mine) &&                                       \
			   sizeof(((theirs *)0)->field) == sizeof(((struct ours *)0)->mine),                           \
		       #theirs "." #field);

/* What is read must be in the shortest version. */
#define SAME_KERNEL(theirs)                                                                                            \
	_Static_assert(sizeof(theirs) >= sizeof(struct ll_cupti_kernel), #theirs);                                     \
	SAME_AT(theirs, kind, ll_cupti_kernel, kind)                                                                   \
	SAME_AT(theirs, registersPerThread, ll_cupti_kernel, registers)                                                \
	SAME_AT(theirs, start, ll_cupti_kernel, start_ns)                                                              \
	SAME_AT(theirs, end, ll_cupti_kernel, end_ns)                                                                  \
	SAME_AT(theirs, completed, ll_cupti_kernel, completed_ns)                                                      \
	SAME_AT(theirs, deviceId, ll_cupti_kernel, device)                                                             \
	SAME_AT(theirs, contextId, ll_cupti_kernel, context)                                                           \
	SAME_AT(theirs, streamId, ll_cupti_kernel, stream)                                                             \
	SAME_AT(theirs, gridX, ll_cupti_kernel, grid_x)                                                                \
	SAME_AT(theirs, gridY, ll_cupti_kernel, grid_y)                                                                \
	SAME_AT(theirs, gridZ, ll_cupti_kernel, grid_z)                                                                \
	SAME_AT(theirs, blockX, ll_cupti_kernel, block_x)                                                              \
	SAME_AT(theirs, blockY, ll_cupti_kernel, block_y)                                                              \
	SAME_AT(theirs, blockZ, ll_cupti_kernel, block_z)                                                              \
	SAME_AT(theirs, staticSharedMemory, ll_cupti_kernel, static_shared_bytes)                                      \
	SAME_AT(theirs, dynamicSharedMemory, ll_cupti_kernel, dynamic_shared_bytes)                                    \
	SAME_AT(theirs, localMemoryPerThread, ll_cupti_kernel, local_bytes_per_thread)                                 \
	SAME_AT(theirs, localMemoryTotal, ll_cupti_kernel, local_bytes_total)                                          \
	SAME_AT(theirs, correlationId, ll_cupti_kernel, correlation)                                                   \
	SAME_AT(theirs, gridId, ll_cupti_kernel, grid_id)                                                              \
	SAME_AT(theirs, name, ll_cupti_kernel, name)

#define SAME_COPY(theirs, ours)                                                                                        \
	_Static_assert(sizeof(theirs) >= sizeof(struct ours), #theirs);                                                \
	SAME_AT(theirs, kind, ours, kind)                                                                              \
	SAME_AT(theirs, copyKind, ours, copy_kind)                                                                     \
	SAME_AT(theirs, srcKind, ours, from_kind)                                                                      \
	SAME_AT(theirs, dstKind, ours, to_kind)                                                                        \
	SAME_AT(theirs, bytes, ours, bytes)                                                                            \
	SAME_AT(theirs, start, ours, start_ns)                                                                         \
	SAME_AT(theirs, end, ours, end_ns)                                                                             \
	SAME_AT(theirs, deviceId, ours, device)                                                                        \
	SAME_AT(theirs, contextId, ours, context)                                                                      \
	SAME_AT(theirs, streamId, ours, stream)                                                                        \
	SAME_AT(theirs, correlationId, ours, correlation)

#define SAME_MEMSET(theirs)                                                                                            \
	_Static_assert(sizeof(theirs) >= sizeof(struct ll_cupti_memset), #theirs);                                     \
	SAME_AT(theirs, value, ll_cupti_memset, value)                                                                 \
	SAME_AT(theirs, bytes, ll_cupti_memset, bytes)                                                                 \
	SAME_AT(theirs, start, ll_cupti_memset, start_ns)                                                              \
	SAME_AT(theirs, end, ll_cupti_memset, end_ns)                                                                  \
	SAME_AT(theirs, deviceId, ll_cupti_memset, device)                                                             \
	SAME_AT(theirs, contextId, ll_cupti_memset, context)                                                           \
	SAME_AT(theirs, streamId, ll_cupti_memset, stream)                                                             \
	SAME_AT(theirs, correlationId, ll_cupti_memset, correlation)                                                   \
	SAME_AT(theirs, memoryKind, ll_cupti_memset, memory_kind)

#define SAME_MEMORY(theirs)                                                                                            \
	_Static_assert(sizeof(theirs) >= sizeof(struct ll_cupti_memory), #theirs);                                     \
	SAME_AT(theirs, memoryOperationType, ll_cupti_memory, operation)                                               \
	SAME_AT(theirs, memoryKind, ll_cupti_memory, memory_kind)                                                      \
	SAME_AT(theirs, correlationId, ll_cupti_memory, correlation)                                                   \
	SAME_AT(theirs, address, ll_cupti_memory, address)                                                             \
	SAME_AT(theirs, bytes, ll_cupti_memory, bytes)                                                                 \
	SAME_AT(theirs, timestamp, ll_cupti_memory, at_ns)                                                             \
	SAME_AT(theirs, PC, ll_cupti_memory, caller)                                                                   \
	SAME_AT(theirs, processId, ll_cupti_memory, process)                                                           \
	SAME_AT(theirs, deviceId, ll_cupti_memory, device)                                                             \
	SAME_AT(theirs, contextId, ll_cupti_memory, context)                                                           \
	SAME_AT(theirs, streamId, ll_cupti_memory, stream)

SAME_KERNEL(CUpti_ActivityKernel4)
SAME_KERNEL(CUpti_ActivityKernel5)
SAME_COPY(CUpti_ActivityMemcpy, ll_cupti_memcpy)
SAME_COPY(CUpti_ActivityMemcpyPtoP, ll_cupti_memcpy_peer)
SAME_MEMSET(CUpti_ActivityMemset)
#if CUPTI_API_VERSION >= 15
SAME_KERNEL(CUpti_ActivityKernel6)
SAME_COPY(CUpti_ActivityMemcpy4, ll_cupti_memcpy)
SAME_COPY(CUpti_ActivityMemcpyPtoP3, ll_cupti_memcpy_peer)
SAME_MEMSET(CUpti_ActivityMemset3)
SAME_MEMORY(CUpti_ActivityMemory2)
#endif
#if CUPTI_API_VERSION >= 19
SAME_KERNEL(CUpti_ActivityKernel7)
SAME_KERNEL(CUpti_ActivityKernel8)
SAME_KERNEL(CUpti_ActivityKernel9)
SAME_COPY(CUpti_ActivityMemcpy5, ll_cupti_memcpy)
SAME_COPY(CUpti_ActivityMemcpyPtoP4, ll_cupti_memcpy_peer)
SAME_MEMSET(CUpti_ActivityMemset4)
SAME_MEMORY(CUpti_ActivityMemory3)
#endif
#if CUPTI_API_VERSION >= 130000
SAME_KERNEL(CUpti_ActivityKernel10)
SAME_COPY(CUpti_ActivityMemcpy6, ll_cupti_memcpy)
SAME_MEMORY(CUpti_ActivityMemory4)
#endif

#define SAME_NUMBER(theirs, ours) _Static_assert((int)(theirs) == (int)(ours), #theirs);
SAME_NUMBER(CUPTI_ERROR_INVALID_PARAMETER, LL_CUPTI_ERROR_INVALID_PARAMETER)
SAME_NUMBER(CUPTI_ERROR_MAX_LIMIT_REACHED, LL_CUPTI_ERROR_MAX_LIMIT_REACHED)
SAME_NUMBER(CUPTI_ERROR_NOT_COMPATIBLE, LL_CUPTI_ERROR_NOT_COMPATIBLE)
SAME_NUMBER(CUPTI_ERROR_NOT_INITIALIZED, LL_CUPTI_ERROR_NOT_INITIALIZED)
SAME_NUMBER(CUPTI_ERROR_INVALID_KIND, LL_CUPTI_ERROR_INVALID_KIND)
SAME_NUMBER(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, LL_CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)
SAME_NUMBER(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, LL_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
SAME_NUMBER(CUPTI_ACTIVITY_KIND_MEMCPY, LL_CUPTI_ACTIVITY_MEMCPY)
SAME_NUMBER(CUPTI_ACTIVITY_KIND_MEMSET, LL_CUPTI_ACTIVITY_MEMSET)
SAME_NUMBER(CUPTI_ACTIVITY_KIND_KERNEL, LL_CUPTI_ACTIVITY_KERNEL)
SAME_NUMBER(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, LL_CUPTI_ACTIVITY_CONCURRENT_KERNEL)
SAME_NUMBER(CUPTI_ACTIVITY_KIND_MEMCPY2, LL_CUPTI_ACTIVITY_MEMCPY2)
SAME_NUMBER(CUPTI_ACTIVITY_KIND_MEMORY2, LL_CUPTI_ACTIVITY_MEMORY2)
SAME_NUMBER(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED, LL_CUPTI_FLUSH_FORCED)
SAME_NUMBER(CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE, LL_CUPTI_MEMORY_PAGEABLE)
SAME_NUMBER(CUPTI_ACTIVITY_MEMORY_KIND_PINNED, LL_CUPTI_MEMORY_PINNED)
SAME_NUMBER(CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, LL_CUPTI_MEMORY_DEVICE)
SAME_NUMBER(CUPTI_ACTIVITY_MEMORY_KIND_ARRAY, LL_CUPTI_MEMORY_ARRAY)
SAME_NUMBER(CUPTI_ACTIVITY_MEMORY_KIND_MANAGED, LL_CUPTI_MEMORY_MANAGED)
SAME_NUMBER(CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC, LL_CUPTI_MEMORY_DEVICE_STATIC)
SAME_NUMBER(CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC, LL_CUPTI_MEMORY_MANAGED_STATIC)
SAME_NUMBER(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, LL_CUPTI_MEMORY_ALLOCATION)
SAME_NUMBER(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE, LL_CUPTI_MEMORY_RELEASE)

int main(void)
{
	if (!ll_cupti_is_known(CUPTI_API_VERSION)) {
		printf("this toolkit's CUPTI, %d, is one that loadline refuses\n", CUPTI_API_VERSION);
		return 1;
	}
	printf("CUPTI's records, of API %d, begin as ours do\n", CUPTI_API_VERSION);
	return 0;
}

#else

int main(void)
{
	puts("no cupti.h here");
	return 77;
}

#endif
