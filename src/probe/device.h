/*
 * device.h - a worker's side of the card: a context, the kernel, and the execution of an order.
 *
 * The context is like that of most programs: nothing in it is made smaller, so it takes as much memory as theirs.
 * Records are in the card's own memory, and are copied when all kernels have ended, so that writing them disturbs
 * nothing.
 */
#ifndef LOADLINE_PROBE_DEVICE_H
#define LOADLINE_PROBE_DEVICE_H

#include <stdint.h>

#include "driver/cards.h"
#include "probe/page.h"

struct ll_err;

struct ll_probe_device {
	const struct ll_cuda *cuda;
	struct ll_cu_context *context;
	struct ll_cu_function *kernel;
	uint32_t sm_count;
	uint32_t full_blocks;   /* of LL_PROBE_FULL_THREADS that fit on the card at once */
	ll_cu_deviceptr memory; /* of the last order, and before it room for one tiny kernel's records */
	uint64_t memory_bytes;
	int least_priority, greatest_priority;
};

/* Makes the context and runs the kernel once. An error carries the driver's own name for it; device is for fini either
 * way. */
int ll_probe_device_init(struct ll_probe_device *device, const struct ll_card *card, struct ll_err *err);
void ll_probe_device_fini(struct ll_probe_device *device);

/*
 * Launches what the page's order has for this worker, waits for it and puts the accounts into the page. Every thread
 * that the order counts meets the others at the page's barrier, also when something is wrong before.
 */
int ll_probe_device_run(struct ll_probe_device *device, struct ll_probe_page *page, uint32_t worker,
			struct ll_err *err);

#endif
