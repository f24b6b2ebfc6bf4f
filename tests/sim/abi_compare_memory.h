/*
 * abi_compare_memory.h - the part of abi_compare_cuda.c about src/abi/cuda_memory.h: its values and layouts, and then
 * the toolkit's names for its types, under which the rows' signatures are compared.
 */
#ifndef LOADLINE_TESTS_SIM_ABI_COMPARE_MEMORY_H
#define LOADLINE_TESTS_SIM_ABI_COMPARE_MEMORY_H

#include "abi/cuda_memory.h"

SAME(CU_MEM_ALLOCATION_TYPE_INVALID);
SAME(CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(CU_MEM_ALLOCATION_TYPE_MANAGED);
SAME(CU_MEM_ALLOCATION_TYPE_MAX);
SAME(CU_MEM_LOCATION_TYPE_INVALID);
SAME(CU_MEM_LOCATION_TYPE_DEVICE);
SAME(CU_MEM_LOCATION_TYPE_HOST);
SAME(CU_MEM_LOCATION_TYPE_HOST_NUMA);
SAME(CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
SAME(CU_MEM_LOCATION_TYPE_MAX);
SAME(CU_MEM_HANDLE_TYPE_NONE);
SAME(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME(CU_MEM_HANDLE_TYPE_WIN32);
SAME(CU_MEM_HANDLE_TYPE_WIN32_KMT);
SAME(CU_MEM_HANDLE_TYPE_FABRIC);
SAME(CU_MEM_HANDLE_TYPE_MAX);
SAME(CU_MEM_ACCESS_FLAGS_PROT_NONE);
SAME(CU_MEM_ACCESS_FLAGS_PROT_READ);
SAME(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(CU_MEM_ACCESS_FLAGS_PROT_MAX);
SAME(CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD);
SAME(CU_MEM_RANGE_HANDLE_TYPE_MAX);
SAME(CU_MEM_ALLOC_GRANULARITY_MINIMUM);
SAME(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
SAME(CU_MULTICAST_GRANULARITY_MINIMUM);
SAME(CU_MULTICAST_GRANULARITY_RECOMMENDED);
SAME(CU_MEM_CREATE_USAGE_TILE_POOL);
SAME(CU_MEM_CREATE_USAGE_HW_DECOMPRESS);
SAME(CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES);
SAME(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC);
SAME(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES);
SAME(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
SAME(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
SAME(CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
SAME(CU_MEMPOOL_ATTR_USED_MEM_HIGH);
SAME(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
SAME(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH);
SAME(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
SAME(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH);
SAME(CU_MEM_ATTACH_GLOBAL);
SAME(CU_MEM_ATTACH_HOST);
SAME(CU_MEM_ATTACH_SINGLE);
SAME(CU_MEM_ADVISE_SET_READ_MOSTLY);
SAME(CU_MEM_ADVISE_UNSET_READ_MOSTLY);
SAME(CU_MEM_ADVISE_SET_PREFERRED_LOCATION);
SAME(CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION);
SAME(CU_MEM_ADVISE_SET_ACCESSED_BY);
SAME(CU_MEM_ADVISE_UNSET_ACCESSED_BY);
SAME(CU_AD_FORMAT_UNSIGNED_INT8);
SAME(CU_AD_FORMAT_UNSIGNED_INT16);
SAME(CU_AD_FORMAT_UNSIGNED_INT32);
SAME(CU_AD_FORMAT_SIGNED_INT8);
SAME(CU_AD_FORMAT_SIGNED_INT16);
SAME(CU_AD_FORMAT_SIGNED_INT32);
SAME(CU_AD_FORMAT_HALF);
SAME(CU_AD_FORMAT_FLOAT);
SAME(CU_AD_FORMAT_MAX);
SAME(CUDA_ARRAY3D_LAYERED);
SAME(CUDA_ARRAY3D_SURFACE_LDST);
SAME(CUDA_ARRAY3D_CUBEMAP);
SAME(CUDA_ARRAY3D_TEXTURE_GATHER);
SAME(CUDA_ARRAY3D_DEPTH_TEXTURE);
SAME(CUDA_ARRAY3D_COLOR_ATTACHMENT);
SAME(CUDA_ARRAY3D_SPARSE);
SAME(CUDA_ARRAY3D_DEFERRED_MAPPING);
SAME(CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD);
SAME(CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32);
SAME(CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_KMT);
SAME(CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP);
SAME(CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE);
SAME(CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE);
SAME(CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE_KMT);
SAME(CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF);
SAME(CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD);
SAME(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
SAME(CU_DEVICE_CPU);
SAME(CU_DEVICE_INVALID);

SAME_SIZE(struct ll_cu_mem_location, CUmemLocation);
SAME_FIELD(struct ll_cu_mem_location, type, CUmemLocation, type);
SAME_FIELD(struct ll_cu_mem_location, id, CUmemLocation, id);
SAME_SIZE(struct ll_cu_mem_allocation_prop, CUmemAllocationProp);
SAME_FIELD(struct ll_cu_mem_allocation_prop, type, CUmemAllocationProp, type);
SAME_FIELD(struct ll_cu_mem_allocation_prop, handle_types, CUmemAllocationProp, requestedHandleTypes);
SAME_FIELD(struct ll_cu_mem_allocation_prop, location, CUmemAllocationProp, location);
SAME_FIELD(struct ll_cu_mem_allocation_prop, win32, CUmemAllocationProp, win32HandleMetaData);
SAME_FIELD(struct ll_cu_mem_allocation_prop, compression, CUmemAllocationProp, allocFlags.compressionType);
SAME_FIELD(struct ll_cu_mem_allocation_prop, is_rdma_capable, CUmemAllocationProp, allocFlags.gpuDirectRDMACapable);
SAME_FIELD(struct ll_cu_mem_allocation_prop, usage, CUmemAllocationProp, allocFlags.usage);
SAME_FIELD(struct ll_cu_mem_allocation_prop, reserved, CUmemAllocationProp, allocFlags.reserved);
SAME_SIZE(struct ll_cu_mem_access_desc, CUmemAccessDesc);
SAME_FIELD(struct ll_cu_mem_access_desc, location, CUmemAccessDesc, location);
SAME_FIELD(struct ll_cu_mem_access_desc, flags, CUmemAccessDesc, flags);
SAME_SIZE(struct ll_cu_mem_pool_props, CUmemPoolProps);
SAME_FIELD(struct ll_cu_mem_pool_props, type, CUmemPoolProps, allocType);
SAME_FIELD(struct ll_cu_mem_pool_props, handle_types, CUmemPoolProps, handleTypes);
SAME_FIELD(struct ll_cu_mem_pool_props, location, CUmemPoolProps, location);
SAME_FIELD(struct ll_cu_mem_pool_props, win32, CUmemPoolProps, win32SecurityAttributes);
SAME_FIELD(struct ll_cu_mem_pool_props, max_bytes, CUmemPoolProps, maxSize);
SAME_FIELD(struct ll_cu_mem_pool_props, usage, CUmemPoolProps, usage);
SAME_FIELD(struct ll_cu_mem_pool_props, reserved, CUmemPoolProps, reserved);
SAME_SIZE(struct ll_cu_mem_pool_pointer, CUmemPoolPtrExportData);
SAME_FIELD(struct ll_cu_mem_pool_pointer, bytes, CUmemPoolPtrExportData, reserved);
SAME_SIZE(struct ll_cu_multicast_prop, CUmulticastObjectProp);
SAME_FIELD(struct ll_cu_multicast_prop, device_count, CUmulticastObjectProp, numDevices);
SAME_FIELD(struct ll_cu_multicast_prop, bytes, CUmulticastObjectProp, size);
SAME_FIELD(struct ll_cu_multicast_prop, handle_types, CUmulticastObjectProp, handleTypes);
SAME_FIELD(struct ll_cu_multicast_prop, flags, CUmulticastObjectProp, flags);
SAME_SIZE(struct ll_cu_array_descriptor, CUDA_ARRAY_DESCRIPTOR);
SAME_FIELD(struct ll_cu_array_descriptor, width, CUDA_ARRAY_DESCRIPTOR, Width);
SAME_FIELD(struct ll_cu_array_descriptor, height, CUDA_ARRAY_DESCRIPTOR, Height);
SAME_FIELD(struct ll_cu_array_descriptor, format, CUDA_ARRAY_DESCRIPTOR, Format);
SAME_FIELD(struct ll_cu_array_descriptor, channels, CUDA_ARRAY_DESCRIPTOR, NumChannels);
SAME_SIZE(struct ll_cu_array3d_descriptor, CUDA_ARRAY3D_DESCRIPTOR);
SAME_FIELD(struct ll_cu_array3d_descriptor, width, CUDA_ARRAY3D_DESCRIPTOR, Width);
SAME_FIELD(struct ll_cu_array3d_descriptor, height, CUDA_ARRAY3D_DESCRIPTOR, Height);
SAME_FIELD(struct ll_cu_array3d_descriptor, depth, CUDA_ARRAY3D_DESCRIPTOR, Depth);
SAME_FIELD(struct ll_cu_array3d_descriptor, format, CUDA_ARRAY3D_DESCRIPTOR, Format);
SAME_FIELD(struct ll_cu_array3d_descriptor, channels, CUDA_ARRAY3D_DESCRIPTOR, NumChannels);
SAME_FIELD(struct ll_cu_array3d_descriptor, flags, CUDA_ARRAY3D_DESCRIPTOR, Flags);
SAME_SIZE(struct ll_cu_array_descriptor_v1, CUDA_ARRAY_DESCRIPTOR_v1);
SAME_FIELD(struct ll_cu_array_descriptor_v1, width, CUDA_ARRAY_DESCRIPTOR_v1, Width);
SAME_FIELD(struct ll_cu_array_descriptor_v1, height, CUDA_ARRAY_DESCRIPTOR_v1, Height);
SAME_FIELD(struct ll_cu_array_descriptor_v1, format, CUDA_ARRAY_DESCRIPTOR_v1, Format);
SAME_FIELD(struct ll_cu_array_descriptor_v1, channels, CUDA_ARRAY_DESCRIPTOR_v1, NumChannels);
SAME_SIZE(struct ll_cu_array3d_descriptor_v1, CUDA_ARRAY3D_DESCRIPTOR_v1);
SAME_FIELD(struct ll_cu_array3d_descriptor_v1, width, CUDA_ARRAY3D_DESCRIPTOR_v1, Width);
SAME_FIELD(struct ll_cu_array3d_descriptor_v1, height, CUDA_ARRAY3D_DESCRIPTOR_v1, Height);
SAME_FIELD(struct ll_cu_array3d_descriptor_v1, depth, CUDA_ARRAY3D_DESCRIPTOR_v1, Depth);
SAME_FIELD(struct ll_cu_array3d_descriptor_v1, format, CUDA_ARRAY3D_DESCRIPTOR_v1, Format);
SAME_FIELD(struct ll_cu_array3d_descriptor_v1, channels, CUDA_ARRAY3D_DESCRIPTOR_v1, NumChannels);
SAME_FIELD(struct ll_cu_array3d_descriptor_v1, flags, CUDA_ARRAY3D_DESCRIPTOR_v1, Flags);
SAME_SIZE(struct ll_cu_array_requirements, CUDA_ARRAY_MEMORY_REQUIREMENTS);
SAME_FIELD(struct ll_cu_array_requirements, bytes, CUDA_ARRAY_MEMORY_REQUIREMENTS, size);
SAME_FIELD(struct ll_cu_array_requirements, alignment, CUDA_ARRAY_MEMORY_REQUIREMENTS, alignment);
SAME_FIELD(struct ll_cu_array_requirements, reserved, CUDA_ARRAY_MEMORY_REQUIREMENTS, reserved);
SAME_SIZE(struct ll_cu_external_memory_desc, CUDA_EXTERNAL_MEMORY_HANDLE_DESC);
SAME_FIELD(struct ll_cu_external_memory_desc, type, CUDA_EXTERNAL_MEMORY_HANDLE_DESC, type);
SAME_FIELD(struct ll_cu_external_memory_desc, handle.fd, CUDA_EXTERNAL_MEMORY_HANDLE_DESC, handle.fd);
SAME_FIELD(struct ll_cu_external_memory_desc, handle.win32.handle, CUDA_EXTERNAL_MEMORY_HANDLE_DESC,
	   handle.win32.handle);
SAME_FIELD(struct ll_cu_external_memory_desc, handle.win32.name, CUDA_EXTERNAL_MEMORY_HANDLE_DESC, handle.win32.name);
SAME_FIELD(struct ll_cu_external_memory_desc, handle.nvscibuf, CUDA_EXTERNAL_MEMORY_HANDLE_DESC, handle.nvSciBufObject);
SAME_FIELD(struct ll_cu_external_memory_desc, bytes, CUDA_EXTERNAL_MEMORY_HANDLE_DESC, size);
SAME_FIELD(struct ll_cu_external_memory_desc, flags, CUDA_EXTERNAL_MEMORY_HANDLE_DESC, flags);
SAME_FIELD(struct ll_cu_external_memory_desc, reserved, CUDA_EXTERNAL_MEMORY_HANDLE_DESC, reserved);
SAME_SIZE(struct ll_cu_external_buffer_desc, CUDA_EXTERNAL_MEMORY_BUFFER_DESC);
SAME_FIELD(struct ll_cu_external_buffer_desc, offset, CUDA_EXTERNAL_MEMORY_BUFFER_DESC, offset);
SAME_FIELD(struct ll_cu_external_buffer_desc, bytes, CUDA_EXTERNAL_MEMORY_BUFFER_DESC, size);
SAME_FIELD(struct ll_cu_external_buffer_desc, flags, CUDA_EXTERNAL_MEMORY_BUFFER_DESC, flags);
SAME_FIELD(struct ll_cu_external_buffer_desc, reserved, CUDA_EXTERNAL_MEMORY_BUFFER_DESC, reserved);
SAME_SIZE(struct ll_cu_external_mipmap_desc, CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC);
SAME_FIELD(struct ll_cu_external_mipmap_desc, offset, CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, offset);
SAME_FIELD(struct ll_cu_external_mipmap_desc, array, CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, arrayDesc);
SAME_FIELD(struct ll_cu_external_mipmap_desc, levels, CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, numLevels);
SAME_FIELD(struct ll_cu_external_mipmap_desc, reserved, CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, reserved);
SAME_SIZE(struct ll_cu_ipc_mem_handle, CUipcMemHandle);
SAME_FIELD(struct ll_cu_ipc_mem_handle, bytes, CUipcMemHandle, reserved);
SAME_SIZE(struct ll_cu_ipc_event_handle, CUipcEventHandle);
SAME_FIELD(struct ll_cu_ipc_event_handle, bytes, CUipcEventHandle, reserved);
SAME_SIZE(ll_cu_deviceptr_v1, CUdeviceptr_v1);
SAME_SIZE(ll_cu_mem_handle, CUmemGenericAllocationHandle);
SAME_SIZE(ll_vdp_device, VdpDevice);

#define ll_cu_mem_handle CUmemGenericAllocationHandle
#define ll_cu_deviceptr_v1 CUdeviceptr_v1
#define ll_vdp_device VdpDevice
#define ll_vdp_get_proc_address VdpGetProcAddress
#define ll_cu_mem_pool CUmemPoolHandle_st
#define ll_cu_array CUarray_st
#define ll_cu_mipmapped_array CUmipmappedArray_st
#define ll_cu_external_memory CUextMemory_st
#define ll_cu_array_map_info CUarrayMapInfo_st
#define ll_cu_exec_affinity_param CUexecAffinityParam_st
#define ll_cu_mem_decompress_params CUmemDecompressParams_st
#define ll_cu_mem_range_handle_type CUmemRangeHandleType_enum
#define ll_cu_mem_allocation_type CUmemAllocationType_enum
#define ll_cu_mem_handle_type CUmemAllocationHandleType_enum
#define ll_cu_mem_access_flags CUmemAccess_flags_enum
#define ll_cu_mem_granularity_flags CUmemAllocationGranularity_flags_enum
#define ll_cu_multicast_granularity_flags CUmulticastGranularity_flags_enum
#define ll_cu_mem_pool_attribute CUmemPool_attribute_enum
#define ll_cu_green_context CUgreenCtx_st
#define ll_cu_resource_desc CUdevResourceDesc_st
#define ll_cu_graph_mem_attribute CUgraphMem_attribute_enum
#define ll_cu_mem_advise CUmem_advise_enum
#define ll_cu_mem_location CUmemLocation_st
#define ll_cu_mem_allocation_prop CUmemAllocationProp_st
#define ll_cu_mem_access_desc CUmemAccessDesc_st
#define ll_cu_mem_pool_props CUmemPoolProps_st
#define ll_cu_mem_pool_pointer CUmemPoolPtrExportData_st
#define ll_cu_multicast_prop CUmulticastObjectProp_st
#define ll_cu_array_descriptor CUDA_ARRAY_DESCRIPTOR_st
#define ll_cu_array3d_descriptor CUDA_ARRAY3D_DESCRIPTOR_st
#define ll_cu_array_descriptor_v1 CUDA_ARRAY_DESCRIPTOR_v1_st
#define ll_cu_array3d_descriptor_v1 CUDA_ARRAY3D_DESCRIPTOR_v1_st
#define ll_cu_array_requirements CUDA_ARRAY_MEMORY_REQUIREMENTS_st
#define ll_cu_external_memory_desc CUDA_EXTERNAL_MEMORY_HANDLE_DESC_st
#define ll_cu_external_buffer_desc CUDA_EXTERNAL_MEMORY_BUFFER_DESC_st
#define ll_cu_external_mipmap_desc CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC_st
#define ll_cu_ipc_mem_handle CUipcMemHandle_st
#define ll_cu_ipc_event_handle CUipcEventHandle_st

#endif
