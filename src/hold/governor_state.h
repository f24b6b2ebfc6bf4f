/*
 * governor_state.h - a governor's state, for its own files: governor.c is the loop. It calls governor_act.c, which does
 * what the policy says and books what was used. Both call governor_tell.c, which puts the events.
 */
#ifndef LOADLINE_HOLD_GOVERNOR_STATE_H
#define LOADLINE_HOLD_GOVERNOR_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/err.h"
#include "hold/drive.h"
#include "hold/governor.h"
#include "hold/pacer.h"
#include "hold/sense.h"

struct ll_governor {
	struct ll_governor_config config;
	pthread_t thread;
	bool has_thread;
	atomic_bool is_ending;
	int wake_fd;

	struct ll_pacer *pacer;
	struct ll_sense sense;
	struct ll_drive drive;
	struct ll_hold_policy policy;
	struct ll_summary summary;
	struct ll_pacer_report report;
	struct ll_hold_verdict verdict;

	uint32_t generation;       /* of the pacer's orders */
	uint64_t held_since_ns;    /* 0: kernels are not running */
	uint64_t first_kernel_ns;  /* 0: none yet. The curve starts here. */
	uint64_t wait_until_ns;    /* --timeout: no memory for a context is a failure only after this */
	int64_t asleep_ns;         /* grows when the machine sleeps */
	uint64_t called_ns;        /* when the worker was last called to check its context */
	uint64_t busy_told_ns;     /* the part of report.busy_ns that is already in summary and hold_socket */
	double energy_told_joules; /* the same of the card's counter; NAN before the first reading */
	double target;             /* of now: ratio or watts */
	double command;            /* the duty ordered last */
	enum ll_pacer_state seen_state;
	uint32_t seen_kills;
	enum ll_hold_state last_state; /* of the tick before */
	enum ll_hold_reason last_reason;
	struct ll_hold_stranger stranger; /* that the hold last yielded to */
	bool has_settled;                 /* the event for it was put */
	bool has_left;                    /* the event that the level was left was put at least once */
	bool has_said_reach;
	bool has_said_blind;
	int code; /* the error it ends with */
	struct ll_err end_err;
};

/* ---- governor_tell.c ---- */

/* Returns the seconds from start to now; 0 if now is before start. */
double ll_governor_seconds(uint64_t start_ns, uint64_t now_ns);

/* Returns an event of this kind with the status of now. The caller fills in the rest and puts it. */
struct ll_event ll_governor_event(const struct ll_governor *gov, enum ll_event_kind kind);

/* Put an event of this kind with the status of now, and this text or this error. */
void ll_governor_tell(struct ll_governor *gov, enum ll_event_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void ll_governor_tell_err(struct ll_governor *gov, enum ll_event_kind kind, const struct ll_err *err);

/* Puts this tick's readings of the metric, and whether the level has settled. */
void ll_governor_tell_samples(struct ll_governor *gov);

/* Says once if the target is out of the payload's reach. */
void ll_governor_tell_reach(struct ll_governor *gov);

/* Says why it stopped holding, or cannot start. */
void ll_governor_tell_stop(struct ll_governor *gov);

/* Finds out which program it yields to. */
void ll_governor_find_stranger(struct ll_governor *gov);

/* ---- governor_act.c ---- */

/* Adds the busy time and energy since the last call to summary and to the report of hold_socket. Counts as a beat. */
void ll_governor_account(struct ll_governor *gov);

/* Reacts to a change of the payload's context: made, failed, lost or closed. */
void ll_governor_watch_context(struct ll_governor *gov, uint64_t now_ns);

/* Does the action that gov->verdict names. */
void ll_governor_act(struct ll_governor *gov, uint64_t now_ns);

#endif
