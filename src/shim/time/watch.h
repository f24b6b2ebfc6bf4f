/*
 * watch.h - kernels that never end: `loadline run --max-kernel TIME[:kill]`.
 *
 * A kernel cannot be stopped. So the library reports it: the claim's note says for how long the kernel runs, and
 * `loadline status` shows the note. With :kill the library ends the program by SIGKILL, because a program that waits
 * for its card ends by nothing less. This is the only place where the library ends its host: the user asked for it.
 */
#ifndef LOADLINE_SHIM_TIME_WATCH_H
#define LOADLINE_SHIM_TIME_WATCH_H

#include <stdint.h>

struct ll_flow;

/* Looks at what runs, and reports it or ends the program. Called by the agent, under the flow's lock. */
void ll_watch_kernels(struct ll_flow *flow, uint64_t now_ns);

#endif
