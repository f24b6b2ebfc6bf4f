/*
 * worker.h - one of the probe's processes: this program once more, with a context of its own.
 *
 * It is started as
 *
 *     argv[0] "loadline-probe: party 0"   what ps and nvidia-smi show
 *     argv[1] LL_PROBE_WORKER_WORD
 *     argv[2] its slot in the page
 *
 * with the page and two eventfds (page.h) at the descriptors below. It makes its context, reports READY or why it has
 * none, and then does what it is called for. It dies with the probe. Signals that a terminal sends to all processes are
 * blocked in it, because the probe ends it in order.
 */
#ifndef LOADLINE_PROBE_WORKER_H
#define LOADLINE_PROBE_WORKER_H

#include <stdbool.h>

struct ll_err;

#define LL_PROBE_WORKER_WORD "probe-worker"

enum { LL_PROBE_FD_PAGE = 3, LL_PROBE_FD_CALL, LL_PROBE_FD_ANSWER, LL_PROBE_FDS_END };

bool ll_probe_worker_is_asked(int argc, char **argv);

/* Returns when it is told to end. -EINVAL: a user has typed the word. */
int ll_probe_worker_main(int argc, char **argv, struct ll_err *err);

#endif
