/*
 * Compares src/abi/cuda.h, cuda_memory.h, cuda/copy.h, cuda/launch.h and cuda/graph.h and the rows of
 * cuda_functions.def and cuda_governed.def with the toolkit's cuda.h, and its headers for graphics: every enum value,
 * every struct's size and offsets, every signature. It is all done by the compiler; where there is no cuda.h the
 * program skips (77).
 */
#include "abi/cuda.h"

#include <stddef.h>
#include <stdio.h>

#if __has_include(<cuda.h>) && __has_include(<cudaProfiler.h>) && __has_include(<cudaVDPAU.h>)

/* Declares every version of every function under its exported name. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaProfiler.h>

/* cudaVDPAU.h only passes these on, and leaves it to its user to have them. */
#if __has_include(<vdpau/vdpau.h>)
#include <vdpau/vdpau.h>
#else
typedef uint32_t VdpDevice, VdpVideoSurface, VdpOutputSurface;
typedef int VdpGetProcAddress(VdpDevice device, uint32_t id, void **ret_function);
#endif
#include <cudaVDPAU.h>

/* cudaGL.h needs OpenGL's own header; without that its functions are as NVIDIA's documentation has them. */
#if __has_include(<cudaGL.h>) && __has_include(<GL/gl.h>)
#include <cudaGL.h>
#else
CUresult cuGLCtxCreate(CUcontext *context, unsigned int flags, CUdevice device);
CUresult cuGLCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
#endif

#define SAME(name) _Static_assert((int)LL_##name == (int)name, #name)

