#include "abi/cuda_launch.h"
#include "shim/hooks/launch.h"
#include "shim/interpose/hook.h"

static uint64_t kernel_kind(const struct ll_cu_function *function, unsigned grid_x, unsigned grid_y, unsigned grid_z)
{
	return ll_launch_kind(function, (uint64_t)grid_x * grid_y * grid_z);
}

/* For a trace: the grid is as launched, the block the same. */
static uint64_t note_kernel(const char *symbol, const struct ll_cu_function *function,
			    const struct ll_cu_launch_config *config)
{
	ll_trace_note((struct ll_trace_what){
	    .symbol = symbol,
	    .kind = LL_TRACE_KERNEL,
	    .function = function,
	    .grid = {config->grid_x, config->grid_y, config->grid_z},
	    .block = {config->block_x, config->block_y, config->block_z},
	    .dynamic_shared_bytes = config->shared_bytes,
	});
	return kernel_kind(function, config->grid_x, config->grid_y, config->grid_z);
}

static uint64_t config_kind(const struct ll_cu_launch_config *config, const struct ll_cu_function *function)
{
	return config ? note_kernel("cuLaunchKernelEx", function, config) : 0;
}

/* The parameters of the launches that have no struct for them. */
#define KERNEL_KIND(symbol)                                                                                            \
	note_kernel(#symbol, function,                                                                                 \
		    &(struct ll_cu_launch_config){.grid_x = grid_x,                                                    \
						  .grid_y = grid_y,                                                    \
						  .grid_z = grid_z,                                                    \
						  .block_x = block_x,                                                  \
						  .block_y = block_y,                                                  \
						  .block_z = block_z,                                                  \
						  .shared_bytes = shared_bytes})

LL_LAUNCH_HOOKS_OF_KIND(cuLaunchKernel, _ptsz, stream, KERNEL_KIND(cuLaunchKernel),
			(struct ll_cu_function * function, unsigned int grid_x, unsigned int grid_y,
			 unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
			 unsigned int shared_bytes, struct ll_cu_stream *stream, void **params, void **extra),
			(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, params,
			 extra))

LL_LAUNCH_HOOKS_OF_KIND(cuLaunchKernelEx, _ptsz, config ? config->stream : NULL, config_kind(config, function),
			(const struct ll_cu_launch_config *config, struct ll_cu_function *function, void **params,
			 void **extra),
			(config, function, params, extra))

LL_LAUNCH_HOOKS_OF_KIND(cuLaunchCooperativeKernel, _ptsz, stream, KERNEL_KIND(cuLaunchCooperativeKernel),
			(struct ll_cu_function * function, unsigned int grid_x, unsigned int grid_y,
			 unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
			 unsigned int shared_bytes, struct ll_cu_stream *stream, void **params),
			(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, params))

/* The oldest launches, which have no per-thread variants. */
LL_LAUNCH_HOOK(cuLaunch, LL_LAUNCH_DEFAULT_STREAM, (struct ll_cu_function * function), (function))
LL_LAUNCH_HOOK(cuLaunchGrid, LL_LAUNCH_DEFAULT_STREAM, (struct ll_cu_function * function, int grid_x, int grid_y),
	       (function, grid_x, grid_y))
LL_LAUNCH_HOOK(cuLaunchGridAsync, stream,
	       (struct ll_cu_function * function, int grid_x, int grid_y, struct ll_cu_stream *stream),
	       (function, grid_x, grid_y, stream))

/*
 * One kernel on several cards: it passes the gate of each before it begins on any. Having passed one keeps nobody out
 * of that card, so that cards may come in any order.
 */
enum { MOST_CARDS = 64 };

struct parts {
	struct ll_launch launches[MOST_CARDS];
	unsigned count;
	bool is_refused; /* one of them is */
	ll_cu_result status;
};

static uint64_t part_kind(const struct ll_cu_launch_params *part)
{
	struct ll_cu_launch_config config = {.grid_x = part->grid_x,
					     .grid_y = part->grid_y,
					     .grid_z = part->grid_z,
					     .block_x = part->block_x,
					     .block_y = part->block_y,
					     .block_z = part->block_z,
					     .shared_bytes = part->shared_bytes};
	note_kernel("cuLaunchCooperativeKernelMultiDevice", part->function, &config);
	return ll_launch_kind(part->function, 0);
}

static void begin_parts(struct parts *parts, const struct ll_cu_launch_params *launches, unsigned count)
{
	unsigned most = !launches ? 0 : count < MOST_CARDS ? count : MOST_CARDS;
	parts->status = LL_LAUNCH_LOST;
	parts->is_refused = false;
	for (unsigned i = 0; i < most; i++) {
		parts->launches[i] = ll_launch_begin(launches[i].stream, part_kind(&launches[i]));
		parts->count = i + 1;
		parts->is_refused |= parts->launches[i].is_refused;
	}
}

static void end_parts(struct parts *parts)
{
	for (unsigned i = parts->count; i-- > 0;) {
		parts->launches[i].status = parts->status;
		ll_launch_end(&parts->launches[i]);
	}
}

LL_HOOK_EXPORT ll_cu_result cuLaunchCooperativeKernelMultiDevice(struct ll_cu_launch_params *launches,
								 unsigned int count, unsigned int flags)
{
	LL_DRIVER_CALL(cuLaunchCooperativeKernelMultiDevice);
	if (ll_launch_is_free())
		return ll_real()->cuLaunchCooperativeKernelMultiDevice(launches, count, flags);
	struct parts parts __attribute__((cleanup(end_parts)));
	parts.count = 0; /* what has begun is ended, wherever the thread is cancelled */
	begin_parts(&parts, launches, count);
	return LL_LAUNCH_CALL(parts, ll_real()->cuLaunchCooperativeKernelMultiDevice(launches, count, flags));
}
