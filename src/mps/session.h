/*
 * session.h - `mps start` and `mps stop` as a whole: record, compute modes, daemon, in an order that can be broken off
 * anywhere.
 *
 *     start:  write the record -> set the modes -> start the daemon -> write its number into the record
 *     stop:   end the daemon -> put the modes back -> remove the record
 *
 * A record whose daemon is gone is a leftover: whoever starts or stops next puts its modes back first. All of it is
 * done under a lock on the records' folder.
 */
#ifndef LOADLINE_MPS_SESSION_H
#define LOADLINE_MPS_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mps/daemon.h"
#include "mps/record.h"

struct ll_mps_session {
	const struct ll_driver *driver;
	const char *folder; /* of the records; made if it is not there */
	const struct ll_mps_place *place;
};

struct ll_mps_wish {
	const struct ll_card *const *cards; /* which the daemon shows, in this order; at least one */
	size_t count;
	bool is_exclusive; /* put them into exclusive-process mode */
	double compute_percent;
	uint64_t memory_bytes;
	bool has_user;
	uid_t user;
};

struct ll_mps_stopped {
	bool had_daemon;    /* there was one */
	bool was_signalled; /* it did not end when asked, and was ended by signals: only with force */
	size_t restored;    /* cards whose compute mode was put back */
};

/*
 * Errors of ll_mps_daemon_start, ll_mps_exclusive_plan and _set; -EBUSY also where another daemon has a card in
 * exclusive mode, or a card is in prohibited mode. When it fails everything is as it was, unless the text says
 * otherwise.
 */
int ll_mps_session_start(const struct ll_mps_session *session, const struct ll_mps_wish *wish, uint64_t within_ns,
			 struct ll_mps_daemon *ret_daemon, struct ll_err *err);

/*
 * Ends the daemon at the place and puts back what leftovers of this user say. Errors of ll_mps_daemon_stop, after which
 * the modes of its cards stay, for it may still be at work; -ESRCH only where there was nothing to put back either.
 */
int ll_mps_session_stop(const struct ll_mps_session *session, bool force, uint64_t within_ns,
			struct ll_mps_stopped *ret_stopped, struct ll_err *err);

/* The records whose daemon is gone and that have cards in exclusive mode still; for free(3). */
int ll_mps_session_leftovers(const struct ll_mps_session *session, struct ll_mps_record **ret_records,
			     size_t *ret_count, struct ll_err *err);

#endif
