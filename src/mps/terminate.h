/*
 * terminate.h - taking a client off its server.
 */
#ifndef LOADLINE_MPS_TERMINATE_H
#define LOADLINE_MPS_TERMINATE_H

#include <stdint.h>
#include <sys/types.h>

#include "mps/place.h"

struct ll_err;

/*
 * terminate_client for the server that has this client: its contexts are destroyed, its process goes on and gets an
 * error from its next CUDA call. The command has been seen to hang and refuses callers that come at once, so callers
 * take turns (a lock on the pipe folder). There are at most three tries; those that the daemon refuses because it takes
 * off another client do not count. All of it ends within the time. "0" is success and nothing else is. Nothing stronger
 * is ever done instead.
 *
 * -ESRCH: no such client (the text names those that are). -ETIMEDOUT: no try was answered. -EIO: the daemon's last
 * answer. -EAGAIN: another caller had the turn all the time.
 */
int ll_mps_client_end(const struct ll_mps_place *place, pid_t client, uint64_t within_ns, struct ll_err *err);

#endif
