/*
 * governor.h - the thread that decides for one card: sensors -> policy -> controller -> pacer.
 *
 * It ticks 20 times a second while kernels run, and about every 2 s once they have not run for 2 s. The pacer wakes it
 * at once when it has seen something. It puts everything that it decides into the queue of events, and keeps the
 * report of its hold socket up to date.
 */
#ifndef LOADLINE_HOLD_GOVERNOR_H
#define LOADLINE_HOLD_GOVERNOR_H

#include "hold/config.h"
#include "hold/event.h"

struct ll_governor;
struct ll_places;
struct ll_hold_socket;
struct ll_worker;

struct ll_governor_config {
	const struct ll_hold_config *hold;
	const struct ll_card *card;
	const struct ll_places *places; /* where loadlined may be; NULL: nowhere */
	struct ll_hold_socket *hold_socket;
	struct ll_worker *worker; /* shared with other cards; NULL: this card gets one of its own */
	struct ll_event_queue *events;
	uint64_t start_ns; /* of the hold; every time_s counts from here */
};

/* Opens the sensors and makes the pacer. What config points to must outlive the governor. */
int ll_governor_new(const struct ll_governor_config *config, struct ll_governor **ret_governor, struct ll_err *err);

/* Starts the thread. Call it once, after all governors of a shared worker are made, because they add its lanes. */
int ll_governor_start(struct ll_governor *governor, struct ll_err *err);

/* Asks the thread to end its kernels, close the context and put the summary. Returns at once. */
void ll_governor_end(struct ll_governor *governor);

/* Joins the thread and frees. NULL is fine. False: the thread did not end by deadline_ns, because a driver call hangs;
 * nothing is freed then. */
bool ll_governor_free(struct ll_governor *governor, uint64_t deadline_ns);

#endif
