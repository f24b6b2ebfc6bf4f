/*
 * session.h - `mps start` and `mps stop` as a whole: the record, the compute modes and the daemon, in an order that may
 * be interrupted at any step.
 *
 *     start:  write the record -> set the modes -> start the daemon -> write its number into the record
 *     stop:   end the daemon -> put the modes back -> remove the record
 *
 * A record whose daemon is gone is a leftover. The next start or stop puts its modes back first. All of this is done
 * under a lock on the records' folder.
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
	const char *folder; /* of the records; it is made if it does not exist */
	const struct ll_mps_place *place;
};

struct ll_mps_wish {
	const struct ll_card *const *cards; /* the cards that the daemon shows, in this order; at least one */
	size_t count;
	bool is_exclusive; /* put them into exclusive-process mode */
	double compute_percent;
	uint64_t memory_bytes;
	bool has_user;
	uid_t user;
};

struct ll_mps_stopped {
	bool had_daemon;    /* a daemon was running */
	bool was_signalled; /* with force: the daemon did not end when asked, and was ended by signals */
	size_t restored;    /* cards whose compute mode was put back */
};

/*
 * Starts a daemon. Errors of ll_mps_daemon_start, ll_mps_exclusive_plan and ll_mps_exclusive_set. -EBUSY also if
 * another daemon has a card in exclusive mode, or if a card is in prohibited mode. After an error everything is as
 * before, unless err says otherwise.
 */
int ll_mps_session_start(const struct ll_mps_session *session, const struct ll_mps_wish *wish, uint64_t within_ns,
			 struct ll_mps_daemon *ret_daemon, struct ll_err *err);

/*
 * Ends the daemon at the place, and puts back the modes of this user's leftovers. Errors of ll_mps_daemon_stop; after
 * these the modes of its cards stay, because the daemon may still be at work. -ESRCH only if there was nothing to put
 * back either.
 */
int ll_mps_session_stop(const struct ll_mps_session *session, bool force, uint64_t within_ns,
			struct ll_mps_stopped *ret_stopped, struct ll_err *err);

/* Gives the records, for free(3), whose daemon is gone and which still have cards in exclusive mode. */
int ll_mps_session_leftovers(const struct ll_mps_session *session, struct ll_mps_record **ret_records,
			     size_t *ret_count, struct ll_err *err);

#endif
