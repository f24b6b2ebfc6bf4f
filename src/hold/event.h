/*
 * event.h - what happened on a card, and the queue that takes it from the governors to the one reader.
 *
 * An event is a plain copy. If the reader is too slow, the queue drops samples. A quarter of its slots is kept for
 * everything else. All functions may be called from any thread.
 */
#ifndef LOADLINE_HOLD_EVENT_H
#define LOADLINE_HOLD_EVENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/cards.h"
#include "hold/stranger.h"
#include "rules/hold/hold_policy.h"
#include "rules/hold/summary.h"

enum ll_event_kind {
	LL_EVENT_STATE, /* a change of state, such as an open context or the first kernel; text says which */
	LL_EVENT_SAMPLE,
	LL_EVENT_SETTLE, /* the level has settled; again only after LL_EVENT_LEAVE */
	LL_EVENT_LEAVE,  /* the level has left the band after it had settled; text says how far */
	LL_EVENT_YIELD,
	LL_EVENT_RESUME,
	LL_EVENT_RELEASE,
	LL_EVENT_FAULT,   /* something is wrong; text says what. The hold goes on if it can. */
	LL_EVENT_SUMMARY, /* the last event of a card */
};

/* What is known of the card now; NAN: unknown. */
struct ll_hold_status {
	enum ll_hold_state state;
	enum ll_hold_reason reason;
	enum ll_hold_sensor sensor;
	bool is_idle_target;
	bool is_foreign;
	double level;         /* the metric's last reading: ratio or watts */
	double target;        /* of now: ratio or watts */
	double command;       /* the ordered duty, 0..1 */
	double util;          /* from NVML, ratio */
	double own_util;      /* the share of the same window in which own kernels ran */
	double sm, occupancy; /* from GPM, ratio */
	double tensor, dram;  /* from GPM, ratio */
	double power_watts;
	double temperature_c;
	uint64_t memory_bytes; /* GPU memory that the hold takes */
	uint64_t synthetic_busy_ns;
	double synthetic_joules;
	double energy_joules;
	uint64_t yields;
	double yielded_seconds;
	char payload[16]; /* "vulkan", "cuda"; empty before the context */
};

struct ll_event {
	enum ll_event_kind kind;
	const struct ll_card *card;
	double time_s;    /* since the start of the hold */
	uint64_t wall_ns; /* ll_wall_ns() */
	struct ll_hold_status status;
	double settle_s;                  /* LL_EVENT_SETTLE */
	struct ll_summary_result summary; /* LL_EVENT_SUMMARY */
	struct ll_hold_stranger stranger; /* LL_EVENT_SUMMARY: the program that the hold last yielded to */
	int code;                         /* LL_EVENT_SUMMARY: 0, or the -errno that ended the card */
	char text[400];
	char hint[320];
};

enum { LL_EVENT_SLOTS = 512 };

struct ll_event_queue {
	pthread_mutex_t lock;
	int fd; /* an eventfd, readable while events wait */
	size_t head, tail;
	struct ll_event slots[LL_EVENT_SLOTS];
};

/* Fails with the errno of eventfd(2). */
int ll_event_queue_init(struct ll_event_queue *queue, struct ll_err *err);
void ll_event_queue_fini(struct ll_event_queue *queue);
/* Copies the event into the queue and wakes the reader. */
void ll_event_put(struct ll_event_queue *queue, const struct ll_event *event);

/* The two halves of ll_event_put, so that many events cost one wake-up: add them all, then wake the reader. */
void ll_event_add(struct ll_event_queue *queue, const struct ll_event *event);
void ll_event_wake(struct ll_event_queue *queue);

/* Takes the oldest event. False: none waits. */
bool ll_event_take(struct ll_event_queue *queue, struct ll_event *ret_event);

/* Returns "state", "sample", "settle" and so on: the name in JSON lines. */
const char *ll_event_name(enum ll_event_kind kind);

#endif
