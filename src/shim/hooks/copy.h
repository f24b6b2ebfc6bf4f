/*
 * copy.h - what hooks of copies share: which of them are work of the card's SMs.
 *
 * Copies within and between cards use the SMs, or the memory as kernels do; copies between host and card run on the
 * copy engines beside other programs' kernels, and pass. Where the function does not say which it is, it is asked of
 * the addresses, and only while the gate is shut: through an open gate such a copy is not counted, and its time is in
 * that of its stream. A trace by events holds the gate shut, and sees them all.
 */
#ifndef LOADLINE_SHIM_HOOKS_COPY_H
#define LOADLINE_SHIM_HOOKS_COPY_H

#include <stdbool.h>

#include "shim/hooks/launch.h"

/* Memory that the driver does not know is the host's. Managed memory counts as the card's. A call of the driver. */
bool ll_copy_is_on_card(ll_cu_deviceptr address);

struct ll_copy_sides {
	bool is_to_card, is_from_card;
};

/* For a trace: what is copied, and from where to where. The kind of the launch (launch.h). */
uint64_t ll_copy_note(const char *symbol, struct ll_copy_sides sides, uint64_t bytes);

/* Between host and card nothing waits; it is timed where a trace wants that. */
struct ll_launch ll_copy_begin(const char *symbol, struct ll_copy_sides sides, uint64_t bytes,
			       struct ll_cu_stream *stream);

/* Hooks of symbol and of its variant: a launch where both sides, an expression of its parameters, are on a card. */
#define LL_COPY_HOOK(symbol, sides_of, bytes_of, stream, params, args)                                                 \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		if (ll_gate_is_open() || ll_reentry_is_inside())                                                       \
			return ll_real()->symbol args;                                                                 \
		struct ll_copy_sides sides = sides_of;                                                                 \
		if (!(sides.is_to_card && sides.is_from_card) && !ll_trace_is_by_events())                             \
			return ll_real()->symbol args;                                                                 \
		struct ll_launch launch __attribute__((cleanup(ll_launch_end))) =                                      \
		    ll_copy_begin(#symbol, sides, bytes_of, stream);                                                   \
		return LL_LAUNCH_CALL(launch, ll_real()->symbol args);                                                 \
	}

#define LL_COPY_HOOKS(symbol, suffix, sides_of, bytes_of, stream, params, args)                                        \
	LL_COPY_HOOK(symbol, sides_of, bytes_of, stream, params, args)                                                 \
	LL_COPY_HOOK(symbol##suffix, sides_of, bytes_of, ll_launch_per_thread(stream), params, args)

#endif
