#include "shim/hooks/launch.h"
#include "shim/interpose/hook.h"

/* Marks in a stream that is gone would be calls with a dead handle. */
#define DESTROY_HOOK(symbol)                                                                                           \
	LL_HOOK_EXPORT ll_cu_result symbol(struct ll_cu_stream *stream)                                                \
	{                                                                                                              \
		if (ll_reentry_is_inside() || (!ll_device_state_settings() && !ll_trace_is_by_events()))               \
			return ll_real()->symbol(stream);                                                              \
		LL_REENTRY_SCOPE();                                                                                    \
		ll_launch_forget_stream(stream);                                                                       \
		return ll_real()->symbol(stream);                                                                      \
	}

DESTROY_HOOK(cuStreamDestroy)
DESTROY_HOOK(cuStreamDestroy_v2)
