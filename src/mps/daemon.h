/*
 * daemon.h - an MPS control daemon at a place: starting it, finding it, ending it.
 *
 *     struct ll_mps_place place;
 *     ll_mps_place_at(ll_driver_sim_folder(driver), "/tmp/llp.4711", &place, err);
 *     ll_mps_daemon_start(&place, &(struct ll_mps_start){.uuids = uuids, .count = 1}, 5 * LL_NS_PER_S, &pid, err);
 *     ... run clients with ll_mps_environment's variables ...
 *     ll_mps_daemon_stop(&place, true, 10 * LL_NS_PER_S, NULL, err);
 *
 * Nothing here touches a card's compute mode (exclusive.h does) or keeps a record (session.h does): a private daemon in a
 * temporary folder needs these calls alone, and no root.
 *
 * A daemon is known by the process id in its pipe folder's nvidia-cuda-mps-control.pid and by its start time: a file
 * that a killed daemon left is not taken for one.
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
	const char *const *uuids; /* the cards it shows to clients, in this order; NULL: all */
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

/* -ESRCH: no daemon at this place (no file, or one left by a dead daemon). */
int ll_mps_daemon_find(const struct ll_mps_place *place, struct ll_mps_daemon *ret_daemon, struct ll_err *err);

/*
 * Makes the place, starts the daemon, waits until it answers, sets the limits, reads them back. Returns when it
 * answers or has ended, at the latest after within_ns; where it fails, what it started is ended again.
 * ret_daemon may be NULL. -EALREADY: one runs here. -ENOENT: no control program. -ETIMEDOUT. -EIO: it says why not.
 */
int ll_mps_daemon_start(const struct ll_mps_place *place, const struct ll_mps_start *start, uint64_t within_ns,
			struct ll_mps_daemon *ret_daemon, struct ll_err *err);

/*
 * Ends the daemon and its servers. Without force -EBUSY when clients are there (the text names them), and nothing is
 * done. Asked politely first; with force, what is left of daemon and servers after half of the time gets SIGTERM and
 * then SIGKILL (clients get an error from CUDA), and *ret_was_signalled tells so; it may be NULL. Waits until their
 * processes are gone. -ESRCH: none runs (what a dead one left is removed). -ETIMEDOUT: some process is still there
 * after within_ns; the text names it.
 */
int ll_mps_daemon_stop(const struct ll_mps_place *place, bool force, uint64_t within_ns, bool *ret_was_signalled,
		       struct ll_err *err);

/* Whether the control pipe is there: of a daemon, or left by a dead one. Without it none runs here. */
bool ll_mps_daemon_has_pipe(const struct ll_mps_place *place);

/*
 * Whether a daemon answers here, whatever /proc shows of it. 0, or the error of ll_mps_ask. Without a control pipe
 * -ECONNREFUSED, however little time there was.
 */
int ll_mps_daemon_answers(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_err *err);

#endif
