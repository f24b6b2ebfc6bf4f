/*
 * All functions that launch kernels.
 */
#include "cuda/launch.h"

#include "cuda/enter.h"
#include "cuda/local/capture_work.h"
#include "cuda/local/current.h"
#include "cuda/local/kernel.h"
#include "cuda/local/module.h"
#include "cuda/local/stream.h"

ll_cu_result sim_kernel_launch(const struct ll_cu_kernel_params *given, bool is_cooperative,
			       struct ll_cu_stream *handle)
{
	struct ll_cu_graph_node_params params = {.type = LL_CU_GRAPH_NODE_TYPE_KERNEL, .kernel = *given};
	struct ll_cu_kernel_params *kernel = &params.kernel;
	struct ll_cu_context *context;
	struct ll_cu_stream *stream = NULL;
	ll_cu_result status = sim_kernel_check(given);
	if (status)
		return status;
	sim_cuda_lock();
	status = sim_current(&context);
	if (!status)
		status = sim_stream_for_work(handle, &stream);
	if (!status)
		status = sim_function_in(stream->context, kernel->function, &kernel->function);
	if (!status && is_cooperative)
		status = sim_kernel_check_cooperative(kernel);
	if (!status)
		status = stream->capture ? sim_capture_work(stream, &params) : sim_kernel_queue(stream, kernel);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuLaunchKernel(struct ll_cu_function *function, unsigned int grid_x, unsigned int grid_y,
			    unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
			    unsigned int shared_bytes, struct ll_cu_stream *stream, void **params, void **extra)
{
	SIM_ENTER();
	struct ll_cu_kernel_params kernel = {
	    .function = function,
	    .grid_x = grid_x,
	    .grid_y = grid_y,
	    .grid_z = grid_z,
	    .block_x = block_x,
	    .block_y = block_y,
	    .block_z = block_z,
	    .shared_bytes = shared_bytes,
	    .params = params,
	    .extra = extra,
	};
	return sim_kernel_launch(&kernel, false, stream);
}

ll_cu_result cuLaunchCooperativeKernel(struct ll_cu_function *function, unsigned int grid_x, unsigned int grid_y,
				       unsigned int grid_z, unsigned int block_x, unsigned int block_y,
				       unsigned int block_z, unsigned int shared_bytes, struct ll_cu_stream *stream,
				       void **params)
{
	SIM_ENTER();
	struct ll_cu_kernel_params kernel = {
	    .function = function,
	    .grid_x = grid_x,
	    .grid_y = grid_y,
	    .grid_z = grid_z,
	    .block_x = block_x,
	    .block_y = block_y,
	    .block_z = block_z,
	    .shared_bytes = shared_bytes,
	    .params = params,
	};
	return sim_kernel_launch(&kernel, true, stream);
}

ll_cu_result cuLaunchKernelEx(const struct ll_cu_launch_config *config, struct ll_cu_function *function, void **params,
			      void **extra)
{
	SIM_ENTER();
	if (!config || (config->attribute_count && !config->attributes))
		return LL_CUDA_ERROR_INVALID_VALUE;
	const struct ll_cu_launch_attribute *attributes = config->attributes;
	bool is_cooperative = false;
	for (unsigned i = 0; i < config->attribute_count; i++) {
		if (attributes[i].id == LL_CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
			is_cooperative = attributes[i].value.cooperative != 0;
	}
	struct ll_cu_kernel_params kernel = {
	    .function = function,
	    .grid_x = config->grid_x,
	    .grid_y = config->grid_y,
	    .grid_z = config->grid_z,
	    .block_x = config->block_x,
	    .block_y = config->block_y,
	    .block_z = config->block_z,
	    .shared_bytes = config->shared_bytes,
	    .params = params,
	    .extra = extra,
	};
	return sim_kernel_launch(&kernel, is_cooperative, config->stream);
}

/* One kernel on each card. Each is cooperative by itself; they do not wait for each other. */
ll_cu_result cuLaunchCooperativeKernelMultiDevice(struct ll_cu_launch_params *launches, unsigned int count,
						  unsigned int flags)
{
	SIM_ENTER();
	if (!launches || !count || count > SIM_CARDS || flags > 3)
		return LL_CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++) {
		if (!launches[i].stream || launches[i].stream == LL_CU_STREAM_LEGACY)
			return LL_CUDA_ERROR_INVALID_HANDLE;
	}
	for (unsigned i = 0; i < count; i++) {
		const struct ll_cu_launch_params *l = &launches[i];
		struct ll_cu_kernel_params kernel = {
		    .function = l->function,
		    .grid_x = l->grid_x,
		    .grid_y = l->grid_y,
		    .grid_z = l->grid_z,
		    .block_x = l->block_x,
		    .block_y = l->block_y,
		    .block_z = l->block_z,
		    .shared_bytes = l->shared_bytes,
		    .params = l->params,
		};
		ll_cu_result status = sim_kernel_launch(&kernel, true, l->stream);
		if (status)
			return status;
	}
	return LL_CUDA_SUCCESS;
}
