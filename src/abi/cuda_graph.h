/*
 * cuda_graph.h - types of stream capture and of graphs.
 *
 * As in cuda.h, the names are ours, and tests/sim/abi_compare_cuda.c compares all values and layouts with the toolkit's
 * cuda.h. A graph is a description. An executable graph (struct ll_cu_graph_exec), which is made from it, can run.
 */
#ifndef LOADLINE_ABI_CUDA_GRAPH_H
#define LOADLINE_ABI_CUDA_GRAPH_H

#include "abi/cuda_launch.h"
#include "abi/cuda_memory.h"

struct ll_cu_graph;
struct ll_cu_graph_node;
struct ll_cu_graph_exec;

enum ll_cu_capture_status {
	LL_CU_STREAM_CAPTURE_STATUS_NONE = 0,
	LL_CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
	LL_CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
};

enum ll_cu_capture_mode {
	LL_CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
	LL_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
	LL_CU_STREAM_CAPTURE_MODE_RELAXED = 2,
};

enum ll_cu_capture_dependencies_flags {
	LL_CU_STREAM_ADD_CAPTURE_DEPENDENCIES = 0,
	LL_CU_STREAM_SET_CAPTURE_DEPENDENCIES = 1,
};

/* Flags of cuEventRecordWithFlags and cuStreamWaitEvent: in a capture, the call makes a node instead of an edge. */
enum ll_cu_capture_event_flags {
	LL_CU_EVENT_RECORD_EXTERNAL = 1,
	LL_CU_EVENT_WAIT_EXTERNAL = 1,
};

enum ll_cu_graph_node_type {
	LL_CU_GRAPH_NODE_TYPE_KERNEL = 0,
	LL_CU_GRAPH_NODE_TYPE_MEMCPY = 1,
	LL_CU_GRAPH_NODE_TYPE_MEMSET = 2,
	LL_CU_GRAPH_NODE_TYPE_HOST = 3,
	LL_CU_GRAPH_NODE_TYPE_GRAPH = 4,
	LL_CU_GRAPH_NODE_TYPE_EMPTY = 5,
	LL_CU_GRAPH_NODE_TYPE_WAIT_EVENT = 6,
	LL_CU_GRAPH_NODE_TYPE_EVENT_RECORD = 7,
	LL_CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL = 8,
	LL_CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT = 9,
	LL_CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10,
	LL_CU_GRAPH_NODE_TYPE_MEM_FREE = 11,
	LL_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP = 12,
	LL_CU_GRAPH_NODE_TYPE_CONDITIONAL = 13,
};

enum ll_cu_graph_instantiate_flags {
	LL_CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH = 1,
	LL_CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD = 2,
	LL_CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH = 4,
	LL_CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY = 8,
};

enum ll_cu_graph_instantiate_result {
	LL_CUDA_GRAPH_INSTANTIATE_SUCCESS = 0,
	LL_CUDA_GRAPH_INSTANTIATE_ERROR = 1,
	LL_CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE = 2,
	LL_CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED = 3,
	LL_CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED = 4,
};

enum ll_cu_graph_update_result {
	LL_CU_GRAPH_EXEC_UPDATE_SUCCESS = 0,
	LL_CU_GRAPH_EXEC_UPDATE_ERROR = 1,
	LL_CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED = 2,
	LL_CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED = 3,
	LL_CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED = 4,
	LL_CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED = 5,
	LL_CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED = 6,
	LL_CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE = 7,
	LL_CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED = 8,
};

enum ll_cu_child_graph_ownership {
	LL_CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE = 0,
	LL_CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE = 1,
};

/* All zero: a node begins when the other one has ended. */
struct ll_cu_graph_edge_data {
	unsigned char from_port;
	unsigned char to_port;
	unsigned char type;
	unsigned char reserved[5];
};

struct ll_cu_kernel_params_v1 {
	struct ll_cu_function *function;
	unsigned int grid_x;
	unsigned int grid_y;
	unsigned int grid_z;
	unsigned int block_x;
	unsigned int block_y;
	unsigned int block_z;
	unsigned int shared_bytes;
	void **params;
	void **extra;
};

struct ll_cu_kernel_params {
	struct ll_cu_function *function;
	unsigned int grid_x;
	unsigned int grid_y;
	unsigned int grid_z;
	unsigned int block_x;
	unsigned int block_y;
	unsigned int block_z;
	unsigned int shared_bytes;
	void **params;
	void **extra;
	struct ll_cu_kernel *kernel;   /* in place of the function */
	struct ll_cu_context *context; /* the context of the kernel; NULL: the current one */
};

/* A part of cuGraphAddNode's parameters. */
struct ll_cu_memcpy_params {
	int flags;
	int reserved;
	struct ll_cu_context *context;
	struct ll_cu_memcpy3d copy;
};

struct ll_cu_memset_params {
	ll_cu_deviceptr to;
	size_t pitch_bytes;
	unsigned int value;
	unsigned int element_bytes; /* 1, 2 or 4 */
	size_t width;               /* in elements */
	size_t height;
};

/* A part of cuGraphAddNode's parameters. */
struct ll_cu_memset_params_v2 {
	ll_cu_deviceptr to;
	size_t pitch_bytes;
	unsigned int value;
	unsigned int element_bytes;
	size_t width;
	size_t height;
	struct ll_cu_context *context;
};

struct ll_cu_host_params {
	ll_cu_host_fn function;
	void *user;
};

struct ll_cu_child_graph_params {
	struct ll_cu_graph *graph;
	enum ll_cu_child_graph_ownership ownership;
};

struct ll_cu_event_params {
	struct ll_cu_event *event;
};

struct ll_cu_mem_alloc_params {
	struct ll_cu_mem_pool_props pool;
	const struct ll_cu_mem_access_desc *access;
	size_t access_count;
	size_t bytes;
	ll_cu_deviceptr address; /* set by the driver */
};

struct ll_cu_mem_free_params {
	ll_cu_deviceptr address;
};

struct ll_cu_mem_op_params {
	struct ll_cu_context *context;
	unsigned int count;
	union ll_cu_stream_mem_op *ops;
	unsigned int flags;
};

/* The parameters of cuGraphAddNode, for any type of node. */
struct ll_cu_graph_node_params {
	enum ll_cu_graph_node_type type;
	int reserved0[3];
	union {
		long long reserved1[29];
		struct ll_cu_kernel_params kernel;
		struct ll_cu_memcpy_params copy;
		struct ll_cu_memset_params_v2 fill;
		struct ll_cu_host_params host;
		struct ll_cu_child_graph_params child;
		struct ll_cu_event_params event;
		struct ll_cu_mem_alloc_params alloc;
		struct ll_cu_mem_free_params free;
		struct ll_cu_mem_op_params mem_op;
	};
	long long reserved2;
};

struct ll_cu_graph_instantiate_params {
	uint64_t flags; /* enum ll_cu_graph_instantiate_flags */
	struct ll_cu_stream *upload_stream;
	struct ll_cu_graph_node *error_node;
	enum ll_cu_graph_instantiate_result result;
};

struct ll_cu_graph_update_info {
	enum ll_cu_graph_update_result result;
	struct ll_cu_graph_node *error_node;
	struct ll_cu_graph_node *error_from_node;
};

#endif
