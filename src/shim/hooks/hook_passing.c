/* Hooks of functions that use the card or its memory and are not governed: the rows of hooks_passing.def. */
#include "abi/cuda_graph.h"
#include "shim/hooks/children.h"
#include "shim/interpose/hook.h"
#include "shim/memory/backed.h"
#include "shim/residency/obstacles.h"
#include "shim/time/driver_calls.h"

/* Defines a hook that runs `before`, which may change an argument, and then calls the driver. */
#define PASSING_AFTER(before, symbol, params, args)                                                                    \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		before;                                                                                                \
		return ll_real()->symbol args;                                                                         \
	}
#define LL_PASSING(symbol, params, args) PASSING_AFTER((void)0, symbol, params, args)
#define LL_PASSING_WAIT(symbol, params, args) PASSING_AFTER(ll_obstacles_note_wait(), symbol, params, args)
#define LL_PASSING_ADDRESS(symbol, params, args)                                                                       \
	PASSING_AFTER(address = ll_backed_hide_gap(address), symbol, params, args)
#define LL_PASSING_LOAD(symbol, params, args)                                                                          \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		return ll_children_answer_of_load(#symbol, ll_real()->symbol args);                                    \
	}
#define LL_PASSING_CODE(symbol, params, args)                                                                          \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		return ll_children_answer(#symbol, ll_real()->symbol args);                                            \
	}
#include "shim/interpose/hooks_passing.def"
