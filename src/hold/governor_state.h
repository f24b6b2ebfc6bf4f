/*
 * governor_state.h - what a governor knows, shared by its own files alone: governor.c is the loop, governor_act.c does
 * what the policy says, governor_tell.c puts the events.
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

	uint32_t generation;
	uint64_t held_since_ns;   /* 0: kernels are not running */
	uint64_t first_kernel_ns; /* 0: none yet; zero of the curve */
	uint64_t wait_until_ns;   /* --wait: no memory for a context counts as failure only after this */
	int64_t asleep_ns;        /* grows when the machine sleeps */
	uint64_t beat_ns, sweep_ns;
	uint64_t called_ns;        /* the worker, to look at its context */
	uint64_t busy_told_ns;     /* of report.busy_ns, already in summary and claim */
	double energy_told_joules; /* of the card's counter; NAN before the first reading */
	double target;             /* of now */
	double command;
	enum ll_pacer_state seen_state;
	uint32_t seen_kills;
	bool has_settled;
	bool has_said_reach;
	bool has_said_blind;
	int code; /* the error it ends with */
	struct ll_err end_err;
};

/* ---- governor.c ---- */

/* Books what has been used since the last call: busy time, energy; keeps the claim up to date. */
void ll_governor_account(struct ll_governor *gov, uint64_t now_ns);

/* ---- governor_tell.c ---- */

/* Seconds from start to now, 0 when now is before. */
double ll_governor_seconds(uint64_t start_ns, uint64_t now_ns);

/* An event of this kind with the status of now; the caller adds the rest and puts it. */
struct ll_event ll_governor_event(const struct ll_governor *gov, enum ll_event_kind kind);

void ll_governor_tell(struct ll_governor *gov, enum ll_event_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void ll_governor_tell_err(struct ll_governor *gov, enum ll_event_kind kind, const struct ll_err *err);

/* This tick's readings of the metric, and settling. */
void ll_governor_tell_samples(struct ll_governor *gov);

/* A target out of the payload's reach, once. */
void ll_governor_tell_reach(struct ll_governor *gov);

/* Why it stopped holding. */
void ll_governor_tell_stop(struct ll_governor *gov);

/* ---- governor_act.c ---- */

/* Follows the payload's context as it is made, fails or is lost. */
void ll_governor_watch_context(struct ll_governor *gov, uint64_t now_ns);

/* Does the action of gov->verdict. */
void ll_governor_act(struct ll_governor *gov, uint64_t now_ns);

#endif
