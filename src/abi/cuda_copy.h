/*
 * cuda_copy.h - types of copies in batches and of green contexts, declared as in cuda_launch.h.
 */
#ifndef LOADLINE_ABI_CUDA_COPY_H
#define LOADLINE_ABI_CUDA_COPY_H

#include "abi/cuda_memory.h"

/* When the driver may read the source of a copy. */
enum ll_cu_copy_order {
	LL_CU_MEMCPY_SRC_ACCESS_ORDER_INVALID = 0,
	LL_CU_MEMCPY_SRC_ACCESS_ORDER_STREAM = 1,
	LL_CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL = 2,
	LL_CU_MEMCPY_SRC_ACCESS_ORDER_ANY = 3,
	LL_CU_MEMCPY_SRC_ACCESS_ORDER_MAX = 0x7FFFFFFF,
};

enum ll_cu_copy_operand_type {
	LL_CU_MEMCPY_OPERAND_TYPE_POINTER = 1,
	LL_CU_MEMCPY_OPERAND_TYPE_ARRAY = 2,
	LL_CU_MEMCPY_OPERAND_TYPE_MAX = 0x7FFFFFFF,
};

/* Attributes that several copies of a batch share. */
struct ll_cu_copy_attributes {
	enum ll_cu_copy_order order;
	struct ll_cu_mem_location from_hint;
	struct ll_cu_mem_location to_hint;
	unsigned int flags; /* 1: run beside work on the SMs if possible; a hint */
};

/* The unit is elements of the array if one end is an array, otherwise bytes. */
struct ll_cu_copy_offset {
	size_t x;
	size_t y;
	size_t z;
};

struct ll_cu_copy_extent {
	size_t width;
	size_t height;
	size_t depth;
};

struct ll_cu_copy_operand {
	enum ll_cu_copy_operand_type type;
	union {
		struct {
			ll_cu_deviceptr address;
			size_t row_length;   /* 0: the width of the copy */
			size_t layer_height; /* 0: the height of the copy */
			struct ll_cu_mem_location hint;
		} pointer;
		struct {
			struct ll_cu_array *array;
			struct ll_cu_copy_offset offset;
		} array;
	} at;
};

struct ll_cu_copy3d_op {
	struct ll_cu_copy_operand from;
	struct ll_cu_copy_operand to;
	struct ll_cu_copy_extent extent;
	enum ll_cu_copy_order order;
	unsigned int flags;
};

/* Resources of a card from which a context is made: a number of SMs. The driver's type of these has no name. */
enum {
	LL_CU_DEV_RESOURCE_TYPE_INVALID = 0,
	LL_CU_DEV_RESOURCE_TYPE_SM = 1,
};

struct ll_cu_sm_resource {
	unsigned int sm_count;
	unsigned int least_partition; /* SMs */
	unsigned int alignment;       /* of sm_count */
};

struct ll_cu_resource {
	unsigned int type;
	unsigned char reserved[92];
	union {
		struct ll_cu_sm_resource sm;
		unsigned char room[48];
	};
};

/* A flag that cuGreenCtxCreate requires. */
#define LL_CU_GREEN_CTX_DEFAULT_STREAM 0x1

#endif
