/*
 * daemon.h - nvidia-cuda-mps-control as a daemon. One thread waits for commands of users, for programs that want to be
 * clients, and for its servers. It calls answer.h for a command and servers.h for the servers.
 */
#ifndef LOADLINE_SIM_MPS_DAEMON_H
#define LOADLINE_SIM_MPS_DAEMON_H

#include "mps/servers.h"

struct ll_err;

/*
 * Becomes the daemon of the pipe folder: takes its lock, joins the world, opens the pipes. -EBUSY: the folder has a
 * daemon already. -EINVAL and others: the folder cannot be used.
 */
int sim_mps_daemon_init(struct sim_mps_daemon *daemon, bool is_partitioned, struct ll_err *err);

/* Runs until `quit` or a signal. Returns when its servers have ended and its pipes are removed. */
void sim_mps_daemon_run(struct sim_mps_daemon *daemon);

#endif
