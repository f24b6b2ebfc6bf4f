/*
 * Hooks of functions that give the card work, except graphs: the rows of work.def, and kernels on several cards.
 *
 * Copies within and between cards use the SMs or the card's memory as kernels do, so they need the turn. Copies between
 * host and card run on the copy engines beside other programs' kernels, so they pass. If the function's name does not
 * show which of the two a copy is, the library asks the driver about the addresses, but only while the gate is shut.
 * While the gate is open, such a copy is not counted, and its time is part of its stream's time.
 */
#include "abi/cuda_launch.h"
#include "shim/hooks/launch.h"
#include "shim/interpose/hook.h"
#include "shim/time/waits.h"

#define LL_WORK(symbol, stream, work, params, args) LL_LAUNCH_HOOK(symbol, stream, ll_launch_key_of(work), params, args)

#define LL_WORK_PER_THREAD(symbol, suffix, stream, work, params, args)                                                 \
	LL_WORK(symbol, stream, work, params, args)                                                                    \
	LL_WORK(symbol##suffix, ll_stream_per_thread(stream), work, params, args)

/* text: the name of the function without the variant's suffix, so that both variants have one kernel key. */
#define COPY_HOOK(symbol, text, sides, bytes_of, stream, params, args)                                                 \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		if (ll_gate_is_open() || ll_reentry_is_inside() || !ll_copy_is_within_cards(sides))                    \
			return ll_real()->symbol args;                                                                 \
		LL_LAUNCH_SCOPE(launch, stream, ll_launch_key(text, ll_launch_size(bytes_of)));                        \
		return LL_LAUNCH_CALL(launch, ll_real()->symbol args);                                                 \
	}

#define LL_WORK_COPY(symbol, suffix, sides, bytes_of, stream, params, args)                                            \
	COPY_HOOK(symbol, #symbol, sides, bytes_of, stream, params, args)                                              \
	COPY_HOOK(symbol##suffix, #symbol, sides, bytes_of, ll_stream_per_thread(stream), params, args)

#include "shim/interpose/work.def"

/* A copy to the host passes. It waits for all earlier work of its stream, so it counts as a wait of the program
 * (waits.h). */
#define WAITING_COPY_HOOK(symbol)                                                                                      \
	LL_HOOK_EXPORT ll_cu_result symbol(void *to, ll_cu_deviceptr from, size_t bytes)                               \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		ll_waits_count();                                                                                      \
		return ll_real()->symbol(to, from, bytes);                                                             \
	}

WAITING_COPY_HOOK(cuMemcpyDtoH_v2)
WAITING_COPY_HOOK(cuMemcpyDtoH_v2_ptds)

/*
 * One kernel on several cards. It passes the gates of all its cards before it begins on any of them. The order of the
 * cards does not matter, because a launch that has passed a card's gate does not block other programs on that card.
 */
enum { MOST_CARDS = 64 };

struct parts {
	struct ll_launch launches[MOST_CARDS];
	unsigned count;
	ll_cu_result refusal; /* refusal of the first refused launch */
	ll_cu_result status;
};

static void begin_parts(struct parts *parts, const struct ll_cu_launch_params *launches, unsigned count)
{
	unsigned most = !launches ? 0 : count < MOST_CARDS ? count : MOST_CARDS;
	parts->status = LL_LAUNCH_LOST;
	parts->refusal = LL_CUDA_SUCCESS;
	for (unsigned i = 0; i < most; i++) {
		parts->launches[i] = ll_launch_begin(launches[i].stream, ll_launch_key(launches[i].function, 0));
		parts->count = i + 1;
		if (!parts->refusal)
			parts->refusal = parts->launches[i].refusal;
	}
}

static void end_parts(struct parts *parts)
{
	for (unsigned i = parts->count; i-- > 0;) {
		parts->launches[i].status = parts->status;
		ll_launch_end(&parts->launches[i]);
	}
}

static ll_cu_result launch_on_several(struct ll_cu_launch_params *launches, unsigned int count, unsigned int flags)
{
	LL_DRIVER_CALL(cuLaunchCooperativeKernelMultiDevice);
	if (ll_launch_is_free())
		return ll_real()->cuLaunchCooperativeKernelMultiDevice(launches, count, flags);
	struct parts parts __attribute__((cleanup(end_parts)));
	parts.count = 0; /* begins with 0, so that only launches that have begun are ended if the thread is cancelled */
	begin_parts(&parts, launches, count);
	return LL_LAUNCH_CALL(parts, ll_real()->cuLaunchCooperativeKernelMultiDevice(launches, count, flags));
}

LL_HOOK_EXPORT ll_cu_result cuLaunchCooperativeKernelMultiDevice(struct ll_cu_launch_params *launches,
								 unsigned int count, unsigned int flags)
{
	return ll_children_answer("cuLaunchCooperativeKernelMultiDevice", launch_on_several(launches, count, flags));
}
