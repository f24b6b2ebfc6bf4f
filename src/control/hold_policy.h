/*
 * hold_policy.h - when one card is held, and when not: the state machine of `hold`.
 *
 *   RELEASED  no context on the card. Where every hold begins.
 *   OPENING   a context is being made (seconds); nothing runs.
 *   YIELDED   a context, no kernels.
 *   HOLDING   kernels run.
 *   ENDED     for good, on request.
 *
 * The caller ticks it (often: every pass of its loop) with what its sensors saw and does what the verdict says:
 *   START    launch kernels        (YIELDED, OPENING -> HOLDING)
 *   STOP     launch no more        (HOLDING -> YIELDED, ENDED)
 *   RELEASE  close the context     (-> RELEASED, ENDED)
 *   REOPEN   make a context        (RELEASED -> OPENING); the caller reports it by is_open or has_open_failed
 * An action is given once; the state is already the new one.
 *
 * What makes it stop, by mode:
 *   foreign work or an arrival seen   yield
 *   cannot see                        yield: readings fail for blind_after and own kernels sense nothing either;
 *                                     fill: readings fail for blind_after (it tops up by them)
 *   too hot, slowdown, lost context   always
 * It starts, and goes on, after resume_after without foreign work; after heat and slowdown when the cause has been gone
 * for back_off; and a context that was lost or could not be made is tried again after back_off, or at once when that
 * was for another card's sake (is_bystander) and the first time in back_off. A load that cannot see
 * does not start in yield mode. Stopped for release_after without a break it gives its context back.
 *
 * Own kernels sense only while they run: stopped and with readings failing, resume_after since the last sight of
 * foreign work is all there is, and the first kernels will tell.
 *
 * The idle target: after idle_after with no foreign work at all, in any mode, the target is idle_target until foreign
 * work is seen again.
 *
 * A sleep of the machine (has_slept, or more than gap_ns between ticks) restarts every timer: what was seen
 * before it proves nothing.
 *
 * Caller's memory, no pointers. Times are one clock's ns; 0 in a *_seen_ns means never.
 */
#ifndef LOADLINE_CONTROL_HOLD_POLICY_H
#define LOADLINE_CONTROL_HOLD_POLICY_H

#include <stdbool.h>
#include <stdint.h>

enum ll_hold_mode { LL_HOLD_MODE_YIELD, LL_HOLD_MODE_FILL, LL_HOLD_MODE_IGNORE };

enum ll_hold_state {
	LL_HOLD_RELEASED,
	LL_HOLD_OPENING,
	LL_HOLD_YIELDED,
	LL_HOLD_HOLDING,
	LL_HOLD_ENDED,
};

enum ll_hold_action {
	LL_HOLD_ACT_NONE,
	LL_HOLD_ACT_START,
	LL_HOLD_ACT_STOP,
	LL_HOLD_ACT_RELEASE,
	LL_HOLD_ACT_REOPEN,
};

/* Why the state is what it is; ll_hold_reason_text has the words for the log. */
enum ll_hold_reason {
	LL_HOLD_REASON_START,       /* nothing has happened yet */
	LL_HOLD_REASON_QUIET,       /* no foreign work for resume_after */
	LL_HOLD_REASON_FOREIGN,     /* foreign work; the sensor is in the verdict */
	LL_HOLD_REASON_BLIND,       /* no sensor works */
	LL_HOLD_REASON_TOO_HOT,     /* at max_temperature_c or over */
	LL_HOLD_REASON_SLOWDOWN,    /* the card slows itself down: heat or power */
	LL_HOLD_REASON_LOST,        /* the context is lost */
	LL_HOLD_REASON_OPEN_FAILED, /* a context could not be made */
	LL_HOLD_REASON_LONG_YIELD,  /* released after release_after of yielding */
	LL_HOLD_REASON_REQUEST,     /* told to end */
};

/* What saw foreign work, quickest first. */
enum ll_hold_sensor {
	LL_SENSOR_NONE,
	LL_SENSOR_LATE,    /* an own kernel started late */
	LL_SENSOR_GAP,     /* an own kernel met a gap */
	LL_SENSOR_LEDGER,  /* another claim on the card wants to run */
	LL_SENSOR_PROCESS, /* a process arrived */
	LL_SENSOR_MEMORY,  /* memory not ours grew */
	LL_SENSOR_UTIL,    /* utilisation over our own */
};

