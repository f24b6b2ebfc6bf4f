/*
 * abi_compare_launch.h - the part of abi_compare_cuda.c about src/abi/cuda_launch.h and cuda/graph.h: their values and
 * layouts, and then the toolkit's names for their types, under which the rows' signatures are compared.
 */
#ifndef LOADLINE_TESTS_SIM_ABI_COMPARE_LAUNCH_H
#define LOADLINE_TESTS_SIM_ABI_COMPARE_LAUNCH_H

#include "abi/cuda_graph.h"

SAME(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
SAME(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
SAME(CUDA_ERROR_STREAM_CAPTURE_MERGE);
SAME(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
SAME(CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
SAME(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
SAME(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
SAME(CUDA_ERROR_CAPTURED_EVENT);
SAME(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
SAME(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
SAME(CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE);
SAME(CU_LIBRARY_BINARY_IS_PRESERVED);
SAME(CU_FUNCTION_LOADING_STATE_UNLOADED);
SAME(CU_FUNCTION_LOADING_STATE_LOADED);
SAME(CU_OCCUPANCY_DEFAULT);
SAME(CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);
SAME(CU_LAUNCH_ATTRIBUTE_IGNORE);
SAME(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW);
SAME(CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
SAME(CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY);
SAME(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SAME(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
SAME(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
SAME(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT);
SAME(CU_LAUNCH_ATTRIBUTE_PRIORITY);
SAME(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP);
SAME(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN);
SAME(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT);
SAME(CU_STREAM_MEM_OP_WAIT_VALUE_32);
SAME(CU_STREAM_MEM_OP_WRITE_VALUE_32);
SAME(CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES);
SAME(CU_STREAM_MEM_OP_WAIT_VALUE_64);
SAME(CU_STREAM_MEM_OP_WRITE_VALUE_64);
SAME(CU_STREAM_MEM_OP_BARRIER);
SAME(CU_STREAM_CAPTURE_STATUS_NONE);
SAME(CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME(CU_STREAM_CAPTURE_STATUS_INVALIDATED);
SAME(CU_STREAM_CAPTURE_MODE_GLOBAL);
SAME(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME(CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(CU_STREAM_ADD_CAPTURE_DEPENDENCIES);
SAME(CU_STREAM_SET_CAPTURE_DEPENDENCIES);
SAME(CU_EVENT_RECORD_EXTERNAL);
SAME(CU_EVENT_WAIT_EXTERNAL);
SAME(CU_GRAPH_NODE_TYPE_KERNEL);
SAME(CU_GRAPH_NODE_TYPE_MEMCPY);
SAME(CU_GRAPH_NODE_TYPE_MEMSET);
SAME(CU_GRAPH_NODE_TYPE_HOST);
SAME(CU_GRAPH_NODE_TYPE_GRAPH);
SAME(CU_GRAPH_NODE_TYPE_EMPTY);
SAME(CU_GRAPH_NODE_TYPE_WAIT_EVENT);
SAME(CU_GRAPH_NODE_TYPE_EVENT_RECORD);
SAME(CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL);
SAME(CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT);
SAME(CU_GRAPH_NODE_TYPE_MEM_ALLOC);
SAME(CU_GRAPH_NODE_TYPE_MEM_FREE);
SAME(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
SAME(CU_GRAPH_NODE_TYPE_CONDITIONAL);
SAME(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
SAME(CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);
SAME(CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
SAME(CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
SAME(CUDA_GRAPH_INSTANTIATE_SUCCESS);
SAME(CUDA_GRAPH_INSTANTIATE_ERROR);
SAME(CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
SAME(CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED);
SAME(CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED);
SAME(CU_GRAPH_EXEC_UPDATE_SUCCESS);
SAME(CU_GRAPH_EXEC_UPDATE_ERROR);
SAME(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
SAME(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
SAME(CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED);
SAME(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
SAME(CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED);
SAME(CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE);
SAME(CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED);
SAME(CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE);
SAME(CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE);

SAME_SIZE(struct ll_cu_child_graph_params, CUDA_CHILD_GRAPH_NODE_PARAMS);
SAME_FIELD(struct ll_cu_child_graph_params, graph, CUDA_CHILD_GRAPH_NODE_PARAMS, graph);
SAME_FIELD(struct ll_cu_child_graph_params, ownership, CUDA_CHILD_GRAPH_NODE_PARAMS, ownership);
SAME_SIZE(struct ll_cu_event_params, CUDA_EVENT_RECORD_NODE_PARAMS);
SAME_FIELD(struct ll_cu_event_params, event, CUDA_EVENT_RECORD_NODE_PARAMS, event);
SAME_SIZE(struct ll_cu_graph_edge_data, CUgraphEdgeData);
SAME_FIELD(struct ll_cu_graph_edge_data, from_port, CUgraphEdgeData, from_port);
SAME_FIELD(struct ll_cu_graph_edge_data, to_port, CUgraphEdgeData, to_port);
SAME_FIELD(struct ll_cu_graph_edge_data, type, CUgraphEdgeData, type);
SAME_FIELD(struct ll_cu_graph_edge_data, reserved, CUgraphEdgeData, reserved);
SAME_SIZE(struct ll_cu_graph_instantiate_params, CUDA_GRAPH_INSTANTIATE_PARAMS);
SAME_FIELD(struct ll_cu_graph_instantiate_params, flags, CUDA_GRAPH_INSTANTIATE_PARAMS, flags);
SAME_FIELD(struct ll_cu_graph_instantiate_params, upload_stream, CUDA_GRAPH_INSTANTIATE_PARAMS, hUploadStream);
SAME_FIELD(struct ll_cu_graph_instantiate_params, error_node, CUDA_GRAPH_INSTANTIATE_PARAMS, hErrNode_out);
SAME_FIELD(struct ll_cu_graph_instantiate_params, result, CUDA_GRAPH_INSTANTIATE_PARAMS, result_out);
SAME_SIZE(struct ll_cu_graph_node_params, CUgraphNodeParams);
SAME_FIELD(struct ll_cu_graph_node_params, type, CUgraphNodeParams, type);
SAME_FIELD(struct ll_cu_graph_node_params, reserved0, CUgraphNodeParams, reserved0);
SAME_FIELD(struct ll_cu_graph_node_params, reserved1, CUgraphNodeParams, reserved1);
SAME_FIELD(struct ll_cu_graph_node_params, kernel, CUgraphNodeParams, kernel);
SAME_FIELD(struct ll_cu_graph_node_params, copy, CUgraphNodeParams, memcpy);
SAME_FIELD(struct ll_cu_graph_node_params, fill, CUgraphNodeParams, memset);
SAME_FIELD(struct ll_cu_graph_node_params, host, CUgraphNodeParams, host);
SAME_FIELD(struct ll_cu_graph_node_params, child, CUgraphNodeParams, graph);
SAME_FIELD(struct ll_cu_graph_node_params, event, CUgraphNodeParams, eventRecord);
SAME_FIELD(struct ll_cu_graph_node_params, alloc, CUgraphNodeParams, alloc);
SAME_FIELD(struct ll_cu_graph_node_params, free, CUgraphNodeParams, free);
SAME_FIELD(struct ll_cu_graph_node_params, mem_op, CUgraphNodeParams, memOp);
SAME_FIELD(struct ll_cu_graph_node_params, reserved2, CUgraphNodeParams, reserved2);
SAME_SIZE(struct ll_cu_graph_update_info, CUgraphExecUpdateResultInfo);
SAME_FIELD(struct ll_cu_graph_update_info, result, CUgraphExecUpdateResultInfo, result);
SAME_FIELD(struct ll_cu_graph_update_info, error_node, CUgraphExecUpdateResultInfo, errorNode);
SAME_FIELD(struct ll_cu_graph_update_info, error_from_node, CUgraphExecUpdateResultInfo, errorFromNode);
SAME_SIZE(struct ll_cu_host_params, CUDA_HOST_NODE_PARAMS_v2);
SAME_FIELD(struct ll_cu_host_params, function, CUDA_HOST_NODE_PARAMS_v2, fn);
SAME_FIELD(struct ll_cu_host_params, user, CUDA_HOST_NODE_PARAMS_v2, userData);
SAME_SIZE(struct ll_cu_kernel_params, CUDA_KERNEL_NODE_PARAMS_v3);
SAME_FIELD(struct ll_cu_kernel_params, function, CUDA_KERNEL_NODE_PARAMS_v3, func);
SAME_FIELD(struct ll_cu_kernel_params, grid_x, CUDA_KERNEL_NODE_PARAMS_v3, gridDimX);
SAME_FIELD(struct ll_cu_kernel_params, grid_y, CUDA_KERNEL_NODE_PARAMS_v3, gridDimY);
SAME_FIELD(struct ll_cu_kernel_params, grid_z, CUDA_KERNEL_NODE_PARAMS_v3, gridDimZ);
SAME_FIELD(struct ll_cu_kernel_params, block_x, CUDA_KERNEL_NODE_PARAMS_v3, blockDimX);
SAME_FIELD(struct ll_cu_kernel_params, block_y, CUDA_KERNEL_NODE_PARAMS_v3, blockDimY);
SAME_FIELD(struct ll_cu_kernel_params, block_z, CUDA_KERNEL_NODE_PARAMS_v3, blockDimZ);
SAME_FIELD(struct ll_cu_kernel_params, shared_bytes, CUDA_KERNEL_NODE_PARAMS_v3, sharedMemBytes);
SAME_FIELD(struct ll_cu_kernel_params, params, CUDA_KERNEL_NODE_PARAMS_v3, kernelParams);
SAME_FIELD(struct ll_cu_kernel_params, extra, CUDA_KERNEL_NODE_PARAMS_v3, extra);
SAME_FIELD(struct ll_cu_kernel_params, kernel, CUDA_KERNEL_NODE_PARAMS_v3, kern);
SAME_FIELD(struct ll_cu_kernel_params, context, CUDA_KERNEL_NODE_PARAMS_v3, ctx);
SAME_SIZE(struct ll_cu_kernel_params_v1, CUDA_KERNEL_NODE_PARAMS_v1);
SAME_FIELD(struct ll_cu_kernel_params_v1, function, CUDA_KERNEL_NODE_PARAMS_v1, func);
SAME_FIELD(struct ll_cu_kernel_params_v1, grid_x, CUDA_KERNEL_NODE_PARAMS_v1, gridDimX);
SAME_FIELD(struct ll_cu_kernel_params_v1, grid_y, CUDA_KERNEL_NODE_PARAMS_v1, gridDimY);
SAME_FIELD(struct ll_cu_kernel_params_v1, grid_z, CUDA_KERNEL_NODE_PARAMS_v1, gridDimZ);
SAME_FIELD(struct ll_cu_kernel_params_v1, block_x, CUDA_KERNEL_NODE_PARAMS_v1, blockDimX);
SAME_FIELD(struct ll_cu_kernel_params_v1, block_y, CUDA_KERNEL_NODE_PARAMS_v1, blockDimY);
SAME_FIELD(struct ll_cu_kernel_params_v1, block_z, CUDA_KERNEL_NODE_PARAMS_v1, blockDimZ);
SAME_FIELD(struct ll_cu_kernel_params_v1, shared_bytes, CUDA_KERNEL_NODE_PARAMS_v1, sharedMemBytes);
SAME_FIELD(struct ll_cu_kernel_params_v1, params, CUDA_KERNEL_NODE_PARAMS_v1, kernelParams);
SAME_FIELD(struct ll_cu_kernel_params_v1, extra, CUDA_KERNEL_NODE_PARAMS_v1, extra);
SAME_SIZE(struct ll_cu_launch_attribute, CUlaunchAttribute);
SAME_FIELD(struct ll_cu_launch_attribute, id, CUlaunchAttribute, id);
SAME_FIELD(struct ll_cu_launch_attribute, value, CUlaunchAttribute, value);
SAME_SIZE(struct ll_cu_launch_params, CUDA_LAUNCH_PARAMS);
SAME_FIELD(struct ll_cu_launch_params, function, CUDA_LAUNCH_PARAMS, function);
SAME_FIELD(struct ll_cu_launch_params, grid_x, CUDA_LAUNCH_PARAMS, gridDimX);
SAME_FIELD(struct ll_cu_launch_params, grid_y, CUDA_LAUNCH_PARAMS, gridDimY);
SAME_FIELD(struct ll_cu_launch_params, grid_z, CUDA_LAUNCH_PARAMS, gridDimZ);
SAME_FIELD(struct ll_cu_launch_params, block_x, CUDA_LAUNCH_PARAMS, blockDimX);
SAME_FIELD(struct ll_cu_launch_params, block_y, CUDA_LAUNCH_PARAMS, blockDimY);
SAME_FIELD(struct ll_cu_launch_params, block_z, CUDA_LAUNCH_PARAMS, blockDimZ);
SAME_FIELD(struct ll_cu_launch_params, shared_bytes, CUDA_LAUNCH_PARAMS, sharedMemBytes);
SAME_FIELD(struct ll_cu_launch_params, stream, CUDA_LAUNCH_PARAMS, hStream);
SAME_FIELD(struct ll_cu_launch_params, params, CUDA_LAUNCH_PARAMS, kernelParams);
SAME_SIZE(struct ll_cu_mem_alloc_params, CUDA_MEM_ALLOC_NODE_PARAMS_v1);
SAME_FIELD(struct ll_cu_mem_alloc_params, pool, CUDA_MEM_ALLOC_NODE_PARAMS_v1, poolProps);
SAME_FIELD(struct ll_cu_mem_alloc_params, access, CUDA_MEM_ALLOC_NODE_PARAMS_v1, accessDescs);
SAME_FIELD(struct ll_cu_mem_alloc_params, access_count, CUDA_MEM_ALLOC_NODE_PARAMS_v1, accessDescCount);
SAME_FIELD(struct ll_cu_mem_alloc_params, bytes, CUDA_MEM_ALLOC_NODE_PARAMS_v1, bytesize);
SAME_FIELD(struct ll_cu_mem_alloc_params, address, CUDA_MEM_ALLOC_NODE_PARAMS_v1, dptr);
SAME_SIZE(struct ll_cu_mem_free_params, CUDA_MEM_FREE_NODE_PARAMS);
SAME_FIELD(struct ll_cu_mem_free_params, address, CUDA_MEM_FREE_NODE_PARAMS, dptr);
SAME_SIZE(struct ll_cu_mem_op_params, CUDA_BATCH_MEM_OP_NODE_PARAMS_v2);
SAME_FIELD(struct ll_cu_mem_op_params, context, CUDA_BATCH_MEM_OP_NODE_PARAMS_v2, ctx);
SAME_FIELD(struct ll_cu_mem_op_params, count, CUDA_BATCH_MEM_OP_NODE_PARAMS_v2, count);
SAME_FIELD(struct ll_cu_mem_op_params, ops, CUDA_BATCH_MEM_OP_NODE_PARAMS_v2, paramArray);
SAME_FIELD(struct ll_cu_mem_op_params, flags, CUDA_BATCH_MEM_OP_NODE_PARAMS_v2, flags);
SAME_SIZE(struct ll_cu_memcpy2d, CUDA_MEMCPY2D_v2);
SAME_FIELD(struct ll_cu_memcpy2d, from_x_bytes, CUDA_MEMCPY2D_v2, srcXInBytes);
SAME_FIELD(struct ll_cu_memcpy2d, from_y, CUDA_MEMCPY2D_v2, srcY);
SAME_FIELD(struct ll_cu_memcpy2d, from_type, CUDA_MEMCPY2D_v2, srcMemoryType);
SAME_FIELD(struct ll_cu_memcpy2d, from_host, CUDA_MEMCPY2D_v2, srcHost);
SAME_FIELD(struct ll_cu_memcpy2d, from_device, CUDA_MEMCPY2D_v2, srcDevice);
SAME_FIELD(struct ll_cu_memcpy2d, from_array, CUDA_MEMCPY2D_v2, srcArray);
SAME_FIELD(struct ll_cu_memcpy2d, from_pitch_bytes, CUDA_MEMCPY2D_v2, srcPitch);
SAME_FIELD(struct ll_cu_memcpy2d, to_x_bytes, CUDA_MEMCPY2D_v2, dstXInBytes);
SAME_FIELD(struct ll_cu_memcpy2d, to_y, CUDA_MEMCPY2D_v2, dstY);
SAME_FIELD(struct ll_cu_memcpy2d, to_type, CUDA_MEMCPY2D_v2, dstMemoryType);
SAME_FIELD(struct ll_cu_memcpy2d, to_host, CUDA_MEMCPY2D_v2, dstHost);
SAME_FIELD(struct ll_cu_memcpy2d, to_device, CUDA_MEMCPY2D_v2, dstDevice);
SAME_FIELD(struct ll_cu_memcpy2d, to_array, CUDA_MEMCPY2D_v2, dstArray);
SAME_FIELD(struct ll_cu_memcpy2d, to_pitch_bytes, CUDA_MEMCPY2D_v2, dstPitch);
SAME_FIELD(struct ll_cu_memcpy2d, width_bytes, CUDA_MEMCPY2D_v2, WidthInBytes);
SAME_FIELD(struct ll_cu_memcpy2d, height, CUDA_MEMCPY2D_v2, Height);
SAME_SIZE(struct ll_cu_memcpy3d, CUDA_MEMCPY3D_v2);
SAME_FIELD(struct ll_cu_memcpy3d, from_x_bytes, CUDA_MEMCPY3D_v2, srcXInBytes);
SAME_FIELD(struct ll_cu_memcpy3d, from_y, CUDA_MEMCPY3D_v2, srcY);
SAME_FIELD(struct ll_cu_memcpy3d, from_type, CUDA_MEMCPY3D_v2, srcMemoryType);
SAME_FIELD(struct ll_cu_memcpy3d, from_host, CUDA_MEMCPY3D_v2, srcHost);
SAME_FIELD(struct ll_cu_memcpy3d, from_device, CUDA_MEMCPY3D_v2, srcDevice);
SAME_FIELD(struct ll_cu_memcpy3d, from_array, CUDA_MEMCPY3D_v2, srcArray);
SAME_FIELD(struct ll_cu_memcpy3d, from_pitch_bytes, CUDA_MEMCPY3D_v2, srcPitch);
SAME_FIELD(struct ll_cu_memcpy3d, to_x_bytes, CUDA_MEMCPY3D_v2, dstXInBytes);
SAME_FIELD(struct ll_cu_memcpy3d, to_y, CUDA_MEMCPY3D_v2, dstY);
SAME_FIELD(struct ll_cu_memcpy3d, to_type, CUDA_MEMCPY3D_v2, dstMemoryType);
SAME_FIELD(struct ll_cu_memcpy3d, to_host, CUDA_MEMCPY3D_v2, dstHost);
SAME_FIELD(struct ll_cu_memcpy3d, to_device, CUDA_MEMCPY3D_v2, dstDevice);
SAME_FIELD(struct ll_cu_memcpy3d, to_array, CUDA_MEMCPY3D_v2, dstArray);
SAME_FIELD(struct ll_cu_memcpy3d, to_pitch_bytes, CUDA_MEMCPY3D_v2, dstPitch);
SAME_FIELD(struct ll_cu_memcpy3d, width_bytes, CUDA_MEMCPY3D_v2, WidthInBytes);
SAME_FIELD(struct ll_cu_memcpy3d, height, CUDA_MEMCPY3D_v2, Height);
SAME_FIELD(struct ll_cu_memcpy3d, from_z, CUDA_MEMCPY3D_v2, srcZ);
SAME_FIELD(struct ll_cu_memcpy3d, from_lod, CUDA_MEMCPY3D_v2, srcLOD);
SAME_FIELD(struct ll_cu_memcpy3d, from_height, CUDA_MEMCPY3D_v2, srcHeight);
SAME_FIELD(struct ll_cu_memcpy3d, to_z, CUDA_MEMCPY3D_v2, dstZ);
SAME_FIELD(struct ll_cu_memcpy3d, to_lod, CUDA_MEMCPY3D_v2, dstLOD);
SAME_FIELD(struct ll_cu_memcpy3d, to_height, CUDA_MEMCPY3D_v2, dstHeight);
SAME_FIELD(struct ll_cu_memcpy3d, depth, CUDA_MEMCPY3D_v2, Depth);
SAME_FIELD(struct ll_cu_memcpy3d, reserved0, CUDA_MEMCPY3D_v2, reserved0);
SAME_FIELD(struct ll_cu_memcpy3d, reserved1, CUDA_MEMCPY3D_v2, reserved1);
SAME_SIZE(struct ll_cu_memcpy3d_peer, CUDA_MEMCPY3D_PEER_v1);
SAME_FIELD(struct ll_cu_memcpy3d_peer, from_x_bytes, CUDA_MEMCPY3D_PEER_v1, srcXInBytes);
SAME_FIELD(struct ll_cu_memcpy3d_peer, from_y, CUDA_MEMCPY3D_PEER_v1, srcY);
SAME_FIELD(struct ll_cu_memcpy3d_peer, from_type, CUDA_MEMCPY3D_PEER_v1, srcMemoryType);
SAME_FIELD(struct ll_cu_memcpy3d_peer, from_host, CUDA_MEMCPY3D_PEER_v1, srcHost);
SAME_FIELD(struct ll_cu_memcpy3d_peer, from_device, CUDA_MEMCPY3D_PEER_v1, srcDevice);
SAME_FIELD(struct ll_cu_memcpy3d_peer, from_array, CUDA_MEMCPY3D_PEER_v1, srcArray);
SAME_FIELD(struct ll_cu_memcpy3d_peer, from_pitch_bytes, CUDA_MEMCPY3D_PEER_v1, srcPitch);
SAME_FIELD(struct ll_cu_memcpy3d_peer, to_x_bytes, CUDA_MEMCPY3D_PEER_v1, dstXInBytes);
SAME_FIELD(struct ll_cu_memcpy3d_peer, to_y, CUDA_MEMCPY3D_PEER_v1, dstY);
SAME_FIELD(struct ll_cu_memcpy3d_peer, to_type, CUDA_MEMCPY3D_PEER_v1, dstMemoryType);
SAME_FIELD(struct ll_cu_memcpy3d_peer, to_host, CUDA_MEMCPY3D_PEER_v1, dstHost);
SAME_FIELD(struct ll_cu_memcpy3d_peer, to_device, CUDA_MEMCPY3D_PEER_v1, dstDevice);
SAME_FIELD(struct ll_cu_memcpy3d_peer, to_array, CUDA_MEMCPY3D_PEER_v1, dstArray);
SAME_FIELD(struct ll_cu_memcpy3d_peer, to_pitch_bytes, CUDA_MEMCPY3D_PEER_v1, dstPitch);
SAME_FIELD(struct ll_cu_memcpy3d_peer, width_bytes, CUDA_MEMCPY3D_PEER_v1, WidthInBytes);
SAME_FIELD(struct ll_cu_memcpy3d_peer, height, CUDA_MEMCPY3D_PEER_v1, Height);
SAME_FIELD(struct ll_cu_memcpy3d_peer, from_z, CUDA_MEMCPY3D_PEER_v1, srcZ);
SAME_FIELD(struct ll_cu_memcpy3d_peer, from_lod, CUDA_MEMCPY3D_PEER_v1, srcLOD);
SAME_FIELD(struct ll_cu_memcpy3d_peer, from_height, CUDA_MEMCPY3D_PEER_v1, srcHeight);
SAME_FIELD(struct ll_cu_memcpy3d_peer, to_z, CUDA_MEMCPY3D_PEER_v1, dstZ);
SAME_FIELD(struct ll_cu_memcpy3d_peer, to_lod, CUDA_MEMCPY3D_PEER_v1, dstLOD);
SAME_FIELD(struct ll_cu_memcpy3d_peer, to_height, CUDA_MEMCPY3D_PEER_v1, dstHeight);
SAME_FIELD(struct ll_cu_memcpy3d_peer, depth, CUDA_MEMCPY3D_PEER_v1, Depth);
SAME_FIELD(struct ll_cu_memcpy3d_peer, from_context, CUDA_MEMCPY3D_PEER_v1, srcContext);
SAME_FIELD(struct ll_cu_memcpy3d_peer, to_context, CUDA_MEMCPY3D_PEER_v1, dstContext);
SAME_SIZE(struct ll_cu_memcpy_params, CUDA_MEMCPY_NODE_PARAMS);
SAME_FIELD(struct ll_cu_memcpy_params, flags, CUDA_MEMCPY_NODE_PARAMS, flags);
SAME_FIELD(struct ll_cu_memcpy_params, reserved, CUDA_MEMCPY_NODE_PARAMS, reserved);
SAME_FIELD(struct ll_cu_memcpy_params, context, CUDA_MEMCPY_NODE_PARAMS, copyCtx);
SAME_FIELD(struct ll_cu_memcpy_params, copy, CUDA_MEMCPY_NODE_PARAMS, copyParams);
SAME_SIZE(struct ll_cu_memset_params, CUDA_MEMSET_NODE_PARAMS_v1);
SAME_FIELD(struct ll_cu_memset_params, to, CUDA_MEMSET_NODE_PARAMS_v1, dst);
SAME_FIELD(struct ll_cu_memset_params, pitch_bytes, CUDA_MEMSET_NODE_PARAMS_v1, pitch);
SAME_FIELD(struct ll_cu_memset_params, value, CUDA_MEMSET_NODE_PARAMS_v1, value);
SAME_FIELD(struct ll_cu_memset_params, element_bytes, CUDA_MEMSET_NODE_PARAMS_v1, elementSize);
SAME_FIELD(struct ll_cu_memset_params, width, CUDA_MEMSET_NODE_PARAMS_v1, width);
SAME_FIELD(struct ll_cu_memset_params, height, CUDA_MEMSET_NODE_PARAMS_v1, height);
SAME_SIZE(struct ll_cu_memset_params_v2, CUDA_MEMSET_NODE_PARAMS_v2);
SAME_FIELD(struct ll_cu_memset_params_v2, to, CUDA_MEMSET_NODE_PARAMS_v2, dst);
SAME_FIELD(struct ll_cu_memset_params_v2, pitch_bytes, CUDA_MEMSET_NODE_PARAMS_v2, pitch);
SAME_FIELD(struct ll_cu_memset_params_v2, value, CUDA_MEMSET_NODE_PARAMS_v2, value);
SAME_FIELD(struct ll_cu_memset_params_v2, element_bytes, CUDA_MEMSET_NODE_PARAMS_v2, elementSize);
SAME_FIELD(struct ll_cu_memset_params_v2, width, CUDA_MEMSET_NODE_PARAMS_v2, width);
SAME_FIELD(struct ll_cu_memset_params_v2, height, CUDA_MEMSET_NODE_PARAMS_v2, height);
SAME_FIELD(struct ll_cu_memset_params_v2, context, CUDA_MEMSET_NODE_PARAMS_v2, ctx);
SAME_SIZE(union ll_cu_launch_attribute_value, CUlaunchAttributeValue);
SAME_FIELD(union ll_cu_launch_attribute_value, cooperative, CUlaunchAttributeValue, cooperative);
SAME_FIELD(union ll_cu_launch_attribute_value, priority, CUlaunchAttributeValue, priority);
SAME_FIELD(union ll_cu_launch_attribute_value, launch_completion_event.event, CUlaunchAttributeValue,
	   launchCompletionEvent.event);
SAME_FIELD(union ll_cu_launch_attribute_value, launch_completion_event.flags, CUlaunchAttributeValue,
	   launchCompletionEvent.flags);
SAME_SIZE(union ll_cu_stream_mem_op, CUstreamBatchMemOpParams);
SAME_FIELD(union ll_cu_stream_mem_op, value.operation, CUstreamBatchMemOpParams, waitValue.operation);
SAME_FIELD(union ll_cu_stream_mem_op, value.address, CUstreamBatchMemOpParams, waitValue.address);
SAME_FIELD(union ll_cu_stream_mem_op, value.value, CUstreamBatchMemOpParams, waitValue.value64);
SAME_FIELD(union ll_cu_stream_mem_op, value.flags, CUstreamBatchMemOpParams, waitValue.flags);
SAME_FIELD(union ll_cu_stream_mem_op, value.alias, CUstreamBatchMemOpParams, waitValue.alias);
SAME_FIELD(union ll_cu_stream_mem_op, value.operation, CUstreamBatchMemOpParams, writeValue.operation);
SAME_FIELD(union ll_cu_stream_mem_op, value.address, CUstreamBatchMemOpParams, writeValue.address);
SAME_FIELD(union ll_cu_stream_mem_op, value.value, CUstreamBatchMemOpParams, writeValue.value64);
SAME_FIELD(union ll_cu_stream_mem_op, value.flags, CUstreamBatchMemOpParams, writeValue.flags);
SAME_FIELD(union ll_cu_stream_mem_op, value.alias, CUstreamBatchMemOpParams, writeValue.alias);
SAME_FIELD(union ll_cu_stream_mem_op, operation, CUstreamBatchMemOpParams, operation);
SAME_FIELD(union ll_cu_stream_mem_op, pad, CUstreamBatchMemOpParams, pad);

#define ll_cu_array CUarray_st
#define ll_cu_library CUlib_st
#define ll_cu_kernel CUkern_st
#define ll_cu_graph CUgraph_st
#define ll_cu_graph_node CUgraphNode_st
#define ll_cu_graph_exec CUgraphExec_st
#define ll_cu_library_option CUlibraryOption_enum
#define ll_cu_function_loading_state CUfunctionLoadingState_enum
#define ll_cu_launch_attribute_id CUlaunchAttributeID_enum
#define ll_cu_launch_attribute_value CUlaunchAttributeValue_union
#define ll_cu_launch_params CUDA_LAUNCH_PARAMS_st
#define ll_cu_memcpy2d CUDA_MEMCPY2D_st
#define ll_cu_memcpy3d CUDA_MEMCPY3D_st
#define ll_cu_memcpy3d_peer CUDA_MEMCPY3D_PEER_st
#define ll_cu_stream_mem_op CUstreamBatchMemOpParams_union
#define ll_cu_capture_status CUstreamCaptureStatus_enum
#define ll_cu_capture_mode CUstreamCaptureMode_enum
#define ll_cu_graph_node_type CUgraphNodeType_enum
#define ll_cu_graph_update_result CUgraphExecUpdateResult_enum
#define ll_cu_graph_edge_data CUgraphEdgeData_st
#define ll_cu_kernel_params_v1 CUDA_KERNEL_NODE_PARAMS_st
#define ll_cu_kernel_params CUDA_KERNEL_NODE_PARAMS_v2_st
#define ll_cu_memset_params CUDA_MEMSET_NODE_PARAMS_st
#define ll_cu_host_params CUDA_HOST_NODE_PARAMS_st
#define ll_cu_mem_alloc_params CUDA_MEM_ALLOC_NODE_PARAMS_v1_st
#define ll_cu_mem_op_params CUDA_BATCH_MEM_OP_NODE_PARAMS_v1_st
#define ll_cu_graph_node_params CUgraphNodeParams_st
#define ll_cu_graph_instantiate_params CUDA_GRAPH_INSTANTIATE_PARAMS_st
#define ll_cu_graph_update_info CUgraphExecUpdateResultInfo_st

#endif
