/*
 * abi_compare_copy.h - the part of abi_compare_cuda.c about src/abi/cuda_copy.h, as abi_compare_launch.h.
 */
#ifndef LOADLINE_TESTS_SIM_ABI_COMPARE_COPY_H
#define LOADLINE_TESTS_SIM_ABI_COMPARE_COPY_H

#include "abi/cuda_copy.h"

SAME(CU_MEMCPY_SRC_ACCESS_ORDER_INVALID);
SAME(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM);
SAME(CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL);
SAME(CU_MEMCPY_SRC_ACCESS_ORDER_ANY);
SAME(CU_MEMCPY_OPERAND_TYPE_POINTER);
SAME(CU_MEMCPY_OPERAND_TYPE_ARRAY);
SAME(CU_DEV_RESOURCE_TYPE_INVALID);
SAME(CU_DEV_RESOURCE_TYPE_SM);
SAME(CU_GREEN_CTX_DEFAULT_STREAM);

SAME_SIZE(struct ll_cu_copy_attributes, CUmemcpyAttributes);
SAME_FIELD(struct ll_cu_copy_attributes, order, CUmemcpyAttributes, srcAccessOrder);
SAME_FIELD(struct ll_cu_copy_attributes, from_hint, CUmemcpyAttributes, srcLocHint);
SAME_FIELD(struct ll_cu_copy_attributes, to_hint, CUmemcpyAttributes, dstLocHint);
SAME_FIELD(struct ll_cu_copy_attributes, flags, CUmemcpyAttributes, flags);
SAME_SIZE(struct ll_cu_copy_offset, CUoffset3D);
SAME_FIELD(struct ll_cu_copy_offset, x, CUoffset3D, x);
SAME_FIELD(struct ll_cu_copy_offset, y, CUoffset3D, y);
SAME_FIELD(struct ll_cu_copy_offset, z, CUoffset3D, z);
SAME_SIZE(struct ll_cu_copy_extent, CUextent3D);
SAME_FIELD(struct ll_cu_copy_extent, width, CUextent3D, width);
SAME_FIELD(struct ll_cu_copy_extent, height, CUextent3D, height);
SAME_FIELD(struct ll_cu_copy_extent, depth, CUextent3D, depth);
SAME_SIZE(struct ll_cu_copy_operand, CUmemcpy3DOperand);
SAME_FIELD(struct ll_cu_copy_operand, type, CUmemcpy3DOperand, type);
SAME_FIELD(struct ll_cu_copy_operand, at.pointer.address, CUmemcpy3DOperand, op.ptr.ptr);
SAME_FIELD(struct ll_cu_copy_operand, at.pointer.row_length, CUmemcpy3DOperand, op.ptr.rowLength);
SAME_FIELD(struct ll_cu_copy_operand, at.pointer.layer_height, CUmemcpy3DOperand, op.ptr.layerHeight);
SAME_FIELD(struct ll_cu_copy_operand, at.pointer.hint, CUmemcpy3DOperand, op.ptr.locHint);
SAME_FIELD(struct ll_cu_copy_operand, at.array.array, CUmemcpy3DOperand, op.array.array);
SAME_FIELD(struct ll_cu_copy_operand, at.array.offset, CUmemcpy3DOperand, op.array.offset);
SAME_SIZE(struct ll_cu_copy3d_op, CUDA_MEMCPY3D_BATCH_OP);
SAME_FIELD(struct ll_cu_copy3d_op, from, CUDA_MEMCPY3D_BATCH_OP, src);
SAME_FIELD(struct ll_cu_copy3d_op, to, CUDA_MEMCPY3D_BATCH_OP, dst);
SAME_FIELD(struct ll_cu_copy3d_op, extent, CUDA_MEMCPY3D_BATCH_OP, extent);
SAME_FIELD(struct ll_cu_copy3d_op, order, CUDA_MEMCPY3D_BATCH_OP, srcAccessOrder);
SAME_FIELD(struct ll_cu_copy3d_op, flags, CUDA_MEMCPY3D_BATCH_OP, flags);
SAME_SIZE(struct ll_cu_sm_resource, CUdevSmResource);
SAME_FIELD(struct ll_cu_sm_resource, sm_count, CUdevSmResource, smCount);
SAME_FIELD(struct ll_cu_sm_resource, least_partition, CUdevSmResource, minSmPartitionSize);
SAME_FIELD(struct ll_cu_sm_resource, alignment, CUdevSmResource, smCoscheduledAlignment);
SAME_SIZE(struct ll_cu_resource, CUdevResource);
SAME_FIELD(struct ll_cu_resource, type, CUdevResource, type);
SAME_FIELD(struct ll_cu_resource, sm, CUdevResource, sm);

#define ll_cu_copy_attributes CUmemcpyAttributes_st
#define ll_cu_copy3d_op CUDA_MEMCPY3D_BATCH_OP_st
#define ll_cu_resource CUdevResource_st

#endif
