/*
 * daemon.h - starts, finds and ends an MPS control daemon at a place.
 *
 *     struct ll_mps_place place;
 *     ll_mps_place_at(ll_driver_sim_folder(driver), "/tmp/llp.4711", &place, err);
 *     ll_mps_daemon_start(&place, &(struct ll_mps_start){.uuids = uuids, .count = 1}, 5 * LL_NS_PER_S, &pid, err);
 *     ... run clients with the variables of ll_mps_variables_make ...
 *     ll_mps_daemon_stop(&place, true, 10 * LL_NS_PER_S, NULL, err);
 *
 * These functions change no card's compute mode (exclusive.h) and keep no record (session.h). So a private daemon in a
 * temporary folder needs nothing else, and no root.
 *
 * A daemon is identified by the process id in nvidia-cuda-mps-control.pid, in its pipe folder, and by its start time.
 * So a file that a killed daemon left is not taken for a daemon.
 */
#ifndef LOADLINE_MPS_DAEMON_H
#define LOADLINE_MPS_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "mps/place.h"

struct ll_err;

struct ll_mps_start {
	const char *const *uuids; /* the cards that clients see, in this order; NULL: all */
	size_t count;
	double compute_percent; /* default active thread percentage of every client; 0: not set (100) */
	uint64_t memory_bytes;  /* limit of device memory of every client on each of the cards; 0: none */
	bool has_user;          /* start the server for this user at once, so that the first client need not wait */
	uid_t user;
};

struct ll_mps_daemon {
	pid_t pid;
	uint64_t start_ticks; /* field 22 of /proc/PID/stat */
	uid_t owner;
};

/* Finds the daemon. -ESRCH: there is no daemon: there is no file, or a dead daemon left it. */
int ll_mps_daemon_find(const struct ll_mps_place *place, struct ll_mps_daemon *ret_daemon, struct ll_err *err);

/* Whether a program with this process's environment becomes the client of a daemon: one runs where
 * CUDA_MPS_PIPE_DIRECTORY says, else in NVIDIA's folder. */
bool ll_mps_daemon_is_met(void);

/*
 * Makes the place, starts the daemon, waits until it answers, sets the limits, and reads them back. Returns when the
 * daemon answers or has ended, and after within_ns at the latest. If it fails, it ends what it has started. ret_daemon
 * may be NULL. -EALREADY: a daemon runs here. -ENOENT: there is no control program. -ETIMEDOUT. -EIO: the daemon
 * failed; err has its reason.
 */
int ll_mps_daemon_start(const struct ll_mps_place *place, const struct ll_mps_start *start, uint64_t within_ns,
			struct ll_mps_daemon *ret_daemon, struct ll_err *err);

/*
 * Ends the daemon and its servers, and waits until their processes are gone. First the daemon is asked to quit. With
 * force, processes that have not ended after half of the time get SIGTERM and then SIGKILL, clients get an error from
 * CUDA, and *ret_was_signalled is set; it may be NULL. Without force and with clients it does nothing and fails with
 * -EBUSY; err names the clients. -ESRCH: no daemon runs; files that a dead one left are removed. -ETIMEDOUT: a process
 * is still there after within_ns; err names it.
 */
int ll_mps_daemon_stop(const struct ll_mps_place *place, bool force, uint64_t within_ns, bool *ret_was_signalled,
		       struct ll_err *err);

/*
 * Asks the daemon, whatever /proc shows of it. Returns 0 if it answers, else the error of ll_mps_ask. Without a control
 * pipe the error is -ECONNREFUSED, even if there was no time to ask.
 */
int ll_mps_daemon_answers(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_err *err);

#endif
