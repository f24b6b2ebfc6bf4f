/*
 * quiet.h - stops the program: no thread of it is inside the driver, none can enter, and the card has no work of it.
 */
#ifndef LOADLINE_SHIM_RESIDENCY_QUIET_H
#define LOADLINE_SHIM_RESIDENCY_QUIET_H

#include <stdint.h>

#include "shim/device_state.h"
#include <stddef.h>

struct ll_quiet {
	struct ll_quiet_wait *wait; /* its thread still waits for the card, or its result was not read; NULL: none */
};

/*
 * Shuts the calls that use the card (shim/time/driver_calls.h), and waits until the program is quiet. Returns 0: it is,
 * and the calls are shut until ll_driver_calls_open. Else -EBUSY or the kernel's error, and why: the calls are open.
 * If a host function may need a thread that is stopped, the program goes on for a moment, and is stopped again, in all
 * for about two seconds.
 */
int ll_quiet_reach(struct ll_quiet *quiet, struct ll_device_state *dev, uint64_t deadline_ns, char *why,
		   size_t why_size);

#endif
