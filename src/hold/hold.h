/*
 * hold.h - hold one or several cards at their load line: claims, governors, events.
 *
 *     ll_hold_new(...);
 *     while (poll(ll_hold_fd(hold)) ...) while (ll_hold_take(hold, &event)) ...
 *     ll_hold_end(hold);        the summaries come as the last events
 *     ll_hold_free(hold, ...);
 *
 * For each card a thread, the governor (governor.h), which decides, and while it has a context a process, the worker
 * (pacer.h), which launches. Cards that may run Vulkan share one worker (worker.h); with one such card it is its own.
 * The caller's thread only reads events.
 */
#ifndef LOADLINE_HOLD_HOLD_H
#define LOADLINE_HOLD_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hold/config.h"
#include "hold/event.h"

struct ll_hold;

/*
 * Whether this card can be held as configured, without touching it. -EBUSY: exclusive-process or prohibited mode, where
 * a context of ours would lock everyone else out. -ENOSYS: the metric does not exist here (the text says which do).
 * -ENODEV: a card in MIG mode, whose slices are to be named. -EINVAL: more watts than its power limit.
 */
int ll_hold_check(const struct ll_hold_config *config, const struct ll_card *card, struct ll_err *err);

/*
 * Checks and claims every card, then starts holding them. All or nothing: a card that cannot be claimed ends the call,
 * with -EBUSY naming who holds it. config and cards must outlive the hold.
 */
int ll_hold_new(const struct ll_hold_config *config, const struct ll_card *const *cards, size_t count,
		struct ll_hold **ret_hold, struct ll_err *err);

/* Readable while events wait. */
int ll_hold_fd(const struct ll_hold *hold);
bool ll_hold_take(struct ll_hold *hold, struct ll_event *ret_event);

/* Ends every card; returns at once. */
void ll_hold_end(struct ll_hold *hold);

/* Joins everything. False: some driver call did not return by deadline_ns; then exit the process without further ado.
 */
bool ll_hold_free(struct ll_hold *hold, uint64_t deadline_ns);

#endif
