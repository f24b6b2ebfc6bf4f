/*
 * watch.h - kernels that never end: `loadline run --max-kernel TIME[:kill]`.
 *
 * A kernel cannot be stopped, so what can be done about one is to tell: the claim's note says for how long it runs,
 * and `loadline status` shows it. With :kill the program is ended by SIGKILL, as nothing less ends one that waits for
 * its card. That is the one place where the library ends its host: because the user asked for it.
 */
#ifndef LOADLINE_SHIM_TIME_WATCH_H
#define LOADLINE_SHIM_TIME_WATCH_H

#include <stdint.h>

struct ll_flow;

/* Looks at what runs, and tells or acts. From the agent, under the flow's lock. */
void ll_watch_kernels(struct ll_flow *flow, uint64_t now_ns);

#endif
