/*
 * copy.h - what hooks of copies share: which of them are work of the card's SMs.
 *
 * Copies within and between cards use the SMs, or the memory as kernels do; copies between host and card run on the
 * copy engines beside other programs' kernels, and pass. Where the function does not say which it is, it is asked of
 * the addresses, and only while the gate is shut: through an open gate such a copy is not counted, and its time is in
 * that of its stream.
 */
#ifndef LOADLINE_SHIM_COPY_H
#define LOADLINE_SHIM_COPY_H

#include <stdbool.h>

#include "abi/cuda.h"

/* Memory that the driver does not know is the host's. Managed memory counts as the card's. A call of the driver. */
bool ll_copy_is_on_card(ll_cu_deviceptr address);

/* Hooks of symbol and of its variant: a launch where is_within, an expression of its parameters (launch.h). */
#define LL_COPY_HOOKS(symbol, suffix, is_within, stream, params, args)                                                 \
	LL_LAUNCH_HOOK_UNLESS(ll_launch_gate_is_open() || ll_reentry_is_inside() || !(is_within), symbol, stream,      \
			      ll_launch_kind(#symbol, 0), params, args)                                                \
	LL_LAUNCH_HOOK_UNLESS(ll_launch_gate_is_open() || ll_reentry_is_inside() || !(is_within), symbol##suffix,      \
			      ll_launch_per_thread(stream), ll_launch_kind(#symbol, 0), params, args)

#endif
