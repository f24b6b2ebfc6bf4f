/* The hooks of libloadline-events.so. In a process that is not traced by events they only call the driver. */
#include "abi/cuda_graph.h"
#include "shim/interpose/hook.h"
#include "trace/preload/events.h"
#include "trace/preload/launch.h"
#include "trace/preload/names.h"
#include "trace/preload/tracing.h"

/* A call that the driver makes inside a traced call is not a row of its own. */
static bool is_traced(void)
{
	return !ll_reentry_is_inside() && ll_trace_is_by_events();
}

/* ---- work ---- */

#define LL_WORK(symbol, stream, work, params, args)                                                                    \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		if (!is_traced())                                                                                      \
			return ll_real()->symbol args;                                                                 \
		LL_TRACED_LAUNCH_SCOPE(launch, stream, work);                                                          \
		return launch.status = ll_real()->symbol args;                                                         \
	}

#define LL_WORK_PER_THREAD(symbol, suffix, stream, work, params, args)                                                 \
	LL_WORK(symbol, stream, work, params, args)                                                                    \
	LL_WORK(symbol##suffix, ll_stream_per_thread(stream), work, params, args)

#define LL_WORK_COPY(symbol, suffix, sides, bytes_of, stream, params, args)                                            \
	LL_WORK_PER_THREAD(symbol, suffix, stream, ll_work_of_copy(#symbol, sides, bytes_of), params, args)

/* A launch of a graph is one row. */
#define GRAPH(its_symbol) ((struct ll_work){.symbol = its_symbol, .kind = LL_WORK_GRAPH})
LL_WORK(cuGraphLaunch, stream, GRAPH("cuGraphLaunch"), (struct ll_cu_graph_exec * exec, struct ll_cu_stream *stream),
	(exec, stream))
LL_WORK(cuGraphLaunch_ptsz, ll_stream_per_thread(stream), GRAPH("cuGraphLaunch_ptsz"),
	(struct ll_cu_graph_exec * exec, struct ll_cu_stream *stream), (exec, stream))

/* Copies whose names say which side is the host. */
#define SIDE(symbol, side) ll_work_of_copy(symbol, (struct ll_copy_sides){.side = true}, bytes)
#define LL_TRACED_COPY(symbol, suffix, stream, side, params, args)                                                     \
	LL_WORK_PER_THREAD(symbol, suffix, stream, SIDE(#symbol, side), params, args)
LL_WORK_PER_THREAD(cuMemcpyDtoH_v2, _ptds, NULL, SIDE("cuMemcpyDtoH_v2", is_from_card),
		   (void *to, ll_cu_deviceptr from, size_t bytes), (to, from, bytes))

/* One kernel on several cards is a row for each card. */
enum { MOST_CARDS = 64 };

struct parts {
	struct ll_traced_launch launches[MOST_CARDS];
	unsigned count;
	ll_cu_result status;
};

static void begin_parts(struct parts *parts, const struct ll_cu_launch_params *launches, unsigned count)
{
	unsigned most = !launches ? 0 : count < MOST_CARDS ? count : MOST_CARDS;
	for (unsigned i = 0; i < most; i++) {
		const struct ll_cu_launch_params *part = &launches[i];
		struct ll_cu_launch_config config = {.grid_x = part->grid_x,
						     .grid_y = part->grid_y,
						     .grid_z = part->grid_z,
						     .block_x = part->block_x,
						     .block_y = part->block_y,
						     .block_z = part->block_z,
						     .shared_bytes = part->shared_bytes};
		parts->launches[i] = ll_traced_launch_begin(
		    part->stream, ll_work_of_kernel("cuLaunchCooperativeKernelMultiDevice", part->function, &config));
		parts->count = i + 1;
	}
}

static void end_parts(struct parts *parts)
{
	for (unsigned i = parts->count; i-- > 0;) {
		parts->launches[i].status = parts->status;
		ll_traced_launch_end(&parts->launches[i]);
	}
}

LL_HOOK_EXPORT ll_cu_result cuLaunchCooperativeKernelMultiDevice(struct ll_cu_launch_params *launches,
								 unsigned int count, unsigned int flags)
{
	if (!is_traced())
		return ll_real()->cuLaunchCooperativeKernelMultiDevice(launches, count, flags);
	struct parts parts __attribute__((cleanup(end_parts)));
	parts.count = 0; /* end_parts ends the launches that have begun, also if the thread is cancelled */
	parts.status = LL_TRACED_LAUNCH_LOST;
	begin_parts(&parts, launches, count);
	return parts.status = ll_real()->cuLaunchCooperativeKernelMultiDevice(launches, count, flags);
}

/* ---- memory ---- */

#define MEMORY_HOOK(symbol, kind, its_address, its_bytes, params, args)                                                \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		if (!is_traced())                                                                                      \
			return ll_real()->symbol args;                                                                 \
		LL_REENTRY_SCOPE();                                                                                    \
		ll_cu_result status = ll_real()->symbol args;                                                          \
		if (status == LL_CUDA_SUCCESS && (its_address))                                                        \
			ll_trace_note_memory(kind, its_address, its_bytes);                                            \
		return status;                                                                                         \
	}

#define LL_TRACED_MADE(symbol, params, args) MEMORY_HOOK(symbol, LL_TRACE_ALLOCATE, *ret_address, bytes, params, args)
#define LL_TRACED_FREED(symbol, params, args) MEMORY_HOOK(symbol, LL_TRACE_FREE, address, 0, params, args)

/* ---- handles that become invalid ---- */

/* Forgets a handle before the driver is called, because the driver may give the handle to another object. */
#define LL_TRACED_FORGET(symbol, parameter, forget)                                                                    \
	LL_HOOK_EXPORT ll_cu_result symbol(parameter)                                                                  \
	{                                                                                                              \
		if (is_traced())                                                                                       \
			forget;                                                                                        \
		return ll_real()->symbol(handle);                                                                      \
	}

LL_TRACED_FORGET(cuStreamDestroy, struct ll_cu_stream *handle,
		 ll_trace_events_forget_stream(ll_timing_stream_of(handle)))
LL_TRACED_FORGET(cuStreamDestroy_v2, struct ll_cu_stream *handle,
		 ll_trace_events_forget_stream(ll_timing_stream_of(handle)))

/* ---- the rows ---- */

#include "trace/preload/hooks.def"

#include "shim/interpose/work.def"