struct ll_hold_policy_config {
	enum ll_hold_mode mode;
	uint64_t resume_after_ns;
	uint64_t release_after_ns; /* 0: never */
	uint64_t blind_after_ns;   /* 0: the default, 5 s */
	uint64_t back_off_ns;      /* 0: the default, 30 s */
	uint64_t gap_ns;           /* 0: the default, 5 s */
	bool has_kernel_sensor; /* own kernels tell of foreign work (not as an MPS client, not without a card clock) */
	double max_temperature_c; /* 0: not watched */
	double hysteresis_c;      /* 0: the default, 5: cool again below max - 5 */
	double target;            /* metric's unit */
	bool has_idle_target;     /* false with a curve, unless asked for */
	double idle_target;
	uint64_t idle_after_ns;
};

struct ll_hold_input {
	uint64_t now_ns;          /* never 0, never goes backwards (a step back counts as no time passed) */
	uint64_t foreign_seen_ns; /* last instant at which foreign work, or an arrival, was sensed */
	enum ll_hold_sensor foreign_sensor;
	uint64_t looked_until_ns;  /* up to here foreign work would have been sensed: quiet counts as far; 0: now */
	uint64_t readings_seen_ns; /* last instant at which NVML's readings (utilisation) were got */
	double temperature_c;      /* NAN: unknown */
	bool is_slowdown;
	bool is_open;         /* there is a sound context */
	bool has_open_failed; /* the opening asked for by REOPEN failed */
	bool is_bystander;    /* that, or the loss of the context, was for another card's sake */
	bool has_slept;
	bool is_end_requested;
};

struct ll_hold_verdict {
	enum ll_hold_action action;
	enum ll_hold_state state;
	enum ll_hold_reason reason;
	enum ll_hold_sensor sensor; /* with LL_HOLD_REASON_FOREIGN */
	bool is_idle_target;
	double target;    /* target or idle_target; with a curve only meaningful when is_idle_target */
	uint64_t next_ns; /* the next timer runs out then: tick by that time, or it looks like a sleep */
};

struct ll_hold_policy {
	struct ll_hold_policy_config config;
	enum ll_hold_state state;
	enum ll_hold_reason reason;
	enum ll_hold_sensor sensor;
	bool has_ticked;
	bool has_readings; /* since the timers began */
	bool is_hot;
	bool has_trouble; /* heat or slowdown has not yet been gone for back_off */
	bool has_closed;  /* ENDED: RELEASE has been given */
	enum ll_hold_reason trouble;
	uint64_t last_ns;
	uint64_t begin_ns;       /* first tick, or last restart of the timers */
	uint64_t foreign_ns;     /* the newest foreign_seen_ns */
	uint64_t quiet_since_ns; /* 0: there is nothing to wait for */
	uint64_t readings_ns;    /* last readings, or begin_ns */
	uint64_t trouble_ns;     /* last tick with heat or slowdown */
	uint64_t retry_ns;       /* no opening before this */
	uint64_t at_once_ns;     /* when an opening was last let through at once; 0: never */
	uint64_t stopped_ns;     /* since when no kernels run */
};

void ll_hold_policy_init(struct ll_hold_policy *policy, const struct ll_hold_policy_config *config);

/* One pass. Always fills *ret_verdict. */
void ll_hold_policy_tick(struct ll_hold_policy *policy, const struct ll_hold_input *input,
			 struct ll_hold_verdict *ret_verdict);

/* "foreign work", "no sensor of foreign work answers", ...; never NULL. */
const char *ll_hold_reason_text(enum ll_hold_reason reason);

/* "late", "gap", "ledger", "process", "memory", "util", "none"; never NULL. */
const char *ll_hold_sensor_name(enum ll_hold_sensor sensor);

/* "holding", "yielded", "released", "opening", "ended"; never NULL. */
const char *ll_hold_state_name(enum ll_hold_state state);

#endif
