/*
 * The hooks that the rows of abi/cuda.def describe: functions that give the card work, and functions that use it and
 * are not governed. At the end a body by hand: kernels on several cards.
 *
 * Copies within and between cards use the SMs or the card's memory as kernels do, so they need the turn. Copies between
 * host and card run on the copy engines beside other programs' kernels, so they pass. If the function's name does not
 * show which of the two a copy is, the library asks the driver about the addresses, but only while the gate is shut.
 * While the gate is open, such a copy is not counted, and its time is part of its stream's time.
 */
#include "abi/cuda_graph.h"
#include "abi/cuda_launch.h"
#include "shim/hooks/launch.h"
#include "shim/interpose/hook.h"
#include "shim/memory/memory.h"
#include "shim/residency/residency.h"
#include "shim/time/driver_calls.h"

/* ROW_##hook is the definition of a hook (LL_ROW_HOOKS). Of work, make, one and two are LL_GIVES_* (interpose/work.h).
 */
#define ROW_NONE DEFINE_NONE, , , ,
#define ROW_CALL DEFINE_NONE, , , ,
#define ROW_BODY DEFINE_NONE, , , ,
#define ROW_BODY_NO_CARD DEFINE_NONE, , , ,
#define ROW_PASS DEFINE_PASS, , , ,
#define ROW_GAP(stream) DEFINE_GAP, stream, , ,
#define ROW_WAIT(stream) DEFINE_WAIT, stream, , ,
#define ROW_WAITED DEFINE_WAITED, , , ,
#define ROW_HOST_COPY(stream, kind, bytes) DEFINE_HOST_COPY, stream, BEFORE_##kind, bytes,
#define ROW_ADDRESS DEFINE_ADDRESS, , , ,
#define ROW_LOAD DEFINE_LOAD, , , ,
#define ROW_CODE DEFINE_CODE, , , ,
#define ROW_WORK(stream, kind) DEFINE_WORK, stream, LL_GIVES_##kind
#define ROW_COPY(stream, shape) DEFINE_COPY, stream, LL_GIVES_##shape

/* Runs `before`, which may change an argument, and gives the program `answer` of the driver's answer. */
#define HOOK(before, answer, symbol, params)                                                                           \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		before;                                                                                                \
		return answer;                                                                                         \
	}

#define DEFINE_NONE(symbol, text, stream, make, one, two, params, args)
#define DEFINE_PASS(symbol, text, stream, make, one, two, params, args)                                                \
	HOOK((void)0, ll_real()->symbol args, symbol, params)
#define DEFINE_GAP(symbol, text, stream, make, one, two, params, args)                                                 \
	HOOK(ll_launch_note_gap(stream, false), ll_real()->symbol args, symbol, params)
#define DEFINE_WAIT(symbol, text, stream, make, one, two, params, args)                                                \
	HOOK((ll_obstacles_note_wait(), ll_launch_note_gap(stream, true)), ll_real()->symbol args, symbol, params)
#define DEFINE_WAITED(symbol, text, stream, make, one, two, params, args)                                              \
	HOOK(ll_waits_count(), ll_real()->symbol args, symbol, params)
#define BEFORE_PASS(stream, bytes) (void)(stream)
#define BEFORE_WAITED(stream, bytes) ((void)(stream), ll_waits_count())
#define BEFORE_GAP(stream, bytes) ll_launch_note_gap(stream, (bytes) >= LL_LAUNCH_LONG_COPY)
#define DEFINE_HOST_COPY(symbol, text, stream, before, bytes, none, params, args)                                      \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		before(stream, bytes);                                                                                 \
		uint64_t since_ns = ll_launch_copy_begin();                                                            \
		ll_cu_result status = ll_real()->symbol args;                                                          \
		ll_launch_copy_end(since_ns, bytes);                                                                   \
		return status;                                                                                         \
	}
#define DEFINE_ADDRESS(symbol, text, stream, make, one, two, params, args)                                             \
	HOOK(address = ll_backed_hide_gap(address), ll_real()->symbol args, symbol, params)
#define DEFINE_LOAD(symbol, text, stream, make, one, two, params, args)                                                \
	HOOK((void)0, ll_children_answer_of_load(text, ll_real()->symbol args), symbol, params)
#define DEFINE_CODE(symbol, text, stream, make, one, two, params, args)                                                \
	HOOK((void)0, ll_children_answer(text, ll_real()->symbol args), symbol, params)
#define DEFINE_WORK(symbol, text, stream, make, one, two, params, args)                                                \
	LL_LAUNCH_HOOK(symbol, stream, ll_launch_key_of(make(text, one, two)), params, args)
#define DEFINE_COPY(symbol, text, stream, make, sides, bytes_of, params, args)                                         \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		if (ll_gate_is_open() || ll_reentry_is_inside())                                                       \
			return ll_real()->symbol args;                                                                 \
		if (!ll_copy_is_within_cards(sides)) {                                                                 \
			ll_launch_note_gap(stream, false);                                                             \
			return ll_real()->symbol args;                                                                 \
		}                                                                                                      \
		LL_LAUNCH_SCOPE(launch, stream, ll_launch_key(text, ll_launch_size(bytes_of)));                        \
		return LL_LAUNCH_CALL(launch, ll_real()->symbol args);                                                 \
	}

#define LL_CUDA(name, symbol, need, since, suffix, traced, hook, params, args)                                         \
	LL_ROW_HOOKS(ROW_##hook, symbol, suffix, params, args)
#include "abi/cuda.def"

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
