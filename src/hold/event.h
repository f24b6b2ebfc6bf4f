/*
 * event.h - what happened on a card, for whoever prints, records or counts it.
 *
 * Governors put events, one reader takes them; an event is a plain copy. When the reader is too slow, samples are
 * dropped first, never state changes.
 */
#ifndef LOADLINE_HOLD_EVENT_H
#define LOADLINE_HOLD_EVENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/hold_policy.h"
#include "control/summary.h"
#include "driver/cards.h"

enum ll_event_kind {
	LL_EVENT_STATE, /* opened, first kernel: the verdict and text say what */
	LL_EVENT_SAMPLE,
	LL_EVENT_SETTLE,
	LL_EVENT_YIELD,
	LL_EVENT_RESUME,
	LL_EVENT_RELEASE,
	LL_EVENT_FAULT,   /* something is wrong; text says what. The hold goes on if it can. */
	LL_EVENT_SUMMARY, /* the card's last */
};

/* What is known of the card at the moment; NAN: not known. */
struct ll_hold_status {
	enum ll_hold_state state;
	enum ll_hold_reason reason;
	enum ll_hold_sensor sensor;
	bool is_idle_target;
	bool is_foreign;
	double level;         /* the metric's last reading: ratio or watts */
	double target;        /* of now, ratio or watts */
	double command;       /* duty cycle ordered from the pacer */
	double util;          /* NVML, ratio */
	double own_util;      /* own kernels' share of the same window */
	double sm, occupancy; /* GPM, ratio */
	double tensor, dram;  /* the same */
	double power_watts;
	double temperature_c;
	uint64_t memory_bytes; /* own GPU memory */
	uint64_t synthetic_busy_ns;
	double synthetic_joules;
	double energy_joules;
	uint64_t yields;
	char payload[16]; /* "vulkan", "cuda"; empty before the context */
};

struct ll_event {
	enum ll_event_kind kind;
	const struct ll_card *card;
	double time_s; /* since the start of the hold */
	uint64_t wall_ns;
	struct ll_hold_status status;
	double settle_s;                  /* LL_EVENT_SETTLE */
	struct ll_summary_result summary; /* LL_EVENT_SUMMARY */
	int code;                         /* LL_EVENT_SUMMARY: 0, or the -errno the card ended with */
	char text[400];
	char hint[200];
};

enum { LL_EVENT_SLOTS = 512 };

struct ll_event_queue {
	pthread_mutex_t lock;
	int fd; /* readable (an eventfd) while events wait */
	size_t head, tail;
	struct ll_event slots[LL_EVENT_SLOTS];
};

int ll_event_queue_init(struct ll_event_queue *queue, struct ll_err *err);
void ll_event_queue_fini(struct ll_event_queue *queue);
void ll_event_put(struct ll_event_queue *queue, const struct ll_event *event);

/* The same in two steps, for many at once: one wake-up of the reader. */
void ll_event_add(struct ll_event_queue *queue, const struct ll_event *event);
void ll_event_ring(struct ll_event_queue *queue);

/* False: none waits. */
bool ll_event_take(struct ll_event_queue *queue, struct ll_event *ret_event);

/* "sample", "yield", … */
const char *ll_event_name(enum ll_event_kind kind);

#endif
