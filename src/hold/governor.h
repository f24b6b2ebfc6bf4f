/*
 * governor.h - the thread that decides for one card: sensors -> policy -> controller -> pacer.
 *
 * Ticks 20 times a second while kernels run and about once in two seconds when they have not for 2 s, and at once when
 * the pacer has seen something. Everything it decides leaves as events; the ledger's claim is kept up to date on the
 * way.
 */
#ifndef LOADLINE_HOLD_GOVERNOR_H
#define LOADLINE_HOLD_GOVERNOR_H

#include "hold/config.h"
#include "hold/event.h"

struct ll_claim;
struct ll_governor;
struct ll_ledger;
struct ll_worker;

struct ll_governor_config {
	const struct ll_hold_config *hold;
	const struct ll_card *card;
	struct ll_ledger *ledger;
	const char *ledger_folder; /* where it is: the payload's process opens it once more */
	struct ll_claim *claim;
	struct ll_worker *worker; /* for a payload that shares one; NULL: this card's has one of its own */
	struct ll_event_queue *events;
	uint64_t start_ns; /* of the hold: zero of all time_s */
};

/* Opens the sensors and makes the pacer. What config points to must outlive the governor. */
int ll_governor_new(const struct ll_governor_config *config, struct ll_governor **ret_governor, struct ll_err *err);

/* Starts the thread. Once, and after all governors of a shared worker are made: it knows its lanes by then. */
int ll_governor_start(struct ll_governor *governor, struct ll_err *err);

/* Asks it to end: kernels end, context destroyed, summary put. Returns at once. */
void ll_governor_end(struct ll_governor *governor);

/* Joins it. False: it did not end until deadline_ns (a driver call hangs); its memory is then left alone. */
bool ll_governor_free(struct ll_governor *governor, uint64_t deadline_ns);

#endif
