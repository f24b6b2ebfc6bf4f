/*
 * hold_policy.h - when a card is held and when not: the state machine of `hold`.
 *
 *   RELEASED  no context on the card. Every hold begins here.
 *   OPENING   a context is being made, which takes seconds.
 *   YIELDED   there is a context, and no kernels run.
 *   HOLDING   kernels run.
 *   ENDED     the hold has ended on request, for good.
 *
 * The caller ticks it in every pass of its loop with what its sensors saw, and does what the verdict says:
 *   START    launch kernels        (YIELDED, OPENING -> HOLDING)
 *   STOP     launch no more        (HOLDING -> YIELDED, ENDED)
 *   RELEASE  close the context     (-> RELEASED, ENDED)
 *   REOPEN   make a context        (RELEASED -> OPENING); is_open or has_open_failed says how it went
 * A verdict names an action once. Its state is already the new one.
 *
 * What makes it stop, by mode:
 *   foreign work, or a new process    yield
 *   no sensor works                   yield: readings have failed for blind_after, and own kernels are no sensor;
 *                                     fill: readings have failed for blind_after, because they set its level
 *   too hot, slowdown, lost context   always
 *
 * What makes it start or go on:
 *   after foreign work                none was seen for resume_after
 *   after heat or slowdown            the cause has been gone for back_off
 *   a lost or failed context          after back_off; or at once, if another card was the cause (is_bystander) and this
 *                                     has not happened within back_off
 * In yield mode a load without a working sensor does not start. A load that has been stopped for release_after without
 * a break closes its context.
 *
 * Own kernels are sensors only while they run. If the load is stopped and readings fail, it waits resume_after since
 * foreign work was last seen, and then its first kernels look.
 *
 * Idle target: after idle_after without any foreign work, in any mode, the target is idle_target until foreign work is
 * seen again.
 *
 * If the machine slept (has_slept, or more than gap_ns between two ticks), every timer restarts, because what was seen
 * before the sleep is out of date.
 *
 * The struct has no pointers and is in the caller's memory. Times are ns of one clock; 0 in a *_seen_ns means never.
 */
#ifndef LOADLINE_RULES_HOLD_HOLD_POLICY_H
#define LOADLINE_RULES_HOLD_HOLD_POLICY_H

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

/* Why the state is what it is. ll_hold_reason_text has the text for the log. */
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

/* What saw foreign work, the quickest first. */
enum ll_hold_sensor {
	LL_SENSOR_NONE,
	LL_SENSOR_LATE,     /* an own kernel started late */
	LL_SENSOR_GAP,      /* an own kernel met a gap */
	LL_SENSOR_GOVERNED, /* a governed program says that it has work */
	LL_SENSOR_PROCESS,  /* a process arrived */
	LL_SENSOR_MEMORY,   /* the memory of others grew */
	LL_SENSOR_UTIL,     /* utilisation is over our own */
};

struct ll_hold_policy_config {
	enum ll_hold_mode mode;
	uint64_t resume_after_ns;
	uint64_t release_after_ns; /* 0: never */
	uint64_t blind_after_ns;   /* 0: the default, 5 s */
	uint64_t back_off_ns;      /* 0: the default, 30 s */
	uint64_t gap_ns;           /* 0: the default, 5 s */
	bool has_kernel_sensor;    /* own kernels see foreign work: not as an MPS client, not without a card clock */
	double max_temperature_c;  /* 0: not watched */
	double hysteresis_c;  /* the card counts as cool below max_temperature_c - hysteresis_c; 0: the default, 5 */
	double target;        /* in the metric's unit */
	bool has_idle_target; /* false with a curve, unless asked for */
	double idle_target;
	uint64_t idle_after_ns;
};

struct ll_hold_input {
	uint64_t now_ns;          /* never 0. A step backwards counts as no time. */
	uint64_t foreign_seen_ns; /* when foreign work or a new process was last seen */
	enum ll_hold_sensor foreign_sensor;
	/* foreign work up to here would have been seen; quiet time counts up to here. 0: now_ns */
	uint64_t looked_until_ns;
	uint64_t readings_seen_ns; /* when NVML's utilisation was last read */
	double temperature_c;      /* NAN: unknown */
	bool is_slowdown;
	bool is_open;         /* there is a sound context */
	bool has_open_failed; /* the context that REOPEN asked for could not be made */
	bool is_bystander;    /* that, or the loss of the context, was because of another card */
	bool has_slept;
	bool is_end_requested;
};

struct ll_hold_verdict {
	enum ll_hold_action action;
	enum ll_hold_state state;
	enum ll_hold_reason reason;
	enum ll_hold_sensor sensor; /* with LL_HOLD_REASON_FOREIGN */
	bool is_idle_target;
	double target;    /* target or idle_target; with a curve only valid if is_idle_target */
	uint64_t next_ns; /* when the next timer ends. The caller ticks by then; a later tick may look like a sleep. */
};

struct ll_hold_policy {
	struct ll_hold_policy_config config;
	enum ll_hold_state state;
	enum ll_hold_reason reason;
	enum ll_hold_sensor sensor;
	bool has_ticked;
	bool has_readings; /* since the timers started */
	bool is_hot;
	bool has_trouble; /* heat or slowdown: now, or within back_off */
	bool has_closed;  /* ENDED: a verdict has said RELEASE */
	enum ll_hold_reason trouble;
	uint64_t last_ns;
	uint64_t begin_ns;       /* first tick, or last restart of the timers */
	uint64_t foreign_ns;     /* the newest foreign_seen_ns */
	uint64_t quiet_since_ns; /* since when resume_after counts; 0: there is nothing to wait for */
	uint64_t readings_ns;    /* last readings, or begin_ns */
	uint64_t trouble_ns;     /* last tick with heat or slowdown */
	uint64_t retry_ns;       /* no context is made before this */
	uint64_t at_once_ns;     /* when a context was last tried again at once; 0: never */
	uint64_t stopped_ns;     /* since when no kernels run */
};

void ll_hold_policy_init(struct ll_hold_policy *policy, const struct ll_hold_policy_config *config);

/* Decides once. Always fills *ret_verdict. */
void ll_hold_policy_tick(struct ll_hold_policy *policy, const struct ll_hold_input *input,
			 struct ll_hold_verdict *ret_verdict);

/* Returns "foreign work", "no sensor of foreign work answers" and so on; never NULL. */
const char *ll_hold_reason_text(enum ll_hold_reason reason);

/* Returns "late", "gap", "governed", "process", "memory", "util" or "none"; never NULL. */
const char *ll_hold_sensor_name(enum ll_hold_sensor sensor);

/* Returns "holding", "yielded", "released", "opening" or "ended"; never NULL. */
const char *ll_hold_state_name(enum ll_hold_state state);

#endif
