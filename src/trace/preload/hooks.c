/* The hooks of libloadline-events.so. In a process that is not traced by events they only call the driver. */
#include "abi/cuda_graph.h"
#include "shim/interpose/hook.h"
#include "trace/preload/preload.h"

/* A call that the driver makes inside a traced call is not a row of its own. */
static bool is_traced(void)
{
	return !ll_reentry_is_inside() && ll_trace_is_by_events();
}

/* ---- work ---- */

#define WORK_HOOK(symbol, stream, work, params, args)                                                                  \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		if (!is_traced())                                                                                      \
			return ll_real()->symbol args;                                                                 \
		LL_TRACED_LAUNCH_SCOPE(launch, stream, work);                                                          \
		return launch.status = ll_real()->symbol args;                                                         \
	}

/* A launch of a graph is one row. */
#define GRAPH(its_symbol) ((struct ll_work){.symbol = its_symbol, .kind = LL_WORK_GRAPH})
WORK_HOOK(cuGraphLaunch, stream, GRAPH("cuGraphLaunch"), (struct ll_cu_graph_exec * exec, struct ll_cu_stream *stream),
	  (exec, stream))
WORK_HOOK(cuGraphLaunch_ptsz, ll_stream_per_thread(stream), GRAPH("cuGraphLaunch_ptsz"),
	  (struct ll_cu_graph_exec * exec, struct ll_cu_stream *stream), (exec, stream))

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

/* ---- the rows of abi/cuda.def ---- */

/* TRACE_##traced is the definition of a hook (LL_ROW_HOOKS). Of work, make, one and two are LL_GIVES_*
 * (interpose/work.h), as the row's column `hook` says. */
#define TRACE_NONE(hook) DEFINE_NONE, , , ,
#define TRACE_BODY(hook) DEFINE_NONE, , , ,
#define TRACE_WORK(hook) GIVES_##hook
#define TRACE_TO_CARD(hook) DEFINE_WORK, NULL, ll_work_of_copy, ((struct ll_copy_sides){.is_to_card = true}), bytes
#define TRACE_TO_CARD_ASYNC(hook)                                                                                      \
	DEFINE_WORK, stream, ll_work_of_copy, ((struct ll_copy_sides){.is_to_card = true}), bytes
#define TRACE_FROM_CARD(hook) DEFINE_WORK, NULL, ll_work_of_copy, ((struct ll_copy_sides){.is_from_card = true}), bytes
#define TRACE_FROM_CARD_ASYNC(hook)                                                                                    \
	DEFINE_WORK, stream, ll_work_of_copy, ((struct ll_copy_sides){.is_from_card = true}), bytes
#define TRACE_MADE(hook) DEFINE_MADE, , , ,
#define TRACE_FREED(hook) DEFINE_FREED, , , ,
#define TRACE_FORGET_CONTEXT(hook) DEFINE_FORGET, , ll_trace_events_forget, context,
#define TRACE_FORGET_CARD(hook) DEFINE_FORGET, , ll_trace_events_forget_device, device,
#define TRACE_FORGET_NAMES(hook) DEFINE_FORGET, , ll_trace_names_forget, ,
#define TRACE_FORGET_STREAM(hook) DEFINE_FORGET, , ll_trace_events_forget_stream, ll_timing_stream_of(stream),
#define GIVES_WORK(stream, kind) DEFINE_WORK, stream, LL_GIVES_##kind
#define GIVES_COPY(stream, shape) DEFINE_WORK, stream, LL_GIVES_##shape

#define DEFINE_NONE(symbol, text, stream, make, one, two, params, args)
#define DEFINE_WORK(symbol, text, stream, make, one, two, params, args)                                                \
	WORK_HOOK(symbol, stream, make(text, one, two), params, args)

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
#define DEFINE_MADE(symbol, text, stream, make, one, two, params, args)                                                \
	MEMORY_HOOK(symbol, LL_TRACE_ALLOCATE, *ret_address, bytes, params, args)
#define DEFINE_FREED(symbol, text, stream, make, one, two, params, args)                                               \
	MEMORY_HOOK(symbol, LL_TRACE_FREE, address, 0, params, args)

/* Forgets a handle before the driver is called, because the driver may give the handle to another object. It is not
 * known before the call whether cuCtxDetach ends the context, or a release ends the primary context. The trace forgets
 * the context in each case. */
#define DEFINE_FORGET(symbol, text, stream, forget, handle, two, params, args)                                         \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		if (is_traced())                                                                                       \
			forget(handle);                                                                                \
		return ll_real()->symbol args;                                                                         \
	}

#define LL_CUDA(name, symbol, need, since, suffix, traced, hook, params, args)                                         \
	LL_ROW_HOOKS(TRACE_##traced(hook), symbol, suffix, params, args)
#include "abi/cuda.def"