SAME(CUDA_SUCCESS);
SAME(CUDA_ERROR_INVALID_VALUE);
SAME(CUDA_ERROR_OUT_OF_MEMORY);
SAME(CUDA_ERROR_NOT_INITIALIZED);
SAME(CUDA_ERROR_DEINITIALIZED);
SAME(CUDA_ERROR_STUB_LIBRARY);
SAME(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER);
SAME(CUDA_ERROR_DEVICE_UNAVAILABLE);
SAME(CUDA_ERROR_NO_DEVICE);
SAME(CUDA_ERROR_INVALID_DEVICE);
SAME(CUDA_ERROR_INVALID_IMAGE);
SAME(CUDA_ERROR_INVALID_CONTEXT);
SAME(CUDA_ERROR_MAP_FAILED);
SAME(CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(CUDA_ERROR_ECC_UNCORRECTABLE);
SAME(CUDA_ERROR_UNSUPPORTED_LIMIT);
SAME(CUDA_ERROR_INVALID_PTX);
SAME(CUDA_ERROR_NVLINK_UNCORRECTABLE);
SAME(CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME(CUDA_ERROR_CONTAINED);
SAME(CUDA_ERROR_FILE_NOT_FOUND);
SAME(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED);
SAME(CUDA_ERROR_OPERATING_SYSTEM);
SAME(CUDA_ERROR_INVALID_HANDLE);
SAME(CUDA_ERROR_ILLEGAL_STATE);
SAME(CUDA_ERROR_NOT_FOUND);
SAME(CUDA_ERROR_NOT_READY);
SAME(CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
SAME(CUDA_ERROR_LAUNCH_TIMEOUT);
SAME(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
SAME(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
SAME(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE);
SAME(CUDA_ERROR_CONTEXT_IS_DESTROYED);
SAME(CUDA_ERROR_ASSERT);
SAME(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
SAME(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
SAME(CUDA_ERROR_HARDWARE_STACK_ERROR);
SAME(CUDA_ERROR_ILLEGAL_INSTRUCTION);
SAME(CUDA_ERROR_MISALIGNED_ADDRESS);
SAME(CUDA_ERROR_INVALID_ADDRESS_SPACE);
SAME(CUDA_ERROR_INVALID_PC);
SAME(CUDA_ERROR_LAUNCH_FAILED);
SAME(CUDA_ERROR_NOT_PERMITTED);
SAME(CUDA_ERROR_NOT_SUPPORTED);
SAME(CUDA_ERROR_SYSTEM_NOT_READY);
SAME(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
SAME(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
SAME(CUDA_ERROR_MPS_CONNECTION_FAILED);
SAME(CUDA_ERROR_MPS_RPC_FAILURE);
SAME(CUDA_ERROR_MPS_SERVER_NOT_READY);
SAME(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED);
SAME(CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED);
SAME(CUDA_ERROR_MPS_CLIENT_TERMINATED);
SAME(CUDA_ERROR_CDP_NOT_SUPPORTED);
SAME(CUDA_ERROR_TIMEOUT);
SAME(CUDA_ERROR_EXTERNAL_DEVICE);
SAME(CUDA_ERROR_UNKNOWN);
SAME(CUDA_ERROR_UNMAP_FAILED);
SAME(CUDA_ERROR_ARRAY_IS_MAPPED);
SAME(CUDA_ERROR_ALREADY_MAPPED);
SAME(CUDA_ERROR_NOT_MAPPED);
SAME(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
#define SAME_P2P(name) _Static_assert((int)LL_CU_P2P_##name == (int)CU_DEVICE_P2P_ATTRIBUTE_##name, #name)
SAME_P2P(PERFORMANCE_RANK);
SAME_P2P(ACCESS_SUPPORTED);
SAME_P2P(NATIVE_ATOMIC_SUPPORTED);
_Static_assert((int)LL_CU_P2P_ARRAY_ACCESS_SUPPORTED == (int)CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED,
	       "array access");
SAME(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
SAME(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
SAME(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
SAME(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
SAME(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
SAME(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
SAME(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
SAME(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
SAME(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
SAME(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
SAME(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
SAME(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT);
SAME(CU_DEVICE_ATTRIBUTE_INTEGRATED);
SAME(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
SAME(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS);
SAME(CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
SAME(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
SAME(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
SAME(CU_DEVICE_ATTRIBUTE_TCC_DRIVER);
SAME(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
SAME(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
SAME(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
SAME(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
SAME(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
SAME(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED);
SAME(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
SAME(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
SAME(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED);
SAME(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
SAME(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
SAME(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
SAME(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
SAME(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
SAME(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
SAME(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
SAME(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES);
SAME(CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST);
SAME(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
SAME(CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED);
SAME(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
SAME(CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED);
SAME(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED);
SAME(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES);
SAME(CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED);
SAME(CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED);
SAME(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED);
SAME(CU_DEVICE_ATTRIBUTE_MPS_ENABLED);
SAME(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED);
SAME(CU_COMPUTEMODE_DEFAULT);
SAME(CU_COMPUTEMODE_PROHIBITED);
SAME(CU_COMPUTEMODE_EXCLUSIVE_PROCESS);
SAME(CU_LIMIT_STACK_SIZE);
SAME(CU_LIMIT_PRINTF_FIFO_SIZE);
SAME(CU_LIMIT_MALLOC_HEAP_SIZE);
SAME(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH);
SAME(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT);
SAME(CU_LIMIT_MAX_L2_FETCH_GRANULARITY);
SAME(CU_LIMIT_PERSISTING_L2_CACHE_SIZE);
SAME(CU_CTX_SCHED_AUTO);
SAME(CU_CTX_SCHED_SPIN);
SAME(CU_CTX_SCHED_YIELD);
SAME(CU_CTX_SCHED_BLOCKING_SYNC);
SAME(CU_CTX_SCHED_MASK);
SAME(CU_CTX_MAP_HOST);
SAME(CU_CTX_LMEM_RESIZE_TO_MAX);
#if CUDA_VERSION >= 12010
SAME(CU_CTX_SYNC_MEMOPS);
#endif
SAME(CU_CTX_FLAGS_MASK);
SAME(CU_STREAM_DEFAULT);
SAME(CU_STREAM_NON_BLOCKING);
SAME(CU_EVENT_DEFAULT);
SAME(CU_EVENT_BLOCKING_SYNC);
SAME(CU_EVENT_DISABLE_TIMING);
SAME(CU_EVENT_INTERPROCESS);
SAME(CU_MEMHOSTALLOC_PORTABLE);
SAME(CU_MEMHOSTALLOC_DEVICEMAP);
SAME(CU_MEMHOSTALLOC_WRITECOMBINED);
SAME(CU_MEMHOSTREGISTER_PORTABLE);
SAME(CU_MEMHOSTREGISTER_DEVICEMAP);
SAME(CU_MEMHOSTREGISTER_IOMEMORY);
SAME(CU_MEMHOSTREGISTER_READ_ONLY);
SAME(CU_MEMORYTYPE_HOST);
SAME(CU_MEMORYTYPE_DEVICE);
SAME(CU_MEMORYTYPE_ARRAY);
SAME(CU_MEMORYTYPE_UNIFIED);
SAME(CU_POINTER_ATTRIBUTE_CONTEXT);
SAME(CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(CU_POINTER_ATTRIBUTE_DEVICE_POINTER);
SAME(CU_POINTER_ATTRIBUTE_HOST_POINTER);
SAME(CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
SAME(CU_POINTER_ATTRIBUTE_RANGE_SIZE);
SAME(CU_POINTER_ATTRIBUTE_P2P_TOKENS);
SAME(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
SAME(CU_POINTER_ATTRIBUTE_BUFFER_ID);
SAME(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE);
SAME(CU_POINTER_ATTRIBUTE_MAPPED);
SAME(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES);
SAME(CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE);
SAME(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS);
SAME(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
SAME(CU_POINTER_ATTRIBUTE_MAPPING_SIZE);
SAME(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR);
SAME(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID);
#if CUDA_VERSION >= 12080
SAME(CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE);
#endif
SAME(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
SAME(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME(CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME(CU_FUNC_ATTRIBUTE_PTX_VERSION);
SAME(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
SAME(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
SAME(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
SAME(CU_FUNC_CACHE_PREFER_NONE);
SAME(CU_FUNC_CACHE_PREFER_SHARED);
SAME(CU_FUNC_CACHE_PREFER_L1);
SAME(CU_FUNC_CACHE_PREFER_EQUAL);
SAME(CU_JIT_MAX_REGISTERS);
SAME(CU_JIT_INFO_LOG_BUFFER);
SAME(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
SAME(CU_JIT_ERROR_LOG_BUFFER);
SAME(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME(CU_JIT_OPTIMIZATION_LEVEL);
SAME(CU_STREAM_WRITE_VALUE_DEFAULT);
SAME(CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER);
SAME(CU_STREAM_WAIT_VALUE_GEQ);
SAME(CU_STREAM_WAIT_VALUE_EQ);
SAME(CU_STREAM_WAIT_VALUE_AND);
SAME(CU_STREAM_WAIT_VALUE_NOR);
SAME(CU_PROCESS_STATE_RUNNING);
SAME(CU_PROCESS_STATE_LOCKED);
SAME(CU_PROCESS_STATE_CHECKPOINTED);
SAME(CU_PROCESS_STATE_FAILED);
SAME(CU_GET_PROC_ADDRESS_SUCCESS);
SAME(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
SAME(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
SAME(CU_GET_PROC_ADDRESS_DEFAULT);
SAME(CU_GET_PROC_ADDRESS_LEGACY_STREAM);
SAME(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);

/* Opaque handles: a pointer to a struct on both sides; the rows below prove that each stands where the other does. */
#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #theirs)
#define SAME_FIELD(ours, our_field, theirs, their_field)                                                               \
	_Static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) &&                                   \
			   sizeof((*(ours *)0).our_field) == sizeof((*(theirs *)0).their_field),                       \
		       #theirs "." #their_field)

SAME_SIZE(ll_cu_result, CUresult);
SAME_SIZE(ll_cu_device, CUdevice);
SAME_SIZE(ll_cu_deviceptr, CUdeviceptr);
SAME_SIZE(struct ll_cu_uuid, CUuuid);
SAME_FIELD(struct ll_cu_uuid, bytes, CUuuid, bytes);
SAME_SIZE(struct ll_cu_checkpoint_lock_args, CUcheckpointLockArgs);
SAME_FIELD(struct ll_cu_checkpoint_lock_args, timeout_ms, CUcheckpointLockArgs, timeoutMs);
SAME_SIZE(struct ll_cu_launch_config, CUlaunchConfig);
SAME_FIELD(struct ll_cu_launch_config, grid_x, CUlaunchConfig, gridDimX);
SAME_FIELD(struct ll_cu_launch_config, grid_y, CUlaunchConfig, gridDimY);
SAME_FIELD(struct ll_cu_launch_config, grid_z, CUlaunchConfig, gridDimZ);
SAME_FIELD(struct ll_cu_launch_config, block_x, CUlaunchConfig, blockDimX);
SAME_FIELD(struct ll_cu_launch_config, block_y, CUlaunchConfig, blockDimY);
SAME_FIELD(struct ll_cu_launch_config, block_z, CUlaunchConfig, blockDimZ);
SAME_FIELD(struct ll_cu_launch_config, shared_bytes, CUlaunchConfig, sharedMemBytes);
SAME_FIELD(struct ll_cu_launch_config, stream, CUlaunchConfig, hStream);
SAME_FIELD(struct ll_cu_launch_config, attributes, CUlaunchConfig, attrs);
SAME_FIELD(struct ll_cu_launch_config, attribute_count, CUlaunchConfig, numAttrs);
_Static_assert(sizeof(LL_CU_STREAM_LEGACY) == sizeof(CU_STREAM_LEGACY), "handle");

/* Ends with the toolkit's names for the types in it, as below. */
#include "abi_compare_launch.h"
#include "abi_compare_memory.h"

#include "abi_compare_copy.h"

/* What is newer than this header, as NVIDIA's documentation of the driver API has it. */
#if CUDA_VERSION < 13010
CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle mcHandle, CUdevice dev, size_t mcOffset,
			       CUmemGenericAllocationHandle memHandle, size_t memOffset, size_t size,
			       unsigned long long flags);
CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle mcHandle, CUdevice dev, size_t mcOffset,
				CUdeviceptr memptr, size_t size, unsigned long long flags);
#endif
#if CUDA_VERSION < 13020
CUresult cuMemcpyWithAttributesAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUmemcpyAttributes *attr,
				     CUstream stream);
CUresult cuMemcpy3DWithAttributesAsync(CUDA_MEMCPY3D_BATCH_OP *op, unsigned long long flags, CUstream stream);
#endif
#if CUDA_VERSION < 13040
CUresult cuGraphAddNode_v3(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
			   const CUgraphEdgeData *dependencyData, size_t numDependencies,
			   CUgraphNodeParams *nodeParams);
#endif

/*
 * Signatures: from here on our type names mean the toolkit's types, so a row's signature becomes the one cuda.h must
 * have declared for the row's symbol. Enums compare as what they are, not as the integers they share.
 */
#define ll_cu_result CUresult
#define ll_cu_device CUdevice
#define ll_cu_deviceptr CUdeviceptr
#define ll_cu_context CUctx_st
#define ll_cu_module CUmod_st
#define ll_cu_function CUfunc_st
#define ll_cu_stream CUstream_st
#define ll_cu_event CUevent_st
#define ll_cu_uuid CUuuid_st
#define ll_cu_ctx_create_params CUctxCreateParams_st
#define ll_cu_process_state CUprocessState_enum
#define ll_cu_checkpoint_lock_args CUcheckpointLockArgs_st
#define ll_cu_checkpoint_args CUcheckpointCheckpointArgs_st
#define ll_cu_restore_args CUcheckpointRestoreArgs_st
#define ll_cu_unlock_args CUcheckpointUnlockArgs_st
#define ll_cu_launch_config CUlaunchConfig_st
#define ll_cu_device_attribute CUdevice_attribute_enum
#define ll_cu_p2p_attribute CUdevice_P2PAttribute_enum
#define ll_cu_limit CUlimit_enum
#define ll_cu_jit_option CUjit_option_enum
#define ll_cu_function_attribute CUfunction_attribute_enum
#define ll_cu_func_cache CUfunc_cache_enum
#define ll_cu_pointer_attribute CUpointer_attribute_enum
#define ll_cu_proc_address_result CUdriverProcAddressQueryResult_enum
#define ll_cu_host_fn CUhostFn
#define ll_cu_stream_callback CUstreamCallback
#define ll_cu_occupancy_shared CUoccupancyB2DSize

#define LL_CUDA_FUNCTION(ret, name, symbol, need, params)                                                              \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&symbol), ret(*) params), #symbol);
#include "abi/cuda_functions.def"
#define LL_CUDA_FUNCTION(ret, name, symbol, need, params)                                                              \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&symbol), ret(*) params), #symbol);
#include "abi/cuda_governed.def"

int main(void)
{
	printf("src/abi/cuda.h agrees with cuda.h of CUDA %d.%d\n", CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
	return 0;
}

#else

int main(void)
{
	puts("no cuda.h here: skipped");
	return 77;
}

#endif
